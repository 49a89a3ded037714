"""What all charts of the report share: their size, their data, colours, marks and legends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import altair as alt

from fabricheck.report.figure import PALETTE, SHAPES, WIDTH, Drawing, drawn
from fabricheck.report.figures.rows import Row

#: Dark, light, darkest: distinguishable in grey too.
GREYS = (PALETTE[0], PALETTE[5], PALETTE[6])

#: Dashes that repeat the distinction of the palette's colours, in its order.
DASHES = ([1, 0], [6, 3], [2, 2], [9, 2, 2, 2], [4, 1], [12, 4], [1, 4])

#: Heights in pixels: of a text, and of a line of a legend.
TEXT, LEGEND_LINE = 11, 17

#: The width of a letter in pixels.
LETTER = 6.5


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


def places(labels: Iterable[str], known: Sequence[str]) -> dict[str, int]:
    """Return the place of each label in the order of colours and dashes.

    :param known: all labels that charts of this kind may have, so that each keeps its place.
    """
    others = [label for label in labels if label not in known]
    order = [*known, *others]
    return {label: order.index(label) for label in labels}


def palette_colour(place: int) -> str:
    """Return the colour of a place; those beyond the last begin anew."""
    return PALETTE[place % len(PALETTE)]


def cell(value: float, counted: bool = False) -> str:
    """Format a number for a cell: three digits, without decimals from 100 on."""
    if counted or abs(value) >= 99.95:
        return f"{value:.0f}"
    return f"{value:#.3g}"
