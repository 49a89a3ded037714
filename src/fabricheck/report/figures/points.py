"""Single values by name or number, with intervals, texts, and published values beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from fabricheck.report.figure import Drawing
from fabricheck.report.figures import charts
from fabricheck.report.figures.rows import Row, is_of_session

#: A value nearer than this part of the greatest one to the right end has its text on the left.
_DECADE = 10

#: In pixels: how far texts are above and below their marks, since those of close marks would meet.
_ASIDE = 6


def points(
    rows: Sequence[Row],
    *,
    x: str,
    x_title: str,
    unit: str,
    colours: Mapping[str, str],
    logarithmic: bool = False,
) -> Drawing:
    """Return the drawing of single values with intervals and texts, and of published values.

    The values are on a logarithmic axis: what is not positive is not drawn. Published values are
    white marks; where they have no place on the x axis, they are not drawn either.

    :param rows: from `rows.of_point` and `rows.of_value`, with ``text`` for beside a mark.
    :param x: the column of the x axis: names, each with its own place, or numbers.
    :param unit: of the values, on their axis.
    :param colours: the colours by series.
    :param logarithmic: whether the x axis is; its numbers are positive.
    """
    shown = _shown(rows, x, list(colours), logarithmic)
    across = _across(shown, x, x_title, logarithmic)
    up = alt.Scale(type="log", nice=True)
    base = alt.Chart().encode(x=across, y=alt.Y("value:Q", title=unit, scale=up))
    legend = alt.Legend(symbolType="circle", symbolOpacity=1, columns=2, labelLimit=160, offset=6)
    colour = charts.colour("series", colours, legend)
    measured = base.encode(color=colour).transform_filter("datum.own")
    marks = base.encode(shape=charts.shape(shown))
    layers = [
        measured.mark_rule(strokeWidth=1.5)
        .encode(y=alt.Y("low:Q", title=unit), y2="high:Q")
        .transform_filter("isValid(datum.low) && isValid(datum.high)"),
        measured.mark_point(size=45, filled=True, opacity=1).encode(shape=charts.shape(shown)),
        marks.mark_point(
            size=60, filled=True, color="white", stroke="black", strokeWidth=1, opacity=1
        ).transform_filter("!datum.own"),
        _texts(measured, "left", 7).transform_filter("!datum.before"),
        _texts(measured, "right", -7).transform_filter("datum.before"),
    ]
    keys = ("series", "kind", x, "value", "low", "high", "text", "own", "aside", "before")
    lines = 2 + (len(colours) + 1) // 2
    chart = alt.layer(*layers, data=charts.data(shown, keys))
    return charts.finished(chart, 250 + charts.LEGEND_LINE * lines, right=30)


def _shown(
    rows: Sequence[Row], x: str, series: Sequence[str], logarithmic: bool
) -> list[dict[str, Any]]:
    """Return the rows as they are drawn, without those that have no place on an axis.

    :param series: in the order of their colours.
    """
    placed = [row for row in rows if row["value"] > 0 and row[x] is not None]
    most = max((row[x] for row in placed), default=1) if logarithmic else None
    shown = []
    for row in placed:
        low = row["low"]
        is_low_drawn = low is not None and low > 0
        is_second = row["series"] in series and series.index(row["series"]) % 2 == 1
        columns = {
            "own": is_of_session(row),
            "low": low if is_low_drawn else None,
            "aside": _ASIDE if is_second else -_ASIDE,
            # There is no place for a text on the right of the last marks.
            "before": most is not None and row[x] > most / _DECADE,
        }
        shown.append({**row, **columns})
    return shown


def _across(shown: Sequence[Row], x: str, title: str, logarithmic: bool) -> alt.X:
    """Return the x axis, of numbers or of names."""
    if logarithmic:
        scale = alt.Scale(type="log", nice=True)
        return alt.X(f"{x}:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5))
    names = list(dict.fromkeys(row[x] for row in shown))
    axis = alt.Axis(labelAngle=-40, labelLimit=130, ticks=False)
    return alt.X(f"{x}:N", title=None, sort=names, axis=axis)


def _texts(measured: alt.Chart, align: Literal["left", "right"], dx: int) -> alt.Chart:
    """Return the texts beside the marks of this session."""
    layer: alt.Chart = measured.mark_text(
        align=align, dx=dx, dy=alt.ExprRef("datum.aside"), fontSize=charts.TEXT - 1
    ).encode(text="text:N")
    return layer
