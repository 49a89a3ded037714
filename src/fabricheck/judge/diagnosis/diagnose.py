"""The diagnosis of a node: the components that explain its misses.

The evidence of its session are measured transfers, missed limits and known levels.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.core.statistics import MEDIAN_WIDER, NORMAL
from fabricheck.core.text import count
from fabricheck.judge.diagnosis.components import touching
from fabricheck.judge.diagnosis.hypotheses import Candidate, Evidence, Hypothesis, Loss
from fabricheck.judge.diagnosis.likelihood import Likelihood
from fabricheck.judge.diagnosis.model import Component, ComponentKind, Degraded, Diagnosis, Doubt
from fabricheck.judge.diagnosis.search import CONTRADICTS, EQUAL, Search
from fabricheck.judge.diagnosis.transfers import (
    Routes,
    Transfer,
    by_level,
    transfers,
)
from fabricheck.judge.diagnosis.ways import Key, is_in_turn
from fabricheck.node import NodeModel
from fabricheck.references import rules
from fabricheck.references.rules import TransferKind
from fabricheck.results.metric_records import is_within
from fabricheck.results.model import ResultDocument, Series
from fabricheck.results.rows import Metric
from fabricheck.results.series import Place, device_pair, members, shares_key

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

#: A diagnosis is unsure if more than this part of the measurements that a component touches are
#: faster than it predicts, if it explains less than this part of the misses, or has more
#: components, or more that are slow at some sizes only. Of 179 drawn single faults with the right
#: diagnosis none was contradicted by more than 0.2, one explained less than half, and none had
#: several components; of 142 double faults none was contradicted by more than 0.3.
_MOST_AGAINST, _LEAST_EXPLAINED, _MOST_AT_ONCE, _MOST_OF_SIZES = 0.3, 0.5, 2, 1

#: By check, the components that limit its measurements.
_LIMITS: Mapping[str, tuple[ComponentKind, ...]] = {
    "stream_local": ("device", "package", "hbm", "compute_units"),
    "p2p_engine": (
        "device", "copies", "copy_engines", "link", "latency_of_copies", "latency_of_link",
    ),
    "p2p_kernel": ("device", "package", "link", "kernel_accesses", "compute_units"),
    "memcpy_near": ("device", "host_link"),
    "memcpy_near_pageable": ("device", "pageable_copies"),
    "memcpy_numa": ("device", "ddr", "numa_connection"),
    "mpi_pairs": ("device", "messages", "link", "latency_of_messages"),
    "pingpong_right": ("device", "rank", "ddr"),
    "stream_concurrent": ("device", "ddr", "host_accesses", "compute_units"),
    "managed_zero_copy": ("device", "host_accesses", "compute_units"),
}  # fmt: skip


@dataclass(frozen=True)
class Miss:
    """A metric that missed its limits, or a difference from the node model.

    limited: the metric with its value and limits; None of a difference. series: by index in the
    document the series that decided it. sentence, place: of a difference.
    """

    check: str
    metric: str
    limited: Metric | None = None
    series: Mapping[int, Series] = field(default_factory=dict)
    sentence: str = ""
    place: Place = (frozenset(), None)

    @property
    def name(self) -> str:
        """The name of the miss in sentences."""
        return self.sentence or f"{self.check} {self.metric}"

    @cached_property
    def devices(self) -> frozenset[int]:
        """Its devices; none where they are not stated."""
        of_series = (device for series in self.series.values() for device in device_pair(series))
        return self.place[0] if self.sentence else frozenset(of_series)

    @cached_property
    def in_turn(self) -> bool:
        """Whether both directions were measured one after the other."""
        return any(map(is_in_turn, self.series.values()))

    @cached_property
    def collective(self) -> bool:
        """Whether it is of collectives: they have no route, but messages between its devices do."""
        directions = {series["direction"] for series in self.series.values()}
        return directions == {"collective"}

    def reached_without(self, log: float) -> bool:
        """Whether the limit would be reached without a loss.

        :param log: the logarithm of the remaining fraction of the rate.
        """
        if self.limited is None or self.limited.value is None:
            return False
        value = self.limited.value * math.exp(log if self.limited.unit == "us" else -log)
        least, most = self.limited.least, self.limited.most
        about_least = None if least is None else least * (1 - _NEAR)
        about_most = None if most is None else most * (1 + _NEAR)
        return is_within(value, about_least, about_most)


@dataclass
class Session:
    """The data of one node: the documents by check, its metrics, and missed limits."""

    documents: Mapping[str, ResultDocument]
    metrics: Sequence[Metric] = ()
    misses: Sequence[Miss] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether a member has less at the end of the session than at its begin."""
        return any(
            miss.limited is not None and miss.limited.reduce == "first" for miss in self.misses
        )


