"""The smallest set of degraded components that explains what was measured.

The search finds the best-fitting factors for a set of components. Sets are compared by likelihood.
A larger set is accepted only if it is clearly likelier and explains a missed limit that smaller
sets leave.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice

from fabricheck.judge.diagnosis.hypotheses import (
    Candidate,
    Explains,
    Hypothesis,
    Loss,
    Touch,
    shifts_of,
    without_doubles,
)
from fabricheck.judge.diagnosis.likelihood import Likelihood, Sums, best_factor

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


class Search:
    """The search over sets of components."""

    def __init__(self, likelihood: Likelihood, candidates: Iterable[Candidate]) -> None:
        """Search among candidates, by the costs of a likelihood."""
        self._likelihood = likelihood
        self._candidates = list(candidates)

    def best(self, explains: Explains) -> tuple[Hypothesis, list[Hypothesis]]:
        """Return the best set, and all sets of the same size that were tried, the likeliest first.

        :param explains: returns the missed limits that shifts of evidence explain.
        """
        best, tried = Hypothesis(), [Hypothesis()]
        starts = [best]
        for _ in range(MOST):
            larger = self._larger(starts, best, explains)
            least_gain = FURTHER_GAIN if best.losses else LEAST_GAIN
            if not larger or larger[0].cost > best.cost - least_gain:
                break
            best, tried = larger[0], larger
            if not self._leaves_a_limit(best, explains):
                break
            starts = self._promising(larger, BEAM // len(best.losses))
        if len(best.losses) < 2:
            return best, tried
        return self._without_needless(best, tried)

    def _larger(
        self, starts: Sequence[Hypothesis], best: Hypothesis, explains: Explains
    ) -> list[Hypothesis]:
        """Return the sets with one more component than `starts`, the likeliest first."""
        extended: list[Hypothesis] = []
        for start in starts:
            extended += self._extended(start, best.cost, explains)
        larger = sorted(without_doubles(extended), key=lambda hypothesis: hypothesis.cost)
        if best.losses:
            refined = [self._refined(hypothesis) for hypothesis in larger[:REFINED]]
            larger = sorted([*refined, *larger[REFINED:]], key=lambda hypothesis: hypothesis.cost)
        return larger

    def _promising(self, hypotheses: Sequence[Hypothesis], most: int) -> list[Hypothesis]:
        """Return the sets worth extending: the likeliest, and those that nothing contradicts.

        A further component may explain what a set leaves, but not a transfer that is faster than
        predicted. Where two components are degraded, "all of them" is often the likeliest one.

        :param hypotheses: the likeliest first.
        """
        agreeing = (
            hypothesis for hypothesis in hypotheses if not self._is_contradicted(hypothesis)
        )
        return without_doubles((*hypotheses[:most], *islice(agreeing, most)))

    def _is_contradicted(self, hypothesis: Hypothesis) -> bool:
        """Whether a transfer that a set slows down is much faster than predicted."""
        residuals = self._likelihood.residuals(hypothesis, hypothesis.shifts)
        return any(residual > CONTRADICTS for residual in residuals)

    def _without_needless(
        self, best: Hypothesis, tried: list[Hypothesis]
    ) -> tuple[Hypothesis, list[Hypothesis]]:
        """Return a set without the components that the others make unnecessary."""
        for loss in best.losses:
            without = self.with_losses([each for each in best.losses if each is not loss])
            others = self._refined(without)
            little = loss.what.places is None and loss.log > _LITTLE
            if not little and others.cost >= best.cost + FURTHER_GAIN:
                continue
            if not others.losses:
                return best, tried
            return self._without_needless(others, [others])
        return best, tried

    def _leaves_a_limit(self, hypothesis: Hypothesis, explains: Explains) -> bool:
        """Whether a missed limit remains that something could explain."""
        everything_lost = dict.fromkeys(self._likelihood.numbers, -_ALL)
        explainable = explains(Hypothesis(shifts=everything_lost))
        return bool(explainable - explains(hypothesis))

    def _extended(self, start: Hypothesis, most: float, explains: Explains) -> Iterable[Hypothesis]:
        """Yield the sets with one more component and its best-fitting factor.

        The component must explain a missed limit that the set without it does not.

        :param most: only sets with a lower cost are returned.
        """
        sums = self._likelihood.sums(start.shifts)
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
            if of_components and not self._explains_more(
                start, hypothesis, candidate.touched, sums
            ):
                continue
            yield hypothesis

    def _with_wiring(
        self, start: Hypothesis, candidate: Candidate, most: float
    ) -> Hypothesis | None:
        """Return a set with a wiring, which has no factor; None unless it costs less."""
        hypothesis = self.with_losses((*start.losses, Loss(candidate)))
        return hypothesis if hypothesis.cost < min(start.cost, most) else None

    def _with_component(
        self, start: Hypothesis, candidate: Candidate, sums: Sequence[Sums], most: float
    ) -> Hypothesis | None:
        """Return a set with a component and its best-fitting factor; None unless it costs less.

        :param sums: those of the set.
        """
        touched = candidate.touched
        base = start.cost + candidate.cost
        # Most components cannot make a set likely enough, whatever their factor.
        if base + self._likelihood.least_cost_of_adding(start.shifts, sums, touched) > most:
            return None

        def gain_of(log: float) -> float:
            return self._likelihood.cost_of_adding(start.shifts, sums, touched, log)

        log, gain = best_factor(gain_of, min(0.0, most - base))
        if gain >= 0 or base + gain >= most:
            return None
        shifts = candidate.shifted(start.shifts, log)
        return Hypothesis((*start.losses, Loss(candidate, log)), base + gain, shifts)

    def _explains_more(
        self,
        start: Hypothesis,
        hypothesis: Hypothesis,
        touched: Sequence[Touch],
        sums: Sequence[Sums],
    ) -> bool:
        """Whether a component explains something beyond the transfers that the others touch.

        The larger the effects of the others, the more of the rest there is an error of the node
        model.
        """
        if start.cost - hypothesis.cost > max(FURTHER_GAIN, -_OF_ERRORS * start.cost):
            return True
        beyond = [touch for touch in touched if touch.number not in start.shifts]
        added = hypothesis.losses[-1]
        gain = self._likelihood.cost_of_adding(start.shifts, sums, beyond, added.log)
        return gain < -FURTHER_GAIN

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
        others = shifts_of([*losses[:number], *losses[number + 1 :]])
        sums, touched = self._likelihood.sums(others), losses[number].what.touched

        def cost(log: float) -> float:
            return self._likelihood.cost_of_adding(others, sums, touched, log)

        log, _ = best_factor(cost)
        return log

    def with_losses(self, losses: Sequence[Loss]) -> Hypothesis:
        """Return the hypothesis of a set of components with their factors."""
        shifts = shifts_of(losses)
        supposed = sum(loss.what.cost for loss in losses)
        return Hypothesis(tuple(losses), self._likelihood.total(shifts) + supposed, shifts)
