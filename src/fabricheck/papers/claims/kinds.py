"""The kinds of rules: level, ratio, order, equal and absent. Each makes the `judge` of a claim."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabricheck.core.amounts import about
from fabricheck.core.show import listed
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.groups import (
    STATISTICS,
    WHOLE,
    Group,
    Value,
    Values,
    combined,
)
from fabricheck.papers.claims.model import (
    REPRODUCED,
    Finding,
    NotTestable,
    counted,
    verdict,
)
from fabricheck.papers.claims.published import value
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

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
            stated(one)
            for one in (self.least, self.most)
            if one is not None and not isinstance(one, float)
        ]
        least, most = (f"{end:.4g}" for end in self.ends())
        allowed = {"-inf": f"{most} at most", "inf": f"{least} at least"}
        texts = [allowed.get(least) or allowed.get(most) or f"{least} to {most}"]
        if published:
            said = dict.fromkeys(f"{one:.4g}" for one in published)
            return f"published: {' to '.join(said)}; allowed: {texts[0]}"
        return f"allowed: {texts[0]}"


def at_most(number: Stated, **tolerance: float) -> Limits:
    """Return limits without a least value."""
    return Limits(-math.inf, number, **tolerance)


def at_least(number: Stated, **tolerance: float) -> Limits:
    """Return limits without a greatest value."""
    return Limits(number, math.inf, **tolerance)


def level(*parts: tuple[Group, Limits], size: int = 0) -> Judge:
    """Rule: what stands for each group is within its limits, the noise of a series allowed.

    :param size: that of the document's messages: smaller ones that are too slow decide nothing.
    """

    def judge(observed: Observed) -> Finding:
        texts, numbers = [], []
        low = high = False
        used: dict[Any, Value] = {}
        for group, limits in parts:
            values = group.choose(observed)
            least, most = limits.ends()
            low |= any(one.high < least for one in group.standing(values))
            high |= any(one.low > most for one in group.standing(values))
            texts.append(f"{group.text(values)}; {limits}")
            numbers += group.numbers(values)
            used |= {(group.name, key): one for key, one in values.items()}
        text = ". ".join(_capital(one) for one in texts)
        _require_size(used, size, low and not high, f"slower, as the document states. {text}")
        return verdict(not (low or high), f"{text}.", *numbers)

    return judge


def _require_size(values: Values, size: int, undecided: bool, what: str) -> None:
    """Require messages of the document's size if those of less decide nothing.

    :param what: what smaller ones can be, and further sentences.
    """
    smallest = min(point.bytes for one in values.values() for point in one.series)
    if undecided and smallest < size:
        raise NotTestable(
            f"the claim is about messages of {about(size)}; those of {about(smallest)} can be "
            f"{what} (E9)"
        )


def ratio(
    one: Group,
    other: Group,
    limits: Limits,
    of: str | None = None,
    *,
    less: bool = False,
    size: int = 0,
) -> Judge:
    """Rule: one group over another is within limits.

    :param of: a statistic of the ratios of each subject, or "each"; None for the ratio of what
        stands for the groups.
    :param less: by how much the one is less, in percent, instead of the ratio.
    :param size: that of the document's messages: smaller ones decide by being too fast only.
    """

    def judge(observed: Observed) -> Finding:
        ones, others = matching(observed, one, other, of is not None)
        if of is None:
            pairs = {WHOLE: (one.standing(ones)[0], other.standing(others)[0])}
        else:
            pairs = in_pairs(ones, others)
        found = {key: _quotient(above, below, less) for key, (above, below) in pairs.items()}
        if of is not None and of != "each":
            found = {WHOLE: STATISTICS[of](found.values())}
        values = sorted(each.value for each in found.values())
        least, most = limits.ends()
        spread = " to ".join(dict.fromkeys(f"{end:.3f}" for end in (values[0], values[-1])))
        what = f"{spread} % less" if less else f"ratio {spread}"
        text = f"{_sides(one, ones, other, others)}; {what}; {limits}"
        _require_size(ones, size, less and values[0] >= least, f"slower still. {text}")
        return verdict(
            least <= values[0] and values[-1] <= most,
            f"{text}.",
            *(
                number
                for each in found.values()
                for number in each.numbers(f"{one.name} over {other.name}")
            ),
            *one.numbers(ones),
            *other.numbers(others),
        )

    return judge


def _quotient(above: Value, below: Value, less: bool) -> Value:
    found = above.value / below.value
    both = (above, below)
    return combined(100 * (1 - found), "percent", both) if less else combined(found, "ratio", both)


def order(one: Group, other: Group, times: float = 1.0, *, every: bool = False) -> Judge:
    """Rule: of each subject the one is above the other, their intervals apart.

    :param times: how many times as much it must be.
    :param every: each of the one is above every one of the other, whatever the subjects.
    """

    def judge(observed: Observed) -> Finding:
        if every:
            ones, others = one.choose(observed), other.choose(observed)
            greatest = max(others.values(), key=lambda each: each.high)
            pairs = {key: (each, greatest) for key, each in ones.items()}
        else:
            ones, others = matching(observed, one, other)
            pairs = in_pairs(ones, others)
        missed = [key for key, (a, b) in pairs.items() if a.low <= times * b.high]
        wanted = f" {times:.3g} times" if times != 1 else ""
        return _of_each(one, ones, other, others, pairs, missed, f"not above{wanted}")

    return judge


def equal(one: Group, other: Group, limits: Limits) -> Judge:
    """Rule: of each subject the one over the other can be within limits, noise counting for it."""

    def judge(observed: Observed) -> Finding:
        ones, others = matching(observed, one, other)
        pairs = in_pairs(ones, others)
        least, most = limits.ends()
        missed = [
            key for key, (a, b) in pairs.items() if a.high / b.low < least or a.low / b.high > most
        ]
        return _of_each(one, ones, other, others, pairs, missed, f"{limits}; outside that")

    return judge


def _of_each(
    one: Group,
    ones: Values,
    other: Group,
    others: Values,
    pairs: Mapping[Any, tuple[Value, Value]],
    missed: list[Any],
    failing: str,
) -> Finding:
    ratios = {key: _quotient(a, b, less=False) for key, (a, b) in pairs.items()}
    ends = [choose(ratios, key=lambda key: ratios[key].value) for choose in (min, max)]
    spread = " to ".join(dict.fromkeys(f"{ratios[key].value:.3f}" for key in ends))
    least = f", the least of {one.each} {one.named(ends[0])}" if len(ratios) > 1 else ""
    where = listed([one.named(key) for key in missed], 3) or "none"
    places = "" if WHOLE in missed else f": {where}"
    return verdict(
        not missed,
        f"{_sides(one, ones, other, others)}; ratio {spread}{least}; {failing} beyond the "
        f"noise{places}.",
        *one.numbers(ones),
        *other.numbers(others),
        *(
            number
            for key in dict.fromkeys(ends)
            for number in ratios[key].numbers(f"ratio, {one.each} {one.named(key)}")
        ),
    )


def _sides(one: Group, ones: Values, other: Group, others: Values) -> str:
    return f"{_capital(one.text(ones))}; {other.text(others)}"


def matching(
    observed: Observed, one: Group, other: Group, of_pairs: bool = True
) -> tuple[Values, Values]:
    """Return the values of the subjects that both groups have; of all, if one is a whole.

    :param of_pairs: whether ordered pairs must be the same; those of two link classes never are.
    :raises NotTestable: when they have none in common, or other ranks.
    """
    ones, others = one.choose(observed), other.choose(observed)
    apart = one.each == "ordered pair" and not of_pairs
    if one.each != other.each or WHOLE in ones or WHOLE in others or apart:
        return ones, others
    if one.each == "rank" and ones.keys() != others.keys():
        raise NotTestable(f"{one.name} and {other.name} have different numbers of ranks (E6)")
    common = [key for key in ones if key in others]
    if not common:
        raise NotTestable(f"the session has no {one.each} with both {one.name} and {other.name}")
    return {key: ones[key] for key in common}, {key: others[key] for key in common}


def in_pairs(ones: Values, others: Values) -> dict[Any, tuple[Value, Value]]:
    """Return both values of each subject; a whole stands beside each of the other group."""
    if WHOLE in others:
        return {key: (each, others[WHOLE]) for key, each in ones.items()}
    return {key: (ones[WHOLE if WHOLE in ones else key], each) for key, each in others.items()}


def absent(
    what: str, experiment: str, choose: Callable[[Observed, Series], bool], compared: bool = False
) -> Judge:
    """Rule: none of the series has wrong data. Series with an injected fault do not count.

    :param what: the series, in the plural.
    :param compared: whether only series with compared data count.
    """

    def judge(observed: Observed) -> Finding:
        # All series, because `Observed.points` leaves out those with wrong data.
        found = [
            point
            for point in observed.series
            if point.experiment == experiment
            and choose(observed, point)
            and not point.document["faults_injected"]
            and (point.bytes_checked or not compared)
        ]
        needs.some(found, what, experiment)
        wrong = [point for point in found if point.errors]
        operations = sorted({point.operation for point in found})
        skipped = {
            entry["operation"]
            for point in found
            for entry in point.document.get("skipped") or ()
            if entry["operation"] not in operations
        }
        named_wrong = sorted({f"{one.operation} of {about(one.bytes)}" for one in wrong})
        most = max(point.taking_part or 0 for point in found)
        untested = f"; not tested: {', '.join(sorted(skipped))}" if skipped else ""
        clock = found[0].clock
        return verdict(
            not wrong,
            f"Of {len(found)} series of {', '.join(operations)} on {most} devices {len(wrong)} had "
            f"wrong data{': ' + ', '.join(named_wrong[:3]) if wrong else ''}{untested}.",
            counted("series", len(found), "series", clock),
            counted("with wrong data", len(wrong), "series", clock),
            counted("compared", sum(point.bytes_checked for point in found), "B", clock),
        )

    return judge


def both(*rules: Judge) -> Judge:
    """Rule: all of several rules hold."""

    def judge(observed: Observed) -> Finding:
        found = [rule(observed) for rule in rules]
        numbers = dict.fromkeys(number for one in found for number in one.numbers)
        return verdict(
            all(one.outcome == REPRODUCED for one in found),
            " ".join(one.because for one in found),
            *numbers,
        )

    return judge


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
