"""Whose results are whose: the attempts of each node, measured and simulated apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fabricheck.judge.verdict.attempts import Attempt
from fabricheck.judge.verdict.sources import Gathered, Source
from fabricheck.results.entry import Entry
from fabricheck.results.session import REPETITION, Case
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
class Results:
    """What there is of one subject. scheduled: whether a scheduler gave the node its name."""

    attempts: list[Attempt] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    scheduled: bool = False

    @property
    def partitions(self) -> list[str]:
        """The partitions of its cases, in their order."""
        return list(dict.fromkeys(one.case.where for one in self.attempts if one.case is not None))


def group(gathered: Gathered, expected_nodes: Iterable[str] = ()) -> dict[Subject, Results]:
    """Return the results of each node, those that have none too.

    :param expected_nodes: nodes that have to be there besides those that the session names.
    """
    simulated = _simulated_partitions(gathered)
    found: dict[Subject, Results] = defaultdict(Results)
    for source in gathered.sources:
        names = _names(source)
        for case, entry in _of_source(source):
            node, scheduled = _node(source, case, entry, names)
            subject = Subject(node, _simulation(case, entry, simulated))
            results = found[subject]
            results.attempts += attempts(case, entry, source.start)
            results.scheduled |= scheduled
            if source not in results.sources:
                results.sources.append(source)
    for results in found.values():
        results.attempts.sort(key=lambda one: one.began)
    _add_silent(found, gathered, expected_nodes, simulated)
    return dict(found)


def _of_source(source: Source) -> Iterable[tuple[Case | None, Entry | None]]:
    for case in source.cases:
        yield case, source.entries.get(id(case))
    for entry in source.loose:
        yield None, entry


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


def _names(source: Source) -> dict[str, bool]:
    """Return the nodes that a session's results name, and whether a scheduler named them."""
    found: dict[str, bool] = {}
    for case, entry in _of_source(source):
        named = (case.node if case else None) or (entry.node if entry else None)
        if named is not None:
            found[named] = True
    return found


def _node(
    source: Source, case: Case | None, entry: Entry | None, names: Mapping[str, bool]
) -> tuple[str, bool]:
    """Return the node of a case, and whether a scheduler gave it that name."""
    named = (case.node if case else None) or (entry.node if entry else None)
    if named is not None:
        return named, True
    if len(names) == 1:
        return next(iter(names)), True
    if entry is not None and entry.document is not None:
        return entry.document["host"]["hostname"], False
    if names:
        return UNPLACED, False
    # A simulated node has a host name of its own, so the partition's documents are asked.
    hosts = {
        one.document["host"]["hostname"]
        for one in source.entries.values()
        if one.document is not None and case and one.case and one.case.where == case.where
    }
    if len(hosts) == 1:
        return hosts.pop(), False
    return (source.session.hostname, False) if source.session else (UNPLACED, False)


def _simulated_partitions(gathered: Gathered) -> frozenset[str]:
    """Return the partitions that simulate: the site says so, else all their documents do."""
    clocks: dict[str, set[str]] = defaultdict(set)
    wheres = set()
    for source in gathered.sources:
        for case in source.cases:
            wheres.add(case.where)
        for entry in source.entries.values():
            if entry.case is not None and entry.document is not None:
                clocks[entry.case.where].add(entry.document["clock"])
    return frozenset(where for where in wheres if _simulates(where, clocks.get(where, set())))


def _simulates(where: str, clocks: set[str]) -> bool:
    known = partitions.known(where)
    if known:
        return "simulated" in known.get("features", ())
    return clocks == {"simulated"}


def _simulation(case: Case | None, entry: Entry | None, simulated: frozenset[str]) -> str | None:
    """Return the partition that simulates; None where the results are of the machine.

    The clock of a document decides: what is simulated never speaks for a machine.
    """
    where = case.where if case is not None else ""
    if entry is not None and entry.document is not None:
        return (where or "no partition") if entry.document["clock"] == "simulated" else None
    return where if where in simulated else None


def _add_silent(
    found: dict[Subject, Results],
    gathered: Gathered,
    expected_nodes: Iterable[str],
    simulated: frozenset[str],
) -> None:
    there = {subject.node for subject in found}
    kinds = {subject.simulated for subject in found} or {None}
    if gathered.partition is not None:
        kind = gathered.partition if _simulates(gathered.partition, set()) else None
        kind = gathered.partition if gathered.partition in simulated else kind
    else:
        # Where anything was measured, the node itself is what is missed.
        kind = None if None in kinds or len(kinds) > 1 else next(iter(kinds))
    for name in (*gathered.asked, *expected_nodes):
        if name in gathered.asked:
            for subject in list(found):
                found[subject].scheduled |= subject.node == name
        if name not in there:
            there.add(name)
            found[Subject(name, kind)] = Results(scheduled=True)
    if UNPLACED not in there and any(one.node is None for one in gathered.problems):
        found[Subject(UNPLACED, kind)] = Results()
