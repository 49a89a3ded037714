"""Two results folders, of one check each, to compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import factories
from session_builder import SessionBuilder

#: Nine samples, relative to their median; the interval of 97.5 % has all.
SCATTER = (0.995, 1.005, 1.0, 0.998, 1.002, 0.999, 1.001, 0.997, 1.003)


def spread(value: float) -> list[float]:
    """Return samples about a value, half a percent wide."""
    return [value * part for part in SCATTER]


def pair(a: int, b: int, samples: Sequence[float], **changes: Any) -> dict[str, Any]:
    """Build a measured copy-engine transfer between two devices."""
    return (
        factories.series(
            samples,
            experiment="E7",
            operation="engine",
            device=a,
            device_set=[a, b],
            source=factories.place(device=a),
            destination=factories.place("peer", b),
            engine="copy-engine",
            direction="one-way",
            block_size=None,
            bytes=changes.get("bytes", 1 << 28),
            bytes_moved=changes.get("bytes", 1 << 28),
            bytes_counted="once",
            host_clock=None,
        )
        | changes
    )


def latency(a: int, b: int, samples: Sequence[float], **changes: Any) -> dict[str, Any]:
    """Build a measured latency between two devices."""
    small = {"bytes": 16, "regime": "cache", "unit": "us", "better": "lower"}
    return pair(a, b, samples, **small, operation="latency", **changes)


def document(series: Sequence[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """Build a document of `p2p` on four devices of a GPU."""
    program = factories.document()["program"] | {"name": "p2p", "runtime": "rocm"}
    ids = {index: f"GPU-{index}" for index in range(4)}
    devices = [factories.device(index, arch="gfx90a", unique_id=one) for index, one in ids.items()]
    return factories.document(
        **{"program": program, "devices": devices, "series": list(series)} | changes
    )


def simulated(series: Sequence[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """Build a simulated document of the same."""
    program = factories.document()["program"] | {"name": "p2p", "runtime": "sim"}
    node = {"name": "mi250x", "digest": "0" * 64, "overlay": None}
    return document(series, **{"program": program, "clock": "simulated", "node": node} | changes)


def results(folder: Path, content: dict[str, Any] | None, **case: Any) -> Path:
    """Write a results folder of one session of one check; without content it left no document."""
    entry = factories.case("p2p_engine") | {"tags": ["E7"]} | case
    return SessionBuilder(folder).add(entry, content).write()


#: The series of a good run.
HEALTHY = [pair(0, 1, spread(50)), pair(1, 0, spread(50)), latency(0, 1, spread(9))]


def judged(command, *arguments: object) -> tuple[int, dict[str, Any]]:
    """Compare; return the exit code and what is told of the only partition."""
    ended = command("compare", *arguments, json=True, code=None)
    content = ended.json
    assert content["exit_code"] == ended.exit_code
    [only] = content["partitions"]
    return ended.exit_code, flat(only)


def flat(only: dict[str, Any]) -> dict[str, Any]:
    """Return the same with the columns and the decision of each value beside what it has."""
    return {
        name: [one | one["columns"] | one.get("decision", {}) for one in found]
        if isinstance(found, list) and found and "columns" in found[0]
        else found
        for name, found in only.items()
    }


def numbers(only: dict[str, Any]) -> dict[str, int]:
    """Return how many values of each outcome there are."""
    names = ("worse", "better", "undetermined", "unchanged", "missing_in_b", "missing_in_a")
    return {name: len(only[name]) for name in (*names, "not_comparable") if only[name]}
