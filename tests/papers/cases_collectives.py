"""Cases of the claims on collectives (E10, E11) and on the data that MPI moves (E12)."""

from __future__ import annotations

from device_pairs import by, collective, every, pair, paper, rccl
from observations import Cases, of, partition

import factories
from fabricheck.papers.claims.collectives import EVERY, TWO_PASSES

LATENCIES = list(every(paper("lat"), operation="latency"))


def both(mpi, library, counts=(2, 4, 8), names=EVERY):
    """Build a partition with MPI and RCCL, times in us by name."""
    return partition(
        by("mpi", *(collective(name, n, mpi(name)) for name in names for n in counts)),
        by("rccl-tests", *(rccl(name, n, library(name)) for name in names for n in counts)),
    )


def of_counts(times, names=EVERY):
    """Build a partition with RCCL, times in us by the number of devices."""
    return partition(
        by("rccl-tests", *(rccl(name, n, time) for name in names for n, time in times.items()))
    )


def beside_latency(*series):
    """Build a partition with the paper's latencies of copies and with these series."""
    return partition(by("p2p", *LATENCIES), by("rccl-tests", *series))


def compared(errors=0, **changes):
    """Build a series of E12."""
    checked = factories.mismatched(errors) if errors else factories.series()["verification"]
    return collective("exchange", 8, 50.0, experiment="E12", verification=checked) | changes


CASES = {
    "rccl-beats-mpi": Cases(
        lambda: both(lambda name: 40.0, lambda name: 50.0 if name == "bcast" else 30.0),
        lambda: both(lambda name: 40.0, lambda name: 30.0),
        lambda: both(lambda name: 40.0, lambda name: 30.0, names=EVERY[1:]),
    ),
    "rccl-falls-at-eight": Cases(
        lambda: of_counts({2: 20.0, 7: 60.0, 8: 50.0}),
        lambda: of_counts({2: 20.0, 7: 50.0, 8: 60.0}),
        lambda: of_counts({2: 20.0, 8: 50.0}),
    ),
    "rccl-grows-beyond-two": Cases(
        lambda: of_counts({2: 20.0, 3: 30.0, 8: 25.0}),
        lambda: of_counts({2: 20.0, 3: 30.0, 8: 19.0}),
        lambda: of_counts({3: 30.0, 8: 25.0}),
    ),
    "collectives-bound": Cases(
        lambda: beside_latency(rccl("reduce", 2, 9.0), rccl("allreduce", 2, 18.0)),
        lambda: beside_latency(rccl("reduce", 2, 9.0), rccl("allreduce", 2, 17.0)),
        lambda: of(rccl("reduce", 2, 9.0)),
    ),
    "rccl-two-close-to-bound": Cases(
        lambda: beside_latency(*(rccl(name, 2, 19.0) for name in TWO_PASSES)),
        lambda: beside_latency(*(rccl(name, 2, 22.0) for name in TWO_PASSES)),
        lambda: beside_latency(*(rccl(name, 3, 19.0) for name in TWO_PASSES)),
    ),
    "mpi-right-data": Cases(
        lambda: partition(by("mpi", compared(), compared(operation="bcast"))),
        lambda: partition(by("mpi", compared(), compared(3, operation="bcast"))),
        lambda: of(pair(0, 1, 50.0)),
    ),
}
