"""The results of one partition on one node, with the node model they belong to."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from fabricheck.core.errors import FabricheckError
from fabricheck.node import NodeModel
from fabricheck.node import load as load_node
from fabricheck.results import table
from fabricheck.results.entry import Entry
from fabricheck.results.model import ResultDocument
from fabricheck.results.series import has_runtime
from fabricheck.results.session import Case, Session
from fabricheck.results.session_checks import PartitionChecks
from fabricheck.results.table import Check, Metric, Series
from fabricheck.site import partitions, this_machine

Item = TypeVar("Item")

#: The name of a part of a node in a document: "h200 (2 of 8 devices)".
_PART = re.compile(r"(?P<name>\S+) \((?P<count>\d+) of \d+ devices\)")


@dataclass(frozen=True, eq=False)
class Observed:
    """A session's results of one partition on one node: all measured, or all simulated.

    where: ``system:partition``; empty for documents outside any session. on: the scheduler's name
    of the node; None where it is unknown. cases: its cases, including those without a document.
    entries: their documents, or the problems. node: the healthy node model of the partition; None
    where it has none, or it cannot be read. apart: what distinguishes it from others of the same
    ``where``, in words; empty for a single one. session: its session; None without a report, and
    outside any session. recorded: the checks that the session could select here, if it says.
    """

    where: str
    cases: tuple[Case, ...]
    entries: tuple[Entry, ...]
    node: NodeModel | None
    apart: str = ""
    on: str | None = None
    session: Session | None = None
    recorded: PartitionChecks | None = None

    @cached_property
    def documents(self) -> tuple[ResultDocument, ...]:
        """The documents that could be read."""
        return tuple(entry.document for entry in self.entries if entry.document is not None)

    @cached_property
    def points(self) -> tuple[Series, ...]:
        """The series with right data, of runs without an injected fault, by the default kernels."""
        return tuple(one for one in self.series if one.right and not one.variant)

    @cached_property
    def variants(self) -> tuple[Series, ...]:
        """The series of variants of the kernels, also with right data only."""
        return tuple(one for one in self.series if one.right and one.variant)

    @cached_property
    def left_out(self) -> Mapping[str, int]:
        """By experiment the number of series left out, for wrong data or an injected fault."""
        return Counter(point.experiment for point in self.series if not point.right)

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """All series of the documents, including those with wrong data."""
        return tuple(
            one
            for entry in self.entries
            for one in table.series(table.check_row(None, entry.case, entry), self.node)
        )

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of its cases that have a value."""
        entries = {id(entry.case): entry for entry in self.entries}
        rows = (table.check_row(None, case, entries.get(id(case))) for case in self.cases)
        return tuple(one for row in rows for one in table.metrics(row) if one.value is not None)

    @cached_property
    def _made_of(self) -> Mapping[tuple[int, int], Sequence[Metric]]:
        """By document and series the metrics made of it."""
        found: dict[tuple[int, int], list[Metric]] = {}
        for metric in self.metrics:
            for index in metric.series or ():
                found.setdefault((id(metric.of.document), index), []).append(metric)
        return found

    def metrics_of(self, point: Series) -> Sequence[Metric]:
        """Return the metrics made of one of its series, as far as they are known."""
        return self._made_of.get((id(point.document), point.index), ())

    @cached_property
    def _by_experiment(self) -> Mapping[str, Sequence[Series]]:
        found: dict[str, list[Series]] = {}
        for point in self.points:
            found.setdefault(point.experiment, []).append(point)
        return found

    def select(self, **fields: Any) -> list[Series]:
        """Return the points whose fields (of `results.table.Series`) have these values."""
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
        """Whether the results are of a simulated node; without a document the site decides."""
        if not self.documents:
            return "simulated" in partitions.known(self.where).get("features", ())
        return any(document["clock"] == "simulated" for document in self.documents)

    @property
    def kind(self) -> str:
        """``simulated`` or ``measured``."""
        return "simulated" if self.simulated else "measured"

    @property
    def overlay(self) -> str | None:
        """The name of the overlay that changed the simulated node; None for a healthy one."""
        for document in self.documents:
            node = document.get("node")
            if node and node["overlay"]:
                return node["overlay"]["name"]
        return None


