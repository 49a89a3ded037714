"""The kinds of chart (curves, bars, heat maps), made of the rows of a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from fabricheck.core.grouping import grouped
from fabricheck.report.figure import PALETTE, SHAPES, WIDTH, Drawing, Figure, drawn
from fabricheck.report.figures.rows import (
    Row,
    is_of_session,
    of_curve,
    of_noise,
    session_rows,
)

#: Dark, light, darkest: distinguishable in grey too.
GREYS = (PALETTE[0], PALETTE[5], PALETTE[6])

#: Dashes that repeat the distinction of PALETTE's colours, in its order.
_DASHES = ([1, 0], [6, 3], [2, 2], [9, 2, 2, 2], [4, 1], [12, 4], [1, 4])

#: Binary units of a size axis, as an expression of Vega.
_BINARY = (
    "datum.value<1024?datum.value+' B':datum.value<1048576?datum.value/1024+' KiB':"
    "datum.value<1073741824?datum.value/1048576+' MiB':datum.value/1073741824+' GiB'"
)

#: The most marks of a size axis; more labels would overlap on a phone.
_TICKS = 6

#: In pixels: the width of a letter, the free space around a text, and the offset of the text of
#: every other bar if bars are thinner than the text.
_LETTER, _MARGIN, _ASIDE = 6.5, 14, 46

#: Heights in pixels: of a text, the gap between groups of bars, and a line of a legend.
_TEXT, _GAP, _LEGEND_LINE = 11, 8, 17

#: In pixels: the width of a heat map's cell for many and for few columns, the width of all cells,
#: and the greatest height of a cell.
_LEAST, _MOST, _TOGETHER, _HIGHEST = 34, 64, 296, 44

#: A value nearer than this part of the greatest one to the right end has its text on the left.
_DECADE = 10

#: A line across this far below one that has its word has one, too.
_APART = 0.9

#: From this fraction of the colour scale on, colours are light and text on them is black.
_LIGHT = 0.45

#: What is marked over the hours of a soak, and the colour, the width and the dash of its line.
LOAD, QUIET, JUDGED = "round under load", "quiet session", "what was judged"
MARKS: Mapping[str, tuple[str, float, Sequence[int]]] = {
    LOAD: ("#d0d0d0", 0.5, (1, 0)),
    QUIET: (PALETTE[2], 1.0, (1, 0)),
    JUDGED: (PALETTE[1], 1.2, (2, 2)),
}

#: The most rounds of a curve whose points are drawn besides the line.
_MOST_POINTS = 40

#: The name of a panel.
_HEADER = alt.Header(labelFontSize=12, labelFontWeight="bold", labelAnchor="start", labelPadding=4)


def finished(chart: alt.LayerChart | alt.FacetChart, height: int, right: int = 8) -> Drawing:
    """Return a chart as SVG of the report's width, including axes and legends.

    :param height: in pixels, with axes and legends.
    :param right: pixels kept free for the last label.
    """
    return drawn(
        chart.properties(
            width=WIDTH,
            height=height,
            padding={"left": 2, "right": right, "top": 4, "bottom": 2},
            autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        )
    )


def data(rows: Iterable[Row], keys: Sequence[str]) -> alt.InlineData:
    """Return the given columns as the data of a chart, so that a drawing contains nothing else."""
    return alt.InlineData([{key: row.get(key) for key in keys} for row in rows])


def colour(field: str, colours: Mapping[str, str], legend: alt.Legend | None) -> alt.Color:
    """Return the colours of the values of a field."""
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{field}:N", title=None, scale=scale, legend=legend)


def shape(rows: Iterable[Row]) -> alt.Shape:
    """Return the marks of the kinds of values, with a legend.

    A kind may be followed by a comma and more words.
    """
    kinds = {row["kind"]: SHAPES[row["kind"].split(",")[0]] for row in rows}
    present = sorted(kinds, key=lambda kind: list(SHAPES.values()).index(kinds[kind]))
    scale = alt.Scale(domain=present, range=[kinds[kind] for kind in present])
    legend = alt.Legend(
        symbolFillColor="#444", symbolStrokeColor="#444", columns=4, orient="top", offset=4
    )
    return alt.Shape("kind:N", title=None, scale=scale, legend=legend)


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
    all_labels = [*known, *(label for label in labels if label not in known)]
    places = {label: all_labels.index(label) for label in labels}
    known_x = sorted(row[x] for row in rows if row[x])
    counts = alt.X(f"{x}:O", title=x_title, axis=alt.Axis(labelAngle=0))
    axis = _sizes(known_x, x_title) if x == "bytes" else counts
    first = known_x[0]
    shown = [
        {**row, "own": is_of_session(row), "across": not row[x], x: row[x] or first, "word": ""}
        for row in rows
    ]
    across = grouped((row.get("collective"), row) for row in shown if row["across"])
    for lines in across.values():
        above = math.inf
        for line in sorted(lines, key=lambda row: row["value"], reverse=True):
            if line["value"] < _APART * above:
                line["word"] = line["kind"]
                above = line["value"]
    legend = alt.Legend(
        symbolType="stroke", symbolSize=500, symbolOpacity=1, symbolStrokeWidth=2,
        offset=6, labelLimit=150, columns=2,
    )  # fmt: skip
    colours = {label: PALETTE[place % len(PALETTE)] for label, place in places.items()}
    dashes = [_DASHES[place % len(_DASHES)] for place in places.values()]
    scale = alt.Scale(type="log", nice=False) if logarithmic else alt.Scale(domainMin=0, nice=True)
    base = alt.Chart().encode(
        y=alt.Y("value:Q", title=unit, scale=scale, axis=alt.Axis(tickCount=4 if panels else 6)),
        color=colour("series", colours, legend),
    )
    at = base.encode(x=axis)
    dash = alt.StrokeDash(
        "series:N", title=None, scale=alt.Scale(domain=labels, range=dashes), legend=legend
    )
    marked = at.encode(shape=shape(row for row in rows if row[x]))
    layers = [
        at.mark_area(opacity=0.2)
        .encode(y=alt.Y("low:Q", title=unit), y2="high:Q")
        .transform_filter("datum.own && datum.low !== null"),
        at.mark_line(strokeWidth=1.6).encode(strokeDash=dash).transform_filter("datum.own"),
        base.mark_rule(strokeWidth=1, opacity=0.7)
        .encode(strokeDash=dash)
        .transform_filter("datum.across"),
        base.mark_text(align="right", dy=-6, fontSize=_TEXT - 1)
        .encode(x=alt.value("width"), text="word:N")
        .transform_filter("datum.across"),
        marked.mark_point(size=9, filled=True, opacity=1).transform_filter("datum.own"),
        marked.mark_point(
            size=60, filled=True, opacity=1, stroke="black", strokeWidth=0.8
        ).transform_filter("!datum.own && !datum.across"),
    ]
    keys = ("series", "kind", x, "value", "low", "high", "own", "across", "word", "collective")
    chart = alt.layer(*layers, data=data(shown, keys))
    if panels:
        return drawn(
            chart.properties(width=116, height=96)
            .facet(
                facet=alt.Facet("collective:N", title=None, sort=list(panels), header=_HEADER),
                columns=2,
            )
            .resolve_scale(y="independent")
            .resolve_axis(x="independent")
            .properties(padding=2, spacing=8)
        )
    return finished(chart, 235 + _LEGEND_LINE * ((len(labels) + 1) // 2 + 1), right=20)


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
    :param look: options of `charts.curves`.
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
    thin = thick < _TEXT
    # A thick bar is translucent, so that marks and grid lines on it are visible.
    paint = 1.0 if thin else 0.7
    legend = None
    if colours is None:
        all_labels = [*known, *(label for label in groups if label not in known)]
        colours = {label: PALETTE[all_labels.index(label) % len(PALETTE)] for label in groups}
    else:
        colours = {name: colours[name] for name in colours if any(r[fill] == name for r in mine)}
        legend = alt.Legend(symbolType="square", symbolOpacity=paint, labelLimit=160, offset=6)
    # The series of a group are in the order of their colours, ranks in numerical order.
    inside = sorted({row[within] for row in rows}) if within else []
    inside = [*colours] if within == fill else inside
    shown = [
        {
            **row,
            "own": is_of_session(row),
            "reach": max(row["value"], row["high"] or 0, row.get("peak") or 0),
            "aside": _ASIDE * (inside.index(row[within]) % 2) if thin else 0,
        }
        for row in rows
    ]
    letters = max(len(row["text"]) for row in mine)
    aside = max(row["aside"] for row in shown if row["own"] and row["text"]) if letters else 0
    end = max(row["reach"] for row in shown)
    gap = _GAP / (_GAP + thick * len(inside)) if within else 0.35
    base = alt.Chart().encode(
        y=alt.Y(
            f"{bar}:N", title=None, sort=groups, axis=alt.Axis(ticks=False, labelLimit=130),
            scale=alt.Scale(domain=groups, paddingInner=gap, paddingOuter=gap / 2),
        )
    )  # fmt: skip
    if within:
        scale = alt.Scale(domain=inside, paddingInner=0.15, paddingOuter=0)
        base = base.encode(yOffset=alt.YOffset(f"{within}:N", scale=scale))
    x = alt.X(
        "value:Q", title=unit, axis=alt.Axis(tickCount=5),
        scale=alt.Scale(domain=[0, end], nice=False),
    )  # fmt: skip
    at = base.encode(x=x)
    marks = at.encode(shape=shape(rows))
    layers = [
        at.mark_bar(opacity=paint, stroke="black", strokeWidth=0 if thin else 0.5)
        .encode(color=colour(fill, colours, legend))
        .transform_filter("datum.own"),
        base.mark_rule(strokeWidth=1.5)
        .encode(x=alt.X("low:Q", title=unit), x2="high:Q")
        .transform_filter("datum.own && datum.low !== null"),
        base.mark_tick(color="#555555", thickness=2, size=thick + 2)
        .encode(x=alt.X("peak:Q", title=unit))
        .transform_filter("isValid(datum.peak)"),
        *(
            marks.mark_point(
                size=size, color=ink, filled=True, stroke=edge, strokeWidth=1, opacity=1
            ).transform_filter(which)
            for which, size, ink, edge in (
                ("datum.own", 12 if thin else 30, "black", "white"),
                ("!datum.own", 26 if thin else 65, "white", "black"),
            )
        ),
        base.mark_text(align="left", dx=alt.ExprRef("8 + datum.aside"), fontSize=_TEXT)
        .transform_joinaggregate(end="max(reach)", groupby=[bar, within] if within else [bar])
        .transform_filter("datum.own")
        .encode(x=alt.X("end:Q", title=unit), text="text:N"),
    ]
    keys = (bar, within or bar, fill, "kind", "value", "low", "high", "text", "peak", "own",
            "reach", "aside")  # fmt: skip
    height = len(groups) * (thick * max(len(inside), 1) + (_GAP if within else 0)) + 62
    height += _LEGEND_LINE * (1 + len(colours) // 2) if legend is not None else 0
    # The texts have their place beyond the axis, which ends with the greatest value.
    right = round(_MARGIN + _LETTER * letters + aside)
    return finished(alt.layer(*layers, data=data(shown, keys)), height, right)


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
    places = {name: place for place, name in enumerate(colours)}
    drawn_rows = [row for row in rows if row["value"] > 0 and row[x] is not None]
    most = max((row[x] for row in drawn_rows), default=1) if logarithmic else None
    shown = []
    for row in drawn_rows:
        low = row["low"]
        inside = low if low is not None and low > 0 else None
        # Texts of close marks are above and below each other; there is no place on the right.
        aside = 6 if places.get(row["series"], 0) % 2 else -6
        before = most is not None and row[x] > most / _DECADE
        ours = is_of_session(row)
        shown.append({**row, "own": ours, "low": inside, "aside": aside, "before": before})
    if logarithmic:
        scale = alt.Scale(type="log", nice=True)
        across = alt.X(f"{x}:Q", title=x_title, scale=scale, axis=alt.Axis(tickCount=5))
    else:
        names = list(dict.fromkeys(row[x] for row in shown))
        axis = alt.Axis(labelAngle=-40, labelLimit=130, ticks=False)
        across = alt.X(f"{x}:N", title=None, sort=names, axis=axis)
    up = alt.Scale(type="log", nice=True)
    base = alt.Chart().encode(x=across, y=alt.Y("value:Q", title=unit, scale=up))
    legend = alt.Legend(symbolType="circle", symbolOpacity=1, columns=2, labelLimit=160, offset=6)
    measured = base.encode(color=colour("series", colours, legend)).transform_filter("datum.own")
    marks = base.encode(shape=shape(shown))
    beside = alt.ExprRef("datum.aside")
    layers = [
        measured.mark_rule(strokeWidth=1.5)
        .encode(y=alt.Y("low:Q", title=unit), y2="high:Q")
        .transform_filter("isValid(datum.low) && isValid(datum.high)"),
        measured.mark_point(size=45, filled=True, opacity=1).encode(shape=shape(shown)),
        marks.mark_point(
            size=60, filled=True, color="white", stroke="black", strokeWidth=1, opacity=1
        ).transform_filter("!datum.own"),
        measured.mark_text(align="left", dx=7, dy=beside, fontSize=_TEXT - 1)
        .encode(text="text:N")
        .transform_filter("!datum.before"),
        measured.mark_text(align="right", dx=-7, dy=beside, fontSize=_TEXT - 1)
        .encode(text="text:N")
        .transform_filter("datum.before"),
    ]
    keys = ("series", "kind", x, "value", "low", "high", "text", "own", "aside", "before")
    lines = 2 + (len(colours) + 1) // 2
    chart = alt.layer(*layers, data=data(shown, keys))
    return finished(chart, 250 + _LEGEND_LINE * lines, right=30)


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
    colours = {label: PALETTE[place] for place, label in enumerate(labels)}
    dashes = alt.Scale(domain=labels, range=list(_DASHES[: len(labels)]))
    curve = alt.Chart(data(rows, ("series", "hour", "value"))).encode(
        x=x, y=y, color=colour("series", colours, legend)
    )
    dash = alt.StrokeDash("series:N", title=None, scale=dashes, legend=legend)
    layers = [
        alt.Chart(data([row for row in marks if row["what"] == what], ("hour",)))
        .mark_rule(color=ink, strokeWidth=width, strokeDash=list(strokes))
        .encode(x=x)
        for what, (ink, width, strokes) in MARKS.items()
        if any(row["what"] == what for row in marks)
    ]
    layers.append(curve.mark_line(strokeWidth=1.6).encode(strokeDash=dash))
    if len(rows) <= _MOST_POINTS * len(labels):
        layers.append(curve.mark_point(size=12, filled=True, opacity=1))
    return finished(alt.layer(*layers), 150)


def cell(value: float, counted: bool = False) -> str:
    """Format a number for a cell: three digits, without decimals from 100 on."""
    return f"{value:.0f}" if counted or abs(value) >= 99.95 else f"{value:#.3g}"


def top(values: Iterable[float]) -> float:
    """Return the end of a colour scale from zero for some values: 1, 2, 2.5, 5... up."""
    highest = max(values, default=0.0)
    if highest <= 0:
        return 1.0
    power: float = 10 ** math.floor(math.log10(highest))
    return next(
        step * power for step in (1, 1.2, 1.6, 2, 2.5, 4, 5, 6, 8, 10) if step * power >= highest
    )


def heat_map(
    cells: Mapping[tuple[Any, Any], float],
    rows: tuple[str, Sequence[Any]],
    columns: tuple[str, Sequence[Any]],
    colours: str,
    ends: tuple[float, float],
    *,
    counted: bool = False,
    blank_diagonal: bool = True,
    missed: Sequence[tuple[Any, Any]] = (),
    texts: Mapping[tuple[Any, Any], str] | None = None,
    blank: str = "none",
    highest_cell: int = _HIGHEST,
) -> Drawing:
    """Return the drawing of a table of numbers, with the colour of each and its scale.

    :param cells: the number of each row and column.
    :param rows, columns: the title of the axis, and the values on it.
    :param colours: the quantity of the colours, whose scale has these ends.
    :param counted: whether the numbers are integers.
    :param blank_diagonal: whether rows and columns are the same, so that the diagonal is empty.
    :param missed: cells outside their limits, which get a frame.
    :param texts: texts of the cells that replace the numbers.
    :param blank: the text of a cell whose expected number is missing.
    """
    low, high = ends
    named = texts or {place: cell(value, counted) for place, value in cells.items()}
    cells_drawn = [
        {
            "row": row,
            "column": column,
            "value": cells.get((row, column)),
            "text": named.get((row, column), "" if blank_diagonal and row == column else blank),
            "dark": (cells.get((row, column), high) - low) / (high - low) < _LIGHT,
            "missed": (row, column) in missed,
        }
        for row in rows[1]
        for column in columns[1]
    ]
    labels = int(_LETTER * max(len(str(row)) - 1 for row in rows[1]))
    wide = min(_MOST, max(_LEAST, (_TOGETHER - labels) // len(columns[1])))
    tall = min(wide, highest_cell)
    ticks = {"values": [*range(int(high) + 1)], "format": "d"} if counted else {"tickCount": 4}
    legend = alt.Legend(gradientLength=200, gradientThickness=10, **ticks)
    scheme = alt.Scale(scheme="viridis", domain=[low, high], clamp=True)
    axis = alt.Axis(labelAngle=0, ticks=False, domain=False)
    places = [
        alt.Scale(domain=list(names), paddingInner=0, paddingOuter=0)
        for _, names in (columns, rows)
    ]
    chart = alt.Chart().encode(
        x=alt.X("column:O", title=columns[0], axis=axis, scale=places[0]),
        y=alt.Y("row:O", title=rows[0], axis=axis, scale=places[1]),
    )
    layers = [
        chart.mark_rect(stroke="white", strokeWidth=1)
        .encode(color=alt.Color("value:Q", title=colours, scale=scheme, legend=legend))
        .transform_filter("isValid(datum.value)")
    ]
    # White on both sides separates the frame from any colour of the scale.
    for stroke, width in (("white", 5.0), (PALETTE[1], 3.0)) if missed else ():
        frame = chart.mark_rect(
            filled=False, stroke=stroke, strokeWidth=width, width=wide - 3, height=tall - 3
        )
        layers.append(frame.transform_filter("datum.missed"))
    ink = alt.condition("datum.dark", alt.value("white"), alt.value("black"))
    # The page's style knows them by this name: in the dark, their colours stay those of the cells.
    numbers = chart.mark_text(fontSize=min(_TEXT, tall - 4)).properties(name="cells")
    text = numbers.encode(text="text:N", color=ink)
    layers.append(text.transform_filter("datum.text"))
    return drawn(
        alt.layer(
            *layers,
            # Set once for all layers: Altair copies it with each change of its owner.
            data=alt.InlineData(values=cells_drawn),
            width=wide * len(columns[1]),
            height=tall * len(rows[1]),
            padding=3,
        )
    )
