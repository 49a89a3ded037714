"""How likely a set of degraded components makes what was measured.

The model: the logarithm of each rate is the level of its group (similar transfers by the node
model), minus the loss by degraded components, plus noise. A level is as certain as the reference of
its metric; without a reference it is unknown. A cost is minus twice the logarithm of a likelihood
ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fabricheck.core.grouping import grouped
from fabricheck.judge.diagnosis.hypotheses import Evidence, Hypothesis, Touch

#: The largest error of a degraded component's predicted effect: a fraction of a small effect, a
#: difference of logarithms for a large one.
MODEL_ERROR = 0.1

#: Logarithms of the factors tried first: losses from 3 % to 99 %.
_TRIED = tuple(math.log(factor) for factor in (0.97, 0.92, 0.83, 0.68, 0.5, 0.3, 0.12, 0.03, 0.01))

#: The golden section, and the number of steps that narrow the interval of the best factor.
_GOLDEN, _STEPS = (math.sqrt(5) - 1) / 2, 10

#: The best of the tried factors gains at least 1 / this of the gain of the best-fitting factor.
_COARSE = 1.5


class Sums(NamedTuple):
    """The sums of a group: weights, weighted distances from its level, and their squares."""

    weight: float = 0.0
    first: float = 0.0
    second: float = 0.0

    def cost(self, known: float) -> float:
        """Return the sum of squares about the best-fitting level.

        :param known: the weight of the known level.
        """
        total = self.weight + known
        return self.second - (self.first**2 / total if total > 0 else 0.0)


@dataclass(slots=True)
class _Change:
    """By how much the sums of a group change."""

    weight: float = 0.0
    first: float = 0.0
    second: float = 0.0

    def applied(self, sums: Sums) -> Sums:
        """Return the changed sums."""
        return Sums(sums.weight + self.weight, sums.first + self.first, sums.second + self.second)


class Likelihood:
    """The costs of hypotheses, by sums over groups of similar transfers."""

    def __init__(
        self,
        evidence: Sequence[Evidence],
        levels: Mapping[Hashable, Evidence],
    ) -> None:
        """Sum up the groups as if nothing were degraded.

        :param levels: the known levels of groups.
        """
        groups = {name: number for number, name in enumerate(
            dict.fromkeys(transfer.group for transfer in evidence))}  # fmt: skip
        self._group = [groups[transfer.group] for transfer in evidence]
        known = [levels.get(name) for name in groups]
        self._known = [1 / level.variance if level is not None else 0.0 for level in known]
        logs = grouped(zip(self._group, (transfer.log for transfer in evidence), strict=True))
        # The origin of the distances of a group is its level, else its first member.
        about = [level.log if level is not None else logs[g][0] for g, level in enumerate(known)]
        self._distance = [
            transfer.log - about[g] for transfer, g in zip(evidence, self._group, strict=True)
        ]
        #: The numbers of the evidence.
        self.numbers = range(len(evidence))
        self._healthy = [transfer.variance for transfer in evidence]
        self._weight = [1 / variance for variance in self._healthy]
        members = grouped((group, number) for number, group in enumerate(self._group))
        self._members = [members[group] for group in range(len(known))]
        self._healthy_sums = [self._sums_of_group(group, {}) for group in range(len(known))]

    def residuals(self, hypothesis: Hypothesis, numbers: Iterable[int]) -> list[float]:
        """Return by how many standard deviations evidence exceeds the prediction of a set."""
        sums, deviations = self.sums(hypothesis.shifts), []
        for number in numbers:
            group, shift = self._group[number], hypothesis.shifts.get(number, 0.0)
            total = sums[group].weight + self._known[group]
            level = sums[group].first / total if total > 0 else 0.0
            above = self._distance[number] - shift - level
            deviations.append(above / math.sqrt(self._variance(number, shift)))
        return deviations

    def _variance(self, number: int, shift: float) -> float:
        """Return the variance of evidence about its prediction."""
        return self._healthy[number] + (MODEL_ERROR * shift / (1 - shift)) ** 2

    def sums(self, shifts: Mapping[int, float]) -> list[Sums]:
        """Return the sums of each group."""
        sums = list(self._healthy_sums)
        for group in {self._group[number] for number in shifts}:
            sums[group] = self._sums_of_group(group, shifts)
        return sums

    def _weight_at(self, number: int, shift: float) -> float:
        """Return the weight of evidence about its prediction."""
        if shift == 0.0:
            return self._weight[number]
        return 1 / self._variance(number, shift)

    def _sums_of_group(self, group: int, shifts: Mapping[int, float]) -> Sums:
        sum_of_weights = first = second = 0.0
        for number in self._members[group]:
            shift = shifts.get(number, 0.0)
            weight = self._weight_at(number, shift)
            distance = self._distance[number] - shift
            sum_of_weights += weight
            first += weight * distance
            second += weight * distance * distance
        return Sums(sum_of_weights, first, second)

    def total(self, shifts: Mapping[int, float]) -> float:
        """Return the cost of shifts relative to no shifts."""
        changed = {self._group[number] for number in shifts}
        cost = 0.0
        for group in changed:
            known = self._known[group]
            shifted = self._sums_of_group(group, shifts)
            cost += shifted.cost(known) - self._healthy_sums[group].cost(known)
        # A prediction that is less certain than the evidence costs, too.
        return cost + sum(
            math.log(self._variance(number, shift) / self._healthy[number])
            for number, shift in shifts.items()
        )

    def least_cost_of_adding(
        self, base: Mapping[int, float], sums: Sequence[Sums], touched: Sequence[Touch]
    ) -> float:
        """Return a cost of one more component relative to a base that no factor gets below.

        It is the cost if the component explained perfectly all that it touches.
        """
        left: dict[int, _Change] = {}
        for touch in touched:
            group = self._group[touch.number]
            shift = base.get(touch.number, 0.0)
            weight = self._weight_at(touch.number, shift)
            distance = self._distance[touch.number] - shift
            change = left.get(group)
            if change is None:
                change = left[group] = _Change()
            change.weight -= weight
            change.first -= weight * distance
            change.second -= weight * distance * distance
        return self._cost_of(left, sums)

    def cost_of_adding(
        self,
        base: Mapping[int, float],
        sums: Sequence[Sums],
        touched: Sequence[Touch],
        log: float,
    ) -> float:
        """Return the cost of one more component relative to a base."""
        changes: dict[int, _Change] = {}
        uncertainty = 0.0
        # A diagnosis spends most of its time in this loop.
        for touch in touched:
            number = touch.number
            shift = touch.shift(log)
            if shift >= 0:
                # The touches after it have as much slack or more.
                break
            shift_before = base.get(number, 0.0)
            if shift >= shift_before:
                # Another component slows the transfer down as much.
                continue
            weight = self._weight_at(number, shift)
            weight_before = self._weight_at(number, shift_before)
            distance = self._distance[number] - shift
            distance_before = self._distance[number] - shift_before
            group = self._group[number]
            change = changes.get(group)
            if change is None:
                change = changes[group] = _Change()
            change.weight += weight - weight_before
            change.first += weight * distance - weight_before * distance_before
            change.second += weight * distance**2 - weight_before * distance_before**2
            # A prediction that is less certain than the one before costs, too.
            uncertainty += math.log(weight_before / weight)
        return uncertainty + self._cost_of(changes, sums)

    def _cost_of(self, changes: Mapping[int, _Change], sums: Sequence[Sums]) -> float:
        """Return the cost of changes of groups relative to their sums."""
        cost = 0.0
        for group, change in changes.items():
            known = self._known[group]
            cost += change.applied(sums[group]).cost(known) - sums[group].cost(known)
        return cost


def best_factor(cost_of: Callable[[float], float], most: float = 0.0) -> tuple[float, float]:
    """Return the logarithm of the factor with the least cost, and that cost.

    :param most: the search may stop early for factors that clearly cost more than this.
    """
    costs = [cost_of(log) for log in _TRIED]
    least = min(range(len(costs)), key=costs.__getitem__)
    if _COARSE * costs[least] >= most:
        return _TRIED[least], costs[least]
    high, low = _TRIED[max(0, least - 1)], _TRIED[min(least + 1, len(_TRIED) - 1)]
    best, cost = _TRIED[least], costs[least]
    left, right = (high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
    of_left, of_right = cost_of(left), cost_of(right)
    for _ in range(_STEPS):
        if of_left < of_right:
            high, right, of_right = right, left, of_left
            left = high - _GOLDEN * (high - low)
            of_left = cost_of(left)
        else:
            low, left, of_left = left, right, of_right
            right = low + _GOLDEN * (high - low)
            of_right = cost_of(right)
    cost, best = min((cost, best), (of_left, left), (of_right, right))
    return best, cost
