"""`fabricheck results osu`: the program mpi beside OSU Micro-Benchmarks, between the same ranks.

OSU is the field's reference. The agreement is reported; it judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson, Name, OnNodes
from fabricheck.cli.results import choose, end, entries_of
from fabricheck.core import amounts, show
from fabricheck.core.vocabulary import EXIT_GOOD
from fabricheck.results.rows import Series

#: What must be equal: the partition, and the node where it is known; the devices of the ranks in
#: order, or the ranks where they have no devices; whether copy engines move the data (ROCm).
_EQUAL = ("where", "operation", "bytes", "buffers", "members", "engines")

_RIGHT = ("mpi", "OSU", "mpi/OSU")
_COLUMNS = ("Where", "Op", "Between", "Size", "Buffers", "SDMA", "Unit", *_RIGHT)


@commands.command("results osu")
def mpi_beside_osu(
    what: Name = "latest",
    on: OnNodes = None,
    as_json: AsJson = False,
) -> int:
    """Show the program mpi beside OSU Micro-Benchmarks, where both measured the same ranks."""
    results = choose(what, on)
    rows = compare(results.series)
    if not rows and not as_json:
        nothing = f"{what} has no measurement by both mpi and OSU between the same ranks."
        return end(results, entries_of(results), nothing)
    cells = [
        (
            row["where"],
            row["operation"],
            "-".join(map(str, row["members"])),
            amounts.size(row["bytes"]),
            row["buffers"],
            "on" if row["engines"] else "off",
            row["unit"],
            amounts.number(row["mpi"]),
            amounts.number(row["osu"]),
            f"{row['ratio']:.3f}",
        )
        for row in rows
    ]
    show.result(rows, [show.Table(_COLUMNS, cells, _RIGHT)], as_json)
    return EXIT_GOOD


def compare(rows: Iterable[Series]) -> list[dict[str, Any]]:
    """Return the operations that ``mpi`` and OSU both measured, in the order of ``mpi``'s
    documents.

    mpi, osu: the medians in ``unit``. ratio: above 1 is a higher bandwidth, or a longer time.
    """
    messages = [row for row in rows if row.experiment in ("E9", "E10") and row.role == "single"]
    osu = {_equal(row): row.value for row in messages if row.program == "osu"}
    return [
        dict(zip(_EQUAL, equal, strict=True))
        | {"unit": row.unit, "mpi": row.value, "osu": osu[equal], "ratio": row.value / osu[equal]}
        for row in messages
        if row.program == "mpi" and (equal := _equal(row)) in osu
    ]


def _equal(row: Series) -> tuple[Any, ...]:
    run = row.check_row
    where = f"{run.where} on {run.scheduler_node}" if run.scheduler_node else run.where
    buffers = "device" if row.source_memory == "device" else "host"
    members = row.devices or row.ranks or ()
    return where.strip(), row.operation, row.bytes, buffers, members, row.by_engines