def observe(session: Session | None, entries: Sequence[Entry]) -> list[Observed]:
    """Return the partitions of a session in the order of its cases, then other documents.

    Each node of a partition stands by itself. Measured and simulated results are never combined;
    documents outside any session are combined only where runtime, node model and overlay are the
    same.

    :param session: None for documents outside any session.
    :param entries: its documents, as returned by `ResultsFolder.entries`.
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


def distinct_partitions(every: Iterable[tuple[str, Observed]]) -> tuple[Observed, ...]:
    """Return the partitions of several sessions, each with a unique name.

    Equal names get the node, or else the session, in front.
    """
    found = list(every)
    for by_session in (False, True):
        names = Counter((one.where, one.apart) for _, one in found)
        for number, (session, one) in enumerate(found):
            if names[one.where, one.apart] > 1:
                own = session if by_session else one.on or "unknown node"
                apart = ", ".join(filter(None, (own, one.apart)))
                found[number] = session, replace(one, apart=apart)
    return tuple(one for _, one in found)


def _node_name(case: Case, entry: Entry | None) -> str | None:
    return case.node if entry is None else entry.node


def by_node(
    items: Iterable[tuple[Item, str | None]], there: Iterable[str | None] = ()
) -> dict[str | None, list[Item]]:
    """Group items by node; items without one join the only node, where there is one.

    :param there: further nodes besides those of the items.
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
    """Yield one node's results of a partition, by what its documents belong to.

    :param several: whether the partition has others.
    """
    groups = _alike(entries)
    # Cases without a document are added to the first.
    elsewhere = {id(one.case) for group in groups[1:] for one in group}
    for index, group in enumerate(groups):
        theirs = {id(one.case) for one in group}
        held = (
            case
            for case in cases
            if id(case) in theirs or (not index and id(case) not in elsewhere)
        )
        documents = [one.document for one in group if one.document is not None]
        apart = [(on or "unknown node")] if several else []
        if len(groups) > 1:
            apart.append(_words(documents[0], not where))
        node = node_of(where, documents, next(iter(cases), None))
        yield Observed(where, tuple(held), tuple(group), node, ", ".join(apart), on, session)


def _alike(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Group entries by what their documents belong to; unreadable ones join the first."""
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
    """Return what must be equal for documents to be combined.

    :param alone: whether no partition tells what it ran on.
    """
    node: Mapping[str, Any] = document.get("node") or {}
    overlay: Mapping[str, Any] = node.get("overlay") or {}
    ran_on = (document["program"]["runtime"], node.get("name"), overlay.get("name"))
    return (document["clock"], *(ran_on if alone else ()))


def _words(document: ResultDocument, alone: bool) -> str:
    return ", ".join(word for word in _what_of(document, alone) if word)


def series_of(row: Check) -> Iterator[Series]:
    """Yield the rows of a check's series; link classes come from its node model."""
    if row.document is not None:
        where = row.case.where if row.case is not None else ""
        yield from table.series(row, node_of(where, [row.document], row.case))


def node_of(
    where: str, documents: Iterable[ResultDocument], case: Case | None = None
) -> NodeModel | None:
    """Return the healthy node model of documents: the one they name, else the site's.

    Documents of ``local:gpu`` have it in the variable that named it. Where results were moved, the
    file is looked for in the results folder.

    :param case: a case of the documents, which tells the results folder.
    """
    for document in documents:
        if where == this_machine.NAME and this_machine.NODE in document["environment"]:
            named = document["environment"][this_machine.NODE]
            moved = case and case.results and case.results / "nodes" / Path(named).name
            return _node(str(moved) if moved and moved.is_file() else named)
        simulated = document.get("node")
        if simulated:
            return _node(simulated["name"])
        if not has_runtime(document) and "node" in document["options"]:
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
        # A model of another version of the suite: whoever needs it reports that there is none.
        return None
