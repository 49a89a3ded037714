"""What the drawings of curves, bars and strips share: their data and their size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt

from fabricheck.report.figure import WIDTH, Drawing, drawn
from fabricheck.report.figures.rows import Row


def chart(rows: Iterable[Row], keys: Sequence[str]) -> alt.Chart:
    """Return a chart of these columns: a drawing carries no more data than it shows."""
    return alt.Chart(alt.InlineData([{key: row.get(key) for key in keys} for row in rows]))


def finished(layers: Sequence[alt.Chart], height: int, right: int = 8) -> Drawing:
    """Return layers as SVG of the report's width, axes and legends within it.

    :param height: in pixels, with axes and legends. right: pixels kept free for the last label.
    """
    return drawn(
        alt.layer(*layers).properties(
            width=WIDTH,
            height=height,
            padding={"left": 2, "right": right, "top": 4, "bottom": 2},
            autosize=alt.AutoSizeParams(type="fit", contains="padding"),
        )
    )
