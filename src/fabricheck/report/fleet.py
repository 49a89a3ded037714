"""The page of a fleet: its nodes as a map, what stands out, distributions, and what changed.

One file without scripts; whatever has thousands of nodes is drawn as a few paths.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from markupsafe import Markup, escape

import fabricheck
from fabricheck.core.amounts import number
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.judge.fleet import text
from fabricheck.judge.fleet.findings import Findings
from fabricheck.judge.fleet.outliers import Distribution, PartitionOutliers
from fabricheck.judge.peers import LEAST
from fabricheck.report.rendering import KINDS, PAGE, PAGES, templates

#: The most rows of a table on the page; --json has all.
MOST = 100
#: The most metrics whose distribution is drawn.
MOST_DRAWN = 24

#: A cell of the map, with its gap, and the most cells of a row, in pixels.
CELL, MOST_IN_A_ROW = 9, 128
#: Left of the map, for the name of the first node of a row.
_NAMES = 96

#: The drawing of a distribution: bars, their width and height in pixels, and its ends in limits.
BARS, BAR, HEIGHT, ENDS = 60, 5, 44, 2.0

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
    """The map of some nodes.

    drawing: SVG. counts: how many nodes have each state.
    """

    title: str
    drawing: Markup
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Drawn:
    """The distribution of a metric, with its drawing."""

    one: Distribution
    drawing: Markup
    odd: int


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
        legend=legend,
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
        yield Map(part.title, _map(own, at), {one: counts[one] for one in STATES if one in counts})


def _map(states: Mapping[str, str], at: int) -> Markup:
    """Return the map: a row of cells has the name of its first node, and an odd cell a link."""
    nodes = list(states)
    columns = min(MOST_IN_A_ROW, max(16, math.ceil(math.sqrt(2 * len(nodes)))))
    rows = math.ceil(len(nodes) / columns)
    width, height = _NAMES + columns * CELL, rows * CELL
    counts = [f"{sum(s == state for s in states.values())} {word}" for state, word in STATES.items()
            if state in states.values()]  # fmt: skip
    parts = [
        f'<svg class="drawing map" viewBox="0 0 {width} {height}" role="group" '
        f'aria-label="Map of {len(nodes)} nodes: {escape(listed(counts))}">'
    ]
    for row in range(rows):
        own = nodes[row * columns : (row + 1) * columns]
        y = row * CELL
        parts.append(f"<g><title>{escape(own[0])} to {escape(own[-1])}</title>")
        if rows < 24 or row % 4 == 0:
            parts.append(
                f'<text x="{_NAMES - 6}" y="{y + CELL - 1}" text-anchor="end" '
                f'aria-hidden="true">{escape(own[0][-16:])}</text>'
            )
        for state in STATES:
            places = [_NAMES + i * CELL for i, node in enumerate(own) if states[node] == state]
            if not places:
                continue
            if state != "odd":
                cells = "".join(_cell(state, x, y) for x in places)
                parts.append(f'<path class="{state}" d="{cells}"/>')
                continue
            for node, x in (
                (n, _NAMES + i * CELL) for i, n in enumerate(own) if states[n] == state
            ):
                name = escape(node)
                parts.append(
                    f'<a href="#node-{at}-{name}" aria-label="{name} stands out">'
                    f"<title>{name} stands out</title>"
                    f'<path class="odd" d="{_cell(state, x, y)}"/></a>'
                )
        parts.append("</g>")
    return Markup("".join([*parts, "</svg>"]))


def _cell(state: str, x: int, y: int) -> str:
    """Return the path of a cell; states have shapes, not only colours."""
    side = CELL - 2
    half = side / 2
    match state:
        case "odd":  # the whole cell, so that it is larger than its neighbours
            return f"M{x - 1} {y - 1}h{CELL}v{CELL}h-{CELL}z"
        case "worse":
            return f"M{x} {y}h{side}l-{half} {side}z"
        case "group":
            return f"M{x + half} {y}l{half} {half}l-{half} {half}l-{half} -{half}z"
        case "fewer":
            return f"M{x} {y + side - 2}h{side}v2h-{side}z"
        case "lost":
            return f"M{x} {y}l{side} {side}M{x + side} {y}l-{side} {side}"
        case _:
            return f"M{x} {y}h{side}v{side}h-{side}z"


def legend(state: str) -> Markup:
    """Return the mark of a state in the legend."""
    path = _cell(state, 1, 1)
    return Markup(
        f'<svg class="key map" viewBox="0 0 {CELL} {CELL}" aria-hidden="true" focusable="false">'
        f'<path class="{state}" d="{path}"/></svg>'
    )


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
        Drawn(distribution, _histogram(part, distribution), odd[distribution.metric])
        for distribution in usable[:MOST_DRAWN]
    ]
    shown = {one.one.number for one in drawn}
    return drawn, [
        distribution for distribution in part.distributions if distribution.number not in shown
    ]


def _histogram(part: PartitionOutliers, one: Distribution) -> Markup:
    """Return the numbers of nodes by their distance from the median, on a logarithmic axis.

    The ends are twice the limit, or twice the distance of the groups; what is beyond is in the
    outer bars.
    """
    values = part.partition.values.to_series(one.number)
    better = values / one.median - 1
    limit = one.limit if math.isfinite(one.limit) else LEAST
    spread = max(3 * one.spread, LEAST)
    wide = max(spread, one.groups.apart if one.groups is not None else 0.0)
    end = ENDS * min(wide, 10.0)
    behind = better if one.metric.lower_is_better else -better
    at = ((behind.clip(-end, end) + end) / (2 * end) * BARS).floor().clip(0, BARS - 1)
    known = at.filter(at.is_finite().fill_null(False)).cast(pl.Int64)
    counts = dict(known.value_counts().iter_rows())
    most = math.log1p(max(counts.values(), default=1))
    bars = []
    for place, nodes in sorted(counts.items()):
        high = max(2.0, HEIGHT * math.log1p(nodes) / most)
        bars.append(f"M{place * BAR} {HEIGHT:g}v-{high:.0f}h{BAR - 1}v{high:.0f}z")
    width = BARS * BAR
    marks = [(BARS / 2 * BAR, "median")]
    if limit < end:
        marks.append(((limit + end) / (2 * end) * width, "limit"))
    lines = "".join(f'<path class="{kind}" d="M{x:.0f} 0v{HEIGHT}"/>' for x, kind in marks)
    title = escape(f"{one.metric.title}: {one.nodes} nodes, median {number(one.median)}")
    return Markup(
        f'<svg class="drawing spread" viewBox="0 0 {width} {HEIGHT + 14}" role="img" '
        f'aria-label="{title}"><path class="bars" d="{"".join(bars)}"/>{lines}'
        f'<text x="0" y="{HEIGHT + 12}">{100 * end:.3g} % better</text>'
        f'<text x="{width / 2}" y="{HEIGHT + 12}" text-anchor="middle">median</text>'
        f'<text x="{width}" y="{HEIGHT + 12}" text-anchor="end">{100 * end:.3g} % behind</text>'
        "</svg>"
    )
