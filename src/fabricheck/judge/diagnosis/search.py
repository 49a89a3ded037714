"""The smallest set of degraded components that explains what was measured.

The model: the logarithm of each rate is the level of its group (similar transfers by the node
model), minus the loss by degraded components, plus noise. A level is as certain as the reference of
its metric; without a reference it is unknown. The search finds the best-fitting factors for a set
of components. Sets are compared by likelihood. A larger set is accepted only if it is clearly
likelier and explains a missed limit that smaller sets leave.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from fabricheck.core.grouping import grouped
from fabricheck.judge.diagnosis.model import Component
from fabricheck.results.series import Place

#: The largest error of a degraded component's predicted effect: a fraction of a small effect, a
#: difference of logarithms for a large one.
MODEL_ERROR = 0.1

#: How much likelier the first component must make all measurements, and each further component
#: (twice the logarithm of the likelihood ratio).
LEAST_GAIN, FURTHER_GAIN = 12.0, 16.0

#: A measurement contradicts a set if it exceeds the prediction by this many standard deviations.
CONTRADICTS = 3.0

#: Sets of components whose costs differ by less explain equally well.
EQUAL = 6.0

#: The most components of a diagnosis; the most sets that are extended by a component; the most
#: larger sets whose factors are fitted again together.
MOST, BEAM, REFINED = 3, 5, 12

#: The smallest loss of a further component, as a logarithm; and the smallest fraction of a set's
#: explanation that it must add.
_LITTLE, _OF_ERRORS = math.log(0.967), 1e-2

#: A loss larger than any real one, as a logarithm.
_ALL = 20.0

#: Logarithms of the factors tried first: losses from 3 % to 99 %.
_TRIED = tuple(math.log(factor) for factor in (0.97, 0.92, 0.83, 0.68, 0.5, 0.3, 0.12, 0.03, 0.01))

#: The golden section, and the number of steps that narrow the interval of the best factor.
_GOLDEN, _STEPS = (math.sqrt(5) - 1) / 2, 10

#: The best of the tried factors gains at least 1 / this of the gain of the best-fitting factor.
_COARSE = 1.5


@dataclass(frozen=True)
class Evidence:
    """One measured transfer, or what is known before of the level of a group of similar ones.

    log: the logarithm of its rate. variance: the variance of log for a healthy member. group: the
    key of similar transfers.
    """

    log: float
    variance: float
    group: Hashable


class Touch(NamedTuple):
    """What a component does to one transfer: how far a factor of its rate leaves the transfer's.

    slack: the logarithm of how much faster the component is than the transfer needs. share: the
    part of the transfer's time that it takes; less than all of it of a small copy, whose start
    takes the rest.
    """

    number: int
    slack: float
    share: float = 1.0

    def shift(self, log: float) -> float:
        """Return the logarithm of the remaining rate of the transfer.

        :param log: the logarithm of the component's factor.
        """
        slower = log + self.slack
        if slower >= 0 or self.share == 1:
            return slower
        return -math.log1p(self.share * math.expm1(-slower))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A component that can be degraded, or a wiring that the node may have in place of its model's.

    devices: those that it belongs to or joins; empty for a component that all share. touched: the
    evidence that it touches, the least slack first; the slack of a wiring is the logarithm of the
    rate over the model's. cost: of supposing it, as that of a hypothesis. sizes:
    the least and the most bytes of the transfers that are slower, where others are not. places: the
    differences of a wiring from the model, as the node's tools would report them; None of a
    component.
    """

    component: Component
    devices: tuple[int, ...] = ()
    touched: Sequence[Touch] = ()
    cost: float = 0.0
    sizes: tuple[int, int] | None = None
    places: frozenset[Place] | None = None

    def shifted(self, shifts: Mapping[int, float], log: float) -> dict[int, float]:
        """Return the logarithms of the remaining rates, combined with those of others.

        :param log: the logarithm of its factor; 0 of a wiring, whose rates may be higher, too.
        """
        shifted = {**shifts}
        for touch in self.touched:
            shift = touch.shift(log)
            if shift < 0 or self.places is not None:
                shifted[touch.number] = min(shifts.get(touch.number, shift), shift)
        return shifted


@dataclass(frozen=True)
class Loss:
    """A component of a set, and the logarithm of its best-fitting factor; 0 of a wiring."""

    what: Candidate
    log: float = 0.0


@dataclass
class Hypothesis:
    """A set of degraded components.

    cost: minus twice the logarithm of its likelihood ratio to no degradation. shifts: by evidence,
    the logarithm of the remaining rate, where it is not 0.
    """

    losses: tuple[Loss, ...] = ()
    cost: float = 0.0
    shifts: dict[int, float] = field(default_factory=dict)


