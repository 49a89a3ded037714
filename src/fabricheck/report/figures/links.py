"""How the links of a node do: each one's lowest part of what was expected of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from fabricheck.report.figures import expected
from fabricheck.report.figures.expected import Expected
from fabricheck.report.figures.rows import of_point
from fabricheck.results.observed import Observed
from fabricheck.results.table import Pair, Series

#: Within or outside of the limits of its reference; only beside the peak; without a value.
State = Literal["within", "outside", "peak", "missing"]

#: What moves data over the link between two devices, by bandwidth: experiment, operation, role. MPI
#: is left out: it has costs of its own.
_PEERS = (
    ("E8", "write", "single"),
    ("E8", "read", "single"),
    ("E8", "copy", "single"),
    ("E7", "engine", "single"),
    ("E7", "engine-both", "sum"),
)

#: Of these the first that there is stands beside the peak of one direction, without a reference.
_OF_PEAK = (("E8", "write"), ("E8", "read"), ("E7", "engine"))

_HOST = ("h2d", "d2h")


@dataclass(frozen=True)
class Found:
    """A series over a link, and what was expected of it: a reference, else the peak."""

    point: Series
    expected: Expected | None
    peak: float

    @property
    def part(self) -> float:
        """Its value as a part of what was expected."""
        return self.point.value / (self.expected.value if self.expected else self.peak)

    @property
    def missed(self) -> bool:
        """Whether it is outside of the limits of its reference."""
        return self.expected is not None and self.expected.missed(self.point.value)


@dataclass(frozen=True)
class Health:
    """What a session has of one link: of several series the one that decides, and all of them."""

    name: str
    decides: Found | None
    every: tuple[Found, ...]

    @property
    def state(self) -> State:
        """Whether the link is within the limits of this session's references."""
        if self.decides is None:
            return "missing"
        if self.decides.expected is None:
            return "peak"
        return "outside" if any(found.missed for found in self.every) else "within"

    @property
    def text(self) -> str:
        """The percentage; empty where there is no value."""
        return f"{100 * self.decides.part:.0f} %" if self.decides else ""

    def rows(self) -> list[dict[str, Any]]:
        """Return the data of the link."""
        return [
            of_point(
                self.name,
                one.point,
                expected=one.expected.value if one.expected else one.peak,
                expected_is="reference" if one.expected else "peak",
                limit=one.expected.limit if one.expected else None,
                percent=100 * one.part,
                state=("outside" if one.missed else "within") if one.expected else "peak",
            )
            for one in self.every
        ]


def peers(observed: Observed, pairs: Iterable[Pair]) -> dict[Pair, Health]:
    """Return how these pairs (a < b) do, in both directions."""
    node = observed.node
    assert node is not None
    every: dict[Pair, list[Found]] = {}
    for experiment, operation, role in _PEERS:
        for point in observed.select(experiment=experiment, operation=operation, role=role):
            if point.pair is None or point.pair[0] == point.pair[1]:
                continue
            if max(point.pair) >= len(node.devices):
                continue
            pair = (min(point.pair), max(point.pair))
            peak = node.path_peak_gbs(path) if (path := node.widest_path(*pair)) else 0.0
            every.setdefault(pair, []).append(Found(point, expected.of(observed, point), peak))
    return {pair: _health(f"{pair[0]}-{pair[1]}", every.get(pair, [])) for pair in pairs}


def _health(name: str, found: list[Found]) -> Health:
    judged = [one for one in _largest(found) if one.expected]
    if judged:
        missed = [one for one in judged if one.missed]
        return Health(name, min(missed or judged, key=lambda one: one.part), tuple(judged))
    for experiment, operation in _OF_PEAK:
        shown = [
            one
            for one in _largest(found)
            if (one.point.experiment, one.point.operation) == (experiment, operation)
            and one.point.by_engines
            and one.peak
        ]
        if shown:
            return Health(name, min(shown, key=lambda one: one.part), tuple(shown))
    return Health(name, None, ())


def _largest(found: Iterable[Found]) -> list[Found]:
    """Return of each check, direction and operation the one of the largest size: it is judged."""
    best: dict[tuple[Any, ...], Found] = {}
    for one in found:
        point = one.point
        key = (point.check, point.pair, point.device, point.operation, point.by_engines)
        if key not in best or one.point.bytes > best[key].point.bytes:
            best[key] = one
    return list(best.values())


def hosts(observed: Observed) -> dict[int, Health]:
    """Return how the link of each device to its host memory does: pinned copies, either way."""
    node = observed.node
    assert node is not None
    every: dict[int, list[Found]] = {device.index: [] for device in node.devices}
    for point in observed.select(experiment="E2", role="single", host_memory="host-pinned"):
        if point.operation in _HOST and point.device in every:
            wanted = expected.of(observed, point)
            every[point.device].append(Found(point, wanted, node.host_peak_gbs(point.device)))
    return {device: _host(f"host-{device}", found) for device, found in every.items()}


def _host(name: str, found: list[Found]) -> Health:
    largest = _largest(found)
    shown = [one for one in largest if one.expected] or largest
    return Health(name, min(shown, key=lambda one: one.part, default=None), tuple(shown))
