"""The results of one partition on one node, with the node model they belong to."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fabricheck.core.errors import FabricheckError
from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.node import NodeModel
from fabricheck.node import load as load_node
from fabricheck.results import table
from fabricheck.results.entry import Entry
from fabricheck.results.model import ResultDocument
from fabricheck.results.rows import Check, Metric, Series, by_place, select
from fabricheck.results.series import has_runtime
from fabricheck.results.session import Case
from fabricheck.results.session_checks import PartitionChecks
from fabricheck.site import partitions, this_machine


@dataclass(frozen=True, eq=False)
class Observed:
    """A session's results of one partition on one node: all measured, or all simulated.

    where: ``system:partition``; empty for documents outside any session. checks: its checks, and
    documents without one. on: the scheduler's name of the node; None where it is unknown. node: the
    healthy node model of the partition; None where it has none, or it cannot be read. apart: what
    distinguishes it from others of the same ``where``, in words; empty for a single one. recorded:
    the checks that the session could select here, if it says.
    """

    where: str
    checks: Sequence[Check]
    node: NodeModel | None
    apart: str = ""
    on: str | None = None
    recorded: PartitionChecks | None = None

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Its cases, including those without a document."""
        return tuple(row.case for row in self.checks if row.case is not None)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The documents, or the problems."""
        return tuple(row.entry for row in self.checks if row.entry is not None)

    @cached_property
    def documents(self) -> tuple[ResultDocument, ...]:
        """The documents that could be read."""
        return tuple(entry.document for entry in self.entries if entry.document is not None)

    @cached_property
    def points(self) -> tuple[Series, ...]:
        """The series with right data, of runs without an injected fault, by the default kernels."""
        return tuple(series for series in self.series if series.right and not series.variant)

    @cached_property
    def variants(self) -> tuple[Series, ...]:
        """The series of variants of the kernels, also with right data only."""
        return tuple(series for series in self.series if series.right and series.variant)

    @cached_property
    def left_out(self) -> Mapping[str, int]:
        """The number of series left out of each experiment, for wrong data or an injected fault."""
        return Counter(point.experiment for point in self.series if not point.right)

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """All series of the documents, including those with wrong data."""
        return tuple(series for row in self.checks for series in table.series(row, self.node))

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of its cases that have a value."""
        metrics = (metric for row in self.checks for metric in table.metrics(row))
        return tuple(metric for metric in metrics if metric.value is not None)

    @cached_property
    def _made_of(self) -> Mapping[tuple[int, int], Sequence[Metric]]:
        """The metrics made of each series, by document and series."""
        return grouped(
            ((id(metric.check_row.document), index), metric)
            for metric in self.metrics
            for index in metric.series or ()
        )

    def metrics_of(self, point: Series) -> Sequence[Metric]:
        """Return the metrics made of one of its series, as far as they are known."""
        return self._made_of.get((id(point.document), point.index), ())

    @cached_property
    def _by_experiment(self) -> Mapping[str, Sequence[Series]]:
        return grouped((point.experiment, point) for point in self.points)

    def select(self, **fields: Any) -> list[Series]:
        """Return the points whose fields (of `results.rows.Series`) have these values."""
        # Nearly all ask for one experiment, and there are thousands of points.
        match fields.get("experiment"):
            case str(experiment):
                return select(self._by_experiment.get(experiment, ()), **fields)
            case _:
                return select(self.points, **fields)

    @property
    def runtimes(self) -> frozenset[str]:
        """The runtimes of its documents: rocm, cuda, host or sim."""
        return frozenset(document["program"]["runtime"] for document in self.documents)

    @property
    def simulated(self) -> bool:
        """Whether the results are of a simulated node; without a document the site decides."""
        if not self.documents:
            return bool(partitions.simulates(self.where))
        return any(document["clock"] == "simulated" for document in self.documents)

    @property
    def clock(self) -> str:
        """``simulated`` or ``measured``."""
        return "simulated" if self.simulated else "measured"

    @property
    def clock_in_words(self) -> str:
        """Its clock, or that there are no results."""
        return self.clock if self.documents else "no results"

    @property
    def overlay(self) -> str | None:
        """The name of the overlay that changed the simulated node; None for a healthy one."""
        nodes = filter(None, (document.get("node") for document in self.documents))
        return next((node["overlay"]["name"] for node in nodes if node["overlay"]), None)


