"""Builders of series between devices, for the cases of claims: copies, kernels, messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

from observations import Series, around, document

import factories
from fabricheck.node import load
from fabricheck.papers.claims.model import value as published

#: What switches the copy engines off, as the suite's checks do.
OFF = {"HSA_ENABLE_SDMA": "0", "HSA_ENABLE_PEER_SDMA": "0"}
MI250X = load("mi250x")

Rate = Callable[[int, int], float]


def pair(
    a: int, b: int, median: float, operation: str = "engine", spread: float = 0.001, **changes: Any
) -> Series:
    """Build a series from device a to device b; by kernel it is of E8, else of E7.

    :param spread: of the interval, about, as a part of the median.
    """
    kernel = operation in ("read", "write", "copy")
    latency = operation == "latency"
    size = 16 if latency else 1 << 30
    return factories.series(
        around(median, spread),
        **{
            "experiment": "E8" if kernel else "E7",
            "operation": operation,
            "device": b if operation == "read" else a,
            "device_set": [a, b],
            "source": factories.place(device=a),
            "destination": factories.place("peer", b),
            "engine": "kernel" if kernel else "copy-engine",
            "direction": "one-way",
            "bytes": size,
            "bytes_moved": size,
            "bytes_counted": "once",
            "unit": "us" if latency else "GB/s",
            "better": "lower" if latency else "higher",
        }
        | changes,
    )


def message(a: int, b: int, median: float, size: int = 64 << 20, **changes: Any) -> Series:
    """Build the bandwidth of messages from device a to device b."""
    own = {
        "experiment": "E9",
        "operation": "bandwidth",
        "device": None,
        "destination": factories.place(device=b),
        "engine": "mpi",
        "ranks": [0, 1],
        "bytes": size,
        "bytes_moved": size,
    }
    return pair(a, b, median, **own | changes)


def collective(name: str, devices: int, median: float, **changes: Any) -> Series:
    """Build the time of a collective of MPI, 1 MiB on so many devices."""
    size = changes.get("bytes", 1 << 20)
    own = {
        "experiment": "E10",
        "operation": name,
        "device": None,
        "device_set": list(range(devices)),
        "ranks": list(range(devices)),
        "source": factories.place(device=None),
        "destination": factories.place(device=None),
        "engine": "mpi",
        "direction": "collective",
        "bytes": size,
        "bytes_moved": size,
        "unit": "us",
        "better": "lower",
    }
    return factories.series([median], **own | changes)


def rccl(name: str, devices: int, median: float, **changes: Any) -> Series:
    """Build the time of a collective of RCCL, 1 MiB on so many devices, out of place."""
    own = {"experiment": "E11", "engine": "rccl", "in_place": False}
    return collective(name, devices, median, **own | changes)


def every(rate: Rate, build: Callable[..., Series] = pair, n: int = 8, **changes: Any) -> Iterator:
    """Yield a series of each ordered pair of n devices."""
    for a, b in permutations(range(n), 2):
        yield build(a, b, rate(a, b), **changes)


def by(program: str, *series: Series, **changes: Any) -> dict[str, Any]:
    """Build the document of another program than stream."""
    built = document(*series, **changes)
    return built | {"program": built["program"] | {"name": program}}


def paper(name: str) -> Rate:
    """Return the matrix of the paper's figure 6: ``bw`` or ``lat``."""
    return lambda a, b: published(f"kth-{name}-{a}{b}")


def peak(part: float) -> Rate:
    """Return this part of the peak of the widest path."""
    return lambda a, b: part * MI250X.peer_peak_gbs(a, b)


def changed(rate: Rate, *pairs: tuple[int, int], to: float) -> Rate:
    """Return a matrix with some pairs, both directions, at another value."""
    return lambda a, b: to if (min(a, b), max(a, b)) in pairs else rate(a, b)


def hops(a: int, b: int) -> int:
    """Return the hops of the widest path on MI250X."""
    return MI250X.link_class(a, b).hops