def diagnose(session: Session, node: NodeModel | None) -> Diagnosis | None:
    """Return what explains the misses of a session of one node; None if nothing was missed.

    :param node: its healthy node model; without one, only devices and pairs can be named.
    """
    if not session.misses:
        return None
    return _Diagnosed(_since_it_changed(session), node).diagnosis()


def _since_it_changed(session: Session) -> Session:
    """Return the session without what was measured before the node changed, if it did meanwhile.

    It changed where a member has less at the end than at the begin. What counts then is what was
    measured from the first missed limit on, and at the end.
    """
    if not session.changed:
        return session
    missed = {miss.check for miss in session.misses}
    repeated = {
        metric.check_row.check or "" for metric in session.metrics if metric.reduce == "first"
    }
    shown = session.documents.keys() & (missed | repeated)
    began = min(session.documents[check]["started"] for check in shown)
    documents = {
        check: document
        for check, document in session.documents.items()
        if document["started"] >= began
    }
    metrics = [metric for metric in session.metrics if metric.check_row.check in documents]
    return Session(documents, metrics, session.misses)


class _Diagnosed:
    """The session of one node, with the evidence of each miss and what explains them."""

    def __init__(self, session: Session, node: NodeModel | None) -> None:
        self.session, self.node = session, node
        self.routes = Routes(node) if node is not None else None
        self.transfers: Mapping[Key, Transfer] = transfers(session.documents, self.routes)
        known = levels(session, self.transfers)
        if self.routes is not None:
            references = {name: math.exp(level.log) for name, level in known.items()}
            self.transfers = by_level(self.transfers, self.routes, references)
        measured = evidence(self.transfers)
        self.low = _low(self.transfers, measured, known)
        self.decided = [*self._decided()]
        decided = (number for miss in self.decided for numbers in miss for number in numbers)
        #: The evidence that decided a missed limit, or that is low.
        self.concerned = frozenset((*decided, *self.low))
        touched = touching(node, session.documents, self.transfers, self.concerned)
        self.likelihood = Likelihood(measured, known)
        self.search = Search(self.likelihood, touched)

    def _decided(self) -> Iterator[list[list[int]]]:
        """Yield by miss the evidence of each series that decided it, of a sum that of its parts."""
        numbers = {key: number for number, key in enumerate(self.transfers)}
        devices = [transfer.series["device"] for transfer in self.transfers.values()]
        shares = grouped(
            ((check, shares_key(transfer.series)), numbers[check, index])
            for (check, index), transfer in self.transfers.items()
        )

        def evidence_of(check: str, index: int, series: Series) -> list[int]:
            if (check, index) in numbers:
                return [numbers[check, index]]
            of_parts = [
                number
                for part in _parts(series)
                for number in shares.get((check, shares_key(part)), ())
            ]
            mine = [number for number in of_parts if series["device"] in (None, devices[number])]
            return list(dict.fromkeys(mine))

        for miss in self.session.misses:
            of_series = (
                evidence_of(miss.check, index, series) for index, series in miss.series.items()
            )
            yield list(filter(None, of_series))

    def diagnosis(self) -> Diagnosis:
        best, tried = self.search.best(self.explains)
        misses = self.session.misses
        explained = {explain for explain in self.explains(best) if explain < len(misses)}
        degraded = [self._degraded(best, tried, loss) for loss in best.losses]
        doubts = [*_doubts(degraded, len(explained), len(misses))]
        return Diagnosis(
            node_model=self.node.name if self.node is not None else None,
            misses=len(misses),
            explained=len(explained),
            degraded=degraded,
            unsure=bool(doubts),
            doubts=doubts,
            unexplained=[
                miss.name for number, miss in enumerate(misses) if number not in explained
            ],
            lacking=[*self._lacking()],
        )

    def explains(self, hypothesis: Hypothesis) -> frozenset[int]:
        """Return the missed limits that degraded components explain, and the low values.

        Missed limits have their indices; low evidence has its own indices after these.
        """
        count = len(self.session.misses)
        low = (
            count + number
            for number, log in self.low.items()
            if hypothesis.shifts.get(number, 0.0) <= log / 2
        )
        return frozenset(
            (*filter(lambda number: self._is_explained(number, hypothesis), range(count)), *low)
        )

    def _is_explained(self, number: int, hypothesis: Hypothesis) -> bool:
        miss = self.session.misses[number]
        if miss.sentence:
            return any(miss.place in (loss.what.places or ()) for loss in hypothesis.losses)
        lost = [
            _left([hypothesis.shifts.get(index, 0.0) for index in indices], miss.in_turn)
            for indices in self.decided[number]
        ]
        # A value computed from several series may follow their mean or the slowest of them.
        if (
            lost
            and min(lost) < -_NEAR
            and any(miss.reached_without(log) for log in (statistics.fmean(lost), min(lost)))
        ):
            return True
        return miss.collective and any(
            miss.devices.issuperset(loss.what.devices) and _carries_messages(loss.what)
            for loss in hypothesis.losses
        )

    def _degraded(self, best: Hypothesis, tried: Sequence[Hypothesis], loss: Loss) -> Degraded:
        others = [other for other in best.losses if other is not loss]
        without = self.search.with_losses(others)
        alone = self.search.with_losses([loss])
        explained = self.explains(alone) | (self.explains(best) - self.explains(without))
        equals = self._equals(best, tried, loss)
        supporting, contradicting = self._measurements(best, alone)
        return Degraded(
            component=loss.what.component,
            equals=equals,
            loss_percent=_loss(loss),
            sizes=self._sizes(loss, explained),
            devices=list(loss.what.devices),
            explains=sum(number < len(self.session.misses) for number in explained),
            odds=round(best.likelier_than(without), 1),
            supporting=supporting,
            contradicting=contradicting,
            next=self._further([loss.what.component, *equals]),
        )

    def _sizes(self, loss: Loss, explained: Collection[int]) -> tuple[int, int] | None:
        """Return the sizes of a loss at some sizes only, with those of what it explains."""
        if loss.what.sizes is None:
            return None
        misses = [miss for number, miss in enumerate(self.session.misses) if number in explained]
        sizes = [series["bytes"] for miss in misses for series in miss.series.values()]
        return min(*loss.what.sizes, *sizes), max(*loss.what.sizes, *sizes)

    def _equals(
        self, best: Hypothesis, tried: Sequence[Hypothesis], replaced: Loss
    ) -> list[Component]:
        """Return components that would explain as much in place of this one."""
        rest = {loss.what.component for loss in best.losses if loss is not replaced}
        explained = self.explains(best)
        equals = []
        for hypothesis in tried:
            if hypothesis.cost > best.cost + EQUAL or not explained <= self.explains(hypothesis):
                continue
            components = [each.what.component for each in hypothesis.losses]
            other = [each for each in components if each not in rest]
            same = len(components) == len(best.losses) and len(other) == 1
            if same and other[0] != replaced.what.component:
                equals.append(other[0])
        return equals

    def _measurements(self, best: Hypothesis, alone: Hypothesis) -> tuple[list[str], list[str]]:
        """Return the measurements that support a component, and those that contradict it."""
        names = [
            " ".join((check, transfer.series["operation"], *members(transfer.series)))
            for (check, _), transfer in self.transfers.items()
        ]
        numbers = sorted(alone.shifts, key=lambda number: alone.shifts[number])
        by_side = grouped(
            (above > CONTRADICTS, names[number])
            for number, above in zip(numbers, self.likelihood.residuals(best, numbers), strict=True)
        )
        supporting, contradicting = (
            list(dict.fromkeys(by_side.get(side, ()))) for side in (False, True)
        )
        return supporting, contradicting

    def _further(self, equals: Sequence[Component]) -> list[str]:
        """Return the checks, not in the session, that tell some components from the others."""
        limited = {
            check: sum(equal.kind in kinds for equal in equals)
            for check, kinds in _LIMITS.items()
            if self.node is not None and check not in self.session.documents
        }
        return [check for check, number in limited.items() if 0 < number < len(equals)]

    def _lacking(self) -> Iterator[str]:
        if self.node is None:
            yield (
                "There is no node model: links, engines and memory cannot be told apart, only "
                "devices and pairs."
            )
        elif not self.transfers:
            yield "No document has a measurement whose way through the node is known."
        if self.session.changed:
            yield "The node changed during the session: what was measured before is left out."
        if not self.concerned and not any(miss.sentence for miss in self.session.misses):
            yield "It is unknown which measurements decided the missed limits."
        wrong = [
            check
            for check, document in self.session.documents.items()
            if any(series["verification"]["errors"] for series in document["series"])
        ]
        if wrong:
            yield f"Wrong data in {listed(wrong)}: the speed of wrong data proves little."
        noisy = sum(transfer.series["noisy"] for transfer in self.transfers.values())
        if noisy:
            yield f"{count(noisy, 'measurement')} of {len(self.transfers)} are noisy."


