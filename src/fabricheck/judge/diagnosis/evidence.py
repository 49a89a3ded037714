"""Evidence of a node's session about its components: measured transfers, missed limits, known
levels.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fabricheck.core.grouping import grouped
from fabricheck.core.statistics import MEDIAN_WIDER, NORMAL
from fabricheck.judge.diagnosis.components import Candidate, Change
from fabricheck.judge.diagnosis.search import Evidence, Hypothesis, Level
from fabricheck.judge.diagnosis.transfers import Key, Transfer, is_in_turn
from fabricheck.references import rules
from fabricheck.results.model import ResultDocument, Series
from fabricheck.results.series import Place, at_once, device_pair
from fabricheck.results.table import Metric

#: The smallest relative noise of a median, however equal the samples are.
_LEAST_NOISE = 0.001

#: The tolerance divided by this number is the standard deviation of the level that it belongs to.
_OF_LIMIT = 3.0

#: The smallest relative deviation of a known level, as after a calibration.
_LEAST_KNOWN = 0.01

#: A value is low if it is this many times as far behind as members of a healthy node may be.
_LOW = 1.25

#: A value counts as explained if it would be within this fraction of its limit without the
#: degradation.
_NEAR = 0.01


@dataclass(frozen=True)
class Miss:
    """A metric that missed its limits, or a difference from the node model.

    value, least, most, unit: as in ReFrame; NaN for a difference. series: the indices in the
    document of the series that decided it. sentence, place: of a difference.
    """

    check: str
    metric: str
    value: float = math.nan
    least: float | None = None
    most: float | None = None
    unit: str = ""
    series: tuple[int, ...] = ()
    sentence: str = ""
    place: Place = (frozenset(), None)

    @property
    def name(self) -> str:
        """The name of the miss in sentences."""
        return self.sentence or f"{self.check} {self.metric}"

    def reached_without(self, log: float) -> bool:
        """Whether the limit would be reached without a loss.

        :param log: the logarithm of the remaining fraction of the rate.
        """
        value = self.value * math.exp(log if self.unit == "us" else -log)
        if self.least is not None and value < self.least * (1 - _NEAR):
            return False
        return self.most is None or value <= self.most * (1 + _NEAR)


@dataclass
class Session:
    """The data of one node: the documents by check, its metrics, and missed limits."""

    documents: Mapping[str, ResultDocument]
    metrics: Sequence[Metric] = ()
    misses: Sequence[Miss] = field(default_factory=list)


def evidence(transfers: Mapping[Key, Transfer]) -> list[Evidence]:
    """Return the evidence of transfers, in their order.

    The deviation of a healthy component is common to all transfers that it limits, so many such
    transfers give little more evidence than one. Where a way alone may be far behind, only what all
    ways share is common.
    """
    limits = {key: _limiting(transfer) for key, transfer in transfers.items()}
    sharing, spreads = Counter(limits.values()), rules.spreads()
    found = []
    for key, transfer in transfers.items():
        series = transfer.series
        sign = 1 if series["better"] == "higher" else -1
        spread = spreads[transfer.kind] / 100
        common = spreads[rules.ALL_WAYS.get(transfer.kind, transfer.kind)] / 100
        variance = (sharing[limits[key]] - 1) * common**2 + spread**2 + _noise(series) ** 2
        log = sign * math.log(series["median"])
        found.append(Evidence(log, variance, transfer.alike))
    return found


def _limiting(transfer: Transfer) -> Hashable:
    """Return the resources that limit a transfer: those without slack."""
    return frozenset(name for name, slack in transfer.slack.items() if slack < 0.01)


def _noise(series: Series) -> float:
    """Return the standard error of a median, as a fraction of it."""
    deviation = NORMAL * series["mad"] * MEDIAN_WIDER / math.sqrt(len(series["samples"]))
    return max(_LEAST_NOISE, deviation / series["median"])


def levels(session: Session, transfers: Mapping[Key, Transfer]) -> dict[Hashable, Level]:
    """Return the levels of groups that references state: the narrowest limit counts."""
    found: dict[Hashable, Level] = {}
    for metric in session.metrics:
        if metric.value is None or metric.reduce is None or not metric.reference:
            continue
        if metric.unit in ("%", "count"):
            continue
        check = metric.check_row.check or ""
        parts = [abs(math.log(limit / metric.reference)) for limit in (metric.least, metric.most)
                 if limit]  # fmt: skip
        keys = [(check, index) for index in metric.series or ()]
        its = [transfers[key] for key in keys if key in transfers]
        groups = {each.alike for each in its}
        if not parts or len(groups) != 1 or metric.reference <= 0:
            continue
        sign = 1 if its[0].series["better"] == "higher" else -1
        known = max(_LEAST_KNOWN, min(parts) / _OF_LIMIT)
        level = Level(sign * math.log(metric.reference), known**2)
        (group,) = groups
        if group not in found or level.variance < found[group].variance:
            found[group] = level
    return found


class Explanations:
    """The missed limits and low values that losses of transfers explain.

    A low value is a transfer that is behind the others of its group, or behind its level, by more
    than healthy transfers may be, or is one of the ways of a member that is so by all of them. A
    metric that is the worst of many can hide other low values.
    """

    def __init__(
        self,
        session: Session,
        transfers: Mapping[Key, Transfer],
        measured: Sequence[Evidence],
        known: Mapping[Hashable, Level],
    ) -> None:
        """Find the evidence of each miss.

        :param measured: the evidence of the transfers.
        :param known: the levels of their groups.
        """
        self._numbers = {key: number for number, key in enumerate(transfers)}
        self._devices_of = [transfer.series["device"] for transfer in transfers.values()]
        self._shares = grouped(
            ((key[0], at_once(transfer.series)), number)
            for number, (key, transfer) in enumerate(transfers.items())
        )
        self.misses = session.misses
        self.decided = [self._decided(miss, session) for miss in session.misses]
        self._devices = [named_devices(miss, session) for miss in session.misses]
        # A collective has no route of its own: its messages use the routes of its devices.
        self._collective = [
            bool(its) and all(series["direction"] == "collective" for series in its)
            for its in (series_of(miss, session) for miss in session.misses)
        ]
        self._in_turn = [
            any(is_in_turn(series) for series in series_of(miss, session))
            for miss in session.misses
        ]
        self.low = _low(transfers, measured, known)

    def _decided(self, miss: Miss, session: Session) -> list[list[int]]:
        """Return the evidence of each series that decided a metric, of a sum that of its parts."""
        found = []
        for index, series in zip(miss.series, series_of(miss, session), strict=False):
            if (miss.check, index) in self._numbers:
                found.append([self._numbers[miss.check, index]])
            else:
                numbers = (
                    number
                    for part in _parts(series)
                    for number in self._shares.get((miss.check, at_once(part)), ())
                    if series["device"] in (None, self._devices_of[number])
                )
                found.append(list(dict.fromkeys(numbers)))
        return [numbers for numbers in found if numbers]

    @property
    def concerned(self) -> frozenset[int]:
        """The evidence that decided a missed limit, or that is low."""
        decided = (number for miss in self.decided for numbers in miss for number in numbers)
        return frozenset((*decided, *self.low))

    def __call__(self, found: Hypothesis) -> frozenset[int]:
        """Return the missed limits that degraded components explain, and the low values.

        Missed limits have their indices; low evidence has its own indices after these.
        """
        count = len(self.misses)
        low = (
            count + number
            for number, log in self.low.items()
            if found.shifts.get(number, 0.0) <= log / 2
        )
        return frozenset(
            (*filter(lambda number: self._explains(number, found), range(count)), *low)
        )

    def _explains(self, number: int, found: Hypothesis) -> bool:
        miss, devices = self.misses[number], self._devices[number]
        if miss.sentence:
            return any(miss.place in loss.what.places for loss in found.losses
                       if isinstance(loss.what, Change))  # fmt: skip
        lost = [
            _left([found.shifts.get(index, 0.0) for index in indices], self._in_turn[number])
            for indices in self.decided[number]
        ]
        # A value computed from several series may follow their mean or the slowest of them.
        if (
            lost
            and min(lost) < -_NEAR
            and any(miss.reached_without(log) for log in (statistics.fmean(lost), min(lost)))
        ):
            return True
        return self._collective[number] and any(
            set(loss.what.devices) <= devices and _carries_messages(loss.what)
            for loss in found.losses
        )


def _low(
    transfers: Mapping[Key, Transfer],
    measured: Sequence[Evidence],
    known: Mapping[Hashable, Level],
) -> dict[int, float]:
    """Return the low evidence, with the logarithm of the fraction that it reaches."""
    groups = grouped((each.group, each.log) for each in measured)
    peers = {name: statistics.median(logs) for name, logs in groups.items()}
    about = {
        name: max(middle, known[name].log) if name in known else middle
        for name, middle in peers.items()
    }
    found: dict[int, float] = {}
    ways: dict[tuple[Any, ...], dict[int, float]] = {}
    for number, (transfer, its) in enumerate(zip(transfers.values(), measured, strict=True)):
        series = transfer.series
        if series["direction"] == "collective":
            continue  # slow messages slow it by an unknown amount
        behind = its.log - about[its.group]
        if behind < _limit(transfer.kind):
            found[number] = behind
        if transfer.kind in rules.ALL_WAYS:
            member = (
                transfer.key[0],
                transfer.kind,
                *series["device_set"],
                *(series.get("ranks") or ()),
            )
            ways.setdefault(member, {})[number] = its.log - peers[its.group]
    for (_, kind, *_), logs in ways.items():
        if len(logs) > 1 and max(logs.values()) < _limit(rules.ALL_WAYS[kind]):
            found |= logs
    return found


def _limit(kind: str) -> float:
    """Return the logarithm of the fraction of its peers below which a member is low."""
    return _LOW * math.log1p(-rules.allowed_percent(kind) / 100)


def _left(logs: Sequence[float], in_turn: bool) -> float:
    """Return the logarithm of the remaining rate of transfers in sequence, or at the same time.

    Simultaneous transfers end with the slowest.
    """
    return -math.log(statistics.fmean(math.exp(-log) for log in logs)) if in_turn else min(logs)


def _parts(series: Series) -> Iterator[Series]:
    """Yield the parts of a series without a route of its own: shares, or each direction."""
    if is_in_turn(series):
        ends = (series["source"], series["destination"])
        for operation, (source, destination) in (("h2d", ends), ("d2h", ends[::-1])):
            yield series | {  # type: ignore[misc]
                "operation": operation, "source": source, "destination": destination,
            }  # fmt: skip
    else:
        yield series | {"role": "share"}


def series_of(miss: Miss, session: Session) -> list[Series]:
    """Return the series that decided a missed limit."""
    document = session.documents.get(miss.check)
    return [] if document is None else [document["series"][index] for index in miss.series]


def _carries_messages(what: Candidate | Change) -> bool:
    """Whether messages between devices can use a component."""
    kinds = ("device", "package", "hbm", "messages", "link")
    return bool(what.devices) and (isinstance(what, Change) or what.component.kind in kinds)


def named_devices(miss: Miss, session: Session) -> frozenset[int]:
    """Return the devices of a missed limit; none where they are not stated."""
    if miss.sentence:
        return miss.place[0]
    document = session.documents.get(miss.check)
    if document is None:
        return frozenset()
    pairs = [device_pair(document["series"][index]) for index in miss.series]
    return frozenset(device for pair in pairs for device in pair)
