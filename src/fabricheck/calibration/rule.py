"""The rule that makes a reference of what several sessions measured; docs/calibration.md has it.

A reference that can not be trusted is never made: the metric becomes report only, with a reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fabricheck.results import statistics
from fabricheck.rfm.references import SMALLER_IS_BETTER

#: The fewest sessions, and the fewest occasions that they come from.
LEAST_SESSIONS = 5
LEAST_OCCASIONS = 2

#: By unit the least tolerance, a part of the value: what few sessions do not show.
FLOORS = {"GB/s": 0.02, "%": 0.02, "us": 0.10}
#: By unit the tolerance above which a metric is too noisy to accept or refuse anything by.
CEILINGS = {"GB/s": 0.15, "%": 0.15, "us": 0.50}

#: A median absolute deviation times this is the standard deviation of a normal distribution.
NORMAL = 1.4826
SPREADS = 5
WORST_TIMES = 1.5
#: Tolerances are multiples of this.
STEP = 0.005
#: Two groups are two modes when the gap between them is above so many of their own deviations.
GAPS = 5
LEAST_IN_A_MODE = 2
#: Significant digits of a value.
DIGITS = 5

#: A requirement that follows from what is counted (faults), and is never measured.
COUNT_ENTRY = (0, 0, 0, "count")

TEXT = (
    "value: the median over the sessions, to five significant digits; tolerance (lower for GB/s "
    f"and %, upper for us): the largest of a floor ({FLOORS['GB/s']:.0%} for GB/s and %, "
    f"{FLOORS['us']:.0%} for us), {SPREADS} robust standard deviations ({NORMAL} MAD) relative to "
    f"the median, and {WORST_TIMES} times the largest relative deviation of a session in the worse "
    "direction, rounded up to the next half percent; report only with fewer than "
    f"{LEAST_SESSIONS} sessions or {LEAST_OCCASIONS} occasions, with a value that is not finite "
    f"and above zero, with a tolerance above {CEILINGS['GB/s']:.0%} ({CEILINGS['us']:.0%} for us), "
    f"and with two modes: the largest gap between neighbours that leaves {LEAST_IN_A_MODE} values "
    f"on each side is above {GAPS} times the MAD of either side, and above the floor"
)

Entry = tuple[float, float | None, float | None, str]


@dataclass(frozen=True)
class Tolerance:
    """The three candidates of a tolerance, as parts of the value, and the one that was taken."""

    floor: float
    spread: float
    worst: float

    @property
    def taken(self) -> float:
        """The largest, rounded up to the next half percent."""
        largest = max(self.floor, self.spread, self.worst)
        # What is a multiple but for its last bits stays one.
        return math.ceil(round(largest / STEP, 6)) * STEP


@dataclass(frozen=True)
class Verdict:
    """The entry of a metric, the tolerance where one could be computed, and why it is so.

    reason: ``rule`` for an entry that requires something, else why it does not.
    """

    entry: Entry
    tolerance: Tolerance | None
    reason: str

    @property
    def required(self) -> bool:
        """Whether the entry requires something of the metric."""
        return self.entry[1] is not None or self.entry[2] is not None


def report_only(unit: str) -> Entry:
    """Return the entry that requires nothing."""
    return (0, None, None, unit)


def judge(values: Sequence[float], occasions: Sequence[int], unit: str) -> Verdict:
    """Return the entry of a metric.

    :param values: one per session, in `unit`.
    :param occasions: of each session the number of its occasion.
    :param unit: GB/s, %, us, or count, whose requirement does not depend on the values.
    """
    if unit == "count":
        return Verdict(COUNT_ENTRY, None, "count: none is required, whatever was measured")
    bad = [value for value in values if not (math.isfinite(value) and value > 0)]
    if bad:
        return _refused(unit, f"impossible: a session has {bad[0]:g} {unit}")
    tolerance = tolerance_of(values, unit)
    groups = modes(values, unit)
    if len(values) < LEAST_SESSIONS:
        return _refused(unit, f"{len(values)} of at least {LEAST_SESSIONS} sessions", tolerance)
    if len(set(occasions)) < LEAST_OCCASIONS:
        said = f"{len(set(occasions))} of at least {LEAST_OCCASIONS} occasions"
        return _refused(unit, said, tolerance)
    if groups is not None:
        low, high = (f"{len(one)} sessions about {statistics.median(one):.5g}" for one in groups)
        return _refused(unit, f"two modes: {low} and {high} {unit}", tolerance)
    if tolerance.taken > CEILINGS[unit]:
        said = (
            f"noisy: {min(values):.5g} to {max(values):.5g} {unit} would take a tolerance of "
            f"{tolerance.taken:.1%}, and {CEILINGS[unit]:.0%} is the most"
        )
        return _refused(unit, said, tolerance)
    value = float(f"{statistics.median(values):.{DIGITS}g}")
    part = round(tolerance.taken, 6)
    bounds = (None, part) if unit in SMALLER_IS_BETTER else (-part, None)
    return Verdict((value, *bounds, unit), tolerance, "rule")


def _refused(unit: str, reason: str, tolerance: Tolerance | None = None) -> Verdict:
    return Verdict(report_only(unit), tolerance, reason)


def tolerance_of(values: Sequence[float], unit: str) -> Tolerance:
    """Return the candidates of the tolerance of values that are finite and above zero."""
    middle = statistics.median(values)
    worse = max(values) - middle if unit in SMALLER_IS_BETTER else middle - min(values)
    return Tolerance(
        FLOORS[unit],
        SPREADS * NORMAL * statistics.mad(values) / middle,
        WORST_TIMES * worse / middle,
    )


def modes(values: Sequence[float], unit: str) -> tuple[list[float], list[float]] | None:
    """Return the two groups that values fall into, or None where they are one.

    :param values: finite and above zero.
    """
    ordered = sorted(values)
    splits = range(LEAST_IN_A_MODE, len(ordered) - LEAST_IN_A_MODE + 1)
    if not splits:
        return None
    at = max(splits, key=lambda index: ordered[index] - ordered[index - 1])
    gap = ordered[at] - ordered[at - 1]
    low, high = ordered[:at], ordered[at:]
    within = max(statistics.mad(low), statistics.mad(high))
    if gap > GAPS * within and gap > FLOORS[unit] * statistics.median(ordered):
        return low, high
    return None


def entry_of(raw: Any) -> Entry | None:
    """Return a reference as it stands in a file, or None where it is no plain one ($xfail)."""
    if not isinstance(raw, Sequence) or isinstance(raw, str) or len(raw) != 4:
        return None
    value, lower, upper, unit = raw
    numbers = (value, *(bound for bound in (lower, upper) if bound is not None))
    if any(isinstance(one, bool) or not isinstance(one, (int, float)) for one in numbers):
        return None
    return (value, lower, upper, str(unit))
