"""The page of a fleet: its nodes as a map, what stands out, distributions, and what changed.

One file without scripts; whatever has thousands of nodes is drawn as a few paths.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import fabricheck
from fabricheck.core.grouping import grouped
from fabricheck.core.text import count
from fabricheck.judge.fleet import text
from fabricheck.judge.fleet.findings import Findings
from fabricheck.judge.fleet.outliers import Distribution, PartitionOutliers
from fabricheck.judge.peers import LEAST
from fabricheck.report.rendering import KINDS, PAGE, PAGES, templates

#: The most rows of a table on the page; --json has all.
MOST = 100
#: The most metrics whose distribution is drawn.
_MOST_DRAWN = 24

#: The most cells in a row of the map.
_MOST_IN_A_ROW = 128

#: The drawing of a distribution: bars, their greatest height in pixels, and its ends in limits.
BARS, HEIGHT, ENDS = 60, 44, 2.0

#: The states of a node on the map, the one that counts first; with the words of the legend.
STATES: Mapping[str, str] = {
    "lost": "no result",
    "odd": "stands out",
    "worse": "worse beside the other nodes since before",
    "group": "in a slow group of nodes",
    "fewer": "lacks metrics that others have",
    "fine": "none of these",
}


@dataclass(frozen=True)
class Map:
    """The map of some nodes: the state of each, and how many have each state."""

    title: str
    nodes: Mapping[str, str]
    counts: Mapping[str, int]

    @property
    def columns(self) -> int:
        """The number of cells in a row."""
        return min(_MOST_IN_A_ROW, max(16, math.ceil(math.sqrt(2 * len(self.nodes)))))

    @property
    def rows(self) -> list[tuple[list[str], dict[str, list[tuple[int, str]]]]]:
        """The nodes of each row, and by state those that have it with their places in the row."""
        nodes = list(self.nodes)
        rows = (nodes[at : at + self.columns] for at in range(0, len(nodes), self.columns))
        return [
            (row, grouped((self.nodes[node], (at, node)) for at, node in enumerate(row)))
            for row in rows
        ]


@dataclass(frozen=True)
class Drawn:
    """The distribution of a metric, and its drawing.

    odd: how many nodes stand out in it. bars: by their place the heights of the bars. marks: the
    lines, by place and what they are. end: the distance from the median at both ends.
    """

    one: Distribution
    odd: int
    bars: Sequence[tuple[int, float]]
    marks: Sequence[tuple[float, str]]
    end: float


def html(found: Findings, path: Path) -> str:
    """Return the HTML page.

    :param path: where it is to be written, from which its links start.
    """
    template = templates().get_template("fleet.html.j2")
    worst = list(found.outliers)
    return template.render(
        found=found,
        fleet=found.fleet,
        changes=found.changes,
        maps=list(_maps(found)),
        states=STATES,
        odd=worst[:MOST],
        more=max(0, len(worst) - MOST),
        most=MOST,
        links=_links(found, path),
        distributions=[(part, *_distributions(part)) for part in found.partitions],
        say=text,
        count=count,
        kinds=KINDS,
        version=fabricheck.__version__,
    )


def _links(found: Findings, path: Path) -> dict[str, list[tuple[str, str]]]:
    """Return by node the names of its sessions with a link: to their page, else to their file."""

    def link(session: str, origin: str) -> tuple[str, str]:
        own = Path(origin) / PAGES / session / PAGE
        target = own if session and own.is_file() else Path(origin)
        return session or target.name, os.path.relpath(target, path.parent)

    return {
        node: [link(session, origin) for session, origin in sessions if origin]
        for node, sessions in found.sessions.items()
    }


def _maps(found: Findings) -> Iterator[Map]:
    states: dict[str, str] = dict.fromkeys(found.missing_metrics, "fewer")
    for groups in found.groups:
        if groups.counts and groups.kind != "slow majority":
            states |= dict.fromkeys(groups.slow, "group")
    changed = found.changes.partitions if found.changes is not None else ()
    states |= dict.fromkeys((outlier.node for each in changed for outlier in each.worse), "worse")
    states |= dict.fromkeys((one.node for _, one in found.outliers), "odd")
    lost = {changes.partition: changes.lost for changes in changed}
    for at, outliers in enumerate(found.partitions):
        part = outliers.partition
        own = {node: states.get(node, "fine") for node in part.nodes}
        own |= dict.fromkeys(lost.get(part.title, ()), "lost")
        if at == 0:
            own |= dict.fromkeys(found.fleet.lost, "lost")
        counts = Counter(own.values())
        yield Map(part.title, own, {one: counts[one] for one in STATES if one in counts})


def _distributions(part: PartitionOutliers) -> tuple[list[Drawn], list[Distribution]]:
    """Return the metrics that are drawn, those of outliers and groups first, and the others."""
    odd = Counter(value.metric for outlier in part.outliers for value in outlier.values)
    usable = [
        distribution
        for distribution in part.distributions
        if math.isfinite(distribution.median) and distribution.median
    ]
    usable.sort(
        key=lambda distribution: (
            distribution.groups is None,
            -odd[distribution.metric],
            -distribution.spread,
        )
    )
    drawn = [
        _drawn(part, distribution, odd[distribution.metric])
        for distribution in usable[:_MOST_DRAWN]
    ]
    shown = {one.one.number for one in drawn}
    return drawn, [
        distribution for distribution in part.distributions if distribution.number not in shown
    ]


def _drawn(part: PartitionOutliers, one: Distribution, odd: int) -> Drawn:
    """Return the numbers of nodes by their distance from the median, on a logarithmic axis.

    The ends are twice the limit, or twice the distance of the groups; what is beyond is in the
    outer bars.
    """
    values = part.partition.values.to_series(one.number)
    better = values / one.median - 1
    limit = one.limit if math.isfinite(one.limit) else LEAST
    wide = max(3 * one.spread, LEAST, one.groups.apart if one.groups is not None else 0.0)
    end = ENDS * min(wide, 10.0)
    behind = better if one.metric.lower_is_better else -better
    at = ((behind.clip(-end, end) + end) / (2 * end) * BARS).floor().clip(0, BARS - 1)
    known = at.filter(at.is_finite().fill_null(False)).cast(pl.Int64)
    counts = dict(known.value_counts().iter_rows())
    most = math.log1p(max(counts.values(), default=1))
    bars = [
        (place, max(2.0, HEIGHT * math.log1p(nodes) / most))
        for place, nodes in sorted(counts.items())
    ]
    marks = [(BARS / 2, "median"), *([((limit + end) / (2 * end) * BARS, "limit")] * (limit < end))]
    return Drawn(one, odd, bars, marks, end)
