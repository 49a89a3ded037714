"""Curves over the hours of a soak, with lines across where something was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from fabricheck.report.figure import PALETTE, Drawing
from fabricheck.report.figures import charts
from fabricheck.report.figures.charts import DASHES
from fabricheck.report.figures.rows import Row

#: What is marked over the hours of a soak, and the colour, the width and the dash of its line.
LOAD, QUIET, JUDGED = "round under load", "quiet session", "what was judged"
MARKS: Mapping[str, tuple[str, float, Sequence[int]]] = {
    LOAD: ("#d0d0d0", 0.5, (1, 0)),
    QUIET: (PALETTE[2], 1.0, (1, 0)),
    JUDGED: (PALETTE[1], 1.2, (2, 2)),
}

#: The most rounds of a curve whose points are drawn besides the line.
_MOST_POINTS = 40

#: The marks of the axis of hours.
_TICKS = 6


def over_hours(rows: Sequence[Row], marks: Sequence[Row], *, unit: str, hours: float) -> Drawing:
    """Return the drawing of curves over the hours of a soak, with lines across where marks are.

    :param rows: with ``series``, ``hour`` and ``value``.
    :param marks: with ``hour``, and ``what`` as in `MARKS`.
    """
    labels = list(dict.fromkeys(row["series"] for row in rows))
    scale = alt.Scale(domain=[0, max(hours, 1e-9)], nice=False)
    x = alt.X("hour:Q", title="hours", scale=scale, axis=alt.Axis(tickCount=_TICKS))
    y = alt.Y("value:Q", title=unit, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4))
    legend = alt.Legend(symbolType="stroke", symbolSize=500, symbolStrokeWidth=2, offset=6)
    colours = {label: charts.palette_colour(place) for place, label in enumerate(labels)}
    dashes = alt.Scale(domain=labels, range=list(DASHES[: len(labels)]))
    curve = alt.Chart(charts.data(rows, ("series", "hour", "value"))).encode(
        x=x, y=y, color=charts.colour("series", colours, legend)
    )
    dash = alt.StrokeDash("series:N", title=None, scale=dashes, legend=legend)
    layers: list[alt.Chart] = []
    for what, (ink, width, strokes) in MARKS.items():
        places = [row for row in marks if row["what"] == what]
        if places:
            lines = alt.Chart(charts.data(places, ("hour",)))
            rules = lines.mark_rule(color=ink, strokeWidth=width, strokeDash=list(strokes))
            layers.append(rules.encode(x=x))
    layers.append(curve.mark_line(strokeWidth=1.6).encode(strokeDash=dash))
    if len(rows) <= _MOST_POINTS * len(labels):
        layers.append(curve.mark_point(size=12, filled=True, opacity=1))
    return charts.finished(alt.layer(*layers), 150)
