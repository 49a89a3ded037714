"""Limits without a published value: rules that compare measurements of the same node.

Their numbers are in ``rules.yaml`` beside the reference files, each with its source.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from fabricheck.core import models, peers, yaml_files
from fabricheck.core.models import StrictModel
from fabricheck.core.vocabulary import Unit
from fabricheck.references.entries import WIDEST_BELOW, Entry, report_only
from fabricheck.references.published import folder
from fabricheck.site.sites import OWN_FOLDER

FILE = "rules.yaml"

#: By collective how often its data pass from device to device, and the fewest bytes that each of n
#: devices sends or receives, as a fraction of the message size.
_PASSES = {"bcast": 1, "reduce": 1, "allreduce": 2, "reduce_scatter": 2, "allgather": 2}


#: The kinds of transfers that differ in how alike healthy members are.
TransferKind = Literal[
    "kernel",
    "kernel_over_several_links",
    "copy_engine",
    "host_link",
    "host_links_at_once",
    "host_link_both_ways",
    "pageable",
    "pageable_all_ways",
    "migration",
    "message",
    "latency",
    "message_latency",
    "host_latency",
    "small_copy",
    "small_host_copy",
    "devices_at_once",
    "nic",
    "nic_both_ways",
    "without_node_model",
]

#: By kind of transfer of which one way alone may be far behind: the kind of all ways of a member.
ALL_WAYS: Mapping[TransferKind, TransferKind] = {"pageable": "pageable_all_ways"}


#: The most that a rule may let a value be behind, as for limits of references (entries.is_wide).
WIDEST_PERCENT = round(-100 * WIDEST_BELOW)


class _Spread(StrictModel):
    spread_percent: float = Field(gt=0)
    recorded: str


class _Alike(StrictModel):
    least_percent: float = Field(gt=0)
    times: float = Field(gt=0)
    spreads: dict[TransferKind, _Spread]

    @model_validator(mode="after")
    def _are_limits(self) -> _Alike:
        for kind in self.spreads:
            allowed = self.allowed_percent(kind)
            if allowed > WIDEST_PERCENT:
                raise ValueError(
                    f"{kind} may be {allowed:g} % behind; more than {WIDEST_PERCENT} % is no limit"
                )
        return self

    def allowed_percent(self, kind: TransferKind) -> float:
        """Return how far a member may be behind the others, in percent."""
        spread = self.spreads[kind].spread_percent
        return round(peers.limit(spread, self.least_percent, self.times), 3)


class _Least(StrictModel):
    least_percent: float = Field(ge=100 - WIDEST_PERCENT, le=100)


class _NotJudged(StrictModel):
    recorded: str


class _Factor(StrictModel):
    factor: float = Field(gt=1, le=10)
    recorded: str
    not_judged: dict[str, _NotJudged] = {}


class _Collectives(StrictModel):
    pass_us: float = Field(gt=0)
    times: dict[str, _Factor]


class _Wider(StrictModel):
    least_percent: float = Field(gt=0, lt=100)
    recorded: str


class _SharedHost(StrictModel):
    not_judged: dict[TransferKind, _NotJudged]
    wider: dict[TransferKind, _Wider]


class _Floor(StrictModel):
    """A floor, its lowest record, and whether that is a demand, which nobody measured."""

    least_percent: float = Field(ge=100 - WIDEST_PERCENT, le=100)
    lowest: str
    demanded: bool = False


class _Floors(StrictModel):
    memory: dict[str, _Floor]
    direct_link: _Floor
    host_link: _Floor


class _File(StrictModel):
    alike: _Alike
    floors: _Floors
    both_ways: _Least
    together: _Least
    of_first: _Least
    collectives: _Collectives
    shared_host: _SharedHost


@dataclass(frozen=True)
class Rule:
    """The entry that a rule gives a metric, with the rule as its reason.

    is_peak: whether its value is a peak, which no healthy node reaches.
    """

    entry: Entry
    why: str
    is_peak: bool = False


def without_limit(unit: Unit, doubt: str) -> Rule:
    """Return the rule of a metric whose limit would rest on a doubtful fact.

    :param doubt: the fact (`NodeModel.doubt`).
    """
    return Rule(report_only(unit), f"no limit rests on {doubt}")


def alike(kind: TransferKind) -> Rule:
    """Return how far a member may be behind the median of the others.

    :param kind: the transfer, as named by its spread in ``rules.yaml``.
    """
    stated = _stated().alike
    part = allowed_percent(kind) / 100
    why = (
        f"members of a node are alike: {stated.least_percent:g} % behind the others, or "
        f"{stated.times:g} times the spread of {kind.replace('_', ' ')}"
    )
    return Rule((100, -part, None, "%"), why)


def allowed_percent(kind: TransferKind) -> float:
    """Return how far a member may be behind the others, in percent."""
    return _stated().alike.allowed_percent(kind)


def spreads() -> Mapping[TransferKind, float]:
    """Return by kind of transfer the standard deviation of healthy members, in percent."""
    return {kind: spread.spread_percent for kind, spread in _stated().alike.spreads.items()}


def left_to_a_shared_host(kind: TransferKind | None) -> bool:
    """Whether other users of a host decide a kind of transfer."""
    return kind in _stated().shared_host.not_judged


def allowed_on_a_shared_host(kind: TransferKind | None) -> float:
    """Return how far a kind of transfer may be below other machines or its peers, in percent.

    :returns: 0 for a kind that other users of the host do not change.
    """
    if kind not in _stated().shared_host.wider:
        return 0
    return _stated().shared_host.wider[kind].least_percent


def memory_floor(architecture: str, peak_gbs: float) -> Rule | None:
    """Return what STREAM copy on a device's own memory reaches on every healthy node.

    :param architecture: as the driver names it, such as gfx90a.
    :param peak_gbs: of the memory.
    :returns: None for an architecture of which no record exists.
    """
    stated = _stated().floors.memory.get(architecture)
    return None if stated is None else _floor(stated, peak_gbs, "the memory's peak")


def direct_link_floor(peak_gbs: float) -> Rule | None:
    """Return what a kernel reaches one way over the direct links of a pair on every healthy node.

    :param peak_gbs: of all links of the pair, one way.
    """
    return _floor(_stated().floors.direct_link, peak_gbs, "the links' peak")


def host_link_floor(peak_gbs: float) -> Rule | None:
    """Return what a copy of pinned memory near a device reaches one way on every healthy node.

    :param peak_gbs: of the host link, one way.
    """
    return _floor(_stated().floors.host_link, peak_gbs, "the host link's peak")


def _floor(stated: _Floor, peak_gbs: float, peak: str) -> Rule | None:
    if math.isinf(peak_gbs):
        return None  # it is unknown
    percent = f"{stated.least_percent:g} % of {peak}"
    if stated.demanded:
        why = f"no health check on record accepts a node below {percent}"
    else:
        why = f"no healthy node on record is below {percent}"
    lower = round(stated.least_percent / 100 - 1, 3)
    return Rule((peak_gbs, lower, None, "GB/s"), why, is_peak=True)


def both_ways() -> Rule:
    """Return what both directions at once must reach of the sum of each alone."""
    part = _stated().both_ways.least_percent / 100
    return Rule((100, part - 1, None, "%"), "both directions run at the same time")


def of_first() -> Rule:
    """Return what a member must reach of its own value when the session began."""
    part = _stated().of_first.least_percent / 100
    return Rule((100, round(part - 1, 3), None, "%"), "what is well stays so while a session runs")


def at_once() -> Rule:
    """Return what a pair must reach beside others: a part of its fair share of its solo value."""
    part = _stated().together.least_percent / 100
    return Rule((100, part - 1, None, "%"), "pairs at once share links as the node model states")


def collective(
    operation: str, size: int, devices: int, link_gbs: float, library: str, unit: Unit
) -> Rule:
    """Return what a collective must reach, from the slowest link of its devices.

    :param size: of the message in bytes, as the library's own benchmark counts it.
    :param library: whose factor applies: ``mpi``, ``rccl`` or ``simulated``.
    :param unit: us of its time, or GB/s of its bus bandwidth.
    """
    stated = _stated().collectives
    times = stated.times[library]
    if operation in times.not_judged:
        return Rule(report_only(unit), f"no limit: {times.not_judged[operation].recorded}")
    share = _share(operation, devices, whole=library == "rccl")
    allowed_us = _PASSES[operation] * stated.pass_us + share * size / link_gbs / 1e3
    factor = times.factor
    why = (
        f"its passes of {stated.pass_us:g} us and its bytes over {link_gbs:g} GB/s, the peak of "
        f"its slowest link, {factor:g} times"
    )
    if unit == "us":
        return Rule((round(allowed_us, 3), None, factor - 1, unit), why)
    bus = share * size / allowed_us / 1e3
    return Rule((round(bus, 3), round(1 / factor - 1, 6), None, unit), why)


def _share(operation: str, devices: int, whole: bool) -> float:
    """Return the fewest bytes that a device sends or receives, as a fraction of the message size.

    :param whole: whether the size of an allgather is that of the whole, not of each device's part.
    """
    others = (devices - 1) / devices
    if operation == "allgather":
        return others if whole else devices - 1
    return {"bcast": 1.0, "reduce": 1.0, "allreduce": 2 * others, "reduce_scatter": others}[
        operation
    ]


def _stated() -> _File:
    of_site = folder() / FILE
    path = of_site if of_site.exists() else OWN_FOLDER / FILE
    return _read(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=4)
def _read(path: Path, _changed: int) -> _File:
    return models.validated(_File, yaml_files.read(path), path)
