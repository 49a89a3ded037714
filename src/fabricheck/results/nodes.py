"""Some nodes of a session alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fabricheck.errors import NotFoundError
from fabricheck.nodelists import folded
from fabricheck.results.entry import Entry
from fabricheck.results.session import Session


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
