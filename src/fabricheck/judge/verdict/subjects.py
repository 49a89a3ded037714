"""The subject of a verdict, a node, a simulated one or nodes that a check joined: its results."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from fabricheck.judge.verdict.attempts import Attempt
from fabricheck.results.reading import Source

#: The name of an unknown node, as for a job that was never placed.
UNPLACED = "(no node)"


@dataclass(frozen=True)
class JudgedNode:
    """The subject of a verdict: a node, a simulated node on it, or nodes that a check joined.

    node: its name, or the host list of several, whose results blame none of them.
    simulated: the partition that simulates; None for the machine itself, whose partitions all
    measure the same hardware.
    """

    node: str
    simulated: str | None = None


@dataclass
class NodeResults:
    """The results of one subject.

    by_source: those of each session, or of documents outside any session. scheduled: whether a
    scheduler named the node.
    """

    by_source: list[tuple[Source, list[Attempt]]] = field(default_factory=list)
    scheduled: bool = False

    @cached_property
    def attempts(self) -> list[Attempt]:
        """All attempts, in the order in which their sessions began."""
        return sorted(
            (attempt for _, attempts in self.by_source for attempt in attempts),
            key=lambda attempt: attempt.began,
        )

    @property
    def sources(self) -> list[Source]:
        """The sessions, and the sources of documents outside any session."""
        return [source for source, _ in self.by_source]

    @property
    def partitions(self) -> list[str]:
        """The partitions of its cases, in their order."""
        return list(
            dict.fromkeys(
                attempt.case.where for attempt in self.attempts if attempt.case is not None
            )
        )
