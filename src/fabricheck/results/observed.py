"""The results of one partition together, and the node model that they are of."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from fabricheck.core.errors import FabricheckError
from fabricheck.node import NodeModel
from fabricheck.node import load as load_node
from fabricheck.results import table
from fabricheck.results.entry import Entry
from fabricheck.results.model import ResultDocument
from fabricheck.results.session import Case, Session
from fabricheck.results.table import Check, Metric, Series
from fabricheck.site import partitions

Item = TypeVar("Item")

#: How a part of a node is named in a document: "h200 (2 of 8 devices)".
_PART = re.compile(r"(?P<name>\S+) \((?P<count>\d+) of \d+ devices\)")


@dataclass(frozen=True, eq=False)
class Observed:
    """What a session has of one partition on one node: all measured, or all simulated.

    where: ``system:partition``; empty for documents outside of any session.
    on: the scheduler's name of the node; None where nobody tells one.
    cases: its cases, those without a document too. entries: their documents, or what is wrong.
    node: the healthy node model of the partition; None where it has none, or it cannot be read.
    apart: what tells it from others of the same ``where``, in words; empty where it is alone.
    session: that it is of; None of one without a report, and outside of any.
    """

    where: str
    cases: tuple[Case, ...]
    entries: tuple[Entry, ...]
    node: NodeModel | None
    apart: str = ""
    on: str | None = None
    session: Session | None = None

    @cached_property
    def documents(self) -> tuple[ResultDocument, ...]:
        """The documents that can be read."""
        return tuple(entry.document for entry in self.entries if entry.document is not None)

    @cached_property
    def points(self) -> tuple[Series, ...]:
        """All series whose data was right, of runs without an injected fault."""
        return tuple(point for point in self.series if point.right)

    @cached_property
    def left_out(self) -> Mapping[str, int]:
        """By experiment how many series are no points, for wrong data or an injected fault."""
        return Counter(point.experiment for point in self.series if not point.right)

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """All series of its documents, those with wrong data too."""
        return tuple(
            one
            for entry in self.entries
            for one in table.series(table.check_row(None, entry.case, entry), self.node)
        )

    @cached_property
    def _metrics(self) -> Mapping[tuple[int, int], Sequence[Metric]]:
        """By document and series the metrics that it is of."""
        found: dict[tuple[int, int], list[Metric]] = {}
        for entry in self.entries:
            for metric in table.metrics(table.check_row(None, entry.case, entry), self.node):
                for index in metric.series or ():
                    found.setdefault((id(entry.document), index), []).append(metric)
        return found

    def metrics_of(self, point: Series) -> Sequence[Metric]:
        """Return the metrics that one of its series is of, as far as they are known."""
        return self._metrics.get((id(point.document), point.index), ())

    @cached_property
    def _by_experiment(self) -> Mapping[str, Sequence[Series]]:
        found: dict[str, list[Series]] = {}
        for point in self.points:
            found.setdefault(point.experiment, []).append(point)
        return found

    def select(self, **fields: Any) -> list[Series]:
        """Return the points with these values of their properties (`results.table.Series`)."""
        # Nearly all ask for one experiment, and there are thousands of points.
        match fields.get("experiment"):
            case str(experiment):
                return table.select(self._by_experiment.get(experiment, ()), **fields)
            case _:
                return table.select(self.points, **fields)

    @property
    def runtimes(self) -> frozenset[str]:
        """The runtimes of its documents: rocm, cuda, host or sim."""
        return frozenset(document["program"]["runtime"] for document in self.documents)

    @property
    def simulated(self) -> bool:
        """Whether its results are of a simulated node; without any document the site tells."""
        if not self.documents:
            return "simulated" in partitions.known(self.where).get("features", ())
        return any(document["clock"] == "simulated" for document in self.documents)

    @property
    def kind(self) -> str:
        """What its numbers are: ``simulated`` or ``measured``."""
        return "simulated" if self.simulated else "measured"

    @property
    def overlay(self) -> str | None:
        """What changed the simulated node, by name; None for a healthy one."""
        for document in self.documents:
            node = document.get("node")
            if node and node["overlay"]:
                return node["overlay"]["name"]
        return None


def observe(session: Session | None, entries: Sequence[Entry]) -> list[Observed]:
    """Return the partitions of a session in the order of its cases, then other documents.

    Each node of a partition stands by itself. What was measured never stands together with what was
    simulated; documents outside of a session stand together only where their runtime, node model
    and overlay are the same, too.

    :param session: None for documents outside of one.
    :param entries: its documents, as `ResultsFolder.entries` gives them.
    """
    cases = list(session.cases) if session else [entry.case for entry in entries if entry.case]
    of_case = {id(entry.case): entry for entry in entries if entry.case is not None}
    here: dict[str, list[Case]] = {}
    for case in cases:
        here.setdefault(case.where, []).append(case)
    found: list[Observed] = []
    for where, held in here.items():
        on_nodes = by_node((case, _node_name(case, of_case.get(id(case)))) for case in held)
        for on, own in on_nodes.items():
            theirs = [of_case[id(case)] for case in own if id(case) in of_case]
            found += _parts(session, where, on, own, theirs, len(on_nodes) > 1)
    loose = by_node((entry, entry.node) for entry in entries if entry.case is None)
    for on, documents in loose.items():
        found += _parts(session, "", on, [], documents, len(loose) > 1)
    return found


def told_apart(every: Iterable[tuple[str, Observed]]) -> tuple[Observed, ...]:
    """Return the partitions of several sessions, each by a name of its own.

    Those of the same name are told apart by their node, else by their session, whose name stands
    before each.
    """
    found = list(every)
    for by_session in (False, True):
        names = Counter((one.where, one.apart) for _, one in found)
        for number, (session, one) in enumerate(found):
            if names[one.where, one.apart] > 1:
                own = session if by_session else one.on or "no node known"
                apart = ", ".join(filter(None, (own, one.apart)))
                found[number] = session, replace(one, apart=apart)
    return tuple(one for _, one in found)


def _node_name(case: Case, entry: Entry | None) -> str | None:
    return case.node if entry is None else entry.node


def by_node(
    items: Iterable[tuple[Item, str | None]], there: Iterable[str | None] = ()
) -> dict[str | None, list[Item]]:
    """Return the items of each node; those of none are with the only one, where there is one.

    :param there: nodes that there are besides those of the items.
    """
    found: dict[str | None, list[Item]] = {}
    every = list(items)
    for item, node in every:
        found.setdefault(node, []).append(item)
    named = {node for node in (*found, *there) if node is not None}
    if len(named) == 1 and None in found:
        return {named.pop(): [item for item, _ in every]}
    return found


def _parts(
    session: Session | None,
    where: str,
    on: str | None,
    cases: Sequence[Case],
    entries: Sequence[Entry],
    several: bool,
) -> Iterator[Observed]:
    """Yield what one node has of a partition, by what its documents are of.

    :param several: whether others of the partition stand beside it.
    """
    groups = _alike(entries)
    # Cases without a document are with the first.
    elsewhere = {id(one.case) for group in groups[1:] for one in group}
    for index, group in enumerate(groups):
        theirs = {id(one.case) for one in group}
        held = (
            case
            for case in cases
            if id(case) in theirs or (not index and id(case) not in elsewhere)
        )
        documents = [one.document for one in group if one.document is not None]
        apart = [(on or "no node known")] if several else []
        if len(groups) > 1:
            apart.append(_words(documents[0], not where))
        node = node_of(where, documents)
        yield Observed(where, tuple(held), tuple(group), node, ", ".join(apart), on, session)


def _alike(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return entries by what their documents are of; those that cannot be read with the first."""
    groups: dict[tuple[str | None, ...], list[Entry]] = {}
    for entry in entries:
        if entry.document is not None:
            groups.setdefault(_what_of(entry.document, entry.case is None), []).append(entry)
    unread = [entry for entry in entries if entry.document is None]
    if not groups or not unread:
        return list(groups.values()) or [unread]
    first, *others = groups.values()
    kept = {id(entry) for entry in (*first, *unread)}
    return [[entry for entry in entries if id(entry) in kept], *others]


