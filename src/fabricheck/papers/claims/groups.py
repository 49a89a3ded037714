"""What rules compare: values of a partition by device, pair or rank, each with its interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fabricheck.core.amounts import about
from fabricheck.core.grouping import grouped
from fabricheck.core.show import enumerated, listed
from fabricheck.core.text import count
from fabricheck.node import NodeModel
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.model import NotTestable, Number, computed, number
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series, curve, largest


@dataclass(frozen=True)
class Value:
    """A series' median with the ends of its interval, or what was computed from other values.

    A value without an interval, and most computed ones, have themselves as both ends. point: its
    series. parts: the values that it was computed from. name: what it is among those of another.
    """

    value: float
    low: float
    high: float
    unit: str
    point: Series | None = None
    parts: tuple[Value, ...] = ()
    name: str = ""

    @property
    def series(self) -> tuple[Series, ...]:
        """The series that it comes from."""
        if self.point is not None:
            return (self.point,)
        return tuple(series for part in self.parts for series in part.series)

    def numbers(self, what: str) -> list[Number]:
        """Return it as a number of a finding, and the one or two that it was computed from."""
        if self.point is not None:
            return [number(what, self.point)]
        parts = self.parts if len(self.parts) <= 2 else ()
        number_of_value = computed(what, self.value, self.unit, *self.series)
        return [
            number_of_value,
            *(number for part in parts for number in part.numbers(part.name or what)),
        ]

    def __str__(self) -> str:
        """Return it for a sentence, without its unit."""
        text = about(int(self.value)) if self.unit == "B" else f"{round(self.value, 3) + 0.0:.4g}"
        if any(part.name for part in self.parts):
            text += f" ({' over '.join(map(str, self.parts))})"
        return text


#: Values by their subject: a device, an ordered pair, a rank, a size or the like.
Values = Mapping[Any, Value]


def measured(point: Series) -> Value:
    """Return the value of a series."""
    low, high = point.interval or (point.value, point.value)
    return Value(point.value, low, high, point.unit, point)


def by_subject(points: Mapping[Any, Series]) -> dict[Any, Value]:
    """Return the values of series by subject."""
    return {subject: measured(point) for subject, point in points.items()}


def combined(value: float, unit: str, values: Iterable[Value]) -> Value:
    """Return a value that was computed from others."""
    return Value(value, value, value, unit, parts=tuple(values))


def _of_all(take: Callable[[list[float]], float]) -> Callable[[Iterable[Value]], Value]:
    def statistic(values: Iterable[Value]) -> Value:
        all_values = list(values)
        return combined(take([value.value for value in all_values]), all_values[0].unit, all_values)

    return statistic


#: What stands for the values of a group. The least and the greatest keep their intervals.
STATISTICS: Mapping[str, Callable[[Iterable[Value]], Value]] = {
    "median": _of_all(statistics.median),
    "mean": _of_all(statistics.fmean),
    "least": lambda values: min(values, key=lambda value: value.value),
    "greatest": lambda values: max(values, key=lambda value: value.value),
    "first": lambda values: next(iter(values)),
}

#: The subject of a value that stands for a whole group.
WHOLE = "whole"

#: A sentence lists so many values; of more it has the least and the greatest.
_LISTED = 4


@dataclass(frozen=True)
class Group:
    """Values that a rule uses together.

    name: what they are, in the plural, such as "copies of pinned memory to the device". choose:
    returns them, or raises NotTestable. each: the subject of each. statistic: what stands for all
    of them: the median, or as in EPICURE the mean; "each" where none does.
    """

    name: str
    choose: Callable[[Observed], Values]
    each: str = "device"
    statistic: str = "median"

    def whole(self, statistic: str | None = None) -> Group:
        """Return the group of one value, a statistic of this one; by default what stands for it."""
        chosen = statistic or self.statistic
        if chosen == "each":
            return self

        return Group(
            f"the {chosen} of {self.name}",
            lambda observed: {WHOLE: STATISTICS[chosen](self.choose(observed).values())},
            WHOLE,
            "each",
        )

    def shared(self, other: Group) -> Group:
        """Return the group of the subjects that another group has, too."""
        return replace(
            self,
            choose=lambda observed: {
                key: value for key, (value, _) in pairs(observed, self, other).items()
            },
        )

    def exact(self) -> Group:
        """Return the group of its values without their intervals."""
        return replace(
            self,
            choose=lambda observed: {
                key: replace(point, low=point.value, high=point.value)
                for key, point in self.choose(observed).items()
            },
        )

    def over(self, other: Group, *, change: bool = False) -> Group:
        """Return the group of its values over those of another one, by subject.

        :param change: as the change from the other one, in percent.
        """

        def quotient(a: Value, b: Value) -> Value:
            ratios = (a.value / b.value, a.low / b.high, a.high / b.low)
            value, low, high = (100 * (ratio - 1) if change else ratio for ratio in ratios)
            parts = (replace(a, name=self.name), replace(b, name=other.name))
            return Value(value, low, high, "percent" if change else "ratio", parts=parts)

        return Group(
            f"{self.name} over {other.name}",
            lambda observed: {
                key: quotient(*pair) for key, pair in pairs(observed, self, other).items()
            },
            other.each if self.each == WHOLE else self.each,
            "each",
        )

    def where(self, keep: Callable[[NodeModel, Any], bool], name: str, experiment: str) -> Group:
        """Return the group of some subjects by the node model.

        :param name: its name.
        :param experiment: what a session without them lacks.
        """

        def choose(observed: Observed) -> Values:
            node = needs.node(observed)
            chosen = {key: point for key, point in self.choose(observed).items() if keep(node, key)}
            if not chosen:
                raise NotTestable(f"the session has no {name} ({experiment})")
            return chosen

        return replace(self, name=name, choose=choose)

    def part_of(self, peak: Peak) -> Group:
        """Return the group of its values in percent of their peak, which have no interval."""

        def choose(observed: Observed) -> Values:
            node = needs.node(observed)
            return {
                key: combined(
                    100 * point.value / peak.gbs(node, key, point.series[0]), "percent", [point]
                )
                for key, point in self.choose(observed).items()
            }

        return replace(self, name=f"{self.name}, of {peak.name}", choose=choose)

    def standing(self, values: Values) -> Values:
        """Return the value that stands for all of them, or each."""
        if self.statistic == "each":
            return values
        return {self.statistic: STATISTICS[self.statistic](values.values())}

    def text(self, values: Values) -> str:
        """Return the values as the end of a sentence."""
        unit = next(iter(self.standing(values).values())).unit
        unit = {"percent": " %", "ratio": "", "B": ""}.get(unit, f" {unit}")
        many = f"{count(len(values), self.each)}, "
        texts = [f"{self.named(key)} {value}" for key, value in values.items()]
        if len(values) == 1:
            ((key, only),) = values.items()
            texts, many = [str(only)], "" if key == WHOLE else f"{self.each} {self.named(key)}, "
        elif len(values) > _LISTED:
            ends = [STATISTICS[name](values.values()) for name in ("least", "greatest")]
            texts = [" to ".join(dict.fromkeys(map(str, ends)))]
        if len(values) > 1 and self.statistic != "each":
            standing = self.standing(values)[self.statistic]
            texts = [f"{standing}{unit}, the {self.statistic} of {listed(texts)}"]
        return f"{self.name}: {listed(texts)}{unit} ({many}{measured_by(values)})"

    def named(self, subject: Any) -> str:
        """Return the name of a subject, of a pair as "0-1", of a size as "64 MiB"."""
        if self.each == "size":
            return about(subject)
        return "-".join(map(str, subject)) if isinstance(subject, tuple) else str(subject)

    def _with_subject(self, subject: Any) -> str:
        """Return the group's name, with a subject unless it stands for the whole group."""
        if subject == WHOLE:
            return self.name
        return f"{self.name}, {self.each} {self.named(subject)}"

    def numbers(self, values: Values) -> list[Number]:
        """Return what stands for them, and each; of ordered pairs at most the extremes."""
        chosen = values
        if self.each == "ordered pair" and len(values) > 1:
            ends = [STATISTICS[name](values.values()) for name in ("least", "greatest")]
            chosen = {key: value for key, value in values.items() if value in ends}
        each = [
            number
            for key, value in chosen.items()
            for number in value.numbers(self._with_subject(key))
        ]
        if len(values) == 1 or self.statistic == "each":
            return each
        standing = self.standing(values)[self.statistic]
        return [*standing.numbers(f"{self.name}, {self.statistic}"), *each]


