"""Nodes by name, as the scheduler writes many of them: ``node[1-4,9]``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from fabricheck.errors import NotFoundError, UsageError
from fabricheck.results.entry import Entry
from fabricheck.results.session import Session


def named(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names that are meant: ``node[1-3]``, ``node1,node7``.

    :raises UsageError: when a text is no list of nodes.
    """
    found: dict[str, None] = {}
    for text in texts:
        try:
            found |= dict.fromkeys(NodeSet(text, resolver=RESOLVER_NOGROUP))
        except NodeSetException as error:
            raise UsageError(f"{text!r} is no list of nodes: {error}.") from None
    return tuple(found)


def together(names: Iterable[str | None]) -> str:
    """Return names as one list, shortly: ``node[1-3,7]``; empty for none."""
    known = [name for name in names if name is not None]
    try:
        return str(NodeSet.fromlist(known, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        # A report may have any text there.
        return ", ".join(known)


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
    lacking = together(set(wanted) - {entry.node for entry in found})
    if lacking:
        raise NotFoundError(f"There is no result of {lacking} in {what}.")
    return found
