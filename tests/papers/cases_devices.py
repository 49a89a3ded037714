"""Cases of the claims on transfers between devices (E7, E8), and on kernels beside copies."""

from __future__ import annotations

from device_pairs import MI250X, OFF, by, changed, every, pair, paper, peak
from observations import Cases, document, of, partition

import factories

BW, LAT = paper("bw"), paper("lat")
DETOURS = MI250X.detour_pairs
QUADS = ((0, 1), (2, 3), (4, 5), (6, 7))


def copies(rate=BW, **changes):
    """Build a partition with copy-engine transfers of every pair."""
    return of(*every(rate, **changes))


def latencies(rate=LAT):
    """Build a partition with latencies of every pair."""
    return of(*every(rate, operation="latency"))


def kernels(rate):
    """Build a partition with kernel copies in a peer's memory, of every pair."""
    return of(*every(rate, operation="copy"))


def scan(*rates, a=0, b=1):
    """Build a partition with copies over a link, of sizes that double."""
    return of(*(pair(a, b, rate, bytes=1 << (24 + step)) for step, rate in enumerate(rates)))


def switched(with_engine, without):
    """Build a partition with copies of every pair, with the engines and without."""
    return partition(
        document(*every(with_engine)), document(*every(without), environment=dict(OFF))
    )


def in_pairs(linked, apart):
    """Build a partition of MI210, which are linked in pairs."""
    return of(*every(lambda a, b: linked if a // 2 == b // 2 else apart), node="mi210")


def peer_switch(without, engine="kernel"):
    """Build a partition with copy-engine transfers, and those with the switch of peers alone."""
    off = every(without, engine=engine, engines=3 if engine == "copy-engine" else None)
    environment = {"HSA_ENABLE_PEER_SDMA": "0"}
    return partition(document(*every(BW)), document(*off, environment=environment))


def at_once(pairs=56, **sums):
    """Build a partition with every pair alone, and by operation the sums of pairs at once."""
    alone = [one for way in ("read", "write") for one in every(peak(0.75), operation=way)]
    together = (
        pair(
            0, 1, rate, way, role="sum", device=None, device_set=list(range(8)),
            bytes_moved=pairs << 30,
        )
        for way, rate in sums.items()
    )  # fmt: skip
    return of(*alone, *together)


def sweep(a, b, *rates, **changes):
    """Build reads by kernel with 1, 2, 4, ... blocks."""
    for step, rate in enumerate(rates):
        yield pair(a, b, rate, "read", elements=4, grid=1 << step, **changes)


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
    # By links: 37.5 GB/s of a single link over the four pairs on it, times 56 pairs.
    "all-pairs-by-links": Cases(
        lambda: at_once(read=525.0, write=500.0),
        lambda: at_once(read=525.0, write=390.0),
        lambda: at_once(read=525.0, write=500.0, pairs=4),
    ),
    "all-pairs-kernels-faster": Cases(
        lambda: at_once(engine=400.0, read=525.0, write=500.0),
        lambda: at_once(engine=524.0, read=525.0, write=600.0),
        lambda: at_once(read=525.0, write=500.0),
    ),
    "kernels-need-compute-units": Cases(
        lambda: of(*sweep(0, 1, 10.0, 20.0, 80.0, 140.0), *sweep(0, 2, 10.0, 20.0, 37.0, 37.5)),
        lambda: of(*sweep(0, 1, 10.0, 20.0, 80.0, 140.0), *sweep(0, 2, 37.48, 37.5)),
        lambda: of(pair(0, 1, 150.0, "read"), pair(0, 2, 37.5, "read")),
    ),
    "peer-switch-alone": Cases(
        lambda: peer_switch(peak(0.75)),
        lambda: peer_switch(changed(peak(0.75), (0, 6), to=50.0)),
        lambda: peer_switch(peak(0.75), engine="copy-engine"),
    ),
    "engine-two-levels": Cases(
        copies,
        lambda: copies(changed(BW, (0, 3), to=41.0)),
        lambda: of(*[one for one in every(BW) if one["device_set"] != [6, 3]]),
    ),
    "engine-parts-of-peak": Cases(
        copies,
        lambda: copies(changed(BW, *QUADS, to=52.0)),
        lambda: of(pair(0, 2, 37.6), pair(0, 6, 50.3)),
    ),
    "engine-quad-as-dual": Cases(
        lambda: of(pair(0, 1, 50.3), pair(0, 6, 50.4)),
        lambda: of(pair(0, 1, 52.0), pair(0, 6, 50.4)),
        lambda: of(pair(0, 1, 50.3)),
    ),
    "engine-limited-at-every-size": Cases(
        lambda: scan(20.0, 45.0, 50.3),
        lambda: scan(20.0, 52.0, 50.3),
        lambda: scan(50.3, 50.3),
    ),
    "engine-widest-path": Cases(
        copies,
        lambda: copies(changed(BW, DETOURS[0], to=37.5)),
        lambda: copies(lambda a, b: 50.0),
    ),
    "engine-off-faster": Cases(
        lambda: switched(BW, peak(0.75)),
        lambda: switched(BW, changed(peak(0.75), (0, 6), to=50.0)),
        copies,
    ),
    "bridge-over-pcie": Cases(
        lambda: in_pairs(43.0, 25.0),
        lambda: in_pairs(35.0, 25.0),
        lambda: of(pair(0, 1, 43.0), node="mi210"),
    ),
    "latency-one-link-lowest": Cases(
        latencies,
        lambda: latencies(changed(LAT, (0, 2), to=10.4)),
        lambda: of(
            *[one for one in every(LAT, operation="latency") if one["device_set"] != [0, 2]]
        ),
    ),
    "latency-in-package": Cases(
        latencies,
        lambda: latencies(changed(LAT, (0, 1), to=11.5)),
        copies,
    ),
    "latency-outliers": Cases(
        latencies,
        lambda: latencies(changed(LAT, (0, 7), to=19.0)),
        copies,
    ),
    "latency-range": Cases(
        latencies,
        lambda: latencies(changed(LAT, (0, 2), to=8.3)),
        lambda: of(pair(0, 2, 8.7, "latency"), pair(1, 7, 18.2, "latency")),
    ),
    "kernel-three-tiers": Cases(
        lambda: kernels(peak(0.87)),
        lambda: kernels(changed(peak(0.87), (0, 1), to=100.0)),
        lambda: of(pair(0, 1, 174.0, "copy"), pair(0, 2, 43.5, "copy")),
    ),
    "kernel-43-percent": Cases(
        lambda: kernels(peak(0.87)),
        lambda: kernels(peak(0.93)),
        copies,
    ),
    "kernel-no-engine-limit": Cases(
        lambda: kernels(peak(0.87)),
        lambda: kernels(changed(peak(0.87), *QUADS, to=100.0)),
        copies,
    ),
    "engines-leave-compute-free": Cases(
        lambda: session((0.99, 0.98), (0.7, 0.9), (1.01, 0.96), (0.99, 0.4)),
        lambda: session((0.94, 0.99), (0.7, 0.9)),
        lambda: session((0.99, 0.98), None, None, (0.99, 0.4)),
    ),
}