def group(
    name: str, each: str = "device", statistic: str = "median"
) -> Callable[[Callable[[Observed], Values]], Group]:
    """Make a group of a function that chooses its values."""
    return lambda choose: Group(name, choose, each, statistic)


@dataclass(frozen=True)
class Peak:
    """The peak that a rate is compared with: its name, and how to find it for a subject."""

    name: str
    find: Callable[[NodeModel, Any, Series], float | None]

    def gbs(self, node: NodeModel, subject: Any, series: Series) -> float:
        """Return the peak.

        :raises NotTestable: when it is unknown.
        """
        peak = self.find(node, subject, series)
        if peak is None or math.isinf(peak):
            raise NotTestable(f"{self.name} is unknown of {node.name}")
        return peak


def _memory_peak(node: NodeModel, subject: Any, _: Series) -> float | None:
    device = subject[0] if isinstance(subject, tuple) else subject
    return node.device(device).memory_peak_gbs


MEMORY = Peak("the memory's peak", _memory_peak)
HOST_LINK = Peak("the host link's peak", lambda node, *_: node.device(0).host_link_gbs)
LINKS = Peak("the links' peak", lambda node, pair, _: node.peer_peak_gbs(*pair))
BOTH_WAYS = Peak("the links' peak both ways", lambda node, pair, _: 2 * node.peer_peak_gbs(*pair))