def _doubts(degraded: Sequence[Degraded], explained: int, misses: int) -> Iterator[Doubt]:
    """Yield why the components of a diagnosis are only candidates.

    :param explained: how many of the misses they explain.
    """
    if any(_is_contradicted(component) for component in degraded):
        yield "contradicted"
    if degraded and explained < _LEAST_EXPLAINED * misses:
        yield "unexplained"
    of_sizes = [component for component in degraded if component.sizes is not None]
    if len(degraded) > _MOST_AT_ONCE or len(of_sizes) > _MOST_OF_SIZES:
        yield "many"


def _is_contradicted(component: Degraded) -> bool:
    against = len(component.contradicting)
    return against > _MOST_AGAINST * (against + len(component.supporting))


def _loss(loss: Loss) -> float | None:
    if loss.what.places is not None:
        return None
    if loss.what.component.is_latency:
        return round(100 * (math.exp(-loss.log) - 1), 1)
    return round(100 * (1 - math.exp(loss.log)), 1)


def evidence(transfers: Mapping[Key, Transfer]) -> list[Evidence]:
    """Return the evidence of transfers, in their order.

    The deviation of a healthy component is common to all transfers that it limits, so many such
    transfers give little more evidence than one. Where a way alone may be far behind, only what all
    ways share is common.
    """
    # What limits a transfer are the resources without slack.
    limits = {
        key: frozenset(name for name, slack in transfer.slack.items() if slack < 0.01)
        for key, transfer in transfers.items()
    }
    sharing, spreads = Counter(limits.values()), rules.spreads()
    of_transfers = []
    for key, transfer in transfers.items():
        series = transfer.series
        sign = 1 if series["better"] == "higher" else -1
        spread = spreads[transfer.kind] / 100
        common = spreads[rules.ALL_WAYS.get(transfer.kind, transfer.kind)] / 100
        variance = (sharing[limits[key]] - 1) * common**2 + spread**2 + _noise(series) ** 2
        log = sign * math.log(series["median"])
        of_transfers.append(Evidence(log, variance, transfer.alike))
    return of_transfers


