"""The text of a fleet's findings, for a terminal and for the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fabricheck.core import nodelists
from fabricheck.core.amounts import number
from fabricheck.core.show import first_of, listed
from fabricheck.core.text import count
from fabricheck.judge.fleet import outliers
from fabricheck.judge.fleet.changes import Changed, Changes, PartitionChanges
from fabricheck.judge.fleet.findings import Findings
from fabricheck.judge.fleet.outliers import NodeGroups, Outlier, OutlyingValue
from fabricheck.judge.fleet.reading import Metric

#: The most lines of one list in the terminal, and the longest list of nodes, in characters.
MOST_OUTLIERS = 12
MOST_GROUPS = 3
MOST_CHANGES = 5
MOST_FACTS = 4
LONGEST = 60

#: From here on a value is printed with an exponent.
MOST_DIGITS = 1e9

#: What is said of two fleets without a common partition.
NOTHING_COMPARED = "No partition is in both, so no metric was compared."


def lines(found: Findings) -> Iterator[str]:
    """Yield the text for a terminal, fewer than 40 lines."""
    fleet = found.fleet
    if found.changes is not None:
        yield from _changes(found.changes)
    parts = [
        f"{partition.partition.title}: {partition.partition.size}, "
        f"{count(len(partition.partition.metrics), 'metric')}"
        for partition in found.partitions
    ]
    yield f"Fleet {fleet.title}: {listed(parts, 3)}"
    yield from _outliers(found)
    yield from _groups(found)
    if found.missing_metrics:
        lacking = count(len(found.missing_metrics), "node")
        yield (
            f"Metrics missing on {lacking} that nine in ten others have: "
            f"{shortened(found.missing_metrics)}"
        )
    if found.unusable:
        named = listed([distribution.metric.title for distribution in found.unusable], 3)
        yield f"No node has a usable value of {named}"
    if fleet.lost:
        yield f"Requested without any result: {shortened(fleet.lost)}"
    yield from fleet.lost_networks


def _outliers(found: Findings) -> Iterator[str]:
    found_outliers = list(found.outliers)
    if not found_outliers:
        enough = any(
            len(partition.partition.nodes) >= outliers.FEWEST for partition in found.partitions
        )
        fewer = f"Fewer than {outliers.FEWEST} nodes: none can stand out."
        yield "No node stands out." if enough else fewer
        return
    are = "1 node stands" if len(found_outliers) == 1 else f"{len(found_outliers)} nodes stand"
    yield f"{are} out: {shortened(outlier.node for _, outlier in found_outliers)}"
    sentences = [
        f"{outlier.node}: {_outlier(outlier, len(part.partition.metrics))}"
        for part, outlier in found_outliers
    ]
    yield from (f"  {each}" for each in first_of(sentences, MOST_OUTLIERS, " (--json, --output)"))


def _outlier(outlier: Outlier, metrics: int) -> str:
    """Return by how much a node stands out, in how many metrics, and its diagnosis."""
    parts = []
    if outlier.values:
        far = f"{behind(outlier)} behind" if outlier.behind else "more faults"
        parts.append(f"{far} in {len(outlier.values)} of {metrics} metrics")
        parts.append(f"farthest {value_of(outlier.values[0])}")
    if outlier.implausible:
        parts.append(f"not believed: {implausible(outlier)}")
    if outlier.diagnosis is not None:
        parts.append(f"diagnosis: {outlier.diagnosis.sentence}")
    return "; ".join(parts)


def implausible(outlier: Outlier) -> str:
    """Return the first value of a node that cannot be, and how many more there are."""
    return listed(map(value_of, outlier.implausible), 1)


def behind(outlier: Outlier) -> str:
    """Return how far behind the values of a node are, from the least to the most."""
    least, most = percent(outlier.behind[0]), percent(outlier.behind[-1])
    return most if least == most else f"{least} to {most}"


def value_of(outlying: OutlyingValue) -> str:
    """Return a value beside the median of the nodes."""
    if outlying.value is None or not math.isfinite(outlying.value):
        value = "no number"
    elif outlying.metric.unit == "count" or abs(outlying.value) >= MOST_DIGITS:
        value = f"{outlying.value:g}"
    else:
        value = number(outlying.value)
    metric, median = outlying.metric, number(outlying.median)
    return f"{metric.title} {value}{_unit(metric)} (median {median})"


def _unit(metric: Metric) -> str:
    return "" if metric.unit == "count" else f" {metric.unit}"


def percent(fraction: float) -> str:
    """Return a fraction in percent, with two digits or so."""
    return f"{100 * fraction:.1f} %" if abs(fraction) < 0.0995 else f"{100 * fraction:.0f} %"


def shortened(nodes: Iterable[str]) -> str:
    """Return a list of nodes, cut where it is too long for a line of the terminal."""
    return nodes_of(nodes, LONGEST)


def nodes_of(nodes: Iterable[str], longest: int = 2000) -> str:
    """Return a list of nodes, cut where it is too long."""
    folded = nodelists.folded(nodes)
    return folded if len(folded) <= longest else f"{folded[: longest - 3]}..."


def _metrics(metrics: Sequence[Metric]) -> str:
    return listed([metric.title for metric in metrics], 1)


def _node_groups(groups: NodeGroups) -> str:
    """Return a sentence on two groups of nodes."""
    sentence = (
        f"{groups.kind} in {_metrics(groups.metrics)}: {len(groups.slow)} of {groups.nodes} nodes "
        f"{percent(groups.apart)} slower"
    )
    if groups.kind == "slow minority":
        sentence += f", {shortened(groups.slow)}"
    else:
        sentence += "; check the references to see which group is right"
    return sentence + (f"; all slow ones and no other have {groups.alike}" if groups.alike else "")


def _groups(found: Findings) -> Iterator[str]:
    counting = [group for group in found.groups if group.counts]
    sentences = [f"Groups: {_node_groups(groups)}" for groups in counting]
    yield from first_of(sentences, MOST_GROUPS, " groups (--json, --output)")
    rest = [group for group in found.groups if not group.counts]
    if rest:
        yield (
            "A few nodes are slow together in one check only, as at a moment: "
            f"{listed(map(_node_groups, rest), 1)}"
        )


def _changes(changes: Changes) -> Iterator[str]:
    yield f"Before: {changes.before.title}. After: {changes.after.title}."
    for part in changes.partitions:
        yield from _partition_changes(part)
    if not changes.partitions:
        yield NOTHING_COMPARED
    for when, parts in (("before", changes.only_before), ("after", changes.only_after)):
        for only in parts:
            yield f"Only {when}: {only.title}, {only.size}"
    for check in [changed_check for changed_check in changes.checks if changed_check.worse][
        :MOST_CHANGES
    ]:
        yield f"No longer passes: {check.check} on {shortened(check.worse)}"
    sentences = [
        f"Changed: {fact.what}: {fact_values(fact.before)} -> {fact_values(fact.after)}"
        for fact in changes.facts
    ]
    yield from first_of(sentences, MOST_FACTS, " facts (--json, --output)")


def moved_group(groups: NodeGroups) -> str:
    """Return a sentence on a group of nodes that became worse."""
    sentence = (
        f"{len(groups.slow)} of {groups.nodes} nodes by {percent(groups.apart)} in "
        f"{_metrics(groups.metrics)}, {shortened(groups.slow)}"
    )
    return sentence + (f"; all of them and no other have {groups.alike}" if groups.alike else "")


def fact_values(values: Mapping[str, int], most: int = 2) -> str:
    """Return the values of a fact with the numbers of nodes, the most frequent first."""
    each = [f"{value} on {nodes}" for value, nodes in values.items()]
    return listed(each, most)


def _partition_changes(part: PartitionChanges) -> Iterator[str]:
    worse, better = part.judged("worse"), part.judged("better")
    same, unclear = part.judged("unchanged"), part.judged("undetermined")
    yield (
        f"{part.partition}: {len(worse)} metrics worse, {len(better)} better, {len(same)} "
        f"unchanged, {len(unclear)} undetermined; {len(part.gone)} disappeared, "
        f"{len(part.came)} new"
    )
    for word, metrics in (("worse", worse), ("better", better)):
        for changed in metrics[: MOST_CHANGES - 2]:
            yield f"  {word}: {_changed(changed)}"
    for word, nodes in (("worse", part.worse), ("better", part.better)):
        if nodes:
            first, value = nodes[0], nodes[0].values[0]
            yield (
                f"  {word} beside the other nodes: {count(len(nodes), 'node')}, "
                f"{shortened(each.node for each in nodes)}; {first.node} by {moved_by(value)} in "
                f"{value.metric.title}"
            )
    for word, names in (("disappeared", part.lost), ("new", part.new)):
        if names:
            yield f"  {word}: {count(len(names), 'node')}, {shortened(names)}"
    for moved in part.moved[:MOST_GROUPS]:
        yield f"  worse than before together: {moved_group(moved)}"


def moved_by(outlying: OutlyingValue) -> str:
    """Return by how much a value changed beside the others; a count, by how many faults."""
    return f"{outlying.value:g}" if outlying.behind is None else percent(outlying.behind)


def _changed(change: Changed) -> str:
    """Return a change of a metric over the nodes."""
    ratio, metric = change.decision.ratio, change.metric
    by = "" if ratio is None else f" ({100 * (ratio - 1):+.1f} %)"
    return f"{metric.title} {number(change.before)} -> {number(change.after)}{_unit(metric)}{by}"
