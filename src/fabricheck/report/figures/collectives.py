"""Collectives over the number of partners: MPI beside RCCL (the paper's figures 11 and 12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import altair as alt

from fabricheck.core.amounts import about
from fabricheck.report.figure import PALETTE, Figure, drawn
from fabricheck.report.figures import words
from fabricheck.report.figures.grouped import GREYS, grouped_bars
from fabricheck.report.figures.heat import shown
from fabricheck.report.figures.rows import Row, of_point, of_value, own
from fabricheck.report.published import beside
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

#: The collectives in the paper's order, and the record that bounds each from below there.
COLLECTIVES = {
    "reduce": "paper-coll-bound-1",
    "bcast": "paper-coll-bound-1",
    "allreduce": "paper-coll-bound-2",
    "reduce_scatter": "paper-coll-bound-2",
    "allgather": "paper-coll-bound-2",
}

#: The size of a message in the paper's figure 11, in bytes.
SIZE = 1 << 20

#: What carries a collective, by program, with its colour, mark and dash.
MPI, OSU, RCCL = "MPI (mpi)", "MPI (OSU)", "RCCL or NCCL"
_PROGRAMS = {"mpi": MPI, "osu": OSU, "rccl": RCCL, "rccl-tests": RCCL, "nccl-tests": RCCL}
_LOOKS: Mapping[str, tuple[str, str, list[int]]] = {
    MPI: (PALETTE[0], "circle", [1, 0]),
    OSU: (PALETTE[4], "triangle-up", [2, 2]),
    RCCL: (PALETTE[1], "square", [6, 3]),
}
_BARS = dict(zip(_LOOKS, GREYS, strict=True))
_OF_RCCL: Mapping[str, tuple[str, str, list[int]]] = {
    name: (PALETTE[place], shape, dash)
    for place, (name, shape, dash) in enumerate(
        zip(
            COLLECTIVES,
            ("circle", "square", "triangle-up", "diamond", "cross"),
            ([1, 0], [6, 3], [2, 2], [9, 2, 2, 2], [4, 1]),
            strict=True,
        )
    )
}


def figures(observed: Observed) -> Iterator[Figure]:
    """Yield all that carry collectives, side by side, and RCCL by itself."""
    rows = _rows(observed)
    if not rows:
        return
    if {row["series"] for row in rows} != {RCCL}:
        yield _all(observed, rows)
    mine = [row for row in rows if row["series"] == RCCL]
    # Of one number of partners the first figure has them all.
    if len({row["partners"] for row in mine}) > 1 or (mine and len(mine) == len(rows)):
        yield _rccl(observed, mine)


def _rows(observed: Observed) -> list[dict[str, Any]]:
    found: dict[tuple[str, str, int], Series] = {}
    for point in observed.select(experiment={"E10", "E11"}, unit="us", bytes=SIZE, by_engines=True):
        label = _PROGRAMS.get(point.program)
        if label is None or point.operation not in COLLECTIVES or point.taking_part is None:
            continue
        # RCCL has both; MPI moves from one buffer to another.
        if not point.in_place:
            found.setdefault((point.operation, label, point.taking_part), point)
    order = list(COLLECTIVES)
    ordered = sorted(
        found, key=lambda key: (order.index(key[0]), list(_LOOKS).index(key[1]), key[2])
    )
    return [
        of_point(label, found[name, label, count], collective=name, partners=count)
        for name, label, count in ordered
    ]


def _all(observed: Observed, rows: Sequence[Row]) -> Figure:
    labels = [label for label in _LOOKS if any(row["series"] == label for row in rows)]
    title = f"Collectives of 1 MiB: MPI{' beside RCCL or NCCL' if RCCL in labels else ''}"
    says = f"Latency of collectives, {about(SIZE)}, {observed.kind}; less is better."
    says += " " + " ".join(_in_words(rows, name) for name in COLLECTIVES if _of(rows, name))
    if RCCL not in labels:
        says += " The session has no RCCL or NCCL to stand beside MPI."
    bounds = {value.id: value for value in beside(observed.node, "paper-coll-bound-*")}
    there = [name for name in COLLECTIVES if _of(rows, name)]
    theirs = [
        of_value("lower bound", bounds[record], collective=name, partners=None)
        for name, record in COLLECTIVES.items()
        if record in bounds and name in there
    ]
    if theirs:
        bounds_said = words.listed(dict.fromkeys(words.amount(r["value"], "us") for r in theirs))
        says += (
            " Dotted lines are lower bounds that the paper states, of one and of two rounds over "
            f"the fastest pair: {bounds_said}."
        )
    if len({row["partners"] for row in rows}) == 1:
        # A curve of one number of partners would be a dot in an empty field.
        texted = [{**row, "text": shown(row["value"])} for row in rows]
        count = rows[0]["partners"]
        says += f" All are of {count} partners."
        drawing = grouped_bars(texted, "collective", "", _BARS, f"us, with {count} partners")
    else:
        panels = [_panel(name, _of(rows, name), _of(theirs, name), labels) for name in there]
        chart = alt.concat(*panels, columns=2, spacing={"row": 8, "column": 8})
        drawing = drawn(chart.properties(padding=2))
    return Figure("collectives", title, observed.kind, says, [*rows, *theirs], drawing)


def _of(rows: Sequence[Row], name: str) -> list[Row]:
    return [row for row in rows if row["collective"] == name]


def _in_words(rows: Sequence[Row], name: str) -> str:
    parts = []
    for label in _LOOKS:
        mine = [row for row in rows if (row["collective"], row["series"]) == (name, label)]
        if mine:
            parts.append(f"{label} {_ends(mine)}")
    return f"{name}: {'; '.join(parts)}."


def _ends(rows: Sequence[Row]) -> str:
    """Return the values of fewest and most partners, and where the latency falls with one more."""
    first, last = rows[0], rows[-1]
    said = f"{words.amount(first['value'], 'us')} with {first['partners']}"
    if len(rows) > 1:
        said += f", {words.amount(last['value'], 'us')} with {last['partners']}"
        falls = [b["partners"] for a, b in pairwise(rows) if b["value"] < 0.99 * a["value"]]
        said += f", falling at {words.listed(map(str, falls))}" if falls else ""
    return said


def _panel(
    name: str, rows: Sequence[Row], bounds: Sequence[Row], labels: Sequence[str]
) -> alt.LayerChart | alt.FacetChart:
    layers = _lines(rows, "series", {label: _LOOKS[label] for label in labels})
    if bounds:
        line = alt.Chart(alt.InlineData(values=[{"value": row["value"]} for row in bounds]))
        layers.append(line.mark_rule(strokeDash=[2, 3], color="#555555").encode(y="value:Q"))
    heading = alt.TitleParams(name, fontSize=12, anchor="start", offset=4)
    return alt.layer(*layers).properties(width=116, height=96, title=heading)


def _rccl(observed: Observed, rows: Sequence[Row]) -> Figure:
    title = "Collectives of 1 MiB by RCCL or NCCL"
    says = f"Latency, {about(SIZE)}, {observed.kind}; less is better. "
    there = [name for name in COLLECTIVES if _of(own(rows), name)]
    says += " ".join(f"{name}: {_ends(_of(rows, name))}." for name in there)
    layers = _lines(rows, "collective", {name: _OF_RCCL[name] for name in there})
    sized = alt.layer(*layers).properties(width=280, height=190, padding=4)
    return Figure("collectives-rccl", title, observed.kind, says, rows, drawn(sized))


def _lines(
    rows: Sequence[Row], by: str, looks: Mapping[str, tuple[str, str, list[int]]]
) -> list[alt.Chart]:
    """Return lines over the number of partners with intervals, told apart by the column ``by``."""
    keys = ("series", "collective", "partners", "value", "low", "high")
    names = list(looks)
    colours, shapes, dashes = (list(one) for one in zip(*looks.values(), strict=True))
    legend = alt.Legend(columns=3, symbolSize=60, labelLimit=110, symbolStrokeWidth=1.5)
    data = alt.Chart(alt.InlineData(values=[{key: row[key] for key in keys} for row in rows]))
    x = alt.X("partners:O", title="partners", axis=alt.Axis(labelAngle=0))
    y = alt.Y("value:Q", title="us", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=4))
    colour = alt.Color(
        f"{by}:N", title=None, scale=alt.Scale(domain=names, range=colours), legend=legend
    )
    shape = alt.Shape(
        f"{by}:N", title=None, scale=alt.Scale(domain=names, range=shapes), legend=legend
    )
    dash = alt.StrokeDash(
        f"{by}:N", title=None, scale=alt.Scale(domain=names, range=dashes), legend=None
    )
    layers = [
        data.mark_line(strokeWidth=1.6).encode(x=x, y=y, color=colour, strokeDash=dash),
        data.mark_point(size=34, filled=True, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape
        ),
    ]
    ranged = [row for row in rows if row["low"] is not None]
    if ranged:
        values = [{key: row[key] for key in keys} for row in ranged]
        layers.append(
            alt.Chart(alt.InlineData(values=values))
            .mark_rule(strokeWidth=1)
            .encode(x=x, y=alt.Y("low:Q", title="us"), y2="high:Q", color=colour)
        )
    return layers
