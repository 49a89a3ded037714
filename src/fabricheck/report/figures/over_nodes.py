"""The value of each metric on each node, relative to the median of the nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt

from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.judge.peers import FEWEST
from fabricheck.references.stated import REDUCED
from fabricheck.report.figure import PALETTE, SHAPES, Drawing, Figure, drawn
from fabricheck.report.spread import Spread

#: The most metrics drawn: those with outliers first, then those with the widest spread.
MOST = 30

#: In pixels: the plot, and one strip.
_WIDTH, _STRIP = 460, 18

#: The axis is linear up to this percentage from the median, and logarithmic beyond.
_LINEAR = 1.0

#: The numbers on the axis, in percent, on both sides of zero.
_TICKS = (0, 1, 3, 10, 30, 100, 300, 1000)

#: The most nodes of one metric named in the drawing, and the most described in words.
_NAMED, _TOLD = 2, 3

#: Dots nearer than this fraction of the axis are merged.
_NEAR = 1 / 150


def figures(spreads: Sequence[Spread]) -> Iterator[Figure]:
    """Yield a figure for each partition, measured and simulated separately."""
    groups = grouped(((spread.where, spread.kind), spread) for spread in spreads)
    for (where, kind), every in groups.items():
        shown = first_of_each(every)[:MOST]
        yield Figure(
            f"nodes-{where}-{kind}",
            f"Each node's value by metric, relative to the median of the nodes of {where}",
            kind,
            _says(every, shown),
            list(_rows(every)),
            _drawing(shown, kind),
        )


def first_of_each(every: Iterable[Spread]) -> list[Spread]:
    """Return the first metric of each pair of worst and median of a check."""
    both = grouped(
        ((spread.where, spread.check, REDUCED.sub("", spread.metric)), spread) for spread in every
    )
    return [first for first, *_ in both.values()]


def _says(every: Sequence[Spread], shown: Sequence[Spread]) -> str:
    nodes = max(len(spread.values) for spread in every)
    widest = max(every, key=lambda one: one.deviation)
    said = [
        f"{count(len(every), 'metric')} of up to {nodes} nodes. The widest is {widest.check} "
        f"{widest.metric}: robust standard deviation {widest.deviation:.2g} % of the median."
    ]
    if len(shown) < len(every):
        said.append(
            f"Drawn are {len(shown)}, of worst and median one, those first of which a node stands "
            "out; the data has all. The darker a dot, the more nodes are there."
        )
    out = dict.fromkeys(far.node for spread in every for far in spread.worse)
    if out:
        said.append(f"These stand out, as the table below shows: {listed(out, _TOLD)}.")
    elif nodes < FEWEST:
        said.append("Which of two nodes is off, nothing here can tell: their references do.")
    else:
        said.append("No node is worse than the others by more than their spread.")
        better = {far.node for spread in every for far in spread.better}
        if better:
            are = "1 is better" if len(better) == 1 else f"{len(better)} are better"
            said.append(f"{are}: where most nodes are slow, the good ones stand out.")
    return " ".join(said)


def _rows(every: Iterable[Spread]) -> Iterator[Mapping[str, Any]]:
    for spread in every:
        far = {each.node for each in spread.far}
        for node, value in spread.values.items():
            yield {
                "partition": spread.where,
                "check": spread.check,
                "metric": spread.metric,
                "node": node,
                "value": value,
                "unit": spread.unit,
                "median": spread.median,
                "percent": spread.percent(value),
                "stands_out": node in far,
                "kind": spread.kind,
            }


def _drawing(shown: Sequence[Spread], kind: str) -> Drawing:
    low = min(-_LINEAR, *(spread.ends[0] for spread in shown)) * 1.1
    # Kept free on the right for the names of nodes that are better.
    high = max(_LINEAR, *(spread.ends[1] for spread in shown)) * 2
    labels = [f"{spread.check} {spread.metric}" for spread in shown]
    x = alt.X(
        "percent:Q",
        title="percent above the median of the nodes",
        scale=alt.Scale(type="symlog", constant=_LINEAR, domain=[low, high], nice=False),
        axis=alt.Axis(values=[t for each in _TICKS for t in (-each, each) if low <= t <= high]),
    )
    y = alt.Y(
        "label:N",
        title=None,
        sort=labels,
        scale=alt.Scale(domain=labels),
        axis=alt.Axis(labelLimit=260, ticks=False, grid=True),
    )
    base = alt.Chart().encode(x=x, y=y)
    share = alt.Scale(domain=[0, 1], range=[0.25, 1])
    names = [
        {"label": label, "percent": far.percent, "node": far.node}
        for one, label in zip(shown, labels, strict=True)
        for far in one.far[:_NAMED]
    ]
    layers = [
        base.mark_point(shape=SHAPES[kind], size=24, filled=True)
        .encode(
            color=alt.condition("datum.out", alt.value(PALETTE[1]), alt.value(PALETTE[0])),
            opacity=alt.Opacity("share:Q", scale=share, legend=None),
        )
        .transform_filter("!datum.node"),
        base.mark_text(align="left", dx=5, fontSize=10)
        .encode(text="node:N")
        .transform_filter("datum.node"),
    ]
    every = alt.InlineData([*_dots(shown, labels, high - low), *names])
    return drawn(
        alt.layer(*layers, data=every).properties(
            width=_WIDTH, height=_STRIP * len(labels), padding={"left": 2, "right": 8}
        )
    )


def _dots(
    shown: Sequence[Spread], labels: Sequence[str], reach: float
) -> Iterator[Mapping[str, Any]]:
    """Yield a dot for each place with nodes: hundreds of nodes at one place are one dot.

    share: the number of nodes at a place relative to the place with most nodes.
    """
    for one, label in zip(shown, labels, strict=True):
        far = {each.node for each in one.far}
        places: dict[tuple[int, bool], list[float]] = {}
        for node, value in one.values.items():
            percent = one.percent(value)
            # Finer in the linear part, which takes most of the axis.
            step = _NEAR * (min(reach, 4 * _LINEAR) if abs(percent) < 2 * _LINEAR else reach)
            places.setdefault((round(percent / step), node in far), []).append(percent)
        most = max(map(len, places.values()))
        for (_, out), there in places.items():
            share = 1.0 if out else len(there) / most
            yield {"label": label, "percent": there[0], "out": out, "share": share}
