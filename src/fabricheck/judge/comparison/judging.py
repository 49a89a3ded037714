"""Judgement whether two values differ beyond noise; docs/result.md explains the rule."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fabricheck.core import statistics
from fabricheck.core.vocabulary import SMALLER_IS_BETTER, Clock
from fabricheck.judge.calibration import rule
from fabricheck.results.series import Noise
from fabricheck.results.table import Series

Judgement = Literal["worse", "better", "unchanged", "undetermined"]

#: Each median lies outside its interval at most once in this many times (2.5 %). The samples of A
#: and B are independent, so both medians are inside in at least 0.975 * 0.975 > 95 % of cases, and
#: so is their ratio inside the interval of ratios.
ONE_IN = 40

#: The fewest samples with such an interval.
FEWEST = 7

#: The smallest change that counts, by the noise of a series. The values come from the rule of
#: calibration applied to the largest difference between two unchanged sessions on two H200, as
#: factors minus one: 0.0088, 0.0066, 0.1847, 0.5029, 0.2529. Memory of the runtime `host` has no
#: floor: other programs on the machine decide its noise, and no record of an idle machine exists.
FLOORS: Mapping[Noise, float] = {
    "devices": 0.02,
    "pinned": 0.02,
    "pinned at once": 0.28,
    "moved by the host": 0.755,
    "latency": 0.38,
    "host": math.inf,
}

#: Simulated times have no noise. Documents hold statistics to this relative precision.
SIMULATED_FLOOR = 1e-6


@dataclass(frozen=True)
class Estimate:
    """One value of one side.

    runs: its samples for each repetition of the check; empty where unknown. exact: whether it has
    no noise: a count, or one simulated sample. floor: the smallest relative change that counts.
    wrong: the number of wrong elements of its data. basis: for a metric, the conventions and sizes
    of its check's series.
    """

    median: float
    unit: str
    runs: tuple[tuple[float, ...], ...]
    exact: bool
    floor: float
    clock: Clock
    noisy: bool = False
    wrong: int = 0
    basis: frozenset[tuple[object, ...]] = frozenset()

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the median; of a repeated check, the union of all repetitions."""
        if self.exact:
            # The interval of a repeated check contains each repetition's median.
            values = [self.median, *(sample for run in self.runs for sample in run)]
            return min(values), max(values)
        found = [statistics.median_interval(run, ONE_IN) for run in self.runs]
        known = [interval for interval in found if interval is not None]
        if not known or len(known) != len(found):
            return None
        return min(low for low, _ in known), max(high for _, high in known)

    @property
    def count(self) -> int:
        """The number of samples."""
        return sum(map(len, self.runs))


@dataclass(frozen=True)
class Decision:
    """The judgement of B relative to A.

    ratio: B over A, None if A is zero. low, high: bound the ratio with at least 95 %, where known.
    chance: the greatest probability of such a difference if nothing had changed.
    """

    judgement: Judgement
    ratio: float | None
    low: float | None
    high: float | None
    floor: float
    why: str
    chance: float = 0.0
    in_floor: bool = False


def estimate_of(row: Series) -> Estimate:
    """Return the value of a series."""
    samples = tuple(row.measured["samples"])
    simulated = row.clock == "simulated"
    return Estimate(
        row.value,
        row.unit,
        (samples,),
        simulated and len(set(samples)) == 1,
        SIMULATED_FLOOR if simulated else FLOORS[row.noise],
        row.clock,
        row.noisy,
        wrong=row.errors,
    )


def joined(values: Sequence[Estimate]) -> Estimate:
    """Return the value of a repeated check: the median of its repetitions."""
    first = values[0]
    return Estimate(
        statistics.median([value.median for value in values]),
        first.unit,
        tuple(run for value in values for run in value.runs),
        all(value.exact for value in values),
        max(value.floor for value in values),
        first.clock,
        any(value.noisy for value in values),
        sum(value.wrong for value in values),
        frozenset().union(*(value.basis for value in values)),
    )


