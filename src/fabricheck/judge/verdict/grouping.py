"""Assignment of results to nodes: the attempts of each, measured and simulated separately."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import is_several
from fabricheck.judge.verdict.checks import Attempt, Key, key
from fabricheck.results.entry import Entry
from fabricheck.results.reading import Results, Source, answered
from fabricheck.results.series import BETWEEN_NODES
from fabricheck.results.session import REPETITION, Case
from fabricheck.results.table import Check
from fabricheck.site import partitions

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


def ran(sources: Iterable[Source]) -> Mapping[tuple[str, bool], Mapping[Key, None]]:
    """Return by partition the checks that ran on one node, and those that ran on several.

    The reports tell it: documents, of which there may be thousands, are not read.
    """
    found = grouped(
        ((case.where, BETWEEN_NODES in case.experiments or is_several(case.node or "")), key(each))
        for source in sources
        for case in source.cases
        for each in attempts(case, None, 0)
        if not each.skipped
    )
    return {place: dict.fromkeys(keys) for place, keys in found.items()}


def group(sources: Sequence[Source]) -> dict[JudgedNode, NodeResults]:
    """Return the results of sources by node."""
    clocks = grouped(
        (row.where, row.clock)
        for source in sources
        for row in source.checks
        if row.case is not None and row.clock is not None
    )
    found: dict[JudgedNode, NodeResults] = defaultdict(NodeResults)
    for source in sources:
        here = grouped(
            (JudgedNode(row.node or _machine(source), _simulation(row, clocks)), attempt)
            for row in source.checks
            for attempt in attempts(row.case, row.entry, source.start)
        )
        for subject, its in here.items():
            found[subject].by_source.append((source, its))
            found[subject].scheduled |= subject.node in source.named
    return dict(found)


def attempts(case: Case | None, entry: Entry | None, began: float) -> list[Attempt]:
    """Return the attempts of a case, retries included; for a document without a case, the document.

    :param began: when the session began, in s since 1970.
    """
    if case is None:
        program = entry.document["program"]["name"] if entry and entry.document else "a document"
        return [Attempt(program, None, entry, began)]
    check = REPETITION.sub("", case.name)
    # Later attempts overwrote the documents of earlier ones.
    return [
        *(Attempt(check, earlier, None, began) for earlier in case.earlier),
        Attempt(check, case, entry, began),
    ]


def _machine(source: Source) -> str:
    """Return the node of a result without one: ReFrame's own host, if no scheduler named a node."""
    if source.named or source.reported is None:
        return UNPLACED
    return source.session.hostname


def _simulates(where: str, clocks: Collection[str]) -> bool:
    """Whether a partition simulates: by the site file, or else all its documents do."""
    known = partitions.simulates(where)
    return set(clocks) == {"simulated"} if known is None else known


def _simulation(row: Check, clocks: Mapping[str, Sequence[str]]) -> str | None:
    """Return the partition that simulates; None for results of the machine.

    The clock of a document decides, so a simulated result never counts for a machine.

    :param clocks: by partition, the clocks of the documents.
    """
    if row.clock is not None:
        return (row.where or "no partition") if row.clock == "simulated" else None
    return row.where if _simulates(row.where, clocks.get(row.where, ())) else None


def silent(
    there: Collection[JudgedNode],
    results: Results,
    expected_nodes: Iterable[str],
) -> list[JudgedNode]:
    """Return the nodes without any result.

    :param there: the nodes with a result.
    :param expected_nodes: nodes that must exist besides the requested ones.
    """
    names = {subject.node for subject in there}
    kinds = {subject.simulated for subject in there} or {None}
    partition = next(
        (nodes.partition for nodes in results.lists if nodes.partition is not None), None
    )
    if partition is not None:
        kind = partition if partition in kinds or _simulates(partition, ()) else None
    else:
        # If anything was measured, the node itself is what is missing.
        kind = None if None in kinds or len(kinds) > 1 else next(iter(kinds))
    missed = dict.fromkeys((*results.requested, *expected_nodes))
    if any(problem.node is None for problem in results.problems):
        missed[UNPLACED] = None
    return [JudgedNode(name, kind) for name in missed if not answered(name, names)]
