"""The values of a partition on a node, and whether two values differ beyond noise.

docs/result.md explains the rule.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from fabricheck.core import statistics
from fabricheck.core.text import count
from fabricheck.core.vocabulary import SMALLER_IS_BETTER, Clock
from fabricheck.judge.calibration import rule
from fabricheck.results import table
from fabricheck.results.rows import Check, Metric, Series
from fabricheck.results.series import Columns, Noise

#: What has a value: a metric, or a series.
Row: TypeAlias = "Metric | Series"

#: What values must share to be compared: the check's name today, its subject and its terms.
Identity = tuple[str, Columns, Columns]

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

    n: the number of its samples, 0 where they are unknown. interval: that of the median; of a
    repeated check the union of those of all repetitions. exact: whether it has no noise: a count,
    or one simulated sample. floor: the smallest relative change that counts. wrong: the number of
    wrong elements of its data. basis: for a metric, the conventions and sizes of its check's
    series. What is not shown has no part in `repr`.
    """

    median: float
    unit: str
    n: int
    interval: tuple[float, float] | None
    clock: Clock
    noisy: bool = False
    samples: tuple[float, ...] = field(default=(), repr=False)
    exact: bool = field(default=False, repr=False)
    floor: float = field(default=0.0, repr=False)
    wrong: int = field(default=0, repr=False)
    basis: frozenset[tuple[object, ...]] = field(default=frozenset(), repr=False)
    repeated: bool = field(default=False, repr=False)


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
    exact = simulated and len(set(samples)) == 1
    if exact:
        interval: tuple[float, float] | None = (row.value, row.value)
    else:
        interval = statistics.median_interval(samples, ONE_IN)
    return Estimate(
        median=row.value,
        unit=row.unit,
        n=len(samples),
        interval=interval,
        clock=row.clock,
        noisy=row.noisy,
        samples=samples,
        exact=exact,
        floor=SIMULATED_FLOOR if simulated else FLOORS[row.noise],
        wrong=row.errors,
    )


def joined(values: Sequence[Estimate]) -> Estimate:
    """Return the value of a repeated check: the median of its repetitions."""
    return replace(
        values[0],
        median=statistics.median([value.median for value in values]),
        n=sum(value.n for value in values),
        samples=tuple(sample for value in values for sample in value.samples),
        interval=_united([value.interval for value in values]),
        exact=all(value.exact for value in values),
        floor=max(value.floor for value in values),
        noisy=any(value.noisy for value in values),
        wrong=sum(value.wrong for value in values),
        basis=frozenset().union(*(value.basis for value in values)),
        repeated=len(values) > 1,
    )


def _united(
    intervals: Sequence[tuple[float, float] | None],
) -> tuple[float, float] | None:
    """Return the interval from the lowest to the highest end; None where one is not known."""
    known = [interval for interval in intervals if interval is not None]
    if len(known) < len(intervals):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def judge(a: Estimate, b: Estimate, floor: float | None = None) -> Decision:
    """Return the judgement of B relative to A, which have the same unit.

    :param floor: the smallest relative change that counts, instead of that of the kind of series.
    """
    if a.unit == "count":
        return _counted(a, b)
    least = max(a.floor, b.floor) if floor is None else floor
    if not (0 < a.median < math.inf and 0 < b.median < math.inf):
        return Decision("undetermined", None, None, None, least, "a value is not positive")
    if floor is None and a.clock != b.clock:
        least = min(least, rule.CEILINGS[a.unit])  # informs only: every difference is shown
    ratio = b.median / a.median
    if a.interval is None or b.interval is None:
        return Decision("undetermined", ratio, None, None, least, _too_few_samples(a, b))
    return _by_intervals(a, a.interval, b, b.interval, least, floor)


def _by_intervals(
    a: Estimate,
    interval_a: tuple[float, float],
    b: Estimate,
    interval_b: tuple[float, float],
    least: float,
    floor: float | None,
) -> Decision:
    """Return the judgement of two values whose intervals are known.

    :param least: the smallest relative change that counts.
    :param floor: as in `judge`; None where no user stated it.
    """
    ratio = b.median / a.median
    low, high = interval_b[0] / interval_a[1], interval_b[1] / interval_a[0]
    # From the values, because the quotients are rounded.
    if interval_b[0] <= interval_a[1] and interval_a[0] <= interval_b[1]:
        return Decision("unchanged", ratio, low, high, least, "within noise", _chance(a, b))
    # The judgement of A against B mirrors that of B against A.
    change = max(ratio, a.median / b.median) - 1
    if change <= least:
        unclear = floor is None and change > rule.CEILINGS[a.unit]
        judgement: Judgement = "undetermined" if unclear else "unchanged"
        why, chance = _within(least, unclear), _chance(a, b)
        return Decision(judgement, ratio, low, high, least, why, chance, in_floor=not unclear)
    switching = _two_modes(a, b)
    if switching is not None:
        return Decision("undetermined", ratio, low, high, least, switching)
    smaller_is_better = a.unit in SMALLER_IS_BETTER
    judgement = "better" if (ratio < 1) == smaller_is_better else "worse"
    return Decision(judgement, ratio, low, high, least, "beyond noise", _chance(a, b))


