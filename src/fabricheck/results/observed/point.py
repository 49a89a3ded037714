"""A series of a result document, with what the run around it says of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from fabricheck.core.vocabulary import ENV_ENGINES, Clock
from fabricheck.results.model import Place, ResultDocument, Series

#: Two devices: where data of a transfer comes from and where it goes, or the ranks' in order. Of a
#: kernel's copy within a peer's memory the one that works and its peer.
Pair = tuple[int, int]

Key = TypeVar("Key", bound=Hashable)

#: Experiments whose series by an engine or a kernel of the runtime are copies.
_COPIES = ("E2", "E4", "E6", "E7")


@dataclass(frozen=True)
class Point:
    """One series: an operation at one size in one place.

    check: ReFrame's name of the check, empty outside of a session.
    """

    check: str
    document: ResultDocument
    series: Series

    @property
    def clock(self) -> Clock:
        """``measured`` or ``simulated``."""
        return self.document["clock"]

    @property
    def program(self) -> str:
        """The program that measured: one of this suite's, ``osu`` or ``rccl``."""
        return self.document["program"]["name"]

    @property
    def engines(self) -> bool:
        """Whether copy engines may move the data (AMD).

        Of copies the series says so; of all else, and of documents from before that was recorded,
        HSA_ENABLE_SDMA is not 0.
        """
        if self.experiment in _COPIES and "engines" in self.series:
            return self.engine == "copy-engine"
        return self.document["environment"].get(ENV_ENGINES) != "0"

    @property
    def ganged(self) -> bool:
        """Whether several copy engines share one copy, as far as it is known."""
        return (self.series.get("engines") or 1) > 1

    @property
    def experiment(self) -> str:
        """E1 to E15."""
        return self.series["experiment"]

    @property
    def operation(self) -> str:
        """What was done; docs/result-document.md has the names."""
        return self.series["operation"]

    @property
    def role(self) -> str:
        """``single``, or of several that work at once a ``share`` or their ``sum``."""
        return self.series["role"]

    @property
    def bytes(self) -> int:
        """The size of the array or message."""
        return self.series["bytes"]

    @property
    def median(self) -> float:
        """The median of the samples, in ``unit``."""
        return self.series["median"]

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the median; None of too few samples, as of a simulated one."""
        interval = self.series["ci95"]
        return None if interval is None else (interval[0], interval[1])

    @property
    def unit(self) -> str:
        """GB/s (1e9 bytes per second) or us."""
        return self.series["unit"]

    @property
    def device(self) -> int | None:
        """The device that works, where it is one."""
        return self.series["device"]

    @property
    def devices(self) -> tuple[int, ...]:
        """All devices of the operation, in order."""
        return tuple(self.series["device_set"])

    @property
    def pair(self) -> Pair | None:
        """The two devices of a transfer between devices, else None."""
        return (self.devices[0], self.devices[1]) if len(self.devices) == 2 else None

    @property
    def engine(self) -> str:
        """What moves the data: kernel, copy-engine, cpu, mpi or rccl."""
        return self.series["engine"]

    @property
    def movement(self) -> str | None:
        """Of managed memory: zero-copy, page-migration or prefetch."""
        return self.series.get("movement")

    @property
    def placement(self) -> str | None:
        """The name of the placement of ranks (E6)."""
        return self.series.get("placement")

    @property
    def ranks(self) -> int | None:
        """The number of ranks or devices of a message or collective, else None."""
        return len(self.series.get("ranks") or self.series["device_set"]) or None

    @property
    def block(self) -> int | None:
        """Threads per block of a kernel."""
        return self.series["block_size"]

    @property
    def host(self) -> Place | None:
        """The end of a transfer that lies on the host, else None."""
        for place in (self.series["source"], self.series["destination"]):
            if place["memory"].startswith("host") or place["memory"] == "managed":
                return place
        return None

    @property
    def memory(self) -> str | None:
        """The kind of memory at the host's end: host-pinned, host-pageable, managed, or None."""
        return self.host["memory"] if self.host else None

    @property
    def domain(self) -> int | None:
        """The NUMA domain at the host's end, where it is known."""
        return self.host["numa_domain"] if self.host else None

    @property
    def right(self) -> bool:
        """Whether the data was right, and no fault made on purpose."""
        return not self.series["verification"]["errors"] and not self.document["faults_injected"]


def chosen(points: Iterable[Point], **fields: Any) -> list[Point]:
    """Return the points with these values of their properties.

    :param fields: by property a value, or a set of which it is one (``operation={"read"}``).
    """
    found = []
    for point in points:
        if all(_is(getattr(point, name), wanted) for name, wanted in fields.items()):
            found.append(point)
    return found


def _is(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, (set, frozenset)) else value == wanted


def largest(points: Iterable[Point], key: Callable[[Point], Key]) -> Mapping[Key, Point]:
    """Return of each key the point of the largest size; the first one where several have it."""
    found: dict[Key, Point] = {}
    for point in points:
        name = key(point)
        if name not in found or point.bytes > found[name].bytes:
            found[name] = point
    return found


def curve(points: Iterable[Point]) -> list[Point]:
    """Return the points by size, of each size the first."""
    by_size: dict[int, Point] = {}
    for point in points:
        by_size.setdefault(point.bytes, point)
    return [by_size[size] for size in sorted(by_size)]
