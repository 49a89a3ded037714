"""Bars from zero, alone or in groups, with intervals, published values and texts at their ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from fabricheck.report.figure import Drawing
from fabricheck.report.figures import charts
from fabricheck.report.figures.rows import Row, is_of_session, session_rows

#: In pixels: the free space around a text, and the offset of the text of every other bar if bars
#: are thinner than the text.
_MARGIN, _ASIDE = 14, 46

#: In pixels: the gap between groups of bars, and the height of the axis with its title.
_GAP, _AXIS = 8, 62


def bars(
    rows: Sequence[Row],
    *,
    bar: str = "series",
    within: str = "",
    fill: str = "series",
    colours: Mapping[str, str] | None = None,
    known: Sequence[str] = (),
    unit: str = "GB/s",
    thick: int = 30,
) -> Drawing:
    """Return the drawing of bars from zero, with intervals, published values and end texts.

    Published values are white marks on the bars.

    :param rows: from `rows.of_point` and `rows.of_value`, with ``text`` for a bar's end and
        optionally ``peak``, which is drawn as a line.
    :param bar: the column that names a bar, or a group of bars.
    :param within: the column that distinguishes the bars of a group; without it a bar is one row.
    :param fill: the column of the colours.
    :param colours: the colours by value, with a legend; without them each bar has its own colour,
        which is fixed for those of ``known``.
    :param thick: height of a bar in pixels.
    """
    mine = session_rows(rows)
    groups = list(dict.fromkeys(row[bar] for row in mine))
    thin = thick < charts.TEXT
    # A thick bar is translucent, so that marks and grid lines on it are visible.
    opacity = 1.0 if thin else 0.7
    if colours is None:
        order = charts.places(groups, known)
        fills = {group: charts.palette_colour(place) for group, place in order.items()}
        legend = None
    else:
        present = {row[fill] for row in mine}
        fills = {name: colour for name, colour in colours.items() if name in present}
        legend = alt.Legend(symbolType="square", symbolOpacity=opacity, labelLimit=160, offset=6)
    inside = _inside(rows, within, list(fills) if within == fill else None)
    shown = [_shown(row, within, inside, thin) for row in rows]

    base = _base(bar, groups, within, inside, thick)
    at = base.encode(x=_values(unit, max(row["reach"] for row in shown)))
    marks = at.encode(shape=charts.shape(rows))
    layers = [
        at.mark_bar(opacity=opacity, stroke="black", strokeWidth=0 if thin else 0.5)
        .encode(color=charts.colour(fill, fills, legend))
        .transform_filter("datum.own"),
        _intervals(base, unit),
        _peaks(base, unit, thick),
        _marks(marks, "datum.own", 12 if thin else 30, "black", "white"),
        _marks(marks, "!datum.own", 26 if thin else 65, "white", "black"),
        _end_texts(base, unit, [bar, within] if within else [bar]),
    ]
    keys = (bar, within or bar, fill, "kind", "value", "low", "high", "text", "peak", "own",
            "reach", "aside")  # fmt: skip
    chart = alt.layer(*layers, data=charts.data(shown, keys))

    height = _AXIS + len(groups) * thick * max(len(inside), 1)
    if within:
        height += len(groups) * _GAP
    if legend is not None:
        height += charts.LEGEND_LINE * (1 + len(fills) // 2)
    return charts.finished(chart, height, _room_of_texts(shown))


def _inside(rows: Sequence[Row], within: str, fills: Sequence[str] | None) -> list[Any]:
    """Return the bars of a group, in order; none where a bar is one row.

    Series are in the order of their colours, ranks in numerical order.

    :param fills: the colours' order, where these bars have a colour each.
    """
    if not within:
        return []
    if fills is not None:
        return list(fills)
    return sorted({row[within] for row in rows})


def _shown(row: Row, within: str, inside: Sequence[Any], thin: bool) -> dict[str, Any]:
    """Return a row as it is drawn: how far its marks reach, and where its text stands.

    The text of every other thin bar stands aside, since two would overlap.
    """
    aside = 0
    if thin and within:
        aside = _ASIDE * (inside.index(row[within]) % 2)
    return {
        **row,
        "own": is_of_session(row),
        "reach": max(row["value"], row["high"] or 0, row.get("peak") or 0),
        "aside": aside,
    }


def _base(
    bar: str, groups: Sequence[str], within: str, inside: Sequence[Any], thick: int
) -> alt.Chart:
    """Return the places of the bars, one below the other."""
    gap = _GAP / (_GAP + thick * len(inside)) if within else 0.35
    y = alt.Y(
        f"{bar}:N", title=None, sort=list(groups), axis=alt.Axis(ticks=False, labelLimit=130),
        scale=alt.Scale(domain=list(groups), paddingInner=gap, paddingOuter=gap / 2),
    )  # fmt: skip
    base = alt.Chart().encode(y=y)
    if not within:
        return base
    scale = alt.Scale(domain=list(inside), paddingInner=0.15, paddingOuter=0)
    layer: alt.Chart = base.encode(yOffset=alt.YOffset(f"{within}:N", scale=scale))
    return layer


def _values(unit: str, end: float) -> alt.X:
    """Return the axis of values, from zero to an end."""
    scale = alt.Scale(domain=[0, end], nice=False)
    return alt.X("value:Q", title=unit, axis=alt.Axis(tickCount=5), scale=scale)


def _intervals(base: alt.Chart, unit: str) -> alt.Chart:
    """Return the intervals of the values of this session."""
    layer: alt.Chart = (
        base.mark_rule(strokeWidth=1.5)
        .encode(x=alt.X("low:Q", title=unit), x2="high:Q")
        .transform_filter("datum.own && datum.low !== null")
    )
    return layer


def _peaks(base: alt.Chart, unit: str, thick: int) -> alt.Chart:
    """Return the peaks, each a line across its bar."""
    layer: alt.Chart = (
        base.mark_tick(color="#555555", thickness=2, size=thick + 2)
        .encode(x=alt.X("peak:Q", title=unit))
        .transform_filter("isValid(datum.peak)")
    )
    return layer


def _marks(marks: alt.Chart, which: str, size: int, ink: str, edge: str) -> alt.Chart:
    """Return the marks of some values.

    :param which: their rows, as an expression of Vega.
    """
    layer: alt.Chart = marks.mark_point(
        size=size, color=ink, filled=True, stroke=edge, strokeWidth=1, opacity=1
    ).transform_filter(which)
    return layer


def _end_texts(base: alt.Chart, unit: str, of_bar: Sequence[str]) -> alt.Chart:
    """Return the texts, each beyond all marks of its bar.

    :param of_bar: the columns that name a bar.
    """
    layer: alt.Chart = (
        base.mark_text(align="left", dx=alt.ExprRef("8 + datum.aside"), fontSize=charts.TEXT)
        .transform_joinaggregate(end="max(reach)", groupby=list(of_bar))
        .transform_filter("datum.own")
        .encode(x=alt.X("end:Q", title=unit), text="text:N")
    )
    return layer


def _room_of_texts(shown: Sequence[Row]) -> int:
    """Return the pixels that texts need beyond the axis, which ends with the greatest value."""
    texts = [row for row in shown if row["own"]]
    letters = max(len(row["text"]) for row in texts)
    aside = max((row["aside"] for row in texts if row["text"]), default=0)
    return round(_MARGIN + charts.LETTER * letters + aside)
