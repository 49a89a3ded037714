"""Heat maps: a table of numbers with the colour of each, and its scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from fabricheck.report.figure import PALETTE, Drawing, drawn

#: Width of a cell in pixels, for many and for few columns, and of all of them together; and the
#: greatest height of one.
_LEAST, _MOST, _TOGETHER, _HIGHEST = 34, 64, 296, 44

#: From here on a colour of the scale is so light that text on it is black.
_LIGHT = 0.45

Cell = tuple[int, int]


@dataclass(frozen=True)
class Axes:
    """The rows and columns: what they are, and which there are.

    unit: of the numbers. counted: whether they are whole. own: whether rows and columns are the
    same, so that the diagonal stays empty.
    """

    row: str
    column: str
    rows: Sequence[int]
    columns: Sequence[int]
    unit: str
    counted: bool = False
    own: bool = True


def shown(value: float, counted: bool = False) -> str:
    """Return a number as a cell has it: three figures, from 100 on none after the point."""
    return f"{value:.0f}" if counted or abs(value) >= 99.95 else f"{value:#.3g}"


def top(values: Sequence[float]) -> float:
    """Return the end of a colour scale from zero that holds the values: 1, 2, 2.5, 5... up."""
    highest = max(values, default=0.0)
    if highest <= 0:
        return 1.0
    power: float = 10 ** math.floor(math.log10(highest))
    return next(
        step * power for step in (1, 1.2, 1.6, 2, 2.5, 4, 5, 6, 8, 10) if step * power >= highest
    )


def heat_map(
    cells: Mapping[Cell, float],
    axes: Axes,
    highest: float,
    *,
    missed: Sequence[Cell] = (),
    blank: str = "none",
) -> Drawing:
    """Return the drawing of a matrix.

    :param cells: the number of each row and column. highest: the end of the colour scale, which
        begins at zero. missed: cells with a frame, since they are outside of their limits.
    :param blank: what stands where a number would be expected and there is none.
    """
    every = [
        {
            "row": row,
            "column": column,
            "value": cells.get((row, column)),
            "text": _text(cells, (row, column), axes, blank),
            "ink": "white" if cells.get((row, column), highest) < _LIGHT * highest else "black",
            "missed": (row, column) in missed,
        }
        for row in axes.rows
        for column in axes.columns
    ]
    wide = min(_MOST, max(_LEAST, _TOGETHER // len(axes.columns)))
    high = min(wide, _HIGHEST)
    colour = alt.Color(
        "value:Q",
        title=f"colour of the numbers, in {axes.unit}",
        scale=alt.Scale(scheme="viridis", domain=[0, highest], clamp=True),
        legend=_counted(highest) if axes.counted else alt.Legend(tickCount=4, **_GRADIENT),
    )
    chart = alt.Chart().encode(
        x=alt.X("column:O", title=axes.column, axis=_AXIS, scale=_scale(axes.columns)),
        y=alt.Y("row:O", title=axes.row, axis=_AXIS, scale=_scale(axes.rows)),
    )
    filled = chart.mark_rect(stroke="white", strokeWidth=1).encode(color=colour)
    layers = [filled.transform_filter("isValid(datum.value)")]
    # White on both sides keeps the frame apart from any colour of the scale.
    for stroke, width in (("white", 5.0), (PALETTE[1], 3.0)) if missed else ():
        frame = chart.mark_rect(
            filled=False, stroke=stroke, strokeWidth=width, width=wide - 3, height=high - 3
        )
        layers.append(frame.transform_filter("datum.missed"))
    for ink in ("white", "black"):
        text = chart.mark_text(fontSize=11, color=ink).encode(text="text:N")
        layers.append(text.transform_filter(f"datum.text && datum.ink === '{ink}'"))
    return drawn(
        alt.layer(
            *layers,
            # Once for all layers: Altair copies it with each change of what has it.
            data=alt.InlineData(values=every),
            width=wide * len(axes.columns),
            height=high * len(axes.rows),
            padding=3,
        )
    )


def _counted(highest: float) -> alt.Legend:
    return alt.Legend(values=list(range(int(highest) + 1)), format="d", **_GRADIENT)


def _text(cells: Mapping[Cell, float], cell: Cell, axes: Axes, blank: str) -> str:
    if cell in cells:
        return shown(cells[cell], axes.counted)
    return "" if axes.own and cell[0] == cell[1] else blank


_GRADIENT: Mapping[str, Any] = {"gradientLength": 200, "gradientThickness": 10}
_AXIS = alt.Axis(labelAngle=0, ticks=False, domain=False)


def _scale(places: Sequence[int]) -> alt.Scale:
    return alt.Scale(domain=list(places), paddingInner=0, paddingOuter=0)
