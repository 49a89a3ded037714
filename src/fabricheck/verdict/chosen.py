"""Which checks a session chose, as its command line says, and which of the site's that means."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fabricheck import partitions, sets
from fabricheck.coverage import check_trees, checks_folders
from fabricheck.errors import FabricheckError
from fabricheck.results.session import Case, Session


@dataclass(frozen=True)
class Chosen:
    """What chose the checks: tags (all of which a check has, as patterns), or names.

    tags: empty where all checks were chosen. by_name: whether a part was run on purpose, so that
    nobody can tell what is missing.
    """

    tags: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    by_name: bool = False

    @property
    def label(self) -> str:
        """What it is called."""
        if self.names:
            return f"names: {', '.join(self.names)}"
        part = " in part" if self.by_name else ""
        return f"{', '.join(self.tags) or 'all'}{part}"


def of_session(session: Session | None, cases: Iterable[Case]) -> Chosen:
    """Return what chose the checks of a session; of one without a report all that are known.

    A mode that is none of a set chooses in the configuration: then it is the smallest set that all
    checks are in. Of a session that was killed nobody says it.
    """
    if session is None:
        return Chosen(by_name=True)
    given = sets.given(session.command)
    if given is None:
        return Chosen()
    tags, names = given.tags, given.names
    if given.mode in sets.known():
        tags = (*tags, str(given.mode))
    elif given.mode is not None and not tags:
        tags = _common_set(cases)
    return Chosen(tags, names, given.in_part)


def _common_set(cases: Iterable[Case]) -> tuple[str, ...]:
    tags = [case.tags for case in cases]
    return next(((name,) for name in sets.known() if tags and all(name in one for one in tags)), ())


def expected(where: str, chosen: Chosen) -> tuple[str, ...]:
    """Return the checks that the site expects in a partition of those that were chosen, by class.

    None of a partition of no site of this repository, and none where a part was run on purpose.
    """
    if chosen.by_name:
        return ()
    names: Sequence[str] = partitions.extras(where).get("expected_checks", ())
    if not chosen.tags:
        return tuple(names)
    tags = _tags()
    # ReFrame looks for a tag as a pattern at the beginning.
    return tuple(
        name
        for name in names
        if all(any(re.match(one, tag) for tag in tags.get(name, ())) for one in chosen.tags)
    )


@functools.cache
def _tags() -> dict[str, frozenset[str]]:
    try:
        return partitions.tags_of_checks(list(check_trees(checks_folders())))
    except FabricheckError:
        # A check file that is broken now says nothing of a session that ran.
        return {}
