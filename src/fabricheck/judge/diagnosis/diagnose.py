"""The diagnosis of a node: the components that explain its misses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fabricheck.core.text import count
from fabricheck.judge.diagnosis import evidence as gathered
from fabricheck.judge.diagnosis.changes import changes
from fabricheck.judge.diagnosis.components import Change, Component, components
from fabricheck.judge.diagnosis.evidence import Explanations, Session
from fabricheck.judge.diagnosis.model import Degraded, Diagnosis
from fabricheck.judge.diagnosis.search import CONTRADICTS, EQUAL, Hypothesis, Named, Search
from fabricheck.judge.diagnosis.transfers import Key, Routes, Transfer, by_level, transfers
from fabricheck.node import NodeModel

#: The number of measurements named for and against a component.
MOST_NAMED = 8


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
            references = {name: math.exp(one.log) for name, one in known.items()}
            self.transfers = by_level(self.transfers, self.routes, references)
        measured = gathered.evidence(self.transfers)
        self.explains = Explanations(session, self.transfers, measured, known)
        self.search = Search(measured, known, self._components(), self._changes())

    def _components(self) -> Iterator[tuple[Component, Mapping[int, float]]]:
        """Yield the components that limit transfers to be explained, and all they touch."""
        every = list(self.transfers.values())
        passing: dict[str, list[int]] = {}
        for number, one in enumerate(every):
            for name in one.slack:
                passing.setdefault(name, []).append(number)
        concerned = {name for number in self.explains.concerned for name in every[number].slack}
        for component in components(self.node, every):
            if not any(component.all_of(concerned)):
                continue
            own = list(component.all_of(passing))
            touched = _touched(own, passing, [one.slack for one in every])
            yield component, touched
            loose = _touched(own, passing, [one.loose or one.slack for one in every])
            if loose != touched:
                yield replace(component, loose=True), loose

    def _changes(self) -> Iterator[Change]:
        """Yield the other wirings that can explain something."""
        if self.node is None:
            return
        every = list(self.transfers.values())
        links = {
            name for number in self.explains.concerned for name in every[number].slack
            if name.startswith(("link ", "latency of link "))
        }  # fmt: skip
        yield from changes(self.node, self.session.documents, self.transfers, links)

    def diagnosis(self) -> Diagnosis:
        best, tried = self.search.best(self.explains)
        misses = self.session.misses
        explained = {one for one in self.explains(best) if one < len(misses)}
        return Diagnosis(
            node_model=self.node.name if self.node is not None else None,
            misses=len(misses),
            explained=len(explained),
            degraded=[self._degraded(best, tried, one) for one in best.named],
            unexplained=[one.name for number, one in enumerate(misses) if number not in explained],
            lacking=[*self._lacking()],
        )

    def _degraded(self, best: Hypothesis, tried: Sequence[Hypothesis], own: Named) -> Degraded:
        others = [one for one in best.named if one is not own]
        without = self.search.with_named(others)
        alone = self.search.with_named([own])
        explained = self.explains(alone) | (self.explains(best) - self.explains(without))
        equals = self._equals(best, tried, own)
        supporting, contradicting = self._measurements(best, alone)
        return Degraded(
            component=own.what.name,
            equals=[one.name for one in equals],
            loss_percent=_loss(own),
            longer=isinstance(own.what, Component) and own.what.is_latency,
            devices=list(own.what.devices),
            explains=sum(one < len(self.session.misses) for one in explained),
            odds=round((without.cost - best.cost) / 2 / math.log(10), 1),
            supporting=supporting,
            contradicting=contradicting,
            next=further(own.what, equals, self.session, self.node),
        )

    def _equals(
        self, best: Hypothesis, tried: Sequence[Hypothesis], own: Named
    ) -> list[Component | Change]:
        """Return components that would explain as much in place of this one."""
        rest = {one.what.name for one in best.named if one is not own}
        explained = self.explains(best)
        found = []
        for one in tried:
            if one.cost > best.cost + EQUAL or not explained <= self.explains(one):
                continue
            other = [each.what for each in one.named if each.what.name not in rest]
            same = len(one.named) == len(best.named) and len(other) == 1
            if same and other[0].name != own.what.name:
                found.append(other[0])
        return found

    def _measurements(self, best: Hypothesis, alone: Hypothesis) -> tuple[list[str], list[str]]:
        """Return the measurements that support a component, and those that contradict it."""
        keys = list(self.transfers)
        ordered = sorted(alone.shifts.items(), key=lambda one: one[1])
        supporting: list[str] = []
        contradicting: list[str] = []
        numbers = [number for number, _ in ordered]
        for number, above in zip(numbers, self.search.residuals(best, numbers), strict=True):
            into = contradicting if above > CONTRADICTS else supporting
            into.append(_named(keys[number], self.transfers[keys[number]]))
        return _some(supporting), _some(contradicting)

    def _lacking(self) -> Iterator[str]:
        if self.node is None:
            yield (
                "There is no node model: links, engines and memory cannot be told apart, only "
                "devices and pairs."
            )
        elif not self.transfers:
            yield "No document has a measurement whose way through the node is known."
        if not self.explains.concerned and not any(one.sentence for one in self.session.misses):
            yield "Nothing tells which measurements decided the misses."
        wrong = [
            check
            for check, document in self.session.documents.items()
            if any(one["verification"]["errors"] for one in document["series"])
        ]
        if wrong:
            yield f"Wrong data in {', '.join(wrong)}: the speed of what is wrong proves little."
        noisy = sum(one.series["noisy"] for one in self.transfers.values())
        if noisy:
            yield f"{count(noisy, 'measurement')} of {len(self.transfers)} are noisy."


def _touched(
    names: Iterable[str],
    passing: Mapping[str, Sequence[int]],
    slacks: Sequence[Mapping[str, float]],
) -> dict[int, float]:
    """Return the indices of the transfers that use some resources, with the slack there."""
    found: dict[int, float] = {}
    for name in names:
        for number in passing[name]:
            slack = slacks[number][name]
            found[number] = min(slack, found.get(number, slack))
    return found


def _loss(own: Named) -> float | None:
    if isinstance(own.what, Change):
        return None
    if own.what.is_latency:
        return round(100 * (math.exp(-own.log) - 1), 1)
    return round(100 * (1 - math.exp(own.log)), 1)


def _named(key: Key, one: Transfer) -> str:
    series = one.series
    devices = "-".join(map(str, series["device_set"])) or "host"
    if len(series["device_set"]) > 2:
        ends = (series["source"]["device"], series["destination"]["device"])
        ends_known = [str(end) for end in ends if end is not None]
        devices = f"{'-'.join(ends_known)} of {len(series['device_set'])}"
    return f"{key[0]} {series['operation']} {devices}"


def _some(names: Sequence[str]) -> list[str]:
    distinct = list(dict.fromkeys(names))
    more = len(distinct) - MOST_NAMED
    return [*distinct[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]


#: By check, the resources that limit its measurements, by the first words of their names.
_LIMITS = {
    "stream_local": ("memory of device", "kernels of device"),
    "p2p_engine": ("copy engine of copies device", "link ", "latency of copies", "latency of link"),
    "p2p_kernel": ("link ", "accesses of kernels"),
    "memcpy_near": ("host link",),
    "memcpy_near_pageable": ("pageable copies",),
    "memcpy_numa": ("memory of domain", "interconnect"),
    "mpi_pairs": ("copy engine of messages", "link ", "latency of messages"),
    "pingpong_right": ("rank on device", "memory of domain"),
    "stream_concurrent": ("memory of domain", "host reads", "host writes"),
    "managed_zero_copy": ("host reads", "host writes"),
}


def further(
    own: Component | Change,
    equals: Sequence[Component | Change],
    session: Session,
    node: NodeModel | None,
) -> list[str]:
    """Return the checks that distinguish a component from equally good explanations.

    Only checks that the session lacks are returned; none if there is no other explanation.
    """
    if not equals or node is None:
        return []
    every = [one for one in (own, *equals) if isinstance(one, Component)]
    return [*_telling(every, session)]


def _telling(every: Sequence[Component], session: Session) -> Iterator[str]:
    for check, words in _LIMITS.items():
        limited = {one.name for one in every if any(_begins(one, word) for word in words)}
        if check not in session.documents and 0 < len(limited) < len(every):
            yield check


def _begins(component: Component, word: str) -> bool:
    """Whether the name of any of a component's resources starts with a word."""
    starts = (pattern.split("*")[0] for pattern in component.resources)
    return any(one.startswith(word) or word.startswith(one) for one in starts)
