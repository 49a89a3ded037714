"""The results of one partition together, and the node model that they are of."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fabricheck import partitions
from fabricheck.errors import FabricheckError
from fabricheck.node import NodeModel
from fabricheck.node import load as load_node
from fabricheck.observed.point import Point, chosen
from fabricheck.results.folder import Entry
from fabricheck.results.model import ResultDocument
from fabricheck.results.session import Case, Session

#: How a part of a node is named in a document: "h200 (2 of 8 devices)".
_PART = re.compile(r"(?P<name>\S+) \((?P<count>\d+) of \d+ devices\)")


@dataclass(frozen=True, eq=False)
class Observed:
    """What a session has of one partition: all measured, or all simulated.

    where: ``system:partition``; empty for documents outside of any session.
    cases: its cases, those without a document too. entries: their documents, or what is wrong.
    node: the healthy node model of the partition; None where it has none, or it can not be read.
    apart: what tells it from others of the same ``where``, in words; empty where it is alone.
    """

    where: str
    cases: tuple[Case, ...]
    entries: tuple[Entry, ...]
    node: NodeModel | None
    apart: str = ""

    @cached_property
    def documents(self) -> tuple[ResultDocument, ...]:
        """The documents that can be read."""
        return tuple(entry.document for entry in self.entries if entry.document is not None)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """All series whose data was right, of runs without a fault made on purpose."""
        return tuple(point for point in self._every if point.right)

    @cached_property
    def left_out(self) -> Mapping[str, int]:
        """By experiment how many series are no points, for wrong data or a fault on purpose."""
        return Counter(point.experiment for point in self._every if not point.right)

    @cached_property
    def _every(self) -> tuple[Point, ...]:
        return tuple(
            Point(entry.case.name if entry.case else "", entry.document, series)
            for entry in self.entries
            if entry.document is not None
            for series in entry.document["series"]
        )

    @cached_property
    def _by_experiment(self) -> Mapping[str, Sequence[Point]]:
        found: dict[str, list[Point]] = {}
        for point in self.points:
            found.setdefault(point.experiment, []).append(point)
        return found

    def select(self, **fields: Any) -> list[Point]:
        """Return the points with these values of their properties (`fabricheck.observed.point`)."""
        # Nearly all ask for one experiment, and there are thousands of points.
        match fields.get("experiment"):
            case str(experiment):
                return chosen(self._by_experiment.get(experiment, ()), **fields)
            case _:
                return chosen(self.points, **fields)

    @property
    def runtimes(self) -> frozenset[str]:
        """The runtimes of its documents: rocm, cuda, host or sim."""
        return frozenset(document["program"]["runtime"] for document in self.documents)

    @property
    def simulated(self) -> bool:
        """Whether its results are of a simulated node."""
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

    What was measured never stands together with what was simulated; documents outside of a session
    stand together only where their runtime, node and overlay are the same, too.

    :param session: None for documents outside of one.
    :param entries: its documents, as `ResultsFolder.entries` gives them.
    """
    cases = list(session.cases) if session else [entry.case for entry in entries if entry.case]
    names = dict.fromkeys(case.where for case in cases)
    if any(entry.case is None for entry in entries):
        names[""] = None
    found = []
    for where in names:
        here = [case for case in cases if case.where == where]
        own = [one for one in entries if (one.case.where if one.case else "") == where]
        groups = _alike(own)
        # Cases without a document are with the first.
        elsewhere = {id(one.case) for group in groups[1:] for one in group}
        for index, group in enumerate(groups):
            theirs = {id(one.case) for one in group}
            held = (
                case
                for case in here
                if id(case) in theirs or (not index and id(case) not in elsewhere)
            )
            documents = [one.document for one in group if one.document is not None]
            node = node_of(where, documents)
            apart = _words(documents[0], not where) if len(groups) > 1 else ""
            found.append(Observed(where, tuple(held), tuple(group), node, apart))
    return found


def _alike(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return entries by what their documents are of; those that can not be read with the first."""
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
