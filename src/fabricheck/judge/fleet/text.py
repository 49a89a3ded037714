"""What is said of a fleet: its findings in an order, and the text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from fabricheck.core import nodelists
from fabricheck.core.amounts import number
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.text import count, first_names
from fabricheck.core.vocabulary import EXIT_GOOD, EXIT_MISSING, EXIT_ODD, EXIT_WORSE
from fabricheck.judge.calibration.groups import LEAST_PART_OF_A_MODE
from fabricheck.judge.fleet import odd, reading, shapes
from fabricheck.judge.fleet.odd import Distribution, Far, Judged, Odd
from fabricheck.judge.fleet.reading import Fleet, Metric
from fabricheck.judge.fleet.shapes import Shape

if TYPE_CHECKING:
    from fabricheck.judge.fleet.changes import Changed, Changes, OfPartition

#: The most lines of one list in the terminal, and the longest list of nodes, in characters.
MOST_ODD = 12
MOST_GROUPS = 3
MOST_CHANGES = 5
MOST_FACTS = 4
LONGEST = 60

#: From here on a value is printed with an exponent.
MOST_DIGITS = 1e9

#: What is said of two fleets without a common partition.
NOTHING_COMPARED = "No partition is in both, so no metric was compared."

#: Groups of nodes are the same ones if so many of their slow nodes are.
THE_SAME = 0.8


@dataclass(frozen=True)
class Split:
    """Metrics in which the same nodes are the slow group.

    distributions: the metrics, the farthest apart first. nodes: the slow group's names. alike: a
    fact that all slow nodes have and no fast one, if there is one.
    """

    where: str
    distributions: tuple[Distribution, ...]
    nodes: tuple[str, ...]
    all_nodes: int
    kind: str
    alike: str = ""

    @property
    def apart(self) -> float:
        """How much slower the slow group is, as a fraction."""
        return max(one.groups.apart for one in self.distributions if one.groups is not None)

    @property
    def checks(self) -> set[str]:
        """The checks of the metrics."""
        return {one.metric.check for one in self.distributions}

    @property
    def counts(self) -> bool:
        """Whether it counts: a tenth of the nodes, or the same nodes in several checks.

        A few nodes in one check may have been slow at the moment.
        """
        return len(self.nodes) >= LEAST_PART_OF_A_MODE * self.all_nodes or len(self.checks) > 1


@dataclass(frozen=True)
class Findings:
    """Everything that is said of a fleet.

    shapes: by node, of each partition in turn. changes: to an earlier time, where one was named.
    moved: groups of nodes that became worse, as opposed to the others. home: the sessions by node.
    """

    fleet: Fleet
    judged: tuple[Judged, ...]
    shapes: tuple[Mapping[str, Shape], ...]
    splits: tuple[Split, ...]
    changes: Changes | None = None
    moved: tuple[Split, ...] = ()
    home: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)

    @property
    def odd(self) -> Iterator[tuple[Judged, Odd, Shape]]:
        """The nodes that stand out, with their shapes."""
        for judged, shapes_of in zip(self.judged, self.shapes, strict=True):
            for one in judged.odd:
                yield judged, one, shapes_of[one.node]

    @property
    def fewer(self) -> dict[str, tuple[Metric, ...]]:
        """By node the metrics that nearly all others have and it has not."""
        return {node: own for judged in self.judged for node, own in judged.fewer.items()}

    @property
    def useless(self) -> list[Distribution]:
        """The metrics without one usable value, of partitions in which a node can stand out."""
        return [
            one
            for judged in self.judged
            if len(judged.partition.nodes) >= odd.FEWEST
            for one in judged.distributions
            if one.nodes and math.isnan(one.median)
        ]

    @property
    def exit_code(self) -> int:
        """The exit code: worse, unread, odd, missing, good."""
        if self.changes is not None and (self.changes.worse or self.moved):
            return EXIT_WORSE
        if self.fleet.problems or (self.changes is not None and self.changes.before.problems):
            return InvalidInputError.exit_code
        if any(judged.odd for judged in self.judged) or any(one.counts for one in self.splits):
            return EXIT_ODD
        gone = self.changes is not None and self.changes.missing
        lost = self.fleet.lost or self.fleet.lost_networks
        missing = lost or self.fewer or self.useless or gone
        return EXIT_MISSING if missing else EXIT_GOOD


def findings(fleet: Fleet, changes: Changes | None = None) -> Findings:
    """Return what is to be said of a fleet."""
    judged = tuple(odd.judge(part) for part in fleet.partitions)
    odd_ones = [one.node for each in judged for one in each.odd]
    if changes is not None:
        odd_ones += [one.node for part in changes.partitions for one in part.worse.odd]
    others = [node for each in judged if each.odd for node in shapes.others_of(each)]
    rows = fleet.of_nodes([*odd_ones, *others])
    return Findings(
        fleet,
        judged,
        tuple(shapes.of(one, rows) for one in judged),
        tuple(split for one in judged for split in _splits(fleet, one)),
        changes,
        tuple(
            split
            for part in (changes.partitions if changes is not None else ())
            for split in _splits(fleet, part.worse)
            if split.counts
        ),
        reading.sessions(rows.filter(pl.col("node").is_in(odd_ones))),
    )


def _splits(fleet: Fleet, judged: Judged) -> Iterator[Split]:
    """Yield the groups of nodes of a partition, one for all metrics that have the same ones."""
    found: list[list[Distribution]] = []
    for one in sorted(judged.grouped, key=lambda one: -_apart(one)):
        for own in found:
            if _same(own[0], one):
                own.append(one)
                break
        else:
            found.append([one])
    for own in found:
        groups = own[0].groups
        assert groups is not None
        nodes = judged.partition.nodes
        slow = tuple(nodes[at] for at in groups.slow)
        every = len(slow) + len(groups.fast)
        split = Split(judged.partition.title, tuple(own), slow, every, groups.kind)
        if split.counts:
            alike = _alike(fleet, slow, [nodes[at] for at in groups.fast])
            split = replace(split, alike=alike)
        yield split


def _apart(one: Distribution) -> float:
    return one.groups.apart if one.groups is not None else 0.0


def _same(one: Distribution, other: Distribution) -> bool:
    assert one.groups is not None and other.groups is not None
    ours, theirs = set(one.groups.slow), set(other.groups.slow)
    return len(ours & theirs) >= THE_SAME * len(ours | theirs)


def _alike(fleet: Fleet, slow: Sequence[str], fast: Sequence[str]) -> str:
    """Return a fact that the slow nodes have and the fast ones have not, or an empty text."""
    of = (pl.col("node").is_in(list(own)).sum() for own in (slow, fast))
    counts = fleet.facts.group_by("fact", "value", maintain_order=True).agg(
        **dict(zip(("slow", "fast"), of, strict=True))
    )
    found = counts.filter(pl.col("slow") == len(slow), pl.col("fast") == 0)
    return f"{found['fact'][0]} {found['value'][0]}" if len(found) else ""


def lines(found: Findings) -> Iterator[str]:
    """Yield the text for a terminal, fewer than 40 lines."""
    fleet = found.fleet
    if found.changes is not None:
        yield from _of_changes(found, found.changes)
    parts = [
        f"{one.partition.title}: {one.partition.size}, "
        f"{count(len(one.partition.metrics), 'metric')}"
        for one in found.judged
    ]
    yield f"Fleet {fleet.title}: {first_names(parts, 3)}"
    yield from _of_odd(found)
    yield from _of_splits(found)
    if found.fewer:
        yield (
            f"Metrics missing on {count(len(found.fewer), 'node')} that nine in ten others have: "
            f"{shortened(found.fewer)}"
        )
    if found.useless:
        named = first_names([one.metric.title for one in found.useless], 3)
        yield f"No node has a usable value of {named}"
    if fleet.lost:
        yield f"Requested without any result: {shortened(fleet.lost)}"
    yield from fleet.lost_networks


def _of_odd(found: Findings) -> Iterator[str]:
    every = list(found.odd)
    few = [one for one in found.judged if len(one.partition.nodes) < odd.FEWEST]
    if not every:
        yield (
            "No node stands out."
            if len(few) < len(found.judged)
            else (f"Fewer than {odd.FEWEST} nodes: none can stand out.")
        )
        return
    are = "1 node stands" if len(every) == 1 else f"{len(every)} nodes stand"
    yield f"{are} out: {shortened(one.node for _, one, _ in every)}"
    for judged, one, shape in every[:MOST_ODD]:
        yield f"  {one.node}: {sentence(one, shape, len(judged.partition.metrics))}"
    if len(every) > MOST_ODD:
        yield f"  and {len(every) - MOST_ODD} more (--json, --output)"


def sentence(one: Odd, shape: Shape, metrics: int) -> str:
    """Return by how much a node stands out, in how many metrics, and what they have in common."""
    told = []
    if one.values:
        far = f"{behind(one)} behind" if behind(one) else "more faults"
        told.append(f"{far} in {len(one.values)} of {metrics} metrics: {shape.sentence}")
        first = one.values[0].metric
        if shape.what != f"one metric, {first.title}" or first.unit == "count":
            told.append(f"farthest {value_of(one.values[0])}")
    if one.unbelieved:
        told.append(f"not believed: {unbelieved(one)}")
    return "; ".join(told)


def unbelieved(one: Odd) -> str:
    """Return the first value of a node that cannot be, and how many more there are."""
    more = len(one.unbelieved) - 1
    return value_of(one.unbelieved[0]) + (f" and {more} more" if more else "")


def behind(one: Odd) -> str:
    """Return how far behind the values of a node are, from the least to the most.

    Counts of faults are not behind by a fraction; of them alone it is empty.
    """
    every = [each.behind for each in one.values if each.metric.unit != "count"]
    if not every:
        return ""
    least, most = (percent(f(every)) for f in (min, max))
    return most if least == most else f"{least} to {most}"


def value_of(far: Far) -> str:
    """Return a value beside the median of the nodes."""
    if far.value is None or not math.isfinite(far.value):
        value = "no number"
    elif far.metric.unit == "count" or abs(far.value) >= MOST_DIGITS:
        value = f"{far.value:g}"
    else:
        value = number(far.value)
    unit = "" if far.metric.unit == "count" else f" {far.metric.unit}"
    return f"{far.metric.title} {value}{unit} (median {number(far.median)})"


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


def of_split(one: Split) -> str:
    """Return a sentence on two groups of nodes."""
    slow, every = len(one.nodes), one.all_nodes
    title = one.distributions[0].metric.title
    more = len(one.distributions) - 1
    what = f"{title}{f' and {more} more' if more else ''}"
    said = f"{one.kind} in {what}: {slow} of {every} nodes {percent(one.apart)} slower"
    if one.kind == "slow minority":
        said += f", {shortened(one.nodes)}"
    else:
        said += "; which of them are right, references tell"
    return said + (f"; all slow ones and no other have {one.alike}" if one.alike else "")


def _of_splits(found: Findings) -> Iterator[str]:
    counting = [one for one in found.splits if one.counts]
    for one in counting[:MOST_GROUPS]:
        yield f"Groups: {of_split(one)}"
    if len(counting) > MOST_GROUPS:
        yield f"  and {len(counting) - MOST_GROUPS} more groups (--json, --output)"
    rest = [one for one in found.splits if not one.counts]
    if rest:
        yield (
            f"A few nodes are slow together in one check only, as at a moment: {of_split(rest[0])}"
            + (f"; and {len(rest) - 1} more" if len(rest) > 1 else "")
        )


def _of_changes(found: Findings, changes: Changes) -> Iterator[str]:
    yield f"Before: {changes.before.title}. After: {changes.after.title}."
    for part in changes.partitions:
        yield from _of_partition(part)
    if not changes.partitions:
        yield NOTHING_COMPARED
    for when, parts in (("before", changes.only_before), ("after", changes.only_after)):
        for only in parts:
            yield f"Only {when}: {only.title}, {only.size}"
    for one in found.moved[:MOST_GROUPS]:
        yield f"  worse than before together: {of_moved(one)}"
    for check in [one for one in changes.checks if one.worse][:MOST_CHANGES]:
        yield f"Does not pass any more: {check.check} on {shortened(check.worse)}"
    for fact in changes.facts[:MOST_FACTS]:
        yield f"Changed: {fact.what}: {told(fact.before)} -> {told(fact.after)}"
    if len(changes.facts) > MOST_FACTS:
        yield f"  and {len(changes.facts) - MOST_FACTS} more facts (--json, --output)"


def of_moved(one: Split) -> str:
    """Return a sentence on a group of nodes that became worse."""
    more = len(one.distributions) - 1
    said = (
        f"{len(one.nodes)} of {one.all_nodes} nodes by {percent(one.apart)} in "
        f"{one.distributions[0].metric.title}{f' and {more} more' if more else ''}, "
        f"{shortened(one.nodes)}"
    )
    return said + (f"; all of them and no other have {one.alike}" if one.alike else "")


def told(values: Mapping[str, int], most: int = 2) -> str:
    """Return the values of a fact with the numbers of nodes, the most frequent first."""
    each = [f"{value} on {nodes}" for value, nodes in values.items()]
    return first_names(each, most)


def _of_partition(part: OfPartition) -> Iterator[str]:
    worse, better = part.judged("worse"), part.judged("better")
    same, unclear = part.judged("unchanged"), part.judged("undetermined")
    yield (
        f"{part.where}: {len(worse)} metrics worse, {len(better)} better, {len(same)} unchanged, "
        f"{len(unclear)} undetermined; {len(part.gone)} disappeared, {len(part.came)} new"
    )
    for word, own in (("worse", worse), ("better", better)):
        for one in own[: MOST_CHANGES - 2]:
            yield f"  {word}: {change(one)}"
    for word, nodes in (("worse", part.worse), ("better", part.better)):
        if nodes.odd:
            who = shortened(one.node for one in nodes.odd)
            first = nodes.odd[0]
            far = first.values[0]
            yield (
                f"  {word} beside the other nodes: {count(len(nodes.odd), 'node')}, {who}; "
                f"{first.node} by {moved_by(far)} in {far.metric.title}"
            )
    for word, names in (("disappeared", part.lost), ("new", part.new)):
        if names:
            yield f"  {word}: {count(len(names), 'node')}, {shortened(names)}"


def moved_by(far: Far) -> str:
    """Return by how much a value changed beside the others; a count, by how many faults."""
    return f"{far.value:g}" if far.metric.unit == "count" else percent(far.behind)


def change(one: Changed) -> str:
    """Return a change of a metric over the nodes."""
    ratio = one.decision.ratio
    by = "" if ratio is None else f" ({100 * (ratio - 1):+.1f} %)"
    unit = "" if one.metric.unit == "count" else f" {one.metric.unit}"
    return f"{one.metric.title} {number(one.before)} -> {number(one.after)}{unit}{by}"


def as_json(found: Findings) -> dict[str, Any]:
    """Return everything that is said, for programs."""
    return {
        "form": "fabricheck-fleet-1",
        "fleet": found.fleet.title,
        "exit_code": found.exit_code,
        "partitions": [_partition_json(found, at) for at in range(len(found.judged))],
        "lost": found.fleet.lost,
        "lost_networks": found.fleet.lost_networks,
        "problems": list(found.fleet.problems),
        "changes": None
        if found.changes is None
        else _changes_json(found.changes) | {"moved": [_split_json(one) for one in found.moved]},
    }


def _partition_json(found: Findings, at: int) -> dict[str, Any]:
    judged, shapes_of = found.judged[at], found.shapes[at]
    part = judged.partition
    return {
        "partition": part.where,
        "clock": part.clock,
        "nodes": len(part.nodes),
        "metrics": [
            {
                "check": one.metric.check, "metric": one.metric.name, "unit": one.metric.unit,
                "nodes": one.nodes, "median": _finite(one.median), "spread": _finite(one.spread),
                "limit": _finite(one.limit),
            }
            for one in judged.distributions
        ],
        "limits": {str(number): limit for number, limit in judged.limits.items()},
        "odd": [
            {
                "node": one.node, "score": _finite(one.score),
                "shape": shapes_of[one.node].what,
                "explained": shapes_of[one.node].explained, "slow": shapes_of[one.node].slow,
                "typical": one.typical, "could_show": len(one.could_show),
                "sessions": [list(each) for each in found.home.get(one.node, ())],
                "values": [_far_json(each) for each in one.values],
                "not_believed": [_far_json(each) for each in one.unbelieved],
            }
            for one in judged.odd
        ],
        "groups": [
            _split_json(one)
            for one in found.splits
            if one.where == part.title
        ],
        "fewer": {
            node: [one.title for one in metrics] for node, metrics in judged.fewer.items()
        },
    }  # fmt: skip


def _split_json(one: Split) -> dict[str, Any]:
    return {
        "kind": one.kind, "counts": one.counts, "apart": one.apart,
        "metrics": [each.metric.title for each in one.distributions],
        "slow": list(one.nodes), "nodes": one.all_nodes, "alike": one.alike or None,
    }  # fmt: skip


def _far_json(far: Far) -> dict[str, Any]:
    return {
        "check": far.metric.check, "metric": far.metric.name, "unit": far.metric.unit,
        "value": _finite(far.value), "median": _finite(far.median),
        "behind": None if far.metric.unit == "count" else _finite(far.behind),
        "limits": _finite(far.limits),
    }  # fmt: skip


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _changes_json(changes: Changes) -> dict[str, Any]:
    return {
        "before": changes.before.title,
        "partitions": [
            {
                "partition": part.where,
                "metrics": [
                    {
                        "check": one.metric.check, "metric": one.metric.name,
                        "unit": one.metric.unit,
                        "before": _finite(one.before), "after": _finite(one.after),
                        "ratio": one.decision.ratio, "judgement": one.decision.judgement,
                        "floor": _finite(one.decision.floor), "why": one.decision.why,
                    }
                    for one in part.changed
                ],
                **{
                    word: [
                        {"node": one.node, "values": [_far_json(each) for each in one.values]}
                        for one in nodes.odd
                    ]
                    for word, nodes in (("worse", part.worse), ("better", part.better))
                },
                "gone": [one.title for one in part.gone],
                "came": [one.title for one in part.came],
                "lost": list(part.lost),
                "new": list(part.new),
            }
            for part in changes.partitions
        ],
        **{
            word: [{"partition": one.title, "nodes": one.nodes} for one in parts]
            for word, parts in (
                ("only_before", changes.only_before), ("only_after", changes.only_after)
            )
        },
        "facts": [
            {
                "what": one.what, "before": dict(one.before), "after": dict(one.after),
                "nodes": list(one.moved),
            }
            for one in changes.facts
        ],
        "checks": [
            {"check": one.check, "worse": list(one.worse), "better": list(one.better)}
            for one in changes.checks
        ],
    }  # fmt: skip
