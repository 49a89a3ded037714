"""Faults that are drawn, planted in healthy sessions, and diagnosed.

What a fault takes of each transfer is computed on the node's routes by max-min fairness, with the
values that the healthy session was simulated with. The diagnosis knows the node model alone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from diagnosis import sessions
from diagnosis.sessions import Session as Drawn
from fabricheck.judge.diagnosis.components import Candidate, candidates, passes
from fabricheck.judge.diagnosis.diagnose import Miss, Session, diagnose
from fabricheck.judge.diagnosis.model import Component, Diagnosis
from fabricheck.judge.diagnosis.transfers import (
    Routes,
    Transfer,
    rates_of,
    transfers,
)
from fabricheck.judge.diagnosis.ways import Key, chosen_series
from fabricheck.node import NodeModel, load
from fabricheck.references import rules
from fabricheck.results.rows import Check, Metric
from fabricheck.results.series import shares_key

#: The components that are drawn, by how their names begin: first a kind is drawn, then one of it.
KINDS = (
    "HBM of device", "compute units of device", "device", "copy engines of device", "copy engine ",
    "host link to device", "host link from device", "host link of device", "pageable copies to",
    "pageable copies from", "pageable copies of device", "DDR of NUMA", "connection of NUMA",
    "link", "one direction", "messages of device", "rank on device", "latency of copies",
    "latency of messages", "links from",
)  # fmt: skip

#: The part of its bandwidth that a fault leaves: 3 % to all of it is lost.
LEAST_LEFT, MOST_LEFT = 0.01, 0.97


@dataclass(frozen=True)
class Fault:
    """A component, and the part of its bandwidth that it has left."""

    candidate: Candidate
    left: float

    @property
    def component(self) -> Component:
        """The component."""
        return self.candidate.component


class Node:
    """A node model with its healthy session."""

    def __init__(self, model: str) -> None:
        self.node: NodeModel = load(model)
        self.session: Drawn = sessions.healthy(model)
        self.passes = transfers(self.session.documents, Routes(self.node))
        names = {name for one in self.passes.values() for name in one.slack}
        touching = [one for one in candidates(self.node, self.passes.values())
                    if any(passes(one.component, name) for name in names)]  # fmt: skip
        self.kinds: dict[str, list[Candidate]] = {}
        for one in touching:
            kind = _kind(one)
            if kind is not None:
                self.kinds.setdefault(kind, []).append(one)

    @cached_property
    def _healthy(self) -> Mapping[Key, float]:
        return rates_of(chosen_series(self.session.documents), self._routes(()))

    def _routes(self, faults: Sequence[Fault]) -> Routes:
        found = Routes(self.node)
        for link in sessions.platform_of(self.node)["links"]:
            left = math.prod(one.left for one in faults if passes(one.component, link["name"]))
            found.gbs[link["name"]] = link["gbs"] * left
        return found

    def draw(self, rng: random.Random) -> Fault:
        """Draw a fault."""
        component = rng.choice(self.kinds[rng.choice(sorted(self.kinds))])
        return Fault(component, max(LEAST_LEFT, 1 - rng.uniform(1 - MOST_LEFT, 1)))

    def parts(self, faults: Sequence[Fault]) -> dict[Key, float]:
        """Return by series the part of its rate that faults leave, where that is not 1."""
        rates = rates_of(chosen_series(self.session.documents), self._routes(faults))
        parts: dict[Key, float] = {}
        for key, own in self.passes.items():
            part = rates[key] / self._healthy[key] if key in rates else 1.0
            if own.series["unit"] == "us":
                part = 1.0
            for fault in faults:
                virtual = own.gbs is None or fault.component.kind in ("rank", "compute_units")
                hit = [one for one in own.slack if passes(fault.component, one)]
                if virtual and hit and min(own.slack[one] for one in hit) == 0:
                    part = min(part, fault.left)
            if part != 1:
                parts[key] = part
        return parts | self._sums(parts)

    def _sums(self, parts: Mapping[Key, float]) -> dict[Key, float]:
        """Return what is left of sums of shares."""
        found: dict[Key, float] = {}
        for check, document in self.session.documents.items():
            shares: dict[object, list[tuple[float, float]]] = {}
            for index, series in enumerate(document["series"]):
                if series["role"] == "share":
                    own = (series["median"], parts.get((check, index), 1.0))
                    shares.setdefault(shares_key(series), []).append(own)
            for index, series in enumerate(document["series"]):
                if series["role"] == "sum":
                    every = shares.get(shares_key(series), [])
                    if any(part != 1 for _, part in every):
                        left = sum(value * part for value, part in every)
                        found[check, index] = left / sum(value for value, _ in every)
            found |= self._in_turn(check, parts)
        return found

    def _in_turn(self, check: str, parts: Mapping[Key, float]) -> dict[Key, float]:
        """Return what is left of copies there and back, one after the other."""
        found: dict[Key, float] = {}
        ways: dict[object, list[float]] = {}
        series_of = self.session.documents[check]["series"]

        def rank(series: Mapping[str, Any]) -> object:
            memories = {series["source"]["memory"], series["destination"]["memory"]}
            return (series.get("placement"), series["device"], series["bytes"],
                    frozenset(memories), tuple(series["ranks"] or ()))  # fmt: skip

        for index, series in enumerate(series_of):
            if series["experiment"] == "E6" and series["operation"] != "there-and-back":
                ways.setdefault(rank(series), []).append(1 / parts.get((check, index), 1.0))
        for index, series in enumerate(series_of):
            if series["operation"] == "there-and-back":
                found[check, index] = len(ways[rank(series)]) / sum(ways[rank(series)])
        return {key: part for key, part in found.items() if part != 1}

    def hidden(self, rng: random.Random, faults: Sequence[Fault]) -> bool:
        """Whether one of some faults cannot be seen beside the others.

        It misses no limit by itself in the session that is drawn next, or changes no value beside
        the others by more than healthy members of a node may differ.
        """
        every, state = self.parts(faults), rng.getstate()
        for one in faults:
            misses = self.sample(rng, [one]).misses
            rng.setstate(state)
            others = self.parts([other for other in faults if other is not one])
            if not misses or not any(
                every.get(key, 1.0) < self._least_healthy(own) * others.get(key, 1.0)
                for key, own in self.passes.items()
            ):
                return True
        return False

    def _least_healthy(self, one: Transfer) -> float:
        return 1 - rules.allowed_percent(one.kind) / 100

    def sample(self, rng: random.Random, faults: Sequence[Fault]) -> Session:
        """Draw a session with faults in it, as its checks judge it."""
        self.session.draw(rng, sessions.factors(rng, self.session.documents))
        self.session.apply(self.parts(faults))
        return judged(self.session)


def _kind(candidate: Candidate) -> str | None:
    component = candidate.component
    if component.label.endswith("one direction"):
        return "one direction"
    if component.kind == "device":
        return "device"
    if component.kind == "package" or not component.ids:
        return None  # what is wrong with all alike only a record shows
    own = [one for one in KINDS if component.label.startswith(one) and one != "device"]
    return max(own, key=len, default=None)


def judged(session: Drawn) -> Session:
    """Return the session with the limits of its metrics, and those that are missed."""
    metrics, misses = [], []
    for one in session.judged:
        document = session.documents[one.check]
        figure = one.metric.figure(document, one.population)
        made = figure.record(document, None)
        low, high = one.limits
        metrics.append(
            Metric(
                check_row=Check(check=one.check), recorded=None, record=made,
                metric=one.metric.name, value=figure.value, unit=one.metric.unit,
                reference=one.reference, least=low, most=high, series=made.series,
                reduce=made.reduce,
            )
        )  # fmt: skip
        if one.missed(document):
            places = {id(series): index for index, series in enumerate(document["series"])}
            own = {places[id(each)]: each for each in figure.decisive}
            misses.append(Miss(one.check, one.metric.name, metrics[-1], own))
    return Session(session.documents, metrics, misses)


def named(found: Diagnosis | None, most: int = 3) -> list[set[str]]:
    """Return the components that a diagnosis names, each with its equals."""
    every = (
        []
        if found is None
        else [{each.label for each in (one.component, *one.equals)} for one in found.degraded]
    )
    return [one for one in every if len(one) <= most]


def diagnosis(node: Node, session: Session) -> Diagnosis | None:
    """Return the diagnosis of a drawn session."""
    return diagnose(session, node.node)
