"""The kinds of rules: level, ratio, order, equal and absent. Each makes the `judge` of a claim."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fabricheck.core.amounts import about
from fabricheck.core.show import listed
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.groups import (
    Group,
)
from fabricheck.papers.claims.model import (
    REPRODUCED,
    Finding,
    NotTestable,
    counted,
    value,
    verdict,
)
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series

Judge = Callable[[Observed], Finding]

#: A number as a document has it: the id of its record, or what is computed of several records.
Stated = str | float | Callable[[], float]


def stated(number: Stated) -> float:
    """Return a stated number."""
    if isinstance(number, str):
        return value(number)
    return number() if callable(number) else number


def quotient(record: str, other: str, factor: float = 1.0) -> Callable[[], float]:
    """Return one record over another, when it is asked for."""
    return lambda: factor * value(record) / value(other)


def mean_of(records: Sequence[str]) -> Callable[[], float]:
    """Return the mean of records, when it is asked for."""
    return lambda: statistics.fmean(map(value, records))


@dataclass(frozen=True)
class Limits:
    """What a document states, from the least to the greatest, and the tolerance either way.

    points: the tolerance in the unit of the value. part: that as a fraction of the value. factor:
    that as a factor.
    """

    least: Stated
    most: Stated | None = None
    points: float = 0.0
    part: float = 0.0
    factor: float = 1.0

    def ends(self) -> tuple[float, float]:
        """Return the least and the greatest value that agrees."""
        first = stated(self.least)
        last = first if self.most is None else stated(self.most)
        if self.part:
            first, last = first - self.part * abs(first), last + self.part * abs(last)
        return first / self.factor - self.points, last * self.factor + self.points

    def __str__(self) -> str:
        """Return what is published and what the rule allows, for a sentence."""
        published = [
            stated(bound)
            for bound in (self.least, self.most)
            if bound is not None and not isinstance(bound, float)
        ]
        least, most = (f"{end:.4g}" for end in self.ends())
        allowed = {"-inf": f"{most} at most", "inf": f"{least} at least"}
        texts = [allowed.get(least) or allowed.get(most) or f"{least} to {most}"]
        if published:
            numbers = dict.fromkeys(f"{number:.4g}" for number in published)
            return f"published: {' to '.join(numbers)}; allowed: {texts[0]}"
        return f"allowed: {texts[0]}"


def at_most(number: Stated, **tolerance: float) -> Limits:
    """Return limits without a least value."""
    return Limits(-math.inf, number, **tolerance)


def at_least(number: Stated, **tolerance: float) -> Limits:
    """Return limits without a greatest value."""
    return Limits(number, math.inf, **tolerance)


def level(
    *parts: tuple[Group, Limits], size: int = 0, held: bool = True, sure: bool = False
) -> Judge:
    """Rule: what stands for each group is within its limits, the noise of a series allowed.

    :param size: that of the document's messages: smaller ones that are too slow decide nothing.
    :param held: whether smaller ones decide where the rule holds.
    :param sure: whether a value must be above the least one beyond the noise.
    """

    def judge(observed: Observed) -> Finding:
        texts, numbers = [], []
        low = high = False
        smallest: list[int] = []
        for group, limits in parts:
            values = group.choose(observed)
            least, most = limits.ends()
            missed = []
            for key, number in group.standing(values).items():
                slow = number.low <= least if sure else number.high < least
                low, high = low or slow, high or number.low > most
                if slow or number.low > most:
                    missed.append(group.named(key))
            outside = f"; outside: {listed(missed, 3)}" if missed and len(values) > 1 else ""
            noise = " beyond the noise" if sure else ""
            texts.append(f"{group.text(values)}; {limits}{noise}{outside}")
            numbers += group.numbers(values)
            smallest += [point.bytes for value in values.values() for point in value.series]
        text = ". ".join(text[0].upper() + text[1:] for text in texts)
        if (low or not held) and not high and min(smallest) < size:
            raise NotTestable(
                f"the claim is about messages of {about(size)}; those of {about(min(smallest))} "
                f"can be slower, as the document states. {text} (E9)"
            )
        return verdict(not (low or high), f"{text}.", *numbers)

    return judge


def ratio(group: Group, other: Group, limits: Limits) -> Judge:
    """Rule: what stands for the one over what stands for the other is within limits.

    Only devices and ranks that both have count; ordered pairs of two link classes are never alike.
    """
    if group.each == other.each and group.each in ("device", "rank"):
        group, other = group.shared(other), other.shared(group)
    return level((group.whole().over(other.whole()).exact(), limits))


def order(group: Group, other: Group, times: float = 1.0) -> Judge:
    """Rule: of each subject the one is more than ``times`` the other, their intervals apart."""
    return level((group.over(other), at_least(times)), sure=True)


def equal(group: Group, other: Group, limits: Limits) -> Judge:
    """Rule: of each subject the one over the other can be within limits, allowing for noise."""
    return level((group.over(other), limits))


def absent(
    what: str, experiment: str, choose: Callable[[Observed, Series], bool], compared: bool = False
) -> Judge:
    """Rule: none of the series has wrong data. Series with an injected fault do not count.

    :param what: the series, in the plural.
    :param compared: whether only series with compared data count.
    """

    def judge(observed: Observed) -> Finding:
        # All series, because `Observed.points` leaves out those with wrong data.
        points = [
            point
            for point in observed.series
            if point.experiment == experiment
            and choose(observed, point)
            and not point.document["faults_injected"]
            and (point.bytes_checked or not compared)
        ]
        needs.some(points, what, experiment)
        wrong = [point for point in points if point.errors]
        operations = sorted({point.operation for point in points})
        skipped = {
            entry["operation"] for point in points for entry in point.document.get("skipped") or ()
        }.difference(operations)
        named_wrong = sorted({f"{series.operation} of {about(series.bytes)}" for series in wrong})
        most = max(point.taking_part or 0 for point in points)
        untested = f"; not tested: {listed(sorted(skipped))}" if skipped else ""
        clock = points[0].clock
        return verdict(
            not wrong,
            f"Of {len(points)} series of {listed(operations)} on {most} devices {len(wrong)} had "
            f"wrong data{': ' + listed(named_wrong[:3]) if wrong else ''}{untested}.",
            counted("series", len(points), "series", clock),
            counted("with wrong data", len(wrong), "series", clock),
            counted("compared", sum(point.bytes_checked for point in points), "B", clock),
        )

    return judge


def both(*rules: Judge) -> Judge:
    """Rule: all of several rules hold."""

    def judge(observed: Observed) -> Finding:
        findings = [rule(observed) for rule in rules]
        numbers = dict.fromkeys(number for finding in findings for number in finding.numbers)
        return verdict(
            all(finding.outcome == REPRODUCED for finding in findings),
            " ".join(finding.because for finding in findings),
            *numbers,
        )

    return judge
