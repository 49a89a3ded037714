"""What chose the checks of sessions taken together, and which of the site's checks that means."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from fabricheck import partitions, sets
from fabricheck.coverage import check_trees, checks_folders
from fabricheck.errors import FabricheckError
from fabricheck.results.session import Session
from fabricheck.sets import Choice


def choice_of(sessions: Iterable[Session | None]) -> Choice:
    """Return what chose the checks of all sessions: the set that all of them are the whole of.

    A job of a pipeline runs one check by its name, and of a session that was killed nobody says it:
    of these no set is the whole.
    """
    each = dict.fromkeys(one.choice if one is not None else Choice((), None) for one in sessions)
    if len(each) == 1:
        return next(iter(each))
    return Choice(tuple(dict.fromkeys(word for one in each for word in one.words)), None)


def checks(where: str, name: str | None) -> tuple[str, ...]:
    """Return the checks that the site expects in a partition, by class, of those of a set.

    None of a partition of no site of this repository, and none where no set is to be whole.

    :param where: ``system:partition``. name: the set.
    """
    names: Sequence[str] = partitions.extras(where).get("expected_checks", ())
    if name is None:
        return ()
    if name == sets.EVERYTHING:
        return tuple(names)
    tags = _tags()
    return tuple(one for one in names if name in tags.get(one, ()))


@functools.cache
def _tags() -> dict[str, frozenset[str]]:
    try:
        return partitions.tags_of_checks(list(check_trees(checks_folders())))
    except FabricheckError:
        # A check file that is broken now says nothing of a session that ran.
        return {}