def _noise(series: Series) -> float:
    """Return the standard error of a median, as a fraction of it."""
    deviation = NORMAL * series["mad"] * MEDIAN_WIDER / math.sqrt(len(series["samples"]))
    return max(_LEAST_NOISE, deviation / series["median"])


def levels(session: Session, transfers: Mapping[Key, Transfer]) -> dict[Hashable, Evidence]:
    """Return the levels of groups that references state: the narrowest limit counts.

    A peak is no level: every healthy node is below it.
    """
    level_of: dict[Hashable, Evidence] = {}
    for metric in session.metrics:
        if metric.value is None or metric.reduce is None or not metric.reference:
            continue
        if metric.unit in ("%", "count"):
            continue
        if metric.record is not None and metric.record.is_peak:
            continue
        check = metric.check_row.check or ""
        parts = [abs(math.log(limit / metric.reference)) for limit in (metric.least, metric.most)
                 if limit]  # fmt: skip
        keys = [(check, index) for index in metric.series or ()]
        chosen = [transfers[key] for key in keys if key in transfers]
        groups = {each.alike for each in chosen}
        if not parts or len(groups) != 1 or metric.reference <= 0:
            continue
        sign = 1 if chosen[0].series["better"] == "higher" else -1
        known = max(_LEAST_KNOWN, min(parts) / _OF_LIMIT)
        (group,) = groups
        level = Evidence(sign * math.log(metric.reference), known**2, group)
        if group not in level_of or level.variance < level_of[group].variance:
            level_of[group] = level
    return level_of


def _low(
    transfers: Mapping[Key, Transfer],
    measured: Sequence[Evidence],
    known: Mapping[Hashable, Evidence],
) -> dict[int, float]:
    """Return the low evidence, with the logarithm of the fraction that it reaches.

    A low value is a transfer that is behind the others of its group, or behind its level, by more
    than healthy transfers may be, or is one of the ways of a member that is so by all of them. A
    metric that is the worst of many can hide other low values.
    """
    groups = grouped((each.group, each.log) for each in measured)
    peers = {name: statistics.median(logs) for name, logs in groups.items()}
    about = {
        name: max(middle, known[name].log) if name in known else middle
        for name, middle in peers.items()
    }
    logs_of: dict[int, float] = {}
    ways: dict[tuple[Any, ...], dict[int, float]] = {}
    for number, (transfer, seen) in enumerate(zip(transfers.values(), measured, strict=True)):
        series = transfer.series
        if series["direction"] == "collective":
            continue  # slow messages slow it by an unknown amount
        behind = seen.log - about[seen.group]
        if behind < _limit(transfer.kind):
            logs_of[number] = behind
        if transfer.kind in rules.ALL_WAYS:
            member = (
                transfer.key[0],
                transfer.kind,
                *series["device_set"],
                *(series.get("ranks") or ()),
            )
            ways.setdefault(member, {})[number] = seen.log - peers[seen.group]
    for (_, kind, *_), logs in ways.items():
        if len(logs) > 1 and max(logs.values()) < _limit(rules.ALL_WAYS[kind]):
            logs_of |= logs
    return logs_of


def _limit(kind: TransferKind) -> float:
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


def _carries_messages(what: Candidate) -> bool:
    """Whether messages between devices can use a component."""
    kinds = ("device", "package", "hbm", "messages", "link")
    return bool(what.devices) and (what.places is not None or what.component.kind in kinds)
