"""Curves over size: of transfers to one neighbour of each link class (the paper's figures 7 and 8),
and of the bus bandwidth of RCCL's or NCCL's collectives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fabricheck.core.grouping import grouped
from fabricheck.node import NodeModel
from fabricheck.report.figure import Figure
from fabricheck.report.figures import charts
from fabricheck.report.figures.rows import (
    Row,
    beside,
    derived,
    of_curve,
    of_noise,
    of_point,
    of_published,
    of_value,
    scan,
    session_rows,
)
from fabricheck.results.observed import Observed
from fabricheck.results.table import Pair, Series

#: Names of direct link classes in order, so that each keeps its colour; others come after.
_KNOWN = ("single link", "dual link", "quad link")

_COLLECTIVES = ("allreduce", "bcast", "reduce", "reduce_scatter", "allgather")

#: Threads per block of the paper's kernels between devices: its curves are shown beside such
#: kernels.
PAPER_BLOCK = 128

#: The names of the measuring tools.
_LIBRARIES = {"rccl-tests": "RCCL", "nccl-tests": "NCCL"}


def curve_figure(
    name: str,
    title: str,
    kind: str,
    rows: Sequence[Row],
    *,
    drawn: Sequence[Row] | None = None,
    pairs: bool = False,
    intro: str = "",
    between: str = "",
    note: str = "",
    **look: Any,
) -> Figure:
    """Return a figure of curves over size, each described in words.

    :param drawn: the rows to draw and describe, if these are not all.
    :param pairs: whether the text names the two devices of a curve.
    :param intro, between, note: the texts before the curves, after them, and at the end.
    :param look: options of `charts.curves`.
    """
    lines = grouped((row["series"], row) for row in session_rows(drawn or rows))
    texts = [of_curve(line) for line in lines.values()]
    if pairs:
        pair = [line[0]["devices"].replace(" ", " to ") for line in lines.values()]
        texts = [f"{one[:-1]} ({ends})." for one, ends in zip(texts, pair, strict=True)]
    says = f"{intro}{' '.join(texts)}{between}{of_published(rows)}{note}{of_noise(rows)}"
    return Figure(name, title, kind, says, rows, charts.curves(drawn or rows, **look))


def peers(observed: Observed) -> Iterator[Figure]:
    """Yield the curves by copy engine and those by kernel."""
    engine = {"experiment": "E7", "operation": "engine", "by_engines": True, "ganged": False}
    yield from _peers(
        observed, "peer-curves-engine", "Copies to neighbours by engine, over size", "GB/s", engine,
        _matrix_of_paper,
    )  # fmt: skip
    kernel: dict[str, Any] = {"experiment": "E8", "operation": "copy"}
    if observed.select(**kernel, block_size=PAPER_BLOCK):
        kernel["block_size"] = PAPER_BLOCK
    yield from _peers(
        observed, "peer-curves-kernel", "STREAM copy in a neighbour's memory, over size",
        "GB/s, read + written", kernel, _parts_of_peak,
    )  # fmt: skip


def _peers(
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
    said = ""
    if any(row["kind"] == "derived" for row in rows):
        said = " Derived are the published percentages times the peak of both directions."
    if rows:
        yield curve_figure(
            name, title, observed.kind, rows, pairs=True, between=said, unit=axis, known=_KNOWN
        )


def _by_class(
    observed: Observed, fields: Mapping[str, Any]
) -> Mapping[str, tuple[Pair, Sequence[Series]]]:
    """Return by link class the first pair from the first device that has a curve, with the curve.

    Without a node model the classes are unknown, and each pair is its own class.
    """
    found = grouped(
        (point.pair, point)
        for point in observed.select(role="single", **fields)
        if point.pair is not None
    )
    lines = {pair: line for pair, points in sorted(found.items()) if (line := scan(points))}
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


def collectives(observed: Observed) -> Iterator[Figure]:
    """Yield the bus bandwidth of all devices together, each rank receiving elsewhere than it
    sends.
    """
    bandwidths = observed.select(experiment="E11", unit="GB/s", role="single")
    found = [point for point in bandwidths if not point.in_place]
    most = max((len(point.devices) for point in found), default=0)
    rows: list[Row] = []
    library = ""
    for name in _COLLECTIVES:
        here = [
            series for series in found if series.operation == name and len(series.devices) == most
        ]
        line = scan(here)
        if line:
            library = _LIBRARIES.get(here[0].program, here[0].program)
            rows += [of_point(name, point) for point in line]
    if rows:
        yield curve_figure(
            "collectives-bus-bandwidth", f"{library}'s bus bandwidth over size, {most} devices",
            observed.kind, rows, unit="GB/s, bus bandwidth", known=_COLLECTIVES,
        )  # fmt: skip
