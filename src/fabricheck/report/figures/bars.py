"""Bars from zero with intervals, published values as marks on them, and text at their ends."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from fabricheck.report.figure import Drawing
from fabricheck.report.figures import axes
from fabricheck.report.figures.charts import chart, finished
from fabricheck.report.figures.rows import Row, own

#: Heights in pixels: of one bar, of one rank's, and of axis and legend together.
_BAR, _RANK, _AROUND = 30, 7, 62

#: Widths in pixels: of the plot beside its labels, of a letter, of what is kept free of them, and
#: by which the text of a rank with an odd number stands behind its neighbours'.
_PLOT, _LETTER, _MARGIN, _ASIDE = 230, 6.5, 14, 46

#: Where the core of a rank is, and the colours of bars for it: light and dark, so that grey print
#: tells them too.
NEAR, REMOTE, UNKNOWN = "core near its device", "core of another domain", "domain not known"
_CORES = {NEAR: "#56B4E9", REMOTE: "#D55E00", UNKNOWN: "#999999"}

_KEYS = ("series", "kind", "value", "low", "high", "text", "rank", "core")


def bars(rows: Sequence[Row], *, title: str = "GB/s", known: Sequence[str] = ()) -> Drawing:
    """Return the drawing of one bar a series, of its only row of this session.

    :param rows: of `rows.of_point` and `rows.of_value`; ``text`` is written at a bar's end.
    """
    mine = own(rows)
    labels = [row["series"] for row in mine]
    x, y = _values(rows, title), _series(labels, 0.35)
    colour = axes.colour(labels, known, legend=False)
    body = chart(mine, _KEYS).mark_bar(opacity=0.45, stroke="black", strokeWidth=0.5, aria=False)
    texts = chart(_texts(rows), _KEYS).mark_text(align="left", dx=8, fontSize=11, aria=False)
    layers = [
        body.encode(x=x, y=y, color=colour),
        *(layer.encode(y=y) for layer in _whiskers(mine, title)),
        *(layer.encode(x=x, y=y) for layer in _marks(rows, 25, 70)),
        texts.encode(x=x, y=y, text="text:N"),
    ]
    return finished(layers, _BAR * len(labels) + _AROUND)


def grouped(rows: Sequence[Row], *, title: str = "GB/s per rank") -> Drawing:
    """Return the drawing of a group of thin bars a series, one for each rank, by where it sits.

    :param rows: with ``rank``, ``core`` (near, remote, unknown) and ``text`` for the end of a bar.
    """
    mine = own(rows)
    labels = list(dict.fromkeys(row["series"] for row in mine))
    ranks = sorted({row["rank"] for row in rows})
    cores = [core for core in _CORES if any(row["core"] == core for row in mine)]
    x, y = _values(rows, title), _series(labels, 0.22)
    place = alt.YOffset("rank:O", scale=alt.Scale(domain=ranks, paddingInner=0.15))
    colour = alt.Color(
        "core:N",
        title=None,
        scale=alt.Scale(domain=cores, range=[_CORES[core] for core in cores]),
        legend=alt.Legend(symbolType="square", symbolOpacity=1, labelLimit=160, offset=6),
    )
    body = chart(mine, _KEYS).mark_bar(aria=False)
    # A text is higher than a bar: those of neighbours are beside each other.
    named = [
        chart([row for row in mine if row["text"] and row["rank"] % 2 == odd], _KEYS).mark_text(
            align="left", dx=8 + _ASIDE * odd, fontSize=11, aria=False
        )
        for odd in (0, 1)
    ]
    layers = [
        body.encode(x=x, y=y, yOffset=place, color=colour),
        *(layer.encode(y=y, yOffset=place) for layer in _whiskers(mine, title)),
        *(layer.encode(x=x, y=y, yOffset=place) for layer in _marks(rows, 12, 26)),
        *(texts.encode(x=x, y=y, yOffset=place, text="text:N") for texts in named),
    ]
    return finished(layers, _RANK * len(ranks) * len(labels) + _AROUND + 30)


def _values(rows: Sequence[Row], title: str) -> alt.X:
    scale = alt.Scale(domainMin=0, domainMax=_end(rows), nice=False)
    return alt.X("value:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5))


def _series(labels: Sequence[str], padding: float) -> alt.Y:
    scale = alt.Scale(domain=list(labels), paddingInner=padding)
    axis = alt.Axis(labelLimit=130)
    return alt.Y("series:N", title=None, sort=list(labels), scale=scale, axis=axis)


def _whiskers(mine: Sequence[Row], title: str) -> list[alt.Chart]:
    """Return the intervals of those rows that have one."""
    known = [row for row in mine if row["low"] is not None]
    rules = chart(known, _KEYS).mark_rule(strokeWidth=1.5, aria=False)
    return [rules.encode(x=alt.X("low:Q", title=title), x2="high:Q")] if known else []


def _marks(rows: Sequence[Row], small: int, large: int) -> list[alt.Chart]:
    """Return black marks of this session's values and white ones of the others."""
    mine = own(rows)
    shape = axes.shape(row["kind"] for row in rows)
    return [
        chart(of, _KEYS)
        .mark_point(
            size=size, color=colour, filled=True, stroke="black", strokeWidth=1, opacity=1,
            aria=False,
        )
        .encode(shape=shape)
        for of, size, colour in (
            (mine, small, "black"),
            ([row for row in rows if row not in mine], large, "white"),
        )
        if of
    ]  # fmt: skip


def _texts(rows: Sequence[Row]) -> list[Row]:
    """Return the text of each bar, at the end of it and of all its marks."""
    ends: dict[str, float] = {}
    for row in rows:
        ends[row["series"]] = max(row["value"], row["high"] or 0, ends.get(row["series"], 0))
    return [{**row, "value": ends[row["series"]]} for row in own(rows)]


def _end(rows: Sequence[Row]) -> float:
    """Return where the axis ends, so that the longest text still fits behind the longest bar."""
    longest = max(len(row["text"]) for row in own(rows))
    aside = _ASIDE if any(row["text"] and row.get("rank", 0) % 2 for row in own(rows)) else 0
    part = (_MARGIN + _LETTER * longest + aside) / _PLOT
    return float(max(max(row["value"], row["high"] or 0) for row in rows) / (1 - part))
