"""The program ``mpi`` beside OSU Micro-Benchmarks: what both measured between the same ranks.

OSU is what the field compares with. How far both agree is told and judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fabricheck.core.vocabulary import ENV_ENGINES
from fabricheck.results.entry import Entry
from fabricheck.results.model import ResultDocument, Series

#: Fields of Beside that have to be alike, in their order.
Key = tuple[str, str, int, str, tuple[int, ...], bool]


@dataclass(frozen=True)
class Beside:
    """One operation that both measured.

    where: the partition, and the node where one is known; empty for documents outside a session.
    members: the devices of the ranks, in order, or the ranks where they have no devices.
    engines: whether copy engines move the data (ROCm).
    mpi, osu: the medians, in GB/s (1e9 bytes per second) or us.
    """

    where: str
    operation: str
    bytes: int
    buffers: str
    members: tuple[int, ...]
    engines: bool
    unit: str
    mpi: float
    osu: float

    @property
    def ratio(self) -> float:
        """Return mpi over OSU: above 1 is a higher bandwidth, or a longer time."""
        return self.mpi / self.osu


def compare(entries: Iterable[Entry]) -> list[Beside]:
    """Return what ``mpi`` and OSU both measured, in the order of ``mpi``'s documents."""
    documents = [(_where(entry), entry.document) for entry in entries if entry.document is not None]
    osu = {
        key: series
        for where, document in documents
        if document["program"]["name"] == "osu"
        for key, series in _keyed(where, document)
    }
    return [
        Beside(*key, one["unit"], one["median"], osu[key]["median"])
        for where, document in documents
        if document["program"]["name"] == "mpi"
        for key, one in _keyed(where, document)
        if key in osu
    ]


def _where(entry: Entry) -> str:
    where = entry.case.where if entry.case else ""
    return f"{where} on {entry.node}".strip() if entry.node else where


def _keyed(where: str, document: ResultDocument) -> Iterator[tuple[Key, Series]]:
    engines = document["environment"].get(ENV_ENGINES) != "0"
    for series in document["series"]:
        if series["experiment"] not in ("E9", "E10") or series["role"] != "single":
            continue
        buffers = "device" if series["source"]["memory"] == "device" else "host"
        members = tuple(series["device_set"] or series.get("ranks") or ())
        operation, size = series["operation"], series["bytes"]
        yield (where, operation, size, buffers, members, engines), series
