"""The smallest set of degraded components that explains what was measured.

The model: the logarithm of each rate is the level of its group (similar transfers by the node
model), minus the loss by degraded components, plus noise. A level is as certain as the reference of
its metric; without a reference it is unknown. For a set of components the best-fitting factors are
searched; sets are compared by likelihood, and a larger set is accepted only if it is clearly
likelier and explains a missed limit that smaller ones leave.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from fabricheck.judge.diagnosis.components import Change, Component

#: The largest error of a degraded component's predicted effect: for small effects a fraction of
#: them, for large ones a difference of logarithms.
MODEL_ERROR = 0.1

#: How much likelier one component must make everything, and a further one beside others (twice the
#: logarithm of the likelihood ratio).
LEAST_GAIN, FURTHER_GAIN = 12.0, 16.0

#: A measurement contradicts a set if it exceeds the prediction by so many standard deviations.
CONTRADICTS = 3.0

#: Sets of components whose costs differ by less explain equally well.
EQUAL = 6.0

#: The most components of a diagnosis; the most sets that get a further one; the most larger sets
#: whose factors are searched again together.
MOST, BEAM, REFINED = 3, 5, 12

#: The least loss of a further component, as a logarithm; and the least fraction of a set's
#: explanation that it must add.
_LITTLE, _OF_ERRORS = math.log(0.967), 1e-2

#: A loss larger than any real one, as a logarithm.
_ALL = 20.0

#: Logarithms of the factors that are tried first: losses from 3 % to 99 %.
_TRIED = tuple(math.log(one) for one in (0.97, 0.92, 0.83, 0.68, 0.5, 0.3, 0.12, 0.03, 0.01))

#: The golden section of an interval, and in how many steps that of the best of them is narrowed.
_GOLDEN, _STEPS = (math.sqrt(5) - 1) / 2, 10

#: The best of them gains at least the inverse of this of what the factor that fits best gains.
_COARSE = 1.5


@dataclass(frozen=True)
class Evidence:
    """One measured transfer.

    log: the logarithm of its rate. variance: of that, for a healthy member. group: those alike.
    """

    log: float
    variance: float
    group: Hashable


@dataclass(frozen=True)
class Level:
    """The prior knowledge of a group's level: its logarithm and the variance of that."""

    log: float
    variance: float


@dataclass(frozen=True)
class Named:
    """A component of a set, and the logarithm of its best-fitting factor; 0 for a change."""

    what: Component | Change
    log: float


@dataclass
class Hypothesis:
    """A set of degraded components.

    cost: its likelihood relative to no degradation, as minus twice the logarithm of the ratio.
    shifts: by evidence the logarithm of the remaining rate, where that is not 0.
    """

    named: tuple[Named, ...] = ()
    cost: float = 0.0
    shifts: dict[int, float] = field(default_factory=dict)


#: The missed limits that a set of components explains, by their places.
Explains = Callable[[Hypothesis], frozenset[int]]


@dataclass
class _Sums:
    """The sums of a group: of weights, of weighted distances from its level, of their squares."""

    weight: float = 0.0
    first: float = 0.0
    second: float = 0.0

    def cost(self, known: float) -> float:
        """Return the sum of squares about the level that fits best.

        :param known: the weight of what is known of the level.
        """
        total = self.weight + known
        return self.second - (self.first**2 / total if total > 0 else 0.0)