#: Returns the indices of the missed limits that a set of components explains.
Explains = Callable[[Hypothesis], frozenset[int]]


class _Sums(NamedTuple):
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

    def applied(self, sums: _Sums) -> _Sums:
        """Return the changed sums."""
        return _Sums(sums.weight + self.weight, sums.first + self.first, sums.second + self.second)


class Search:
    """The search over sets of components."""

    def __init__(
        self,
        evidence: Sequence[Evidence],
        levels: Mapping[Hashable, Evidence],
        candidates: Iterable[Candidate],
    ) -> None:
        """Prepare the search.

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
        self._healthy = [transfer.variance for transfer in evidence]
        self._weight = [1 / variance for variance in self._healthy]
        self._candidates = list(candidates)
        members = grouped((group, number) for number, group in enumerate(self._group))
        self._members = [members[group] for group in range(len(known))]
        self._healthy_sums = [self._sums_of_group(group, {}) for group in range(len(known))]

    def best(self, explains: Explains) -> tuple[Hypothesis, list[Hypothesis]]:
        """Return the best set, and all sets of the same size that were tried, the likeliest first.

        :param explains: returns the missed limits that shifts of evidence explain.
        """
        best, tried = Hypothesis(), [Hypothesis()]
        beam = [best]
        for _ in range(MOST):
            extended = _without_doubles(
                hypothesis
                for start in beam
                for hypothesis in self._extended(start, best.cost, explains)
            )
            if not extended:
                break
            extended.sort(key=lambda hypothesis: hypothesis.cost)
            if best.losses:
                extended[:REFINED] = map(self._refined, extended[:REFINED])
                extended.sort(key=lambda hypothesis: hypothesis.cost)
            if extended[0].cost > best.cost - (FURTHER_GAIN if best.losses else LEAST_GAIN):
                break
            best, tried = extended[0], extended
            beam = self._promising(extended, BEAM // len(best.losses))
            if not self._left(best, explains):
                break
        if len(best.losses) < 2:
            return best, tried
        return self._without_needless(best, tried)

    def _promising(self, hypotheses: Sequence[Hypothesis], most: int) -> list[Hypothesis]:
        """Return the sets worth extending: the likeliest, and those that nothing contradicts.

        A further component may explain what a set leaves, but not a transfer that is faster than
        predicted. Where two components are degraded, "all of them" is often the likeliest one.

        :param hypotheses: the likeliest first.
        """
        agreeing = (
            hypothesis
            for hypothesis in hypotheses
            if max(self.residuals(hypothesis, hypothesis.shifts), default=0.0) <= CONTRADICTS
        )
        return _without_doubles((*hypotheses[:most], *islice(agreeing, most)))

    def _without_needless(
        self, best: Hypothesis, tried: list[Hypothesis]
    ) -> tuple[Hypothesis, list[Hypothesis]]:
        """Return a set without the components that the others make unnecessary."""
        for loss in best.losses:
            others = self._refined(
                self.with_losses([each for each in best.losses if each is not loss])
            )
            little = loss.what.places is None and loss.log > _LITTLE
            if not little and others.cost >= best.cost + FURTHER_GAIN:
                continue
            if not others.losses:
                return best, tried
            return self._without_needless(others, [others])
        return best, tried

    def _left(self, hypothesis: Hypothesis, explains: Explains) -> bool:
        """Whether a missed limit remains that something could explain."""
        explainable = explains(Hypothesis(shifts=dict.fromkeys(range(len(self._distance)), -_ALL)))
        return bool(explainable - explains(hypothesis))

    def _extended(self, start: Hypothesis, most: float, explains: Explains) -> Iterable[Hypothesis]:
        """Yield the sets with one more component and its best-fitting factor.

        The component must explain a missed limit that the set without it does not.

        :param most: only sets with a lower cost are returned.
        """
        sums = self._sums(start.shifts)
        before = explains(start)
        known = {loss.what.component for loss in start.losses}
        for candidate in self._candidates:
            if candidate.component in known:
                continue
            if candidate.places is not None:
                hypothesis = self._with_wiring(start, candidate, most)
            else:
                hypothesis = self._with_component(start, candidate, sums, most)
            if hypothesis is None:
                continue
            if not explains(hypothesis) - before:
                continue
            of_components = bool(start.losses) and candidate.places is None
            if of_components and not self._fresh(start, hypothesis, candidate.touched, sums):
                continue
            yield hypothesis

    def _with_wiring(
        self, start: Hypothesis, candidate: Candidate, most: float
    ) -> Hypothesis | None:
        """Return a set with a wiring, which has no factor; None unless it costs less."""
        hypothesis = self.with_losses((*start.losses, Loss(candidate)))
        return hypothesis if hypothesis.cost < min(start.cost, most) else None

    def _with_component(
        self, start: Hypothesis, candidate: Candidate, sums: Sequence[_Sums], most: float
    ) -> Hypothesis | None:
        """Return a set with a component and its best-fitting factor; None unless it costs less.

        :param sums: those of the set.
        """
        touched = candidate.touched
        base = start.cost + candidate.cost
        # Most components cannot make a set likely enough, whatever their factor.
        if base + self._least_with(start.shifts, sums, touched) > most:
            return None

        def gain_of(log: float) -> float:
            return self._with(start.shifts, sums, touched, log)

        log, gain = _least(gain_of, min(0.0, most - base))
        if gain >= 0 or base + gain >= most:
            return None
        shifts = candidate.shifted(start.shifts, log)
        return Hypothesis((*start.losses, Loss(candidate, log)), base + gain, shifts)

    def _fresh(
        self,
        start: Hypothesis,
        hypothesis: Hypothesis,
        touched: Sequence[Touch],
        sums: Sequence[_Sums],
    ) -> bool:
        """Whether a component explains something beyond the transfers that the others touch.

        The larger the effects of the others, the more of the rest there is an error of the node
        model.
        """
        if start.cost - hypothesis.cost > max(FURTHER_GAIN, -_OF_ERRORS * start.cost):
            return True
        beyond = [touch for touch in touched if touch.number not in start.shifts]
        return self._with(start.shifts, sums, beyond, hypothesis.losses[-1].log) < -FURTHER_GAIN

    def _refined(self, hypothesis: Hypothesis) -> Hypothesis:
        """Return a set with each factor fitted again, given the others."""
        losses = list(hypothesis.losses)
        for number, loss in enumerate(losses):
            if loss.what.places is not None:
                continue
            losses[number] = Loss(loss.what, self._best_factor(losses, number))
        refined = self.with_losses(losses)
        return refined if refined.cost < hypothesis.cost else hypothesis

    def _best_factor(self, losses: Sequence[Loss], number: int) -> float:
        """Return the logarithm of the factor of one loss that fits best, given the others."""
        others = _shifts_of([*losses[:number], *losses[number + 1 :]])
        sums, touched = self._sums(others), losses[number].what.touched

        def cost(log: float) -> float:
            return self._with(others, sums, touched, log)

        log, _ = _least(cost)
        return log

    def with_losses(self, losses: Sequence[Loss]) -> Hypothesis:
        """Return the hypothesis of a set of components with their factors."""
        shifts = _shifts_of(losses)
        supposed = sum(loss.what.cost for loss in losses)
        return Hypothesis(tuple(losses), self._total(shifts) + supposed, shifts)

    def residuals(self, hypothesis: Hypothesis, numbers: Iterable[int]) -> list[float]:
        """Return by how many standard deviations evidence exceeds the prediction of a set."""
        sums, deviations = self._sums(hypothesis.shifts), []
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

    def _sums(self, shifts: Mapping[int, float]) -> list[_Sums]:
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

    def _sums_of_group(self, group: int, shifts: Mapping[int, float]) -> _Sums:
        sum_of_weights = first = second = 0.0
        for number in self._members[group]:
            shift = shifts.get(number, 0.0)
            weight = self._weight_at(number, shift)
            distance = self._distance[number] - shift
            sum_of_weights += weight
            first += weight * distance
            second += weight * distance * distance
        return _Sums(sum_of_weights, first, second)

    def _total(self, shifts: Mapping[int, float]) -> float:
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

    def _least_with(
        self, base: Mapping[int, float], sums: Sequence[_Sums], touched: Sequence[Touch]
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

    def _with(
        self,
        base: Mapping[int, float],
        sums: Sequence[_Sums],
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

    def _cost_of(self, changes: Mapping[int, _Change], sums: Sequence[_Sums]) -> float:
        """Return the cost of changes of groups relative to their sums."""
        cost = 0.0
        for group, change in changes.items():
            known = self._known[group]
            cost += change.applied(sums[group]).cost(known) - sums[group].cost(known)
        return cost


def _shifts_of(losses: Iterable[Loss]) -> dict[int, float]:
    """Return the logarithm of the remaining rates under some components, by evidence."""
    shifts: dict[int, float] = {}
    for loss in losses:
        shifts = loss.what.shifted(shifts, loss.log)
    return shifts


def _least(cost_of: Callable[[float], float], most: float = 0.0) -> tuple[float, float]:
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


def _without_doubles(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    """Return each set of components once, as its likeliest hypothesis."""
    doubles = grouped(
        (frozenset(loss.what.component for loss in hypothesis.losses), hypothesis)
        for hypothesis in hypotheses
    )
    return [min(alike, key=lambda hypothesis: hypothesis.cost) for alike in doubles.values()]
