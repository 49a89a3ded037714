"""Curves over size, with their intervals as bands and published values beside."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from fabricheck.report.figure import WIDTH, drawn
from fabricheck.report.figures import axes
from fabricheck.report.figures.rows import Row, own

#: Heights in pixels: of the plot with its axes, and of one line of a legend.
_PLOT, _LEGEND_LINE = 235, 17


def curves(
    rows: Sequence[Row],
    *,
    title: str = "GB/s",
    known: Sequence[str] = (),
    size_title: str = "size",
    logarithmic: bool = False,
    published: str = "published",
) -> str:
    """Return the drawing of curves over size, one for each series.

    A published value without a size is a line across, with its mark at the left end: it belongs to
    no place on the axis of sizes.

    :param rows: of `rows.of_point` and `rows.of_value`. title: of the axis of values. known: all
        series that figures of this kind may have, so that each keeps its colour. published: what
        the legend calls the published values.
    """
    rows = [
        {**row, "kind": published} if row["kind"] == "published" else row for row in rows
    ]
    mine = own(rows)
    labels = list(dict.fromkeys(row["series"] for row in mine))
    others = [row for row in rows if row not in mine and row["series"] in labels]
    x = axes.sizes([row["bytes"] for row in rows if row["bytes"]], size_title)
    start = axes.ends(row["bytes"] for row in rows if row["bytes"])[0]
    y = alt.Y("value:Q", title=title, scale=_scale(rows, logarithmic), axis=_VALUES)
    colour, shape = axes.colour(labels, known), axes.shape(row["kind"] for row in rows)
    layers: list[alt.Chart] = []
    if any(row["low"] is not None for row in mine):
        band = alt.Chart(_data([row for row in mine if row["low"] is not None]))
        layers.append(
            band.mark_area(opacity=0.2, aria=False).encode(
                x=x, y=alt.Y("low:Q", title=title), y2="high:Q", color=colour
            )
        )
    chart = alt.Chart(_data(mine))
    layers.append(
        chart.mark_line(strokeWidth=1.6, aria=False).encode(
            x=x, y=y, color=colour, strokeDash=axes.dash(labels, known)
        )
    )
    layers.append(
        chart.mark_point(size=9, filled=True, opacity=1, aria=False).encode(
            x=x, y=y, color=colour, shape=shape
        )
    )
    unplaced = [{**row, "bytes": start} for row in others if not row["bytes"]]
    if unplaced:
        rule = alt.Chart(_data(unplaced)).mark_rule(strokeWidth=1, opacity=0.7, aria=False)
        layers.append(rule.encode(y=y, color=colour))
    if others:
        placed = unplaced + [row for row in others if row["bytes"]]
        mark = alt.Chart(_data(placed)).mark_point(
            size=60, filled=True, opacity=1, stroke="black", strokeWidth=0.8, aria=False, clip=False
        )
        layers.append(mark.encode(x=x, y=y, color=colour, shape=shape))
    lines = (len(labels) + 1) // 2 + 1
    return drawn(
        alt.layer(*layers).properties(
            width=WIDTH,
            height=_PLOT + _LEGEND_LINE * lines,
            padding={"left": 2, "right": 20, "top": 6, "bottom": 2},
            autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        )
    )


def _scale(rows: Sequence[Row], logarithmic: bool) -> alt.Scale:
    if logarithmic:
        return alt.Scale(type="log", nice=False)
    return alt.Scale(domainMin=0, nice=True, zero=True)


def _data(rows: Sequence[Row]) -> alt.Data:
    """Return what is drawn of the rows: a drawing carries no more than it shows."""
    keys = ("series", "kind", "bytes", "value", "low", "high")
    return alt.Data(values=[{key: row[key] for key in keys} for row in rows])


_VALUES = alt.Axis(tickCount=6)