def _too_few_samples(a: Estimate, b: Estimate) -> str:
    """Return which side has too few samples for an interval; of both the one with fewer."""
    if a.interval is not None:
        side, estimate = "B", b
    elif b.interval is not None or a.n <= b.n:
        side, estimate = "A", a
    else:
        side, estimate = "B", b
    if estimate.n == 0:
        return f"{side} has no samples of its own"
    return f"{side} has {count(estimate.n, 'sample')} and needs {FEWEST}"


def _within(floor: float, unclear: bool) -> str:
    if math.isinf(floor):
        return "of the runtime host: judged with --floor only" if unclear else "within the floor"
    if unclear:
        return f"below the floor of {100 * floor:.3g} %, too wide to call it unchanged"
    return f"within the floor of {100 * floor:.3g} %"


def _counted(a: Estimate, b: Estimate) -> Decision:
    judgement: Judgement = "unchanged"
    if b.median > a.median:
        judgement = "worse"
    elif b.median < a.median:
        judgement = "better"
    return Decision(judgement, None, None, None, 0.0, "a count of faults is exact")


def _two_modes(a: Estimate, b: Estimate) -> str | None:
    """Return a sentence if one side switches between two modes and the other is in one of them."""
    for name, estimate, other in (("A", a, b), ("B", b, a)):
        if estimate.exact or estimate.n < FEWEST:
            continue
        two = rule.split(estimate.samples, estimate.unit, rule.LEAST_IN_A_MODE)
        if two is not None and min(estimate.samples) <= other.median <= max(estimate.samples):
            low, high = (f"{len(mode)} about {statistics.median(mode):.5g}" for mode in two)
            return f"{name} has two modes: {low}, {high}"
    return None


def _chance(a: Estimate, b: Estimate) -> float:
    if a.exact or b.exact or a.repeated or b.repeated:
        return 0.0
    return chance(a.n, b.n)


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


#: The terms that a metric aggregates over its series: all but places and block sizes.
_BASIS = ("bytes_counted", "size", "datatype", "movement", "in_place", "engines_off", "shared_by")


def identity(row: Row) -> Identity:
    """Return what a value shares with those that it is compared with."""
    return row.check_row.check or "", row.subject, row.terms


def columns(row: Row) -> dict[str, Any]:
    """Return what identifies a value, by name."""
    return {"check": row.check_row.check or ""} | dict(row.subject) | dict(row.terms)


def estimates(checks: Iterable[Check]) -> dict[Identity, tuple[Row, Estimate]]:
    """Return the values by identity; for a repeated check, the median of its repetitions."""
    several: dict[Identity, list[tuple[Row, Estimate]]] = {}
    for check in checks:
        series = [(row, estimate_of(row)) for row in table.series(check, None)]
        values: list[tuple[Row, Estimate]] = [*series, *_metrics(check, series)]
        # A document with two measurements of one series counts as a repeated check.
        for row, value in values:
            several.setdefault(identity(row), []).append((row, value))
    return {
        key: (of_identity[0][0], joined([value for _, value in of_identity]))
        for key, of_identity in several.items()
    }


def _metrics(
    check: Check, series: Sequence[tuple[Series, Estimate]]
) -> Iterator[tuple[Metric, Estimate]]:
    for row in table.metrics(check):
        if row.value is None or check.clock is None:
            continue
        exact = row.unit == "count" or check.clock == "simulated"
        interval = (row.value, row.value) if exact else None
        estimate = Estimate(row.value, row.unit, 0, interval, check.clock, exact=exact)
        if row.unit == "count":
            yield row, estimate
            continue
        if check.clock == "simulated":
            estimate = replace(estimate, floor=SIMULATED_FLOOR)
        made_of = [series[index][1] for index in row.series or range(len(series))]
        for each in made_of:
            if (each.unit, each.median) == (row.unit, row.value):
                # Most metrics are the median of a series and have its samples.
                estimate = each
                break
        basis = (
            tuple(value for name, value in other.terms if name in _BASIS)
            for other, _ in series
            if other.unit == row.unit
        )
        yield row, replace(estimate, basis=frozenset(basis))