class Search:
    """The search over sets of components."""

    def __init__(
        self,
        evidence: Sequence[Evidence],
        levels: Mapping[Hashable, Level],
        components: Iterable[tuple[Component, Mapping[int, float]]],
        changes: Iterable[Change] = (),
    ) -> None:
        """Prepare it.

        :param levels: of the groups of which something is known.
        :param components: each with the evidence that it touches, by the slack there.
        """
        groups = {name: number for number, name in enumerate(
            dict.fromkeys(one.group for one in evidence))}  # fmt: skip
        self._group = [groups[one.group] for one in evidence]
        known = [levels.get(name) for name in groups]
        self._known = [1 / one.variance if one is not None else 0.0 for one in known]
        about = self._references(evidence, known)
        self._distance = [one.log - about[g] for one, g in zip(evidence, self._group, strict=True)]
        self._healthy = [one.variance for one in evidence]
        self.components = [(one, sorted(touched.items(), key=lambda each: each[1]))
                           for one, touched in components if touched]  # fmt: skip
        self.changes = list(changes)

    def _references(
        self, evidence: Sequence[Evidence], known: Sequence[Level | None]
    ) -> list[float]:
        """Return about what the distances of each group are: its level, else its first member."""
        first: dict[int, float] = {}
        for one, group in zip(evidence, self._group, strict=True):
            first.setdefault(group, one.log)
        return [level.log if level is not None else first[g] for g, level in enumerate(known)]

    def best(self, explains: Explains) -> tuple[Hypothesis, list[Hypothesis]]:
        """Return the best set, and all that were tried of the same size, the likeliest first.

        :param explains: the missed limits that shifts of evidence explain.
        """
        best, tried = Hypothesis(), [Hypothesis()]
        beam = [best]
        for _ in range(MOST):
            extended = _without_doubles(
                one for start in beam for one in self._extended(start, best.cost, explains)
            )
            if not extended:
                break
            extended.sort(key=lambda one: one.cost)
            if best.named:
                extended[:REFINED] = map(self._refined, extended[:REFINED])
                extended.sort(key=lambda one: one.cost)
            if extended[0].cost > best.cost - (FURTHER_GAIN if best.named else LEAST_GAIN):
                break
            best, tried = extended[0], extended
            beam = self._promising(extended, BEAM // len(best.named))
            if not self._left(best, explains):
                break
        return (best, tried) if len(best.named) < 2 else self._without_needless(best, tried)

    def _promising(self, found: Sequence[Hypothesis], most: int) -> list[Hypothesis]:
        """Return the sets that are worth extending: the likeliest, and those nothing contradicts.

        What is left unexplained a further component may explain. What is faster than predicted none
        does, and of two degraded components "all of them" is often the likeliest single one.

        :param found: the likeliest first.
        """
        agreeing = (one for one in found if not self._contradicted(one))
        return list({id(one): one for one in (*found[:most], *islice(agreeing, most))}.values())

    def _contradicted(self, found: Hypothesis) -> bool:
        """Whether what a set takes of some evidence is not to be seen there."""
        return max(self._residuals(found, found.shifts), default=0.0) > CONTRADICTS

    def _without_needless(
        self, best: Hypothesis, tried: list[Hypothesis]
    ) -> tuple[Hypothesis, list[Hypothesis]]:
        """Return a set without the components that the others make needless."""
        for one in best.named:
            others = self._refined(
                self.with_named([each for each in best.named if each is not one])
            )
            little = not isinstance(one.what, Change) and one.log > _LITTLE
            if little or others.cost < best.cost + FURTHER_GAIN:
                return self._without_needless(others, [others]) if others.named else (best, tried)
        return best, tried

    def _left(self, found: Hypothesis, explains: Explains) -> bool:
        """Whether any missed limit is left that something could explain."""
        every = explains(Hypothesis(shifts=dict.fromkeys(range(len(self._distance)), -_ALL)))
        return bool(every - explains(found))

    def _extended(self, start: Hypothesis, most: float, explains: Explains) -> Iterable[Hypothesis]:
        """Yield the sets that have one component more, with the factors that fit best.

        Each must explain a missed limit that the set without it does not.

        :param most: of a set that costs as much nothing comes.
        """
        sums = self._sums(start.shifts)
        before = explains(start)
        names = {one.what.name for one in start.named}
        for change in self.changes:
            if change.name not in names:
                shifts = _changed(start.shifts, change)
                named = (*start.named, Named(change, 0.0))
                found = Hypothesis(named, self._cost(named, shifts), shifts)
                if found.cost < min(start.cost, most) and explains(found) - before:
                    yield found
        for component, touched in self.components:
            if component.name in names:
                continue

            def cost_of(log: float, touched: Sequence[tuple[int, float]] = touched) -> float:
                return self._with(start.shifts, sums, touched, log)

            log, gain = _least(cost_of, min(0.0, most - start.cost))
            if gain >= 0 or start.cost + gain >= most:
                continue
            shifts = _shifted(start.shifts, touched, log)
            found = Hypothesis((*start.named, Named(component, log)), start.cost + gain, shifts)
            if explains(found) - before and (
                not start.named or self._fresh(start, found, touched, sums)
            ):
                yield found

    def _fresh(
        self,
        start: Hypothesis,
        found: Hypothesis,
        touched: Sequence[tuple[int, float]],
        sums: Sequence[_Sums],
    ) -> bool:
        """Whether a component explains something beside what the others touch.

        The larger their effects, the more of what is left there is an error of the node model.
        """
        if start.cost - found.cost > max(FURTHER_GAIN, -_OF_ERRORS * start.cost):
            return True
        own = [one for one in touched if one[0] not in start.shifts]
        return self._with(start.shifts, sums, own, found.named[-1].log) < -FURTHER_GAIN

    def _refined(self, found: Hypothesis) -> Hypothesis:
        """Return a set whose factors were searched once more, each with the others."""
        touched = dict(self.components)
        named = list(found.named)
        for number, one in enumerate(named):
            if isinstance(one.what, Change):
                continue
            others = self.shifts_of([*named[:number], *named[number + 1 :]])
            sums, own = self._sums(others), touched[one.what]
            log, _ = _least(lambda log, o=others, s=sums, t=own: self._with(o, s, t, log))  # type: ignore[misc]
            named[number] = Named(one.what, log)
        shifts = self.shifts_of(named)
        cost = self._cost(named, shifts)
        return Hypothesis(tuple(named), cost, shifts) if cost < found.cost else found

    def shifts_of(self, named: Sequence[Named]) -> dict[int, float]:
        """Return what components leave of the rates, by evidence."""
        touched = dict(self.components)
        shifts: dict[int, float] = {}
        for one in named:
            if isinstance(one.what, Change):
                shifts = _changed(shifts, one.what)
            else:
                shifts = _shifted(shifts, touched[one.what], one.log)
        return shifts

    def with_named(self, named: Sequence[Named]) -> Hypothesis:
        """Return a set of components with the factors that they have."""
        shifts = self.shifts_of(named)
        return Hypothesis(tuple(named), self._cost(named, shifts), shifts)

    def _cost(self, named: Sequence[Named], shifts: Mapping[int, float]) -> float:
        """Return the cost of a set: of what was measured, and of what tools tell."""
        told = sum(one.what.cost for one in named if isinstance(one.what, Change))
        return self._total(shifts) + told

    def residual(self, found: Hypothesis, number: int) -> float:
        """Return how many standard deviations evidence is above what a set predicts."""
        return self._residuals(found, [number])[0]

    def _residuals(self, found: Hypothesis, numbers: Iterable[int]) -> list[float]:
        sums, own = self._sums(found.shifts), []
        for number in numbers:
            group, shift = self._group[number], found.shifts.get(number, 0.0)
            total = sums[group].weight + self._known[group]
            level = sums[group].first / total if total > 0 else 0.0
            above = self._distance[number] - shift - level
            own.append(above / math.sqrt(self._variance(number, shift)))
        return own

    def _variance(self, number: int, shift: float) -> float:
        """Return the variance of evidence about what is predicted of it."""
        return self._healthy[number] + (MODEL_ERROR * shift / (1 - shift)) ** 2

    def _sums(self, shifts: Mapping[int, float]) -> list[_Sums]:
        sums = [_Sums() for _ in self._known]
        for number, group in enumerate(self._group):
            shift = shifts.get(number, 0.0)
            weight = 1 / self._variance(number, shift)
            distance = self._distance[number] - shift
            own = sums[group]
            own.weight += weight
            own.first += weight * distance
            own.second += weight * distance * distance
        return sums

    def _total(self, shifts: Mapping[int, float]) -> float:
        """Return the cost of shifts against none."""
        changed = {self._group[number] for number in shifts}
        healthy, other = self._sums({}), self._sums(shifts)
        cost = sum(other[g].cost(self._known[g]) - healthy[g].cost(self._known[g]) for g in changed)
        return cost + sum(self._doubt(number, shift) for number, shift in shifts.items())

    def _doubt(self, number: int, shift: float) -> float:
        """Return what a prediction costs that is less certain than the evidence."""
        return math.log(self._variance(number, shift) / self._healthy[number])

    def _with(
        self,
        base: Mapping[int, float],
        sums: Sequence[_Sums],
        touched: Sequence[tuple[int, float]],
        log: float,
    ) -> float:
        """Return the cost of one component more against a base."""
        changes: dict[int, list[float]] = {}
        cost, error = 0.0, MODEL_ERROR**2
        healthy, distances = self._healthy, self._distance
        for number, slack in touched:
            shift = log + slack
            if shift >= 0:
                break
            old = base.get(number, 0.0)
            if shift >= old:
                continue
            # The variance, written out: most of the time of a diagnosis is spent here.
            after = 1 / (healthy[number] + error * (shift / (1 - shift)) ** 2)
            before = 1 / (self._variance(number, old) if old else healthy[number])
            was, now = distances[number] - old, distances[number] - shift
            group = self._group[number]
            own = changes.get(group)
            if own is None:
                own = changes[group] = [0.0, 0.0, 0.0]
            own[0] += after - before
            own[1] += after * now - before * was
            own[2] += after * now * now - before * was * was
            cost += math.log(before / after)
        for group, (weight, first, second) in changes.items():
            own_sums, known = sums[group], self._known[group]
            cost += _Sums(
                own_sums.weight + weight, own_sums.first + first, own_sums.second + second
            ).cost(known) - own_sums.cost(known)
        return cost


def _changed(shifts: Mapping[int, float], change: Change) -> dict[int, float]:
    """Return what another node than the model leaves of rates beside other shifts."""
    found = dict(shifts)
    for number, log in change.logs.items():
        found[number] = min(found.get(number, log), log)
    return found


def _shifted(
    shifts: Mapping[int, float], touched: Sequence[tuple[int, float]], log: float
) -> dict[int, float]:
    found = dict(shifts)
    for number, slack in touched:
        if log + slack >= 0:
            break
        found[number] = min(found.get(number, 0.0), log + slack)
    return found


def _least(cost_of: Callable[[float], float], most: float = 0.0) -> tuple[float, float]:
    """Return the logarithm of the factor with the least cost, and that cost.

    :param most: what costs clearly more than this need not be exact.
    """
    costs = [cost_of(one) for one in _TRIED]
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
    return min((cost, best), (of_left, left), (of_right, right))[::-1]


def _without_doubles(found: Iterable[Hypothesis]) -> list[Hypothesis]:
    """Return each set of components once."""
    by_names: dict[frozenset[str], Hypothesis] = {}
    for one in found:
        names = frozenset(each.what.name for each in one.named)
        if names not in by_names or one.cost < by_names[names].cost:
            by_names[names] = one
    return list(by_names.values())