def observe(checks: Iterable[Check]) -> list[Observed]:
    """Return the partitions of checks in their order, then documents outside any session.

    Each node of a partition stands by itself. Measured and simulated results are never combined;
    documents outside any session are combined only where runtime, node model and overlay are the
    same.
    """
    places = by_place(checks)
    several = Counter(where for where, _ in places)
    return [
        part
        for (where, node), rows in sorted(places.items(), key=lambda item: not item[0][0])
        for part in _parts(where, node, rows, several[where] > 1)
    ]


def distinct_partitions(observations: Iterable[tuple[str, Observed]]) -> tuple[Observed, ...]:
    """Return the partitions of several sessions, each with a unique name.

    Equal names get the node, or else the session, in front.
    """
    numbered = list(observations)
    for by_session in (False, True):
        names = Counter((observed.where, observed.apart) for _, observed in numbered)
        for number, (session, part) in enumerate(numbered):
            if names[part.where, part.apart] > 1:
                name = session if by_session else part.on or "unknown node"
                apart = listed(filter(None, (name, part.apart)))
                numbered[number] = session, replace(part, apart=apart)
    return tuple(observed for _, observed in numbered)


def _parts(where: str, on: str | None, rows: Sequence[Check], several: bool) -> Iterator[Observed]:
    """Yield one node's results of a partition, by what its documents belong to.

    Checks without a document are in the first.

    :param several: whether the partition has others.
    """
    groups = grouped(
        (_what_of(row.document, not where), row) for row in rows if row.document is not None
    )
    first = next(iter(groups), ())
    of_first = {id(row) for row in groups.get(first, ())}
    groups[first] = [row for row in rows if row.document is None or id(row) in of_first]
    for what, rows_of_part in groups.items():
        apart = [(on or "unknown node")] if several else []
        if len(groups) > 1:
            apart.append(listed(word for word in what if word))
        documents = [row.document for row in rows_of_part if row.document is not None]
        case = next((row.case for row in rows_of_part), None)
        node = node_of(where, documents, case)
        yield Observed(where, rows_of_part, node, listed(apart), on)


def _what_of(document: ResultDocument, alone: bool) -> tuple[str | None, ...]:
    """Return what must be equal for documents to be combined.

    :param alone: whether no partition tells what it ran on.
    """
    node: Mapping[str, Any] = document.get("node") or {}
    overlay: Mapping[str, Any] = node.get("overlay") or {}
    ran_on = (document["program"]["runtime"], node.get("name"), overlay.get("name"))
    return (document["clock"], *(ran_on if alone else ()))


def series_of(row: Check) -> Iterator[Series]:
    """Yield the rows of a check's series; link classes come from its node model."""
    if row.document is not None:
        yield from table.series(row, node_of(row.where, [row.document], row.case))


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
        options = document["options"]
        if not has_runtime(document) and "node" in options:
            return _node(str(options["node"]), options.get("devices"))
    site = partitions.known(where)
    name = site.get("extras", {}).get("node")
    devices: dict[str, Any] = next(iter(site.get("devices", [])), {})
    return None if name is None else _node(str(name), devices.get("num_devices"))


@functools.cache
def _node(stated: str, count: int | None = None) -> NodeModel | None:
    try:
        node = load_node(stated)
        return node if count is None or count == len(node.devices) else node.part(count)
    except FabricheckError:
        # A model of another version of the suite: whoever needs it reports that there is none.
        return None
