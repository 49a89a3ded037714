"""Curves over size, one for each series of a figure, with published values among them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from fabricheck.core.grouping import grouped
from fabricheck.report.figure import Drawing, Figure, drawn
from fabricheck.report.figures import charts
from fabricheck.report.figures.rows import (
    Row,
    is_of_session,
    of_curve,
    of_noise,
    session_rows,
)

#: Binary units of a size axis, as an expression of Vega.
_BINARY = (
    "datum.value<1024?datum.value+' B':datum.value<1048576?datum.value/1024+' KiB':"
    "datum.value<1073741824?datum.value/1048576+' MiB':datum.value/1073741824+' GiB'"
)

#: The most marks of a size axis; more labels would overlap on a phone.
_TICKS = 6

#: A line across this far below one that has its word has one, too.
_APART = 0.9

#: The name of a panel.
_HEADER = alt.Header(labelFontSize=12, labelFontWeight="bold", labelAnchor="start", labelPadding=4)

#: The columns of the rows that are drawn, beside that of the x axis.
_COLUMNS = ("series", "kind", "value", "low", "high", "own", "across", "word", "collective")


def curves(
    rows: Sequence[Row],
    *,
    unit: str = "GB/s",
    known: Sequence[str] = (),
    x: str = "bytes",
    x_title: str = "size",
    logarithmic: bool = False,
    panels: Sequence[str] = (),
) -> Drawing:
    """Return the drawing of curves over size, one per series, with intervals as bands.

    A published value without a size is a line across with its kind above the right end, because it
    has no place on the axis of sizes. Of close lines only the greatest is labelled.

    :param rows: from `rows.of_point` and `rows.of_value`.
    :param unit: of the values, on their axis.
    :param known: all series that figures of this kind may have, so that each keeps its colour.
    :param x: the column of the x axis; if it is not a size, each value has its own place.
    :param panels: collectives, each with a panel of its own.
    """
    labels = list(dict.fromkeys(row["series"] for row in rows))
    known_x = sorted(row[x] for row in rows if row[x])
    if x == "bytes":
        axis = _sizes(known_x, x_title)
    else:
        axis = alt.X(f"{x}:O", title=x_title, axis=alt.Axis(labelAngle=0))
    shown = _shown(rows, x, known_x[0])
    _name_across(shown)

    order = charts.places(labels, known)
    colours = {label: charts.palette_colour(place) for label, place in order.items()}
    legend = alt.Legend(
        symbolType="stroke", symbolSize=500, symbolOpacity=1, symbolStrokeWidth=2,
        offset=6, labelLimit=150, columns=2,
    )  # fmt: skip
    base = alt.Chart().encode(
        y=_values(unit, logarithmic, ticks=4 if panels else 6),
        color=charts.colour("series", colours, legend),
    )
    at = base.encode(x=axis)
    dash = _dashes(labels, [order[label] for label in labels], legend)
    marked = at.encode(shape=charts.shape(row for row in rows if row[x]))
    layers = [
        _bands(at, unit),
        at.mark_line(strokeWidth=1.6).encode(strokeDash=dash).transform_filter("datum.own"),
        base.mark_rule(strokeWidth=1, opacity=0.7)
        .encode(strokeDash=dash)
        .transform_filter("datum.across"),
        _words_across(base),
        marked.mark_point(size=9, filled=True, opacity=1).transform_filter("datum.own"),
        _published(marked),
    ]
    chart = alt.layer(*layers, data=charts.data(shown, [x, *_COLUMNS]))
    if panels:
        return _in_panels(chart, panels)
    lines_of_legend = (len(labels) + 1) // 2 + 1
    return charts.finished(chart, 235 + charts.LEGEND_LINE * lines_of_legend, right=20)


def _shown(rows: Iterable[Row], x: str, first: Any) -> list[dict[str, Any]]:
    """Return the rows as they are drawn, of which those without a place on the x axis lie across.

    :param first: the place that such a row gets all the same.
    """
    return [
        {
            **row,
            "own": is_of_session(row),
            "across": not row[x],
            x: row[x] or first,
            "word": "",
        }
        for row in rows
    ]


def _name_across(shown: Iterable[dict[str, Any]]) -> None:
    """Name the lines across by their kind; of close ones in a panel only the greatest."""
    of_panel = grouped((row.get("collective"), row) for row in shown if row["across"])
    for lines in of_panel.values():
        named = math.inf
        for line in sorted(lines, key=lambda row: row["value"], reverse=True):
            if line["value"] < _APART * named:
                line["word"] = line["kind"]
                named = line["value"]


def _values(unit: str, logarithmic: bool, ticks: int) -> alt.Y:
    """Return the axis of values."""
    axis = alt.Axis(tickCount=ticks)
    if logarithmic:
        return alt.Y("value:Q", title=unit, scale=alt.Scale(type="log", nice=False), axis=axis)
    return alt.Y("value:Q", title=unit, scale=alt.Scale(domainMin=0, nice=True), axis=axis)


def _dashes(labels: Sequence[str], order: Sequence[int], legend: alt.Legend) -> alt.StrokeDash:
    """Return the dashes of the series, by their places in the order of dashes."""
    dashes = [charts.DASHES[place % len(charts.DASHES)] for place in order]
    scale = alt.Scale(domain=list(labels), range=dashes)
    return alt.StrokeDash("series:N", title=None, scale=scale, legend=legend)


def _bands(at: alt.Chart, unit: str) -> alt.Chart:
    """Return the intervals of the values of this session."""
    layer: alt.Chart = (
        at.mark_area(opacity=0.2)
        .encode(y=alt.Y("low:Q", title=unit), y2="high:Q")
        .transform_filter("datum.own && datum.low !== null")
    )
    return layer


def _words_across(base: alt.Chart) -> alt.Chart:
    """Return the names of lines across, above their right ends."""
    layer: alt.Chart = (
        base.mark_text(align="right", dy=-6, fontSize=charts.TEXT - 1)
        .encode(x=alt.value("width"), text="word:N")
        .transform_filter("datum.across")
    )
    return layer


def _published(marked: alt.Chart) -> alt.Chart:
    """Return the published values that have a place on the x axis."""
    layer: alt.Chart = marked.mark_point(
        size=60, filled=True, opacity=1, stroke="black", strokeWidth=0.8
    ).transform_filter("!datum.own && !datum.across")
    return layer


def _in_panels(chart: alt.LayerChart | alt.FacetChart, panels: Sequence[str]) -> Drawing:
    """Return the drawing with a panel for each collective."""
    facet = alt.Facet("collective:N", title=None, sort=list(panels), header=_HEADER)
    return drawn(
        chart.properties(width=116, height=96)
        .facet(facet=facet, columns=2)
        .resolve_scale(y="independent")
        .resolve_axis(x="independent")
        .properties(padding=2, spacing=8)
    )


def curve_figure(
    name: str,
    title: str,
    kind: str,
    rows: Sequence[Row],
    *,
    drawn: Sequence[Row] | None = None,
    pairs: bool = False,
    intro: str = "",
    between: str = "",
    note: str = "",
    **look: Any,
) -> Figure:
    """Return a figure of curves over size, each described in words.

    :param drawn: the rows to draw and describe, if these are not all.
    :param pairs: whether the text names the two devices of a curve.
    :param intro, between, note: the texts before the curves, after them, and at the end.
    :param look: options of `curves`.
    """
    lines = grouped((row["series"], row) for row in session_rows(drawn or rows))
    texts = [of_curve(line) for line in lines.values()]
    if pairs:
        pair = [line[0]["devices"].replace(" ", " to ") for line in lines.values()]
        texts = [f"{text[:-1]} ({ends})." for text, ends in zip(texts, pair, strict=True)]
    says = f"{intro}{' '.join(texts)}{between}{note}{of_noise(rows)}"
    return Figure(name, title, kind, says, rows, curves(drawn or rows, **look))


def _sizes(known: Sequence[int], title: str) -> alt.X:
    """Return the axis of sizes: powers of two, binary units."""
    low = math.floor(math.log2(known[0]))
    high = max(math.ceil(math.log2(known[-1])), low + 1)
    step = max(1, math.ceil((high - low) / (_TICKS - 1)))
    axis = alt.Axis(
        values=[2**power for power in range(low, high + 1, step)],
        labelExpr=_BINARY, labelFlush=False, labelOverlap=True,
    )  # fmt: skip
    scale = alt.Scale(type="log", base=2, domain=[2**low, 2**high], nice=False)
    return alt.X("bytes:Q", title=title, scale=scale, axis=axis)
