"""What is shown of a fleet: lines for a terminal, and a page.

The page has the nodes as a map, what stands out, distributions, and what changed: one file without
scripts. Whatever has thousands of nodes is drawn as a few paths.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import fabricheck
from fabricheck.core import nodelists, show
from fabricheck.core.amounts import number
from fabricheck.core.grouping import grouped
from fabricheck.core.peers import LEAST
from fabricheck.core.show import cut, first_of, listed
from fabricheck.core.text import count
from fabricheck.judge.fleet import outliers
from fabricheck.judge.fleet.findings import Changed, Changes, Findings, PartitionChanges
from fabricheck.judge.fleet.outliers import (
    Distribution,
    NodeGroups,
    Outlier,
    OutlyingValue,
    PartitionOutliers,
)
from fabricheck.judge.fleet.reading import Metric
from fabricheck.report import soak
from fabricheck.report.rendering import KINDS, PAGE, PAGES, templates

#: The most lines of one list in the terminal, and the longest list of nodes, in characters.
_MOST_OUTLIERS = 12
_MOST_GROUPS = 3
_MOST_CHANGES = 5
_MOST_FACTS = 4
_LONGEST = 60

#: From here on a value is printed with an exponent.
_MOST_DIGITS = 1e9

#: What is said of two fleets without a common partition.
_NOTHING_COMPARED = "No partition is in both, so no metric was compared."

#: The most rows of a table on the page, and the longest list of nodes; --json has all.
MOST, _LONGEST_ON_PAGE = 100, 2000

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


def lines(findings: Findings) -> Iterator[show.Block]:
    """Yield the text for a terminal, fewer than 40 lines without soaks."""
    fleet = findings.fleet
    if findings.changes is not None:
        yield from _changes(findings, findings.changes)
    parts = [
        f"{partition.partition.title}: {partition.partition.size}, "
        f"{count(len(partition.partition.metrics), 'metric')}"
        for partition in findings.partitions
    ]
    yield f"Fleet {fleet.title}: {listed(parts, 3)}"
    yield from _outliers(findings)
    yield from _groups(findings)
    if findings.missing_metrics:
        lacking = count(len(findings.missing_metrics), "node")
        yield (
            f"Metrics missing on {lacking} that nine in ten others have: "
            f"{_nodes_of(findings.missing_metrics)}"
        )
    if findings.unusable:
        named = listed([distribution.metric.title for distribution in findings.unusable], 3)
        yield f"No node has a usable value of {named}"
    if fleet.lost:
        yield f"Requested without any result: {_nodes_of(fleet.lost)}"
    yield from fleet.lost_networks
    yield from soak.of_nodes(findings.soaks)


def _outliers(findings: Findings) -> Iterator[str]:
    all_outliers = list(findings.outliers)
    if not all_outliers:
        enough = any(
            len(partition.partition.nodes) >= outliers.FEWEST for partition in findings.partitions
        )
        fewer = f"Fewer than {outliers.FEWEST} nodes: none can stand out."
        yield "No node stands out." if enough else fewer
        return
    are = "1 node stands" if len(all_outliers) == 1 else f"{len(all_outliers)} nodes stand"
    yield f"{are} out: {_nodes_of(outlier.node for _, outlier in all_outliers)}"
    sentences = [
        f"{outlier.node}: {_outlier(outlier, len(part.partition.metrics))}"
        for part, outlier in all_outliers
    ]
    yield from (f"  {each}" for each in first_of(sentences, _MOST_OUTLIERS, " (--json, --output)"))


def _outlier(outlier: Outlier, metrics: int) -> str:
    """Return by how much a node stands out, in how many metrics, and its diagnosis."""
    parts = []
    if outlier.values:
        far = f"{_behind(outlier)} behind" if outlier.behind else "more faults"
        parts.append(f"{far} in {len(outlier.values)} of {metrics} metrics")
        parts.append(f"farthest {_value_of(outlier.values[0])}")
    if outlier.implausible:
        parts.append(f"not believed: {_implausible(outlier)}")
    if outlier.diagnosis is not None:
        parts.append(f"diagnosis: {outlier.diagnosis.sentence}")
    return "; ".join(parts)


def _implausible(outlier: Outlier) -> str:
    """Return the first value of a node that cannot be, and how many more there are."""
    return listed(map(_value_of, outlier.implausible), 1)


def _behind(outlier: Outlier) -> str:
    """Return how far behind the values of a node are, from the least to the most."""
    least, most = _percent(outlier.behind[0]), _percent(outlier.behind[-1])
    return most if least == most else f"{least} to {most}"


def _value_of(outlying: OutlyingValue) -> str:
    """Return a value beside the median of the nodes."""
    if outlying.value is None or not math.isfinite(outlying.value):
        value = "no number"
    elif outlying.metric.unit == "count" or abs(outlying.value) >= _MOST_DIGITS:
        value = f"{outlying.value:g}"
    else:
        value = number(outlying.value)
    metric, median = outlying.metric, number(outlying.median)
    return f"{metric.title} {value}{_unit(metric)} (median {median})"


def _unit(metric: Metric) -> str:
    return "" if metric.unit == "count" else f" {metric.unit}"


def _percent(fraction: float) -> str:
    """Return a fraction in percent, with two digits or so."""
    return f"{100 * fraction:.1f} %" if abs(fraction) < 0.0995 else f"{100 * fraction:.0f} %"


def _nodes_of(nodes: Iterable[str], longest: int = _LONGEST) -> str:
    """Return a list of nodes, cut where it is too long for a line of the terminal."""
    return cut(nodelists.folded(nodes), longest)


def _groups_of(groups: NodeGroups, moved: bool = False) -> str:
    """Return a sentence on two groups of nodes.

    :param moved: whether the slow ones became so since an earlier time.
    """
    metrics = listed([metric.title for metric in groups.metrics], 1)
    slow, apart = f"{len(groups.slow)} of {groups.nodes} nodes", _percent(groups.apart)
    if moved:
        sentence = f"{slow} by {apart} in {metrics}"
    else:
        sentence = f"{groups.minority} in {metrics}: {slow} {apart} slower"
    if moved or groups.minority == "slow minority":
        sentence += f", {_nodes_of(groups.slow)}"
    else:
        sentence += "; check the references to see which group is right"
    return sentence + (f"; all slow ones and no other have {groups.alike}" if groups.alike else "")


def _groups(findings: Findings) -> Iterator[str]:
    counting = [group for group in findings.groups if group.counts]
    sentences = [f"Groups: {_groups_of(groups)}" for groups in counting]
    yield from first_of(sentences, _MOST_GROUPS, " groups (--json, --output)")
    rest = [group for group in findings.groups if not group.counts]
    if rest:
        yield (
            "A few nodes are slow together in one check only, as at a moment: "
            f"{listed(map(_groups_of, rest), 1)}"
        )


def _changes(findings: Findings, changes: Changes) -> Iterator[str]:
    yield f"Before: {changes.before.title}. After: {findings.fleet.title}."
    for part in changes.partitions:
        yield from _partition_changes(part)
    if not changes.partitions:
        yield _NOTHING_COMPARED
    for when, parts in (("before", changes.only_before), ("after", changes.only_after)):
        for only in parts:
            yield f"Only {when}: {only.title}, {only.size}"
    for check in [each for each in changes.checks if each.worse][:_MOST_CHANGES]:
        yield f"No longer passes: {check.check} on {_nodes_of(check.worse)}"
    sentences = [
        f"Changed: {fact.what}: {_fact_values(fact.before)} -> {_fact_values(fact.after)}"
        for fact in changes.facts
    ]
    yield from first_of(sentences, _MOST_FACTS, " facts (--json, --output)")


def _fact_values(values: Mapping[str, int], most: int = 2) -> str:
    """Return the values of a fact with the numbers of nodes, the most frequent first."""
    return listed([f"{value} on {nodes}" for value, nodes in values.items()], most)


def _partition_changes(part: PartitionChanges) -> Iterator[str]:
    worse, better = part.judged("worse"), part.judged("better")
    same, unclear = part.judged("unchanged"), part.judged("undetermined")
    yield (
        f"{part.partition}: {len(worse)} metrics worse, {len(better)} better, {len(same)} "
        f"unchanged, {len(unclear)} undetermined; {len(part.gone)} disappeared, "
        f"{len(part.came)} new"
    )
    for word, metrics in (("worse", worse), ("better", better)):
        for changed in metrics[: _MOST_CHANGES - 2]:
            yield f"  {word}: {_changed(changed)}"
    for word, nodes in (("worse", part.worse), ("better", part.better)):
        if nodes:
            first, value = nodes[0], nodes[0].values[0]
            yield (
                f"  {word} beside the other nodes: {count(len(nodes), 'node')}, "
                f"{_nodes_of(each.node for each in nodes)}; {first.node} by {_moved_by(value)} in "
                f"{value.metric.title}"
            )
    for word, names in (("disappeared", part.lost), ("new", part.new)):
        if names:
            yield f"  {word}: {count(len(names), 'node')}, {_nodes_of(names)}"
    for moved in part.moved[:_MOST_GROUPS]:
        yield f"  worse than before together: {_groups_of(moved, moved=True)}"


def _moved_by(outlying: OutlyingValue) -> str:
    """Return by how much a value changed beside the others; a count, by how many faults."""
    return f"{outlying.value:g}" if outlying.behind is None else _percent(outlying.behind)


def _changed(change: Changed) -> str:
    """Return a change of a metric over the nodes."""
    ratio, metric = change.decision.ratio, change.metric
    by = "" if ratio is None else f" ({100 * (ratio - 1):+.1f} %)"
    return f"{metric.title} {number(change.before)} -> {number(change.after)}{_unit(metric)}{by}"


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

    distribution: Distribution
    odd: int
    bars: Sequence[tuple[int, float]]
    marks: Sequence[tuple[float, str]]
    end: float


#: What the page says in the words of the terminal.
_SAYING = {
    "value_of": _value_of,
    "implausible": _implausible,
    "behind": _behind,
    "percent": _percent,
    "nodes_of": _nodes_of,
    "groups_of": _groups_of,
    "fact_values": _fact_values,
    "moved_by": _moved_by,
}


def html(findings: Findings, path: Path) -> str:
    """Return the HTML page.

    :param path: where it is to be written, from which its links start.
    """
    template = templates().get_template("fleet.html.j2")
    worst = list(findings.outliers)
    return template.render(
        findings=findings,
        fleet=findings.fleet,
        changes=findings.changes,
        maps=list(_maps(findings)),
        states=STATES,
        odd=worst[:MOST],
        more=max(0, len(worst) - MOST),
        most=MOST,
        longest=_LONGEST_ON_PAGE,
        links=_links(findings, path),
        distributions=[(part, *_distributions(part)) for part in findings.partitions],
        say=_SAYING,
        nothing_compared=_NOTHING_COMPARED,
        count=count,
        node_columns=soak.NODE_COLUMNS,
        node_cells=soak.node_cells,
        behind_others=soak.behind_others,
        kinds=KINDS,
        version=fabricheck.__version__,
    )


def _links(findings: Findings, path: Path) -> dict[str, list[tuple[str, str]]]:
    """Return by node the names of its sessions with a link: to their page, else to their file."""

    def link(session: str, origin: str) -> tuple[str, str]:
        page = Path(origin) / PAGES / session / PAGE
        target = page if session and page.is_file() else Path(origin)
        return session or target.name, os.path.relpath(target, path.parent)

    return {
        node: [link(session, origin) for session, origin in sessions if origin]
        for node, sessions in findings.sessions.items()
    }


def _maps(findings: Findings) -> Iterator[Map]:
    states: dict[str, str] = dict.fromkeys(findings.missing_metrics, "fewer")
    for groups in findings.groups:
        if groups.counts and groups.minority != "slow majority":
            states |= dict.fromkeys(groups.slow, "group")
    changed = findings.changes.partitions if findings.changes is not None else ()
    states |= dict.fromkeys((outlier.node for each in changed for outlier in each.worse), "worse")
    states |= dict.fromkeys((outlier.node for _, outlier in findings.outliers), "odd")
    lost = {changes.partition: changes.lost for changes in changed}
    for at, judged in enumerate(findings.partitions):
        part = judged.partition
        state_of = {node: states.get(node, "fine") for node in part.nodes}
        state_of |= dict.fromkeys(lost.get(part.title, ()), "lost")
        if at == 0:
            state_of |= dict.fromkeys(findings.fleet.lost, "lost")
        counts = Counter(state_of.values())
        yield Map(
            part.title, state_of, {state: counts[state] for state in STATES if state in counts}
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
        _drawn(part, distribution, odd[distribution.metric])
        for distribution in usable[:_MOST_DRAWN]
    ]
    shown = {each.distribution.number for each in drawn}
    return drawn, [
        distribution for distribution in part.distributions if distribution.number not in shown
    ]


def _drawn(part: PartitionOutliers, distribution: Distribution, odd: int) -> Drawn:
    """Return the numbers of nodes by their distance from the median, on a logarithmic axis.

    The ends are twice the limit, or twice the distance of the groups; what is beyond is in the
    outer bars.
    """
    values = part.partition.values.to_series(distribution.number)
    better = values / distribution.median - 1
    limit = distribution.limit if math.isfinite(distribution.limit) else LEAST
    wide = max(
        3 * distribution.spread,
        LEAST,
        distribution.groups.apart if distribution.groups is not None else 0.0,
    )
    end = ENDS * min(wide, 10.0)
    behind = better if distribution.metric.lower_is_better else -better
    at = ((behind.clip(-end, end) + end) / (2 * end) * BARS).floor().clip(0, BARS - 1)
    known = at.filter(at.is_finite().fill_null(False)).cast(pl.Int64)
    counts = dict(known.value_counts().iter_rows())
    most = math.log1p(max(counts.values(), default=1))
    bars = [
        (place, max(2.0, HEIGHT * math.log1p(nodes) / most))
        for place, nodes in sorted(counts.items())
    ]
    marks = [(BARS / 2, "median")]
    if limit < end:
        marks.append(((limit + end) / (2 * end) * BARS, "limit"))
    return Drawn(distribution, odd, bars, marks, end)