def _what_of(document: ResultDocument, alone: bool) -> tuple[str | None, ...]:
    """Return what has to be the same for documents to stand together.

    :param alone: whether no partition says what it ran on.
    """
    node: Mapping[str, Any] = document.get("node") or {}
    overlay: Mapping[str, Any] = node.get("overlay") or {}
    ran_on = (document["program"]["runtime"], node.get("name"), overlay.get("name"))
    return (document["clock"], *(ran_on if alone else ()))


def _words(document: ResultDocument, alone: bool) -> str:
    return ", ".join(word for word in _what_of(document, alone) if word)


def series_of(row: Check) -> Iterator[Series]:
    """Yield the rows of the series of a check; their link classes are those of its node model."""
    if row.document is not None:
        where = row.case.where if row.case is not None else ""
        yield from table.series(row, node_of(where, [row.document]))


def metrics_of(row: Check) -> Iterator[Metric]:
    """Yield the rows of the metrics of a check; of older sessions its node model tells series."""
    where = row.case.where if row.case is not None else ""
    yield from table.metrics(row, node_of(where, [row.document] if row.document else []))


def node_of(where: str, documents: Iterable[ResultDocument]) -> NodeModel | None:
    """Return the healthy node model that documents are of: they name it, else the site does."""
    for document in documents:
        simulated = document.get("node")
        if simulated:
            return _node(simulated["name"])
        if document["program"]["name"] == "topology" and "node" in document["options"]:
            return _node(str(document["options"]["node"]))
    site = partitions.known(where)
    name = site.get("extras", {}).get("node")
    devices: dict[str, Any] = next(iter(site.get("devices", [])), {})
    return None if name is None else _node(str(name), devices.get("num_devices"))


@functools.cache
def _node(stated: str, count: int | None = None) -> NodeModel | None:
    part = _PART.fullmatch(stated)
    if part:
        stated, count = part["name"], int(part["count"])
    try:
        node = load_node(stated)
        return node if count is None or count == len(node.devices) else node.part(count)
    except FabricheckError:
        # A model of another version of the suite: what needs it says that there is none.
        return None
