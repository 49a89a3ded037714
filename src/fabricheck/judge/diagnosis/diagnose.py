"""The diagnosis of a node: the components that explain its misses."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fabricheck.core.grouping import grouped
from fabricheck.core.text import count
from fabricheck.judge.diagnosis import evidence as gathered
from fabricheck.judge.diagnosis.changes import changes
from fabricheck.judge.diagnosis.components import (
    OF_SIZES,
    RESOURCES,
    Candidate,
    Change,
    candidates,
    passes,
)
from fabricheck.judge.diagnosis.evidence import Explanations, Session
from fabricheck.judge.diagnosis.model import Component, ComponentKind, Degraded, Diagnosis
from fabricheck.judge.diagnosis.search import (
    CONTRADICTS,
    EQUAL,
    FURTHER_GAIN,
    Hypothesis,
    Loss,
    Search,
)
from fabricheck.judge.diagnosis.transfers import Key, Routes, Transfer, by_level, transfers
from fabricheck.node import NodeModel
from fabricheck.node.platform import Resource, ResourceKind
from fabricheck.results.series import members

_LINKS: tuple[ResourceKind, ...] = (
    "link {0.number}-{1.number}",
    "latency of link {0.number}-{1.number}",
)

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


def diagnose(session: Session, node: NodeModel | None) -> Diagnosis | None:
    """Return what explains the misses of a session of one node; None if nothing was missed.

    :param node: its healthy node model; without one, only devices and pairs can be named.
    """
    if not session.misses:
        return None
    return _Diagnosed(session, node).diagnosis()


class _Diagnosed:
    def __init__(self, session: Session, node: NodeModel | None) -> None:
        self.session, self.node = session, node
        self.routes = Routes(node) if node is not None else None
        self.transfers: Mapping[Key, Transfer] = transfers(session.documents, self.routes)
        known = gathered.levels(session, self.transfers)
        if self.routes is not None:
            references = {name: math.exp(level.log) for name, level in known.items()}
            self.transfers = by_level(self.transfers, self.routes, references)
        measured = gathered.evidence(self.transfers)
        self.explains = Explanations(session, self.transfers, measured, known)
        self.search = Search(measured, known, self._candidates(), self._changes())

    def _candidates(self) -> Iterator[tuple[Candidate, Mapping[int, float]]]:
        """Yield the components that limit transfers to be explained, and all they touch."""
        measured = list(self.transfers.values())
        self._bytes = [transfer.series["bytes"] for transfer in measured]
        passing = grouped(
            (name, number) for number, transfer in enumerate(measured) for name in transfer.slack
        )
        concerned = {name for number in self.explains.concerned for name in measured[number].slack}
        by_kind = grouped((name.kind, name) for name in passing)
        for candidate in candidates(self.node, measured):
            resources = [
                name
                for kind in RESOURCES[candidate.component.kind]
                for name in by_kind.get(kind, ())
                if passes(candidate.component, name)
            ]
            if concerned.isdisjoint(resources):
                continue
            touched = _touched(resources, passing, [transfer.slack for transfer in measured])
            yield candidate, touched
            loose = _touched(
                resources, passing, [transfer.loose or transfer.slack for transfer in measured]
            )
            if loose != touched:
                yield replace(candidate, loose=True), loose
            if candidate.component.kind in OF_SIZES:
                yield from self._at_some_sizes(candidate, touched)

    def _at_some_sizes(
        self, candidate: Candidate, touched: Mapping[int, float]
    ) -> Iterator[tuple[Candidate, Mapping[int, float]]]:
        """Yield a component that is slower for transfers of some sizes, if others are not slow."""
        sizes = {number: self._bytes[number] for number in touched}
        slow = [sizes[number] for number in touched if number in self.explains.concerned]
        of_sizes = {number: slack for number, slack in touched.items()
                    if min(slow) <= sizes[number] <= max(slow)}  # fmt: skip
        if len(of_sizes) < len(touched):
            known = (min(slow), max(slow))
            yield replace(candidate, sizes=known, cost=FURTHER_GAIN), of_sizes

    def _changes(self) -> Iterator[Change]:
        """Yield the other wirings that can explain something."""
        if self.node is None:
            return
        measured = list(self.transfers.values())
        links = {
            name
            for number in self.explains.concerned for name in measured[number].slack
            if name.kind in _LINKS
        }  # fmt: skip
        yield from changes(self.node, self.session.documents, self.transfers, links)

    def diagnosis(self) -> Diagnosis:
        best, tried = self.search.best(self.explains)
        misses = self.session.misses
        explained = {explain for explain in self.explains(best) if explain < len(misses)}
        return Diagnosis(
            node_model=self.node.name if self.node is not None else None,
            misses=len(misses),
            explained=len(explained),
            degraded=[self._degraded(best, tried, loss) for loss in best.losses],
            unexplained=[
                miss.name for number, miss in enumerate(misses) if number not in explained
            ],
            lacking=[*self._lacking()],
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
            odds=round((without.cost - best.cost) / 2 / math.log(10), 1),
            supporting=supporting,
            contradicting=contradicting,
            next=self._further([loss.what.component, *equals]),
        )

    def _sizes(self, loss: Loss, explained: Collection[int]) -> tuple[int, int] | None:
        """Return the sizes of a loss at some sizes only, with those of what it explains."""
        if isinstance(loss.what, Change) or loss.what.sizes is None:
            return None
        sizes = [
            series["bytes"]
            for number, miss in enumerate(self.session.misses) if number in explained
            for series in gathered.series_of(miss, self.session)
        ]  # fmt: skip
        return min(*loss.what.sizes, *sizes), max(*loss.what.sizes, *sizes)

    def _equals(
        self, best: Hypothesis, tried: Sequence[Hypothesis], replaced: Loss
    ) -> list[Component]:
        """Return components that would explain as much in place of this one."""
        rest = {loss.what.component for loss in best.losses if loss is not replaced}
        explained = self.explains(best)
        found = []
        for hypothesis in tried:
            if hypothesis.cost > best.cost + EQUAL or not explained <= self.explains(hypothesis):
                continue
            components = [each.what.component for each in hypothesis.losses]
            other = [each for each in components if each not in rest]
            same = len(components) == len(best.losses) and len(other) == 1
            if same and other[0] != replaced.what.component:
                found.append(other[0])
        return found

    def _measurements(self, best: Hypothesis, alone: Hypothesis) -> tuple[list[str], list[str]]:
        """Return the measurements that support a component, and those that contradict it."""
        names = [
            " ".join((check, transfer.series["operation"], *members(transfer.series)))
            for (check, _), transfer in self.transfers.items()
        ]
        numbers = sorted(alone.shifts, key=lambda number: alone.shifts[number])
        by_side = grouped(
            (above > CONTRADICTS, names[number])
            for number, above in zip(numbers, self.search.residuals(best, numbers), strict=True)
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
        if not self.explains.concerned and not any(miss.sentence for miss in self.session.misses):
            yield "It is unknown which measurements decided the missed limits."
        wrong = [
            check
            for check, document in self.session.documents.items()
            if any(series["verification"]["errors"] for series in document["series"])
        ]
        if wrong:
            yield f"Wrong data in {', '.join(wrong)}: the speed of what is wrong proves little."
        noisy = sum(transfer.series["noisy"] for transfer in self.transfers.values())
        if noisy:
            yield f"{count(noisy, 'measurement')} of {len(self.transfers)} are noisy."


def _touched(
    names: Iterable[Resource],
    passing: Mapping[Resource, Sequence[int]],
    slacks: Sequence[Mapping[Resource, float]],
) -> dict[int, float]:
    """Return the indices of the transfers that use some resources, with the slack there."""
    found = grouped((number, slacks[number][name]) for name in names for number in passing[name])
    return {number: min(its) for number, its in found.items()}


def _loss(loss: Loss) -> float | None:
    if isinstance(loss.what, Change):
        return None
    if loss.what.component.is_latency:
        return round(100 * (math.exp(-loss.log) - 1), 1)
    return round(100 * (1 - math.exp(loss.log)), 1)
