"""Whose results are whose: the attempts of each node, measured and simulated apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from fabricheck.judge.verdict.attempts import Attempt
from fabricheck.results.entry import Entry
from fabricheck.results.reading import Results, Source
from fabricheck.results.session import REPETITION, Case
from fabricheck.results.table import Check
from fabricheck.site import partitions

#: What a node is called of which nobody knows the name: a job that was never placed.
UNPLACED = "(no node)"


@dataclass(frozen=True)
class Subject:
    """What a verdict is on: a node, or a node that is simulated on it.

    simulated: the partition that simulates; None of the machine itself, whose partitions all
    measure the same hardware.
    """

    node: str
    simulated: str | None = None


@dataclass
class NodeResults:
    """What there is of one subject.

    by_source: what each session, or documents outside of one, has of it. scheduled: whether a
    scheduler gave the node its name.
    """

    by_source: list[tuple[Source, list[Attempt]]] = field(default_factory=list)
    scheduled: bool = False

    @cached_property
    def attempts(self) -> list[Attempt]:
        """All attempts, in the order in which their sessions began."""
        every = (one for _, own in self.by_source for one in own)
        return sorted(every, key=lambda one: one.began)

    @property
    def sources(self) -> list[Source]:
        """The sessions, and what documents outside of one are of."""
        return [source for source, _ in self.by_source]

    @property
    def partitions(self) -> list[str]:
        """The partitions of its cases, in their order."""
        return list(dict.fromkeys(one.case.where for one in self.attempts if one.case is not None))


def group(results: Results, expected_nodes: Iterable[str] = ()) -> dict[Subject, NodeResults]:
    """Return the results of each node, those that have none too.

    :param expected_nodes: nodes that have to be there besides those that the session names.
    """
    simulated = _simulated_partitions(results)
    found: dict[Subject, NodeResults] = defaultdict(NodeResults)
    for source in results.sources:
        start = source.start
        here: dict[Subject, list[Attempt]] = defaultdict(list)
        for row in source.checks:
            subject = Subject(row.node or _machine(source), _simulation(row, simulated))
            here[subject] += attempts(row.case, row.entry, start)
        for subject, own in here.items():
            found[subject].by_source.append((source, own))
            found[subject].scheduled |= subject.node in source.named
    _add_silent(found, results, expected_nodes, simulated)
    return dict(found)


def attempts(case: Case | None, entry: Entry | None, began: float) -> list[Attempt]:
    """Return the attempts of a case, ReFrame's retries first; of a document of no case itself.

    :param began: when the session began, in s since 1970.
    """
    if case is None:
        program = entry.document["program"]["name"] if entry and entry.document else "a document"
        return [Attempt(program, None, entry, began)]
    check = REPETITION.sub("", case.name)
    # The documents of earlier attempts were written over by the later ones.
    return [
        *(Attempt(check, one, None, began) for one in case.earlier),
        Attempt(check, case, entry, began),
    ]


def _machine(source: Source) -> str:
    """Return the node of what names none: ReFrame's own host, where a scheduler gave none."""
    if source.named or source.session is None:
        return UNPLACED
    return source.session.hostname


def _simulated_partitions(results: Results) -> frozenset[str]:
    """Return the partitions that simulate: the site says so, else all their documents do."""
    clocks: dict[str, set[str]] = defaultdict(set)
    for row in results.checks:
        if row.case is not None:
            own = clocks[row.case.where]
            if row.clock is not None:
                own.add(row.clock)
    return frozenset(where for where, own in clocks.items() if _simulates(where, own))


def _simulates(where: str, clocks: set[str]) -> bool:
    known = partitions.known(where)
    if known:
        return "simulated" in known.get("features", ())
    return clocks == {"simulated"}


def _simulation(row: Check, simulated: frozenset[str]) -> str | None:
    """Return the partition that simulates; None where the results are of the machine.

    The clock of a document decides: what is simulated never speaks for a machine.
    """
    where = row.case.where if row.case is not None else ""
    if row.clock is not None:
        return (where or "no partition") if row.clock == "simulated" else None
    return where if where in simulated else None


def _add_silent(
    found: dict[Subject, NodeResults],
    results: Results,
    expected_nodes: Iterable[str],
    simulated: frozenset[str],
) -> None:
    there = {subject.node for subject in found}
    kinds = {subject.simulated for subject in found} or {None}
    partition = next((one.partition for one in results.lists if one.partition is not None), None)
    if partition is not None:
        kind = partition if partition in simulated or _simulates(partition, set()) else None
    else:
        # Where anything was measured, the node itself is what is missed.
        kind = None if None in kinds or len(kinds) > 1 else next(iter(kinds))
    for subject, own in found.items():
        own.scheduled |= subject.node in results.requested
    for name in (*results.requested, *expected_nodes):
        if name not in there:
            there.add(name)
            found[Subject(name, kind)] = NodeResults(scheduled=True)
    if UNPLACED not in there and any(one.node is None for one in results.problems):
        found[Subject(UNPLACED, kind)] = NodeResults()
