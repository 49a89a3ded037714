"""Cases of the claims on messages of MPI between two devices (E9)."""

from __future__ import annotations

from device_pairs import MI250X, OFF, by, changed, every, hops, message, pair, paper, peak
from observations import Cases, of, partition

from fabricheck.papers.claims.model import value as published

BW = paper("bw")
QUADS = ((0, 1), (2, 3), (4, 5), (6, 7))
LARGE, SMALL = 64 << 20, 4 << 20
GIB = 1 << 30


def lab(engine):
    """Build the messages of AMD's lab notes: from device 0, with the engine (1) or without (0)."""
    return [message(0, b, published(f"lab-osubw-sdma{engine}-0{b}")) for b in range(1, 8)]


def on(*series):
    """Build the document of messages with the engine."""
    return by("mpi", *series)


def off(*series):
    """Build the document of messages without the engine."""
    return by("mpi", *series, environment=dict(OFF))


def beside_reads(part):
    """Build a partition with messages that are this part of reads by kernel."""
    sent = every(lambda a, b: part * peak(0.87)(a, b), message, size=1 << 30)
    return partition(off(*sent), by("p2p", *every(peak(0.87), operation="read")))


def parts(direct, indirect, **changes):
    """Build messages that reach a part of the peak over direct links and another one elsewhere."""
    return list(
        every(lambda a, b: peak(direct if hops(a, b) == 1 else indirect)(a, b), message, **changes)
    )


def tiers(single, dual, quad):
    """Build messages over direct links of each kind."""
    rates = {1: single, 2: dual, 4: quad}
    return [message(a, b, rates[link.count]) for (a, b), link in MI250X.links.items()]


def uniform(rate, node="a100-jureca", n=4):
    """Build a partition with messages of every pair of n devices that are linked alike."""
    return partition(by("osu", *every(rate, message, n=n), runtime="cuda"), node=node)


def within(rate, node="mi250x", program="osu", **changes):
    """Build a partition with messages between two ranks on each device."""
    devices = range(4 if node == "a100-jureca" else 8)
    runtime = "cuda" if node == "a100-jureca" else "rocm"
    series = (message(one, one, rate, device_set=[one], **changes) for one in devices)
    return partition(by(program, *series, runtime=runtime), node=node)


CASES = {
    "own-device-41-percent": Cases(
        lambda: within(635.66, node="a100-jureca"),
        lambda: within(500.0, node="a100-jureca"),
        lambda: within(635.66, node="a100-jureca", size=SMALL),
    ),
    "own-device-below-a100": Cases(
        lambda: within(496.0),
        lambda: within(655.5),
        lambda: within(496.0, size=SMALL),
    ),
    "mpi-engine-below-50": Cases(
        lambda: partition(on(*lab(1))),
        lambda: partition(on(message(0, 1, 55.0), message(0, 2, 41.0))),
        lambda: partition(off(*lab(0))),
    ),
    "mpi-below-direct-access": Cases(
        lambda: beside_reads(0.88),
        lambda: beside_reads(0.95),
        lambda: partition(off(*lab(0))),
    ),
    "mpi-faster-without-engine": Cases(
        lambda: partition(on(*lab(1)), off(*lab(0))),
        lambda: partition(on(*lab(1)), off(*every(changed(peak(0.7), (0, 6), to=48.0), message))),
        lambda: partition(on(*lab(1))),
    ),
    "mpi-non-neighbours": Cases(
        lambda: partition(on(*every(BW, message, size=GIB)), off(*parts(0.7, 0.68, size=GIB))),
        lambda: partition(off(*parts(0.7, 0.64, size=GIB))),
        lambda: partition(off(*tiers(38.0, 76.0, 142.0))),
    ),
    "mpi-two-hops-slower": Cases(
        lambda: partition(off(*lab(0))),
        lambda: partition(off(*parts(0.7, 0.7))),
        lambda: partition(on(*lab(1))),
    ),
    "mpi-70-percent": Cases(
        lambda: partition(off(*lab(0))),
        lambda: partition(off(message(0, 1, 160.0))),
        lambda: partition(off(message(0, 2, 38.0))),
    ),
    "jsc-mi250-tiers": Cases(
        lambda: partition(off(*tiers(42.95, 85.9, 166.4))),
        lambda: partition(off(*tiers(42.95, 85.9, 145.0))),
        lambda: partition(off(*lab(0)[1:])),
    ),
    "jsc-neighbours-90-percent": Cases(
        lambda: partition(off(*parts(0.86, 0.78))),
        lambda: partition(off(*parts(0.76, 0.72))),
        lambda: partition(off(*tiers(43.0, 86.0, 166.0))),
    ),
    "jsc-smaller-messages": Cases(
        lambda: partition(off(*parts(0.86, 0.78), *parts(0.68, 0.68, size=SMALL))),
        lambda: partition(off(*parts(0.86, 0.78), *parts(0.80, 0.68, size=SMALL))),
        lambda: partition(off(*parts(0.86, 0.78))),
    ),
    "uniform-links": Cases(
        lambda: uniform(lambda a, b: 93.4),
        lambda: uniform(lambda a, b: 90.0 if (a, b) == (2, 1) else 93.4),
        lambda: of(pair(0, 1, 93.4), node="a100-jureca"),
    ),
    "uniform-links-93-percent": Cases(
        lambda: uniform(lambda a, b: 93.4),
        lambda: uniform(lambda a, b: 88.0),
        lambda: uniform(lambda a, b: 93.4, n=3),
    ),
}
