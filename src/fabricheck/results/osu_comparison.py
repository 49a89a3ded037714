"""The program ``mpi`` compared with OSU Micro-Benchmarks between the same ranks.

OSU is the field's reference. The agreement is reported; it judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fabricheck.results.table import Series

#: Fields of Beside that must be equal, in their order.
Key = tuple[str, str, int, str, tuple[int, ...], bool]


@dataclass(frozen=True)
class Beside:
    """One operation that both programs measured.

    where: the partition, and the node where it is known; empty for documents outside a session.
    members: the devices of the ranks, in order, or the ranks where they have no devices. engines:
    whether copy engines move the data (ROCm). mpi, osu: the medians, in GB/s (1e9 bytes per second)
    or us.
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
        """Return mpi divided by OSU: above 1 is a higher bandwidth, or a longer time."""
        return self.mpi / self.osu


def compare(rows: Iterable[Series]) -> list[Beside]:
    """Return the operations that ``mpi`` and OSU both measured, in the order of ``mpi``'s
    documents.
    """
    found = [row for row in rows if row.experiment in ("E9", "E10") and row.role == "single"]
    osu = {_key(row): row for row in found if row.program == "osu"}
    return [
        Beside(*key, row.unit, row.value, osu[key].value)
        for row in found
        if row.program == "mpi" and (key := _key(row)) in osu
    ]


def _key(row: Series) -> Key:
    run = row.check_row
    where = f"{run.where} on {run.scheduler_node}" if run.scheduler_node else run.where
    buffers = "device" if row.source_memory == "device" else "host"
    members = row.devices or row.ranks or ()
    return where.strip(), row.operation, row.bytes, buffers, members, row.by_engines
