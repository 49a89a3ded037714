"""Transfers from the first device to each other device: by kernel and by MPI (the paper's figures 9
and 10), and over size to one neighbour of each link class (7 and 8).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fabricheck.core.amounts import about
from fabricheck.core.grouping import grouped
from fabricheck.core.show import enumerated
from fabricheck.node import NodeModel
from fabricheck.node import load as load_node
from fabricheck.references.published import Record
from fabricheck.report.figure import Drawing, Figure
from fabricheck.report.figures import matrices
from fabricheck.report.figures.bars import bars
from fabricheck.report.figures.charts import GREYS, cell
from fabricheck.report.figures.curves import curve_figure
from fabricheck.report.figures.rows import (
    Row,
    amount,
    beside,
    derived,
    expected_by,
    of_point,
    of_value,
    scan,
    session_rows,
)
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Pair, Series

#: The series of the paper's figure 10, and records of it whose names end in the two devices.
ENGINE, NO_ENGINE, DIRECT = "MPI with engines", "MPI, engines off", "kernel, no MPI"
LABELS = (ENGINE, NO_ENGINE, DIRECT)
LAB_NOTES = {ENGINE: "lab-osubw-sdma1-0?", NO_ENGINE: "lab-osubw-sdma0-0?"}

#: The machine of the lab notes, and the node model with the same links (map A).
LAB_SYSTEM, LAB_LINKS = "amd-mi250-generic", "mi250x"

_COLOURS = dict(zip(LABELS, GREYS, strict=True))

#: Names of direct link classes in order, so that each keeps its colour; others come after.
_KNOWN = ("single link", "dual link", "quad link")

#: Threads per block of the paper's kernels between devices: its curves are shown beside such
#: kernels.
PAPER_BLOCK = 128


def figures(observed: Observed) -> Iterator[Figure]:
    """Yield both directions at once by kernel, as a fraction of the peak (the paper's figure 9)."""
    node = observed.node
    if node is None:
        return
    points = observed.select(experiment="E8", operation="copy", role="single", device=0)
    of_device = {
        pair[1]: point
        for pair, point in matrices.of_one_size(points).items()
        if pair[0] == 0 and pair[1] < len(node.devices) and node.link_class(*pair).direct
    }
    if not of_device:
        return
    rows = []
    for device, point in sorted(of_device.items()):
        peak = 2 * node.peer_peak_gbs(0, device)
        if not math.isinf(peak):
            percent, wanted = 100 * point.value / peak, expected_by(observed, point)
            text = f"{cell(point.value)} of {peak:g}, {percent:.0f} %"
            more = {"to": device, "peak": peak, "percent": percent}
            reference = wanted.reference if wanted else None
            rows.append(of_point(DIRECT, point, **more, reference=reference, text=text))
    title = "Copies within a neighbour's memory by kernel, device 0"
    parts = [
        f"device {r['to']}: {amount(r['value'])}, {r['percent']:.0f} % of {r['peak']:g}"
        for r in rows
    ]
    says = (
        f"A kernel of device 0 copies within the memory of a neighbour, which uses both directions "
        f"of their links; reads and writes counted, {about(rows[0]['bytes'])}, {observed.clock}; "
        f"percent of the peak of both directions, which the thin lines mark. {'; '.join(parts)}."
    )
    theirs = list(beside(node, "paper-stream-p2p-pct-*"))
    if theirs:
        stated = enumerated(amount(value.value, "%") for value in theirs)
        says += f" Published: {stated} of the peak ({theirs[0].place})."
    rows += [
        of_value(value.id, value, to=None, peak=None, percent=value.value, reference=None, text="")
        for value in theirs
    ]
    yield Figure("peer-peak", title, observed.clock, says, rows, _by_device(rows))


def messages(observed: Observed) -> Iterator[Figure]:
    """Yield MPI from device 0 compared with direct access by kernel (the paper's figure 10)."""
    mpi = {"experiment": "E9", "operation": "bandwidth", "role": "single", "program": "mpi"}
    series = {
        ENGINE: matrices.of_one_size(observed.select(**mpi, by_engines=True)),
        NO_ENGINE: matrices.of_one_size(observed.select(**mpi, by_engines=False)),
    }
    if observed.runtimes <= {"host"} or not any(series.values()):
        return
    reads = matrices.of_one_size(observed.select(experiment="E8", operation="read", role="single"))
    # The reader is the first of a pair: data of device 0 moves to it, as a message does.
    series[DIRECT] = {(pair[1], pair[0]): point for pair, point in reads.items()}
    rows: list[dict[str, Any]] = []
    for label, points in series.items():
        from_first = {pair[1]: point for pair, point in points.items() if pair[0] == 0}
        rows += [
            of_point(label, point, to=device, text=cell(point.value))
            for device, point in sorted(from_first.items())
        ]
    if not any(row["series"] in LAB_NOTES for row in rows):
        return
    for label, pattern in LAB_NOTES.items():
        if series[label]:
            rows += [
                of_value(label, value, to=int(value.id[-1]), text="")
                for value in _lab_notes(observed.node, pattern)
            ]
    title = "From device 0 to each: MPI and direct access"
    says = " ".join(_in_words(rows))
    absent = [label for label in LABELS if not any(row["series"] == label for row in rows)]
    says += f" Without values: {enumerated(absent)}." if absent else ""
    if any(row["kind"] == "published" for row in rows):
        says += (
            " Diamonds are published values of AMD's lab notes, of 16 MiB and a node with MI250, "
            "whose devices are linked as those here."
        )
    yield Figure("mpi-from-0", title, observed.clock, says, rows, _by_device(rows))


def _by_device(rows: Sequence[Row]) -> Drawing:
    placed = [{**row, "device": f"device {row['to']}"} for row in rows if row["to"] is not None]
    return bars(placed, bar="device", within="series", colours=_COLOURS, thick=14)


def _lab_notes(node: NodeModel | None, pattern: str) -> Iterator[Record]:
    """Yield the values of the lab notes for a node with the same links."""
    if node is None or node.vendor != "amd":
        return
    if node.link_matrix == load_node(LAB_LINKS).link_matrix:
        yield from beside(dataclasses.replace(node, systems=(LAB_SYSTEM,)), pattern)


def _in_words(rows: Sequence[Row]) -> Iterator[str]:
    theirs = grouped(
        (row["series"], ((0, row["to"]), row["value"]))
        for row in rows
        if row["kind"] == "published"
    )
    for label, mine in grouped((row["series"], row) for row in session_rows(rows)).items():
        cells = {(0, row["to"]): row["value"] for row in mine}
        apart = matrices.farthest(cells, dict(theirs.get(label, ())))
        yield f"{label} ({about(mine[0]['bytes'])}): {matrices.ends(cells, 'GB/s')}{apart}"


def curves(observed: Observed) -> Iterator[Figure]:
    """Yield the curves by copy engine and those by kernel."""
    engine = {"experiment": "E7", "operation": "engine", "by_engines": True, "ganged": False}
    yield from _curves(
        observed, "peer-curves-engine", "Copies to neighbours by engine, over size", "GB/s", engine,
        _matrix_of_paper,
    )  # fmt: skip
    kernel: dict[str, Any] = {"experiment": "E8", "operation": "copy"}
    if observed.select(**kernel, block_size=PAPER_BLOCK):
        kernel["block_size"] = PAPER_BLOCK
    yield from _curves(
        observed, "peer-curves-kernel", "STREAM copy in a neighbour's memory, over size",
        "GB/s, read + written", kernel, _parts_of_peak,
    )  # fmt: skip


def _curves(
    observed: Observed,
    name: str,
    title: str,
    axis: str,
    fields: Mapping[str, Any],
    published: Callable[[NodeModel | None, str, Pair], Iterator[Row]],
) -> Iterator[Figure]:
    rows: list[Row] = []
    for label, (pair, points) in _by_class(observed, fields).items():
        rows += [of_point(label, point) for point in points]
        rows += published(observed.node, label, pair)
    note = ""
    if any(row["kind"] == "derived" for row in rows):
        note = " Derived are the published percentages times the peak of both directions."
    if rows:
        yield curve_figure(
            name, title, observed.clock, rows, pairs=True, between=note, unit=axis, known=_KNOWN
        )


def _by_class(
    observed: Observed, fields: Mapping[str, Any]
) -> Mapping[str, tuple[Pair, Sequence[Series]]]:
    """Return by link class the first pair from the first device that has a curve, with the curve.

    Without a node model the classes are unknown, and each pair is its own class.
    """
    by_pair = grouped(
        (point.pair, point)
        for point in observed.select(role="single", **fields)
        if point.pair is not None
    )
    lines = {pair: line for pair, points in sorted(by_pair.items()) if (line := scan(points))}
    first = min((pair[0] for pair in lines), default=None)
    chosen: dict[str, tuple[Pair, Sequence[Series]]] = {}
    for pair, line in lines.items():
        label = _label(observed.node, pair)
        if pair[0] == first and label is not None:
            chosen.setdefault(label, (pair, line))
    order = [*(name for name in _KNOWN if name in chosen), *chosen]
    return {name: chosen[name] for name in order}


def _label(node: NodeModel | None, pair: Pair) -> str | None:
    """Return the name of a direct pair's link class; None for an indirect pair."""
    if node is None or not _known(node, pair):
        return f"{pair[0]} to {pair[1]}"
    link_class = node.link_class(*pair)
    if not link_class.direct:
        return None
    return "switch" if link_class.switched else f"{link_class.word} link"


def _known(node: NodeModel, pair: Pair) -> bool:
    """Whether the node model has both devices: a session may be of a larger node."""
    return max(pair) < len(node.devices)


def _matrix_of_paper(node: NodeModel | None, label: str, pair: Pair) -> Iterator[Row]:
    """Yield the paper's copy-engine value of this pair in GB/s, counted once; without a size."""
    for value in beside(node, f"kth-bw-{pair[0]}{pair[1]}"):
        yield of_value(label, value)


def _parts_of_peak(node: NodeModel | None, label: str, pair: Pair) -> Iterator[Row]:
    """Yield the paper's 43 to 44 % of the link's bidirectional peak, in GB/s."""
    for value in beside(node, "paper-stream-p2p-pct-*"):
        if node is not None and _known(node, pair) and not node.unknown_peaks:
            peak = 2 * node.peer_peak_gbs(*pair)
            yield derived(of_value(label, value), value.value / 100 * peak)
