"""Heat maps: a table of numbers in which a colour shows how large each is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from fabricheck.report.figure import PALETTE, Drawing, drawn
from fabricheck.report.figures.charts import LETTER, TEXT, cell

#: In pixels: the width of a heat map's cell for many and for few columns, the width of all cells,
#: and the greatest height of a cell.
_LEAST, _MOST, _TOGETHER, _HIGHEST = 34, 64, 296, 44

#: From this fraction of the colour scale on, colours are light and text on them is black.
_LIGHT = 0.45

#: The ends that a colour scale may have, but for a power of ten.
_ENDS = (1, 1.2, 1.6, 2, 2.5, 4, 5, 6, 8)


def top(values: Iterable[float]) -> float:
    """Return the end of a colour scale from zero for some values: 1, 2, 2.5, 5... up."""
    highest = max(values, default=0.0)
    if highest <= 0:
        return 1.0
    power: float = 10 ** math.floor(math.log10(highest))
    for end in _ENDS:
        if end * power >= highest:
            return end * power
    return 10 * power


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
    labels = int(LETTER * max(len(str(row)) - 1 for row in rows[1]))
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
    numbers = chart.mark_text(fontSize=min(TEXT, tall - 4)).properties(name="cells")
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
