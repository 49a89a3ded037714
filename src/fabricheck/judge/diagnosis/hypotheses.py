"""What a diagnosis supposes: components with their losses, and what each does to a transfer."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fabricheck.core.grouping import grouped
from fabricheck.judge.diagnosis.model import Component
from fabricheck.results.series import Place


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

    def likelier_than(self, other: Hypothesis) -> float:
        """Return how many times likelier it is than another one, as a power of ten."""
        return (other.cost - self.cost) / 2 / math.log(10)


#: Returns the indices of the missed limits that a set of components explains.
Explains = Callable[[Hypothesis], frozenset[int]]


def shifts_of(losses: Iterable[Loss]) -> dict[int, float]:
    """Return the logarithm of the remaining rates under some components, by evidence."""
    shifts: dict[int, float] = {}
    for loss in losses:
        shifts = loss.what.shifted(shifts, loss.log)
    return shifts


def without_doubles(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    """Return each set of components once, as its likeliest hypothesis."""
    doubles = grouped(
        (frozenset(loss.what.component for loss in hypothesis.losses), hypothesis)
        for hypothesis in hypotheses
    )
    return [min(alike, key=lambda hypothesis: hypothesis.cost) for alike in doubles.values()]
