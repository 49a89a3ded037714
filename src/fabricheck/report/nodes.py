"""The overview of several nodes: the status of each, and the value of each metric on each node,
relative to the median of the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import Any

import altair as alt

from fabricheck.core import statistics
from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import folded, is_several, natural, titled
from fabricheck.core.peers import FEWEST, unlike
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import SMALLER_IS_BETTER
from fabricheck.judge.verdict.model import NodeVerdict, by_label
from fabricheck.judge.verdict.rules import STATUSES
from fabricheck.references.stated import REDUCED
from fabricheck.report import scheduler
from fabricheck.report.figure import PALETTE, SHAPES, Drawing, Figure, drawn
from fabricheck.report.findings import first_reason, is_of
from fabricheck.results.observed import Observed
from fabricheck.results.reading import Results
from fabricheck.results.rows import Metric
from fabricheck.results.session import REPETITION

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


@dataclass(frozen=True)
class Row:
    """A row of the table of nodes.

    says: the first reason for its status, or the result of its checks. nearest: the metric that is
    farthest beyond its limit, or has the smallest margin, of what the verdict is on: no simulated
    value stands beside the status of a machine.
    """

    verdict: NodeVerdict
    says: str
    nearest: Metric | None

    @property
    def node(self) -> str:
        """The name of the node, and the name of its simulation."""
        simulated, title = self.verdict.simulated, titled(self.verdict.node)
        return f"{title}, simulating {simulated.label}" if simulated else title


@dataclass(frozen=True)
class Nodes:
    """All nodes, the worst first; their metrics, those with outliers first."""

    rows: tuple[Row, ...]
    spreads: tuple[Spread, ...]
    figures: tuple[Figure, ...]

    @property
    def totals(self) -> Iterator[tuple[str, list[tuple[str, int, str]]]]:
        """How many nodes, then networks, of machines, then of simulations, have each status.

        Yields ``3 simulated nodes``, and each status with its number and the names of its nodes;
        nodes with PASS are not named.
        """
        for noun, simulated in product(("node", "network"), (False, True)):
            rows = [
                row.verdict
                for row in self.rows
                if bool(row.verdict.simulated) == simulated
                and is_several(row.verdict.node) == (noun == "network")
            ]
            if rows:
                what = count(len(rows), f"simulated {noun}" if simulated else noun)
                yield (
                    what,
                    [
                        (
                            verdicts[0].label,
                            len(verdicts),
                            ""
                            if verdicts[0].status == "PASS"
                            else folded(v.node for v in verdicts),
                        )
                        for verdicts in by_label(rows)
                    ],
                )


def overview(results: Results, judged: Iterable[NodeVerdict]) -> Nodes | None:
    """Return the overview of several nodes, or of a single node without results.

    Returns None for one node with results, without node names, and for documents outside any
    session.
    """
    if not any(source.name for source in results.sources) and results.job is None:
        return None
    there = {observed.on for observed in results.observed if observed.on is not None}
    requested = set(results.requested)
    if len(there | requested) < 2 and not requested - there:
        return None
    spreads = spreads_over_nodes(results.observed)
    parts = grouped((part.on or "", part) for part in results.observed)
    rows = sorted((_row(verdict, parts.get(verdict.node, ())) for verdict in judged), key=_place)
    return Nodes(tuple(rows), tuple(spreads), tuple(figures(spreads)))


def _place(row: Row) -> tuple[bool, int, float, list[tuple[int, int, str]]]:
    """Return the sort key of a node: machines first, then status, margin, name."""
    status = row.verdict.status
    margin = None if row.nearest is None or status == "PASS" else row.nearest.margin
    far = math.inf if margin is None else margin
    is_simulated = row.verdict.simulated is not None
    return is_simulated, STATUSES.index(status), far, natural(row.node)


def _row(verdict: NodeVerdict, parts: Iterable[Observed]) -> Row:
    checks = verdict.checks
    total = checks.passed + checks.failed + len(checks.skipped)
    says = first_reason(verdict) or f"{checks.passed} of {count(total, 'check')} passed"
    if verdict.drain is not None and verdict.simulated is None:
        says = f"{says} {scheduler.advice(verdict.drain)}"
    metrics = [
        metric
        for metric in chain.from_iterable(part.metrics for part in parts if is_of(verdict, part))
        if metric.margin is not None
    ]
    return Row(verdict, says, min(metrics, key=lambda metric: metric.margin or 0.0, default=None))


def figures(spreads: Sequence[Spread]) -> Iterator[Figure]:
    """Yield a figure for each partition, measured and simulated separately."""
    groups = grouped(((spread.where, spread.clock), spread) for spread in spreads)
    for (where, clock), of_clock in groups.items():
        # Of the worst and the median of a check only the first.
        metrics = grouped(
            ((spread.check, REDUCED.sub("", spread.metric)), spread) for spread in of_clock
        )
        shown = [first for first, *_ in metrics.values()][:MOST]
        yield Figure(
            f"nodes-{where}-{clock}",
            f"Each node's value by metric, relative to the median of the nodes of {where}",
            clock,
            _says(of_clock, shown),
            list(_data(of_clock)),
            _drawing(shown, clock),
        )


def _says(spreads: Sequence[Spread], shown: Sequence[Spread]) -> str:
    nodes = max(len(spread.values) for spread in spreads)
    widest = max(spreads, key=lambda spread: spread.deviation)
    sentences = [
        f"{count(len(spreads), 'metric')} of up to {nodes} nodes. The widest is {widest.check} "
        f"{widest.metric}: robust standard deviation {widest.deviation:.2g} % of the median."
    ]
    if len(shown) < len(spreads):
        sentences.append(
            f"{len(shown)} of them are drawn: those in which a node stands out come first, and a "
            "worst and its median count as one. The data has all of them. The darker a dot, the "
            "more nodes are there."
        )
    out = dict.fromkeys(node for spread in spreads for node in spread.worse)
    if out:
        sentences.append(f"These stand out, as the table below shows: {listed(out, _TOLD)}.")
    elif nodes < FEWEST:
        sentences.append(
            "With two nodes nothing here tells which of them is off; their references do."
        )
    else:
        sentences.append("No node is worse than the others by more than their spread.")
        better = {node for spread in spreads for node in spread.better}
        if better:
            are = "1 is better" if len(better) == 1 else f"{len(better)} are better"
            sentences.append(f"{are}: where most nodes are slow, the good ones stand out.")
    return " ".join(sentences)


def _data(spreads: Iterable[Spread]) -> Iterator[Mapping[str, Any]]:
    for spread in spreads:
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
                "stands_out": node in spread.far,
                "kind": spread.clock,
            }


def _drawing(shown: Sequence[Spread], clock: str) -> Drawing:
    low = min(-_LINEAR, *(spread.ends[0] for spread in shown)) * 1.1
    # Kept free on the right for the names of nodes that are better.
    high = max(_LINEAR, *(spread.ends[1] for spread in shown)) * 2
    labels = [f"{spread.check} {spread.metric}" for spread in shown]
    ticks = [tick for each in _TICKS for tick in (-each, each)]
    x = alt.X(
        "percent:Q",
        title="percent above the median of the nodes",
        scale=alt.Scale(type="symlog", constant=_LINEAR, domain=[low, high], nice=False),
        axis=alt.Axis(values=[tick for tick in ticks if low <= tick <= high]),
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
        {"label": label, "percent": percent, "node": node}
        for spread, label in zip(shown, labels, strict=True)
        for node, percent in islice(spread.far.items(), _NAMED)
    ]
    layers = [
        base.mark_point(shape=SHAPES[clock], size=24, filled=True)
        .encode(
            color=alt.condition("datum.out", alt.value(PALETTE[1]), alt.value(PALETTE[0])),
            opacity=alt.Opacity("share:Q", scale=share, legend=None),
        )
        .transform_filter("!datum.node"),
        base.mark_text(align="left", dx=5, fontSize=10)
        .encode(text="node:N")
        .transform_filter("datum.node"),
    ]
    data = alt.InlineData([*_dots(shown, labels, high - low), *names])
    return drawn(
        alt.layer(*layers, data=data).properties(
            width=_WIDTH, height=_STRIP * len(labels), padding={"left": 2, "right": 8}
        )
    )


def _dots(
    shown: Sequence[Spread], labels: Sequence[str], reach: float
) -> Iterator[Mapping[str, Any]]:
    """Yield a dot for each place with nodes: hundreds of nodes at one place are one dot.

    share: the number of nodes at a place relative to the place with most nodes.
    """
    for spread, label in zip(shown, labels, strict=True):
        places: dict[tuple[int, bool], list[float]] = {}
        for node, value in spread.values.items():
            percent = spread.percent(value)
            # Finer in the linear part, which takes most of the axis.
            step = _NEAR * (min(reach, 4 * _LINEAR) if abs(percent) < 2 * _LINEAR else reach)
            places.setdefault((round(percent / step), node in spread.far), []).append(percent)
        most = max(map(len, places.values()))
        for (_, out), there in places.items():
            share = 1.0 if out else len(there) / most
            yield {"label": label, "percent": there[0], "out": out, "share": share}


@dataclass(frozen=True)
class Spread:
    """One metric over the nodes of a partition.

    values: by node. deviation: robust standard deviation, in percent of the median. worse, better:
    by outlier node, the farthest first, its distance from the median in percent, negative below it.
    """

    where: str
    clock: str
    check: str
    metric: str
    unit: str
    values: Mapping[str, float]
    median: float
    deviation: float
    worse: Mapping[str, float]
    better: Mapping[str, float]

    def percent(self, value: float) -> float:
        """Return the distance of a value from the median, in percent of the median."""
        return 100 * (value / self.median - 1)

    @property
    def far(self) -> Mapping[str, float]:
        """The outliers."""
        return {**self.worse, **self.better}

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value, in percent above the median."""
        values = self.values.values()
        return self.percent(min(values)), self.percent(max(values))


