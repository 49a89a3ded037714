"""Scales, axes and legends that the curves and bars share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import altair as alt

from fabricheck.report.figure import PALETTE, SHAPES

#: Binary units of a size axis, as an expression of Vega.
_BINARY = (
    "datum.value<1024?datum.value+' B':datum.value<1048576?datum.value/1024+' KiB':"
    "datum.value<1073741824?datum.value/1048576+' MiB':datum.value/1073741824+' GiB'"
)

#: Dashes that double the colours of PALETTE, in its order.
_DASHES = ([1, 0], [6, 3], [2, 2], [9, 2, 2, 2], [4, 1], [12, 4], [1, 4])

#: How often a size axis is marked at most: more labels touch each other on a phone.
_TICKS = 6

#: Marks of what is neither of this session nor published, beside those of SHAPES.
_OTHER_SHAPES = {"theoretical": "M-0.2,-1.2H0.2V1.2H-0.2Z"}

_ORDER = ("measured", "simulated", "published", "derived", "theoretical")


def sizes(sizes: Iterable[int], title: str = "size") -> alt.X:
    """Return the axis of sizes: logarithms to base 2, binary units."""
    low, high = (round(math.log2(end)) for end in ends(sizes))
    step = max(1, math.ceil((high - low) / (_TICKS - 1)))
    ticks = [2**power for power in range(low, high + 1, step)]
    return alt.X(
        "bytes:Q",
        title=title,
        scale=alt.Scale(type="log", base=2, domain=[2**low, 2**high], nice=False),
        axis=alt.Axis(values=ticks, labelExpr=_BINARY, labelFlush=False, labelOverlap=True),
    )


def ends(sizes: Iterable[int]) -> tuple[int, int]:
    """Return the powers of two between which an axis shows these sizes."""
    known = sorted(sizes)
    low, high = math.floor(math.log2(known[0])), math.ceil(math.log2(known[-1]))
    return 2**low, 2 ** max(high, low + 1)


def colour(labels: Sequence[str], known: Sequence[str] = (), legend: bool = True) -> alt.Color:
    """Return the colours of series, the same in each figure whatever else it shows.

    :param labels: the series of the figure. known: all series that there may be, in order.
    """
    places = _places(labels, known)
    colours = [PALETTE[place % len(PALETTE)] for place in places]
    scale = alt.Scale(domain=list(labels), range=colours)
    return alt.Color("series:N", title=None, scale=scale, legend=LEGEND if legend else None)


def dash(labels: Sequence[str], known: Sequence[str] = ()) -> alt.StrokeDash:
    """Return the dashes that double these colours."""
    dashes = [_DASHES[place % len(_DASHES)] for place in _places(labels, known)]
    scale = alt.Scale(domain=list(labels), range=dashes)
    return alt.StrokeDash("series:N", title=None, scale=scale, legend=LEGEND)


def shape(kinds: Iterable[str]) -> alt.Shape:
    """Return the marks of what values are, with a legend that says so."""
    present = set(kinds)
    shapes = {**SHAPES, **_OTHER_SHAPES}
    ordered = [kind for kind in _ORDER if kind in present]
    scale = alt.Scale(domain=ordered, range=[shapes[kind] for kind in ordered])
    legend = alt.Legend(
        symbolFillColor="#444", symbolStrokeColor="#444", columns=4, orient="top", offset=4
    )
    return alt.Shape("kind:N", title=None, scale=scale, legend=legend)


def _places(labels: Sequence[str], known: Sequence[str]) -> list[int]:
    every = [*known, *(label for label in labels if label not in known)]
    return [every.index(label) for label in labels]


LEGEND = alt.Legend(
    symbolType="stroke", symbolSize=500, symbolStrokeWidth=2, labelLimit=150, columns=2
)
