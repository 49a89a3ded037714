"""Curves over size, with their intervals as bands and published values beside."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from fabricheck.report.figure import Drawing
from fabricheck.report.figures import axes
from fabricheck.report.figures.charts import chart, finished
from fabricheck.report.figures.rows import Row, own

#: Heights in pixels: of the plot with its axes, and of one line of a legend.
_PLOT, _LEGEND_LINE = 235, 17

_KEYS = ("series", "kind", "bytes", "value", "low", "high")


def curves(
    rows: Sequence[Row],
    *,
    title: str = "GB/s",
    known: Sequence[str] = (),
    size_title: str = "size",
    logarithmic: bool = False,
    published: str = "published",
) -> Drawing:
    """Return the drawing of curves over size, one for each series.

    A published value without a size is a line across, with its mark at the left end: it belongs to
    no place on the axis of sizes.

    :param rows: of `rows.of_point` and `rows.of_value`. title: of the axis of values. known: all
        series that figures of this kind may have, so that each keeps its colour. published: what
        the legend calls the published values.
    """
    mine = own(rows)
    labels = list(dict.fromkeys(row["series"] for row in mine))
    others = [
        {**row, "kind": published if row["kind"] == "published" else row["kind"]}
        for row in rows
        if row not in mine and row["series"] in labels
    ]
    known_sizes = [row["bytes"] for row in (*mine, *others) if row["bytes"]]
    start = axes.ends(known_sizes)[0]
    unplaced = [{**row, "bytes": start} for row in others if not row["bytes"]]
    placed = [row for row in others if row["bytes"]]
    banded = [row for row in mine if row["low"] is not None]

    x = axes.sizes(known_sizes, size_title)
    y = alt.Y("value:Q", title=title, scale=_scale(logarithmic), axis=alt.Axis(tickCount=6))
    colour, dash = axes.colour(labels, known), axes.dash(labels, known)
    shape = axes.shape(row["kind"] for row in (*mine, *others))
    layers: list[alt.Chart] = []
    if banded:
        band = chart(banded, _KEYS).mark_area(opacity=0.2, aria=False)
        low = alt.Y("low:Q", title=title)
        layers.append(band.encode(x=x, y=low, y2="high:Q", color=colour))
    line = chart(mine, _KEYS).mark_line(strokeWidth=1.6, aria=False)
    layers.append(line.encode(x=x, y=y, color=colour, strokeDash=dash))
    points = chart(mine, _KEYS).mark_point(size=9, filled=True, opacity=1, aria=False)
    layers.append(points.encode(x=x, y=y, color=colour, shape=shape))
    if unplaced:
        rules = chart(unplaced, _KEYS).mark_rule(strokeWidth=1, opacity=0.7, aria=False)
        layers.append(rules.encode(y=y, color=colour))
    if others:
        marks = chart(unplaced + placed, _KEYS).mark_point(
            size=60, filled=True, opacity=1, stroke="black", strokeWidth=0.8, aria=False
        )
        layers.append(marks.encode(x=x, y=y, color=colour, shape=shape))
    legend_lines = (len(labels) + 1) // 2 + 1
    return finished(layers, _PLOT + _LEGEND_LINE * legend_lines, right=20)


def _scale(logarithmic: bool) -> alt.Scale:
    if logarithmic:
        return alt.Scale(type="log", nice=False)
    return alt.Scale(domainMin=0, nice=True, zero=True)
