"""Which checks a session chose, as its command line says, and which of the site's that means."""

from __future__ import annotations

import argparse
import functools
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fabricheck import partitions
from fabricheck.coverage import check_trees, checks_folders
from fabricheck.errors import FabricheckError
from fabricheck.results.session import Case, Session

#: The sets, the smallest first: what one has, the next ones have too.
SETS = ("smoke", "node", "full")


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

    A mode of ReFrame chooses in the configuration: then it is the smallest set that all checks are
    in. Of a session that was killed nobody says it.
    """
    if session is None or not session.command:
        return Chosen(by_name=True)
    given = _given(session.command)
    names = tuple(given.names)
    partly = bool(names or given.parts)
    if given.tags:
        return Chosen(tuple(given.tags), names, partly)
    if given.mode:
        return Chosen(_common_set(cases), names, partly)
    return Chosen((), names, partly)


def _given(command: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("-t", "--tag", dest="tags", action="append", default=[])
    parser.add_argument("-n", "--name", dest="names", action="append", default=[])
    parser.add_argument("--mode", default="")
    for option in ("-x", "-T", "-E", "-p"):
        long = {"-x": "--exclude", "-T": "--exclude-tag", "-E": "--filter-expr", "-p": "--prgenv"}
        parser.add_argument(option, long[option], dest="parts", action="append", default=[])
    for option in ("--failed", "--restore-session"):
        parser.add_argument(option, dest="parts", action="append_const", const=option)
    for flag in ("-r", "-v", "-R", "-l"):
        parser.add_argument(flag, action="store_true", default=False)
    try:
        words = shlex.split(command)[1:]
    except ValueError:
        words = command.split()[1:]
    try:
        return parser.parse_known_args(words)[0]
    except (argparse.ArgumentError, SystemExit):
        return parser.parse_args([])


def _common_set(cases: Iterable[Case]) -> tuple[str, ...]:
    tags = [case.tags for case in cases]
    return next(((name,) for name in SETS if tags and all(name in one for one in tags)), ())


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