def spreads_over_nodes(parts: Iterable[Observed]) -> list[Spread]:
    """Return every metric that several nodes have, ordered by the farthest node behind."""
    return sorted(
        _spreads(parts),
        key=lambda spread: (
            -max(map(abs, spread.worse.values()), default=0.0),
            -max(map(abs, spread.better.values()), default=0.0),
            -spread.deviation,
        ),
    )


def _spreads(parts: Iterable[Observed]) -> Iterator[Spread]:
    cases = [(part, part.on, case) for part in parts for case in part.cases]
    environs = grouped((part.where, case.environ) for part, _, case in cases)
    of_nodes = [(part, on, case) for part, on, case in cases if on is not None]
    values_of = grouped(
        ((part.where, part.clock, REPETITION.sub("", case.name), name, unit, case.environ),
         (on, value))
        for part, on, case in of_nodes
        for name, (value, unit) in case.values.items()
    )  # fmt: skip
    for (where, clock, check, name, unit, environ), on_nodes in values_of.items():
        if len({*environs[where]}) > 1:
            check += f" +{environ}"
        values = {node: statistics.median(several) for node, several in grouped(on_nodes).items()}
        median = statistics.median(list(values.values()))
        if len(values) > 1 and median > 0:
            deviation = 100 * statistics.deviation(list(values.values())) / median
            far = sorted(unlike(values).items(), key=lambda outlier: -abs(outlier[1]))
            sign = 1 if unit in SMALLER_IS_BETTER else -1
            worse, better = (
                {node: 100 * part for node, part in far if part * side > 0}
                for side in (sign, -sign)
            )
            yield Spread(where, clock, check, name, unit, values, median, deviation, worse, better)
