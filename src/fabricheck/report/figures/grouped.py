"""Bars from zero in groups, published values on them as diamonds, text at their ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from fabricheck.report.figure import PALETTE, SHAPES, Drawing, drawn
from fabricheck.report.figures.rows import Row, own

#: Dark, light, darkest: told apart in grey too.
GREYS = (PALETTE[0], PALETTE[5], PALETTE[6])

#: In pixels: a bar's height, the gap between two groups, and the width of the drawing.
_BAR, _GAP, _PLOT = 14, 8, 320

_KEYS = ("series", "value", "low", "high", "text", "peak")


def grouped_bars(
    rows: Sequence[Row], group: str, noun: str, colours: Mapping[str, str], unit: str
) -> Drawing:
    """Return the drawing, a bar for each row of this session.

    :param rows: of `rows.of_point` and `rows.of_value`, with ``text`` for a bar's end and perhaps
        ``peak``, which a line marks.
    :param group: the column that groups them. noun: what is before a group's name, as ``device``.
    :param colours: of the series, in the order within a group. unit: title of the axis.
    """
    picked = [{"group": row[group], **{key: row.get(key) for key in _KEYS}} for row in own(rows)]
    theirs = [
        {"group": row[group], "series": row["series"], "value": row["value"]}
        for row in rows
        if row["kind"] == "published" and row[group] is not None
    ]
    labels = [label for label in colours if any(row["series"] == label for row in picked)]
    groups = list(dict.fromkeys(row["group"] for row in picked))
    # Text begins where all that is drawn of its bar ends.
    ends: dict[tuple[str, object], float] = {}
    for row in (*picked, *theirs):
        bar = (row["series"], row["group"])
        reach = max(row["value"], row.get("peak") or 0.0, row.get("high") or 0.0)
        ends[bar] = max(ends.get(bar, 0.0), reach)
    texts = [{**row, "value": ends[row["series"], row["group"]]} for row in picked]
    # A letter is some 6 pixels wide.
    share = (max(len(row["text"]) for row in picked) * 6.2 + 12) / (_PLOT - 60)
    x = alt.X(
        "value:Q",
        title=unit,
        axis=alt.Axis(tickCount=5),
        scale=alt.Scale(domain=[0, max(ends.values()) / (1 - share)], nice=False),
    )
    inner = _GAP / (_GAP + _BAR * len(labels))
    y = alt.Y(
        "group:N",
        title=None,
        sort=groups,
        scale=alt.Scale(domain=groups, paddingInner=inner, paddingOuter=inner / 2),
        axis=alt.Axis(ticks=False, labelLimit=100, labelExpr=f"'{noun} ' + datum.label"),
    )
    within = alt.Scale(domain=labels, paddingInner=0, paddingOuter=0)
    offset = alt.YOffset("series:N", scale=within)
    colour = alt.Color(
        "series:N",
        title=None,
        scale=alt.Scale(domain=labels, range=[colours[label] for label in labels]),
        legend=alt.Legend(columns=2, labelLimit=150) if len(labels) > 1 else None,
    )
    place: dict[str, Any] = {"y": y, "yOffset": offset}
    bars = alt.Chart(alt.InlineData(values=picked))
    layers = [
        bars.mark_bar(stroke="black", strokeWidth=0.4, height=_BAR - 2).encode(
            x=x, color=colour, **place
        ),
        alt.Chart(alt.InlineData(values=texts))
        .mark_text(align="left", dx=6, fontSize=11)
        .encode(x=x, text="text:N", **place),
    ]
    ranged = [row for row in picked if row["low"] is not None]
    if ranged:
        interval = alt.Chart(alt.InlineData(values=ranged)).mark_rule(
            strokeWidth=2.5, color="#888888"
        )
        layers.append(interval.encode(x=alt.X("low:Q", title=unit), x2="high:Q", **place))
    if any(row["peak"] for row in picked):
        tick = bars.mark_tick(color="#555555", thickness=2, size=_BAR + 2)
        layers.append(tick.encode(x=alt.X("peak:Q", title=unit), **place))
    if theirs:
        mark = alt.Chart(alt.InlineData(values=theirs)).mark_point(
            shape=SHAPES["published"], size=45, filled=True, fill="white", stroke="black", opacity=1
        )
        layers.append(mark.encode(x=x, **place))
    return drawn(
        alt.layer(*layers).properties(
            width=_PLOT,
            height=len(groups) * (_BAR * len(labels) + _GAP) + (70 if len(labels) < 3 else 88),
            padding=4,
            autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        )
    )
