"""Cases of the claim on a kernel that computes beside copies."""

from __future__ import annotations

from device_pairs import by, pair
from observations import Cases, partition

import factories

HOST = {"device_set": [0], "destination": factories.place("host-pinned", None, 0)}
KINDS = {
    ("peer", "engine"): {},
    ("peer", "kernel"): {"operation": "write"},
    ("host", "engine"): {**HOST, "experiment": "E2", "operation": "d2h"},
    ("host", "kernel"): {**HOST, "experiment": "E3", "operation": "write",
                         "movement": "zero-copy"},
}  # fmt: skip


def beside(target, way, kernel, copies, **changes):
    """Build the four series of a way of copying, of what both keep of their own rate."""
    fields = KINDS[target, way] | changes
    computes = {
        **fields, "operation": "compute", "engine": "kernel", "direction": "local", "unit": "us",
        "better": "lower", "destination": factories.place(), "movement": None,
        "experiment": fields.get("experiment", "E8" if way == "kernel" else "E7"),
    }  # fmt: skip
    for role, slower, slow in (("single", 1, 1), ("beside", 1 / kernel, copies)):
        yield pair(0, 1, 3000.0 * slower, role=role, **computes)
        yield pair(0, 1, 50.0 * slow, role=role, **fields)


def session(*ways, **kept):
    """Build a partition: of each target and way what the kernel and the copies keep."""
    series = [
        one
        for (target, way), parts in zip(KINDS, ways, strict=False)
        if parts
        for one in beside(target, way, *parts, **kept)
    ]
    return partition(by("overlap", *series))


CASES = {
    "engines-leave-compute-free": Cases(
        lambda: session((0.99, 0.98), (0.7, 0.9), (1.01, 0.96), (0.99, 0.4)),
        lambda: session((0.94, 0.99), (0.7, 0.9)),
        lambda: session((0.99, 0.98), None, None, (0.99, 0.4)),
    ),
}