#: How the subject of a series is read from it.
_SUBJECTS: Mapping[str, Callable[[Series], Any]] = {
    "device": lambda point: point.device,
    "ordered pair": lambda point: point.pair,
    "direction": lambda point: point.ranks,
    "size": lambda point: point.bytes,
}


def series(
    name: str,
    *,
    each: str = "device",
    rate: bool = True,
    keep: Callable[[Series], bool] = lambda point: True,
    **fields: Any,
) -> Group:
    """Return the group of the largest series of each subject with these fields.

    :param rate: whether a session needs such series of at least `needs.LARGE`.
    :param keep: a further condition.
    :param fields: those of `results.rows.Series` with their values, the experiment among them.
    """
    return Group(
        name,
        lambda observed: by_subject(
            largest(needs.series(observed, name, keep, rate=rate, **fields), _SUBJECTS[each])
        ),
        each,
    )


def curves(
    points: Iterable[Series], key: Callable[[Series], int | None] = lambda point: point.device
) -> dict[int | None, dict[int, Series]]:
    """Return curves of series by size, one curve for each device or other key."""
    groups = grouped((key(point), point) for point in points)
    return {name: {point.bytes: point for point in curve(some)} for name, some in groups.items()}


def measured_by(values: Values) -> str:
    """Return the program and the size of some values, such as "mpi, 16 MiB"."""
    points = [point for value in values.values() for point in value.series]
    sizes = sorted(point.bytes for point in points)
    texts = dict.fromkeys(about(size) for size in (sizes[0], sizes[-1]))
    return f"{enumerated(sorted({point.program for point in points}))}, {' to '.join(texts)}"


def pairs(observed: Observed, group: Group, other: Group) -> dict[Any, tuple[Value, Value]]:
    """Return both values of each subject that two groups have.

    A group of one value stands beside each of the other.

    :raises NotTestable: when they have none in common, or other ranks.
    """
    ones, others = group.choose(observed), other.choose(observed)
    if WHOLE in others:
        return {key: (each, others[WHOLE]) for key, each in ones.items()}
    if WHOLE in ones:
        return {key: (ones[WHOLE], each) for key, each in others.items()}
    if group.each == "rank" and ones.keys() != others.keys():
        raise NotTestable(f"{group.name} and {other.name} have different numbers of ranks (E6)")
    common = {key: (ones[key], others[key]) for key in ones if key in others}
    if not common:
        raise NotTestable(
            f"the session has no {group.each} with both {group.name} and {other.name}"
        )
    return common
