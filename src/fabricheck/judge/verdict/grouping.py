"""Assignment of results to nodes: the attempts of each, measured and simulated separately."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from fabricheck.core.nodelists import is_several
from fabricheck.judge.verdict.checks import Attempt, Key, key
from fabricheck.results.entry import Entry
from fabricheck.results.reading import Results, Source, answered
from fabricheck.results.session import REPETITION, Case
from fabricheck.results.table import Check
from fabricheck.site import partitions

#: The name of an unknown node, as for a job that was never placed.
UNPLACED = "(no node)"


@dataclass(frozen=True)
class Subject:
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
        every = (one for _, own in self.by_source for one in own)
        return sorted(every, key=lambda one: one.began)

    @property
    def sources(self) -> list[Source]:
        """The sessions, and the sources of documents outside any session."""
        return [source for source, _ in self.by_source]

    @property
    def partitions(self) -> list[str]:
        """The partitions of its cases, in their order."""
        return list(dict.fromkeys(one.case.where for one in self.attempts if one.case is not None))


@dataclass
class Survey:
    """Facts of some sources that also affect other nodes.

    clocks: by partition, the clocks of its documents. ran: by partition, the checks that ran there
    on one node; of_several: those of several nodes.
    """

    clocks: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    ran: dict[str, dict[Key, None]] = field(default_factory=lambda: defaultdict(dict))
    of_several: dict[str, dict[Key, None]] = field(default_factory=lambda: defaultdict(dict))

    @classmethod
    def by(cls, sources: Iterable[Source]) -> Survey:
        """Read the documents of sources and return their facts."""
        told = cls()
        for source in sources:
            for row in source.checks:
                if row.case is None:
                    continue
                clocks = told.clocks[row.case.where]
                if row.clock is not None:
                    clocks.add(row.clock)
                several = row.node is not None and is_several(row.node)
                ran = told.of_several if several else told.ran
                ran[row.case.where] |= {
                    key(one): None for one in attempts(row.case, row.entry, 0) if not one.skipped
                }
        return told

    @classmethod
    def together(cls, several: Iterable[Survey]) -> Survey:
        """Return the combined facts of several surveys."""
        told = cls()
        for one in several:
            for where, clocks in one.clocks.items():
                told.clocks[where] |= clocks
            for where, ran in one.ran.items():
                told.ran[where] |= ran
            for where, ran in one.of_several.items():
                told.of_several[where] |= ran
        return told

    @cached_property
    def simulated(self) -> frozenset[str]:
        """The partitions that simulate, by the site file or else by all their documents."""
        return frozenset(where for where, own in self.clocks.items() if _simulates(where, own))


def group(sources: Iterable[Source], simulated: frozenset[str]) -> dict[Subject, NodeResults]:
    """Return the results of sources by node.

    :param simulated: the partitions that simulate.
    """
    found: dict[Subject, NodeResults] = defaultdict(NodeResults)
    for source in sources:
        start = source.start
        here: dict[Subject, list[Attempt]] = defaultdict(list)
        for row in source.checks:
            subject = Subject(row.node or _machine(source), _simulation(row, simulated))
            here[subject] += attempts(row.case, row.entry, start)
        for subject, own in here.items():
            found[subject].by_source.append((source, own))
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
        *(Attempt(check, one, None, began) for one in case.earlier),
        Attempt(check, case, entry, began),
    ]


def _machine(source: Source) -> str:
    """Return the node of a result without one: ReFrame's own host, if no scheduler named a node."""
    if source.named or source.session is None:
        return UNPLACED
    return source.session.hostname


def _simulates(where: str, clocks: set[str]) -> bool:
    known = partitions.known(where)
    if known:
        return "simulated" in known.get("features", ())
    return clocks == {"simulated"}


def _simulation(row: Check, simulated: frozenset[str]) -> str | None:
    """Return the partition that simulates; None for results of the machine.

    The clock of a document decides, so a simulated result never counts for a machine.
    """
    where = row.case.where if row.case is not None else ""
    if row.clock is not None:
        return (where or "no partition") if row.clock == "simulated" else None
    return where if where in simulated else None


def silent(
    there: Collection[Subject],
    results: Results,
    expected_nodes: Iterable[str],
    simulated: frozenset[str],
) -> list[Subject]:
    """Return the nodes without any result.

    :param there: the nodes with a result.
    :param expected_nodes: nodes that must exist besides the requested ones.
    :param simulated: the partitions that simulate.
    """
    names = {subject.node for subject in there}
    kinds = {subject.simulated for subject in there} or {None}
    partition = next((one.partition for one in results.lists if one.partition is not None), None)
    if partition is not None:
        kind = partition if partition in simulated or _simulates(partition, set()) else None
    else:
        # If anything was measured, the node itself is what is missing.
        kind = None if None in kinds or len(kinds) > 1 else next(iter(kinds))
    missed = dict.fromkeys((*results.requested, *expected_nodes))
    if any(one.node is None for one in results.problems):
        missed[UNPLACED] = None
    return [Subject(name, kind) for name in missed if not answered(name, names)]