def judge(a: Estimate, b: Estimate, floor: float | None = None) -> Decision:
    """Return the judgement of B relative to A, which have the same unit.

    :param floor: the smallest relative change that counts, instead of that of the kind of series.
    """
    least = max(a.floor, b.floor) if floor is None else floor
    if a.unit == "count":
        return _counted(a, b)
    if not (0 < a.median < math.inf and 0 < b.median < math.inf):
        return Decision("undetermined", None, None, None, least, "a value is not positive")
    if floor is None and a.clock != b.clock:
        least = min(least, rule.CEILINGS[a.unit])  # informs only: every difference is shown
    ratio = b.median / a.median
    # The judgement of A against B mirrors that of B against A.
    change = max(ratio, a.median / b.median) - 1
    judged: Judgement = "better" if (ratio > 1) != (a.unit in SMALLER_IS_BETTER) else "worse"
    ours, theirs = a.interval, b.interval
    if ours is None or theirs is None:
        few = min(estimate.count for estimate in (a, b) if estimate.interval is None)
        lacks = f"has {few} sample(s) and needs {FEWEST}" if few else "has no samples of its own"
        side = "A" if ours is None and a.count == few else "B"
        return Decision("undetermined", ratio, None, None, least, f"{side} {lacks}")
    low, high = theirs[0] / ours[1], theirs[1] / ours[0]
    # From the values, because the quotients are rounded.
    if theirs[0] <= ours[1] and ours[0] <= theirs[1]:
        return Decision("unchanged", ratio, low, high, least, "within noise", _chance(a, b))
    if change <= least:
        unclear = floor is None and change > rule.CEILINGS[a.unit]
        kind: Judgement = "undetermined" if unclear else "unchanged"
        why = _within(least, unclear)
        return Decision(kind, ratio, low, high, least, why, _chance(a, b), in_floor=not unclear)
    switching = _two_modes(a, b)
    if switching is not None:
        return Decision("undetermined", ratio, low, high, least, switching)
    return Decision(judged, ratio, low, high, least, "beyond noise", _chance(a, b))


def _within(floor: float, unclear: bool) -> str:
    if math.isinf(floor):
        host = "of the runtime host: judged with --floor only"
        return host if unclear else "within the floor"
    if unclear:
        return f"below the floor of {100 * floor:.3g} %, too wide to call it unchanged"
    return f"within the floor of {100 * floor:.3g} %"


def _counted(a: Estimate, b: Estimate) -> Decision:
    changed: Judgement = "worse" if b.median > a.median else "better"
    kind = changed if a.median != b.median else "unchanged"
    return Decision(kind, None, None, None, 0.0, "a count of faults is exact")


def _two_modes(a: Estimate, b: Estimate) -> str | None:
    """Return a sentence if one side switches between two modes and the other is in one of them."""
    for name, one, other in (("A", a, b), ("B", b, a)):
        samples = [sample for run in one.runs for sample in run]
        if one.exact or len(samples) < FEWEST:
            continue
        two = rule.split(samples, one.unit, rule.LEAST_IN_A_MODE)
        if two is not None and min(samples) <= other.median <= max(samples):
            low, high = (f"{len(some)} about {statistics.median(some):.5g}" for some in two)
            return f"{name} has two modes: {low}, {high}"
    return None


def _chance(a: Estimate, b: Estimate) -> float:
    if a.exact or b.exact or len(a.runs) != 1 or len(b.runs) != 1:
        return 0.0
    return chance(a.count, b.count)


@functools.cache
def chance(n: int, m: int) -> float:
    """Return the probability that intervals of n and m samples of one value are disjoint.

    Of n + m samples in order, of one continuous distribution, each choice of n is as probable. The
    interval of A, which ends with its sample r = n-k+1, lies below that of B, which begins with its
    sample j, where fewer than j samples of B come before sample r of A; with i of them before it
    these are (r-1+i over i) (n-r+m-i over m-i) choices. The other way round is as probable.
    """
    k, j = statistics.interval_rank(n, ONE_IN), statistics.interval_rank(m, ONE_IN)
    if k is None or j is None:
        return 0.0
    r = n - k + 1
    choices = sum(math.comb(r - 1 + i, i) * math.comb(n - r + m - i, m - i) for i in range(j))
    return 2 * choices / math.comb(n + m, n)
