"""STREAM in a device's own memory: over size, by threads per block, and device by device (JSC)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import altair as alt

from fabricheck.core.amounts import about
from fabricheck.core.peers import unlike
from fabricheck.core.show import enumerated
from fabricheck.report.figure import PALETTE, Drawing, Figure
from fabricheck.report.figures import charts
from fabricheck.report.figures.curves import curve_figure
from fabricheck.report.figures.heat_map import heat_map
from fabricheck.report.figures.rows import (
    Row,
    amount,
    beside,
    by_check,
    of_members,
    of_noise,
    of_point,
    of_value,
    scan,
    session_rows,
)
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series, largest

#: The kernels in STREAM's order, with the records of each: GB/s of read and written bytes.
_KERNELS: Mapping[str, tuple[str, ...]] = {
    "copy": ("paper-stream-local", "jsc-copy", "jsc-a100-copy"),
    "scale": (),
    "add": (),
    "triad": ("jsc-triad", "jsc-a100-triad", "jsc-*-triad-final"),
}

#: Threads per block of the curves, if a scan has several: JSC's choice.
_BLOCK = 256

#: Smaller sizes are left out of the heat map's drawing, but not of its data: launch times decide
#: there.
_SMALLEST = 1 << 16

#: The fraction of the best block's bandwidth at which the heat map's colours begin.
_WORST = 70

_AXIS = "GB/s, read + written"


def figures(observed: Observed) -> Iterator[Figure]:
    """Yield the curves, a heat map for each kernel with several block sizes, and the devices."""
    all_points = observed.select(experiment="E1", role="single", operation=set(_KERNELS))
    first = min((point.device or 0 for point in all_points), default=0)
    of_first = by_check(point for point in all_points if point.device == first)
    scans = max(of_first, key=lambda run: (len({p.bytes for p in run}), len(run)), default=[])
    lines = {name: line for name in _KERNELS if (line := _line(scans, name))}
    if lines:
        yield _curves(observed, lines)
    for name in _KERNELS:
        points = [point for point in scans if point.operation == name]
        if len({point.block_size for point in points}) > 1 and len({p.bytes for p in points}) > 1:
            yield _heat_map(observed, name, points)
    # Another run may have another size.
    runs = (largest(run, lambda p: (p.operation, p.device or 0)) for run in by_check(all_points))
    devices = max(runs, key=len, default={})
    if len({device for _, device in devices}) > 1:
        yield _devices(observed, list(devices.values()))


def _line(points: Sequence[Series], name: str) -> list[Series]:
    """Return the curve of a kernel with the preferred block size, or with its first one."""
    own_points = [point for point in points if point.operation == name]
    blocks = sorted({point.block_size or 0 for point in own_points})
    block = _BLOCK if _BLOCK in blocks else next(iter(blocks), 0)
    return scan(point for point in own_points if (point.block_size or 0) == block)


def _curves(observed: Observed, lines: Mapping[str, Sequence[Series]]) -> Figure:
    rows: list[Row] = []
    for name, points in lines.items():
        rows += [of_point(name, point, threads_per_block=point.block_size) for point in points]
        rows += [
            of_value(name, value, threads_per_block=None)
            for value in beside(observed.node, *_KERNELS[name])
        ]
    with_blocks = enumerated(sorted({row["threads_per_block"] for row in session_rows(rows)}))
    return curve_figure(
        "stream-curves",
        "STREAM in a device's own memory, over size",
        observed.clock,
        rows,
        intro=f"Device {rows[0]['devices']}, {with_blocks} threads a block. ",
        unit=_AXIS,
        known=tuple(_KERNELS),
        x_title="size of one array",
        logarithmic=True,
    )


def _heat_map(observed: Observed, name: str, points: Sequence[Series]) -> Figure:
    cells = largest(points, lambda point: (point.bytes, point.block_size or 0))
    best = {
        size: max(point.value for (bytes_, _), point in cells.items() if bytes_ == size)
        for size, _ in cells
    }
    rows = [
        of_point(
            name,
            point,
            threads_per_block=block,
            percent_of_best=100 * point.value / best[size],
        )
        for (size, block), point in sorted(cells.items())
    ]
    largest_size = max(best)
    last = [row for row in rows if row["bytes"] == largest_size]
    bottom, top = (end(last, key=lambda row: row["value"]) for end in (min, max))
    return Figure(
        id=f"stream-blocks-{name}",
        title=f"STREAM {name} by threads per block and size",
        kind=observed.clock,
        says=(
            f"At {about(largest_size)}, {top['threads_per_block']} threads a block are best "
            f"with {amount(top['value'])}, and {bottom['threads_per_block']} least with "
            f"{amount(bottom['value'])}, {bottom['percent_of_best']:.1f} % of it. Colours "
            f"are percent of the best block of the same size; drawn from {about(_SMALLEST)} "
            f"on.{of_noise(rows)}"
        ),
        rows=rows,
        drawing=_cells([row for row in rows if row["bytes"] >= _SMALLEST] or rows),
    )


def _cells(rows: Sequence[Row]) -> Drawing:
    """Draw sizes below each other, so that a phone has room for the values in the cells."""
    places = {(about(row["bytes"]), row["threads_per_block"]): row for row in rows}
    sizes, blocks = (list(dict.fromkeys(place[end] for place in places)) for end in (0, 1))
    return heat_map(
        {place: row["percent_of_best"] for place, row in places.items()},
        ("size of one array", sizes),
        ("threads per block", sorted(blocks)),
        "colour: % of the best block",
        (_WORST, 100),
        blank_diagonal=False,
        texts={place: amount(row["value"], "") for place, row in places.items()},
        blank="",
        highest_cell=15,
    )


def _devices(observed: Observed, points: Sequence[Series]) -> Figure:
    rows: list[Row] = []
    sentences, odd_rows = [], []
    for name in _KERNELS:
        mine = [
            of_point(name, point)
            for point in sorted(points, key=lambda point: point.device or 0)
            if point.operation == name
        ]
        if not mine:
            continue
        values = {row["devices"]: row["value"] for row in mine}
        odd = unlike(values)
        sentences.append(f"{of_members(name, 'device', values, odd)}.")
        odd_rows += [row for row in mine if row["devices"] in odd]
        rows += mine
        rows += [of_value(name, value) for value in beside(observed.node, *_KERNELS[name])]
    return Figure(
        id="stream-devices",
        title="STREAM in the memory of every device",
        kind=observed.clock,
        says=(f"{' '.join(sentences)} The axis does not begin at zero.{of_noise(rows)}"),
        rows=rows,
        drawing=_strip(rows, odd_rows),
    )


def _strip(rows: Sequence[Row], odd_rows: Sequence[Row]) -> Drawing:
    """Draw a line of marks for each device, with the kernels below each other in it."""
    names = [name for name in _KERNELS if any(row["series"] == name for row in session_rows(rows))]
    shown = [
        {**row, "line": row["devices"] or "published", "text": "odd" if row in odd_rows else ""}
        for row in rows
    ]
    devices = dict.fromkeys(row["devices"] for row in session_rows(rows))
    lines = [*(["published"] if len(session_rows(rows)) < len(rows) else []), *devices]
    ends = [row[key] for row in rows for key in ("low", "high", "value")]
    ends = list(filter(None, ends))
    colours = {name: PALETTE[list(_KERNELS).index(name)] for name in names}
    legend = alt.Legend(symbolType="circle", symbolOpacity=1, columns=4, offset=6,
                        title="in each device from above")  # fmt: skip
    base = alt.Chart().encode(
        x=alt.X(
            "value:Q",
            title=_AXIS,
            scale=alt.Scale(domain=[0.9 * min(ends), 1.1 * max(ends)], nice=True, zero=False),
            axis=alt.Axis(tickCount=5),
        ),
        color=charts.colour("series", colours, legend),
    )
    placed = base.encode(
        y=alt.Y("line:N", title="device", sort=lines, scale=alt.Scale(domain=lines)),
        yOffset=alt.YOffset("series:N", scale=alt.Scale(domain=names)),
    )
    published = "datum.line === 'published'"
    layers = [
        base.mark_rule(opacity=0.7).transform_filter(published),
        placed.mark_rule(strokeWidth=2)
        .encode(x=alt.X("low:Q", title=_AXIS), x2="high:Q")
        .transform_filter("datum.low !== null"),
        placed.mark_point(
            size=alt.ExprRef(f"{published} ? 70 : 28"), filled=True, opacity=1, stroke="black",
            strokeWidth=alt.ExprRef(f"{published} ? 0.8 : 0"),
        ).encode(shape=charts.shape(rows)),
        placed.mark_text(align="left", dx=6, fontSize=10, color="black")
        .encode(text="text:N", color=alt.value("black"))
        .transform_filter("datum.text"),
    ]  # fmt: skip
    keys = ("series", "kind", "line", "value", "low", "high", "text")
    chart = alt.layer(*layers, data=charts.data(shown, keys))
    return charts.finished(chart, 8 * len(names) * len(lines) + 110)
