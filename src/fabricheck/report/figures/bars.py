"""Bars from zero with intervals, published values as marks on them, and text at their ends."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from fabricheck.report.figure import WIDTH, drawn
from fabricheck.report.figures import axes
from fabricheck.report.figures.rows import Row, own

#: Heights in pixels: of one bar, of one rank's, and of axis and legend together.
_BAR, _RANK, _AROUND = 30, 7, 62

#: Widths in pixels: of the plot beside its labels, of a letter, and of what is kept free of them.
_PLOT, _LETTER, _MARGIN = 230, 6.5, 14

#: Colours of bars by where a rank's core is: light and dark, so that grey print tells them too.
_CORES = {"core near its device": "#56B4E9", "core of another domain": "#D55E00"}

_KEYS = ("series", "kind", "value", "low", "high", "text")


def bars(rows: Sequence[Row], *, title: str = "GB/s", known: Sequence[str] = ()) -> str:
    """Return the drawing of one bar a series, of its only row of this session.

    :param rows: of `rows.of_point` and `rows.of_value`; ``text`` is written at a bar's end.
    """
    mine = own(rows)
    labels = [row["series"] for row in mine]
    others = [row for row in rows if row not in mine and row["series"] in labels]
    x = alt.X(
        "value:Q",
        title=title,
        scale=alt.Scale(domainMin=0, domainMax=_end(rows), nice=False),
        axis=alt.Axis(tickCount=5),
    )
    y = alt.Y(
        "series:N",
        title=None,
        sort=labels,
        scale=alt.Scale(domain=labels, paddingInner=0.35),
        axis=alt.Axis(labelLimit=130),
    )
    colour = axes.colour(labels, known, legend=False)
    chart = alt.Chart(alt.Data(values=[{key: row.get(key) for key in _KEYS} for row in mine]))
    layers: list[alt.Chart] = [
        chart.mark_bar(opacity=0.45, stroke="black", strokeWidth=0.5, aria=False).encode(
            x=x, y=y, color=colour
        ),
        chart.mark_point(size=25, filled=True, color="black", opacity=1, aria=False).encode(
            x=x, y=y, shape=axes.shape(row["kind"] for row in rows)
        ),
        alt.Chart(alt.Data(values=_texts(rows)))
        .mark_text(align="left", dx=8, fontSize=11, aria=False)
        .encode(x=x, y=y, text="text:N"),
    ]
    whiskers = [row for row in mine if row["low"] is not None]
    if whiskers:
        values = [{key: row.get(key) for key in _KEYS} for row in whiskers]
        layers.append(
            alt.Chart(alt.Data(values=values))
            .mark_rule(strokeWidth=2, aria=False)
            .encode(x=alt.X("low:Q", title=title), x2="high:Q", y=y)
        )
    if others:
        values = [{key: row.get(key) for key in _KEYS} for row in others]
        layers.append(
            alt.Chart(alt.Data(values=values))
            .mark_point(
                size=70, filled=True, color="white", stroke="black", strokeWidth=1.2, opacity=1,
                aria=False,
            )
            .encode(x=x, y=y, shape=axes.shape(row["kind"] for row in rows))
        )  # fmt: skip
    return drawn(
        alt.layer(*layers).properties(
            width=WIDTH,
            height=_BAR * len(labels) + _AROUND,
            padding={"left": 2, "right": 6, "top": 4, "bottom": 2},
            autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        )
    )


def _texts(rows: Sequence[Row]) -> list[Row]:
    """Return the text of each bar, at the end of it and of all its marks."""
    ends: dict[str, float] = {}
    for row in rows:
        ends[row["series"]] = max(row["value"], row["high"] or 0, ends.get(row["series"], 0))
    return [
        {"series": row["series"], "text": row["text"], "value": ends[row["series"]]}
        for row in own(rows)
    ]


def _end(rows: Sequence[Row]) -> float:
    """Return where the axis ends, so that the longest text still fits behind the longest bar."""
    longest = max(len(row["text"]) for row in own(rows))
    part = (_MARGIN + _LETTER * longest) / _PLOT
    return float(max(max(row["value"], row["high"] or 0) for row in rows) / (1 - part))


def grouped(rows: Sequence[Row], *, title: str = "GB/s per rank") -> str:
    """Return the drawing of a group of thin bars a series, one for each rank, by where it sits.

    :param rows: with ``rank``, ``core`` (what the colour says) and ``text`` for the end of a bar.
    """
    mine = own(rows)
    others = [row for row in rows if row not in mine]
    labels = list(dict.fromkeys(row["series"] for row in mine))
    ranks = sorted({row["rank"] for row in rows})
    cores = list(dict.fromkeys(row["core"] for row in mine))
    x = alt.X(
        "value:Q",
        title=title,
        scale=alt.Scale(domainMin=0, domainMax=_end(rows), nice=False),
        axis=alt.Axis(tickCount=5),
    )
    y = alt.Y(
        "series:N",
        title=None,
        sort=labels,
        scale=alt.Scale(domain=labels, paddingInner=0.22),
        axis=alt.Axis(labelLimit=110),
    )
    place = alt.YOffset("rank:O", scale=alt.Scale(domain=ranks, paddingInner=0.15))
    colour = alt.Color(
        "core:N",
        title=None,
        scale=alt.Scale(domain=cores, range=[_CORES.get(core, "#999999") for core in cores]),
        legend=alt.Legend(symbolType="square", symbolOpacity=1, labelLimit=160, offset=6),
    )
    keys = (*_KEYS, "rank", "core")
    chart = alt.Chart(alt.Data(values=[{key: row.get(key) for key in keys} for row in mine]))
    layers = [
        chart.mark_bar(aria=False).encode(x=x, y=y, yOffset=place, color=colour),
    ]
    whiskers = [row for row in mine if row["low"] is not None]
    if whiskers:
        values = [{key: row.get(key) for key in keys} for row in whiskers]
        layers.append(
            alt.Chart(alt.Data(values=values))
            .mark_rule(strokeWidth=1.5, aria=False)
            .encode(x=alt.X("low:Q", title=title), x2="high:Q", y=y, yOffset=place)
        )
    marks = [{key: row.get(key) for key in keys} for row in others]
    own_marks = [{key: row.get(key) for key in keys} for row in mine]
    shape = axes.shape(row["kind"] for row in rows)
    for values, size in ((own_marks, 12), (marks, 26)):
        if values:
            layers.append(
                alt.Chart(alt.Data(values=values))
                .mark_point(
                    size=size, filled=True, color="white" if values is marks else "black",
                    stroke="black", strokeWidth=0.8, opacity=1, aria=False,
                )
                .encode(x=x, y=y, yOffset=place, shape=shape)
            )  # fmt: skip
    named = [{key: row.get(key) for key in keys} for row in mine if row["text"]]
    if named:
        layers.append(
            alt.Chart(alt.Data(values=named))
            .mark_text(align="left", dx=8, fontSize=11, aria=False)
            .encode(x=x, y=y, yOffset=place, text="text:N")
        )
    return drawn(
        alt.layer(*layers).properties(
            width=WIDTH,
            height=_RANK * len(ranks) * len(labels) + _AROUND + 30,
            padding={"left": 2, "right": 6, "top": 4, "bottom": 2},
            autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        )
    )
