"""Which sets of components the search takes, of evidence and candidates that are chosen."""

from __future__ import annotations

import math

import pytest

from fabricheck.judge.diagnosis.hypotheses import Candidate, Evidence, Hypothesis, Loss, Touch
from fabricheck.judge.diagnosis.likelihood import Likelihood
from fabricheck.judge.diagnosis.model import Component
from fabricheck.judge.diagnosis.search import FURTHER_GAIN, LEAST_GAIN, Search

#: The level of all transfers, and the deviation of a healthy one.
LEVEL, DEVIATION = math.log(100.0), 0.01


def search(slow, candidates, healthy=4):
    """Return the search over slow transfers, each by the part of its rate, and healthy ones."""
    logs = [LEVEL + math.log(part) for part in (*slow, *[1.0] * healthy)]
    evidence = [Evidence(log, DEVIATION**2, "all") for log in logs]
    levels = {"all": Evidence(LEVEL, DEVIATION**2, "all")}
    return Search(Likelihood(evidence, levels), candidates)


def candidate(device, *numbers, **changes):
    """Return a device that touches some transfers."""
    touched = [Touch(number, 0.0) for number in numbers]
    return Candidate(Component(kind="device", ids=(device,)), (device,), touched, **changes)


def slowed(number):
    """Return what tells which of so many transfers a set slows."""

    def explains(hypothesis: Hypothesis) -> frozenset[int]:
        return frozenset(each for each in range(number) if hypothesis.shifts.get(each, 0.0) < -0.02)

    return explains


def ids(hypothesis):
    return {loss.what.component.ids for loss in hypothesis.losses}


def test_a_component_that_two_others_make_unnecessary_is_none_of_the_set():
    # Five that each have four of the six are likelier than either of the two that have all.
    both = [candidate(device, 1, 2, 3, 4, cost=device / 10) for device in range(5)]
    halves = [candidate(10, 0, 1, 2), candidate(11, 3, 4, 5)]
    best, _ = search([0.5] * 6, [*both, *halves]).best(slowed(6))
    assert ids(best) == {(10,), (11,)}


def test_a_component_slows_a_transfer_in_its_part_of_the_time_and_beyond_its_slack():
    half = math.log(0.5)
    assert Touch(0, slack=0.0).shift(half) == pytest.approx(half)
    assert Touch(0, slack=0.0, share=0.5).shift(half) == pytest.approx(-math.log(1.5))
    assert Touch(0, slack=-2 * half, share=0.5).shift(half) > 0


@pytest.mark.parametrize(("part", "is_named"), [(0.963, False), (0.962, True)])
def test_the_first_component_needs_a_smaller_gain_than_a_further_one(part, is_named):
    only = search([part], [candidate(0, 0)])
    best, _ = only.best(slowed(1))
    assert ids(best) == ({(0,)} if is_named else set())
    gain = -only.with_losses([Loss(candidate(0, 0), math.log(part))]).cost
    assert gain < FURTHER_GAIN
    assert (gain > LEAST_GAIN) == is_named


def test_the_factors_of_a_set_are_fitted_together():
    # The second transfer has both: alone, either seems to be slower than it is.
    slow = [0.6, 0.3, 0.3]
    best, _ = search(slow, [candidate(0, 0, 1), candidate(1, 1, 2)]).best(slowed(3))
    factors = {loss.what.component.ids: math.exp(loss.log) for loss in best.losses}
    assert factors == {
        (0,): pytest.approx(0.6, abs=0.01),
        (1,): pytest.approx(0.3, abs=0.01),
    }


def test_a_small_loss_beside_a_large_one_is_named_by_its_own_factor():
    best, _ = search([0.1] * 4 + [0.9], [candidate(0, 0, 1, 2, 3), candidate(1, 4)]).best(slowed(5))
    assert ids(best) == {(0,), (1,)}


def test_a_likelihood_that_is_a_million_times_as_large_has_six_as_its_power_of_ten():
    nothing, likely = Hypothesis(), Hypothesis(cost=-2 * math.log(1e6))
    assert likely.likelier_than(nothing) == pytest.approx(6)
    assert nothing.likelier_than(likely) == pytest.approx(-6)
