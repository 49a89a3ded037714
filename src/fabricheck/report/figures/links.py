"""The state of the links of a node: the lowest value of each, as a fraction of its reference."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from fabricheck.core.grouping import grouped
from fabricheck.report.figures.rows import expected_by, of_point
from fabricheck.results.observed import Observed
from fabricheck.results.table import Metric, Pair, Series, largest

#: The states: within its limits; outside; with a peak only; without a value.
State = Literal["within", "outside", "peak", "missing"]

#: Transfers over the link between two devices, by bandwidth: experiment, operation, role. MPI is
#: left out because it has costs of its own.
_PEERS = (
    ("E8", "write", "single"),
    ("E8", "read", "single"),
    ("E8", "copy", "single"),
    ("E7", "engine", "single"),
    ("E7", "engine-both", "sum"),
)

#: Without a reference, the first of these that exists is compared with the peak of one direction.
_OF_PEAK = (("E8", "write"), ("E8", "read"), ("E7", "engine"))


@dataclass(frozen=True)
class Found:
    """A series over a link, and its expected value: a reference, else the peak."""

    point: Series
    expected: Metric | None
    peak: float

    @property
    def wanted(self) -> float:
        """The expected value."""
        return (self.expected and self.expected.reference) or self.peak

    @property
    def part(self) -> float:
        """Its value as a fraction of the expected one."""
        return self.point.value / self.wanted

    @property
    def state(self) -> State:
        """Whether it is within the limits of its reference."""
        if self.expected is None:
            return "peak"
        return "outside" if self.expected.is_beyond(self.point.value) else "within"


@dataclass(frozen=True)
class Health:
    """The state of one link: its series, and the series that decides."""

    name: str
    every: tuple[Found, ...]

    @property
    def decides(self) -> Found | None:
        """The lowest of the series beyond their limits, else of all."""
        outside = [found for found in self.every if found.state == "outside"]
        return min(outside or self.every, key=lambda one: one.part, default=None)

    @property
    def state(self) -> State:
        """Whether the link is within the limits of this session's references."""
        return self.decides.state if self.decides else "missing"

    @property
    def part(self) -> float:
        """The lowest fraction of the expected value; 0 for a link without a value."""
        return self.decides.part if self.decides else 0.0

    @property
    def text(self) -> str:
        """The percentage; empty without a value."""
        return f"{100 * self.part:.0f} %" if self.decides else ""

    def rows(self) -> list[dict[str, Any]]:
        """Return the data of the link."""
        return [
            of_point(
                self.name,
                found.point,
                expected=found.wanted,
                expected_is="reference" if found.expected else "peak",
                limit=found.expected.limit if found.expected else None,
                percent=100 * found.part,
                state=found.state,
            )
            for found in self.every
        ]


def peers(observed: Observed, pairs: Iterable[Pair]) -> dict[Pair, Health]:
    """Return the state of these pairs (a < b), in both directions."""
    node = observed.node
    assert node is not None
    every = grouped(
        ((min(point.pair), max(point.pair)), point)
        for experiment, operation, role in _PEERS
        for point in observed.select(experiment=experiment, operation=operation, role=role)
        if point.pair is not None and point.pair[0] != point.pair[1]
    )
    found = {}
    for pair in pairs:
        path = node.widest_path(*pair)
        peak = node.path_peak_gbs(path) if path else 0.0
        name = f"{pair[0]}-{pair[1]}"
        found[pair] = Health(name, tuple(_of_pair(_found(observed, every.get(pair, ()), peak))))
    return found


def _of_pair(found: list[Found]) -> list[Found]:
    """Return the series with a reference; without any, the first kind that has a peak."""
    judged = [one for one in found if one.expected]
    of_peak = grouped(
        ((one.point.experiment, one.point.operation), one)
        for one in found
        if one.point.by_engines and one.peak
    )
    return judged or next((of_peak[kind] for kind in _OF_PEAK if kind in of_peak), [])


def _found(observed: Observed, points: Iterable[Series], peak: float) -> list[Found]:
    """Return the series of the largest size of each check, direction and operation."""
    judged = largest(points, lambda p: (p.check, p.pair, p.device, p.operation, p.by_engines))
    peak = 0.0 if math.isinf(peak) else peak
    return [Found(point, expected_by(observed, point), peak) for point in judged.values()]


def hosts(observed: Observed) -> dict[int, Health]:
    """Return the state of each device's link to its host memory: pinned copies, both ways."""
    node = observed.node
    assert node is not None
    copies = observed.select(
        experiment="E2", role="single", host_memory="host-pinned", operation={"h2d", "d2h"}
    )
    health = {}
    for device in (one.index for one in node.devices):
        own = (point for point in copies if point.device == device)
        found = _found(observed, own, node.device(device).host_link_gbs)
        judged = [one for one in found if one.expected] or [one for one in found if one.peak]
        health[device] = Health(f"host-{device}", tuple(judged))
    return health
