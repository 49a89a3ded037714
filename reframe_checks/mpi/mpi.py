"""MPI between the ranks of one launch: pairs (E9), collectives (E10), right data (E12)."""

import reframe as rfm

from fabricheck.core.vocabulary import ENGINES_OFF, ENGINES_ON
from fabricheck.rfm.messages import (
    CONVENTION,
    ELEMENT_BYTES,
    MpiCheck,
    MpiPairsCheck,
    Unverified,
    cases,
)
from fabricheck.rfm.metrics import Metric

#: Bytes of a message of collectives, as the program has them by default.
COLLECTIVE_BYTES = 1 << 20

#: Elements of the messages to be verified; the two large numbers are prime.
COUNTS = (1, 1009, 262147)


@rfm.simple_test
class mpi_pairs(MpiPairsCheck):
    """Bandwidth and latency of every ordered pair in one launch, copy engines on."""

    descr = "MPI between all ordered pairs of ranks (E9)"
    tags = {"E9", "node", "full"}
    valid_prog_environs = ["+mpi"]
    env_vars = ENGINES_ON


@rfm.simple_test
class mpi_pairs_engine_off(MpiPairsCheck):
    """The same without the copy engines: kernels move the data, and may use all links."""

    descr = "MPI between all ordered pairs of ranks, copy engines switched off (E9)"
    tags = {"E9", "full"}
    valid_systems = ["+devices +peers +sdma +ranks"]
    valid_prog_environs = ["+mpi +gpu_aware_mpi"]
    operations = {"bandwidth": "GB/s"}
    env_vars = ENGINES_OFF


@rfm.simple_test
class mpi_collectives(MpiCheck):
    """Reduce, broadcast, allreduce, reduce-scatter, allgather of 1 MiB on 2 ranks to all."""

    descr = "MPI collectives on 2 ranks to all, 1 MiB (E10)"
    tags = {"E10", "node", "full"}
    valid_prog_environs = ["+mpi"]
    env_vars = ENGINES_ON
    arguments = ("--pairs", "none", "--together", "none", "--types", "none")

    def expected_metrics(self):
        """Return one metric for each collective and number of ranks."""
        return [
            Metric(
                f"{name}_{count}",
                {"experiment": "E10", "operation": name, "ranks": list(range(count)), **CONVENTION},
                (),
                unit="us",
                rule=self.collective_rule(name, self.devices_of(count), COLLECTIVE_BYTES),
            )
            for name in self.collectives
            for count in range(2, len(self.rank_devices) + 1)
        ]


@rfm.simple_test
class mpi_data(MpiCheck):
    """Messages and collectives verified on all ranks: several types, sizes no multiple of them."""

    descr = "MPI gives right data, for several types and sizes (E12)"
    tags = {"E12", "smoke", "node", "full"}
    valid_prog_environs = ["+mpi"]
    arguments = (
        *("--trial", "--types", ",".join(ELEMENT_BYTES)),
        *("--counts", ",".join(map(str, COUNTS))),
    )
    metrics = (Unverified("unverified", over=(), unit="count"),)

    def population(self):
        """Return what must be verified, and the ranks that must take part in it."""
        operations = ["exchange", *self.collectives]
        return {"cases": cases(operations, COUNTS), "ranks": range(len(self.rank_devices))}
