"""Some nodes of a session alone, and those that it has nothing of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from fabricheck.core.errors import NotFoundError
from fabricheck.core.nodelists import folded
from fabricheck.results.entry import Entry
from fabricheck.results.nodes_asked import NAME, read
from fabricheck.results.session import Case, Session


def with_silent(
    outputs: Sequence[Path], entries: Sequence[Entry], cases: Sequence[Case] = ()
) -> list[Entry]:
    """Return entries, and one for each node that a session was to measure and has nothing of.

    :param outputs: where its file of nodes may lie, in order. cases: all of it.
    :raises InvalidInputError: when that can not be read.
    """
    file = next((path / NAME for path in outputs if (path / NAME).is_file()), None)
    there = {one.node for one in entries} | {one.node for one in cases}
    silent = [name for name in read(file).nodes if name not in there] if file else []
    problems = [NotFoundError(f"There is no result of node {name}.") for name in silent]
    return [*entries, *(Entry(None, None, None, problem) for problem in problems)]


def before_reading(session: Session, wanted: Sequence[str]) -> Session:
    """Return a session with the cases that can be of some nodes: a document may yet tell it."""
    if not wanted:
        return session
    return session.only(case for case in session.cases if case.node in (None, *wanted))


def after_reading(entries: Iterable[Entry], wanted: Sequence[str], what: str) -> list[Entry]:
    """Return the entries of some nodes, all where none are named.

    :param what: what they are of, for a sentence.
    :raises NotFoundError: when there is none of a node.
    """
    if not wanted:
        return list(entries)
    found = [entry for entry in entries if entry.node in wanted]
    lacking = folded(sorted(set(wanted) - {entry.node for entry in found}))
    if lacking:
        raise NotFoundError(f"There is no result of {lacking} in {what}.")
    return found
