"""MPI between the ranks of one launch: pairs (E9), collectives (E10), right data (E12)."""

import reframe as rfm

from fabricheck.core.vocabulary import ENGINES_OFF, ENGINES_ON
from fabricheck.rfm.ranks import (
    ELEMENT_BYTES,
    BestFirstCheck,
    MpiCheck,
    MpiCollectivesCheck,
    MpiOwnDeviceCheck,
    MpiPairsCheck,
    Unverified,
    cases,
)

#: Elements of the messages to verify; the two large numbers are prime.
COUNTS = (1, 1009, 262147)


@rfm.simple_test
class mpi_pairs(MpiPairsCheck):
    """Bandwidth and latency of every ordered pair in one launch, with copy engines."""

    descr = "MPI between all ordered pairs of ranks (E9)"
    tags = {"E9", "node", "full"}
    valid_prog_environs = ["+mpi"]
    env_vars = ENGINES_ON


@rfm.simple_test
class mpi_pairs_engine_off(MpiPairsCheck):
    """The same without the copy engines: kernels move the data, and may use all links."""

    descr = "MPI between all ordered pairs of ranks, copy engines disabled (E9)"
    tags = {"E9", "full"}
    valid_systems = ["+devices +peers +sdma +ranks"]
    valid_prog_environs = ["+mpi +gpu_aware_mpi"]
    operations = {"bandwidth": "GB/s"}
    env_vars = ENGINES_OFF


@rfm.simple_test
class mpi_own_device(MpiOwnDeviceCheck):
    """Bandwidth between two ranks on one device, of each device in one launch."""

    descr = "MPI between two ranks on one device (E9)"
    tags = {"E9", "full"}
    env_vars = ENGINES_ON


@rfm.simple_test
class mpi_collectives(MpiCollectivesCheck):
    """Reduce, broadcast, allreduce, reduce-scatter, allgather of 1 MiB on the first 2 ranks to all.

    Rank i is on device i.
    """

    descr = "MPI collectives on 2 ranks to all, 1 MiB (E10)"
    tags = {"E10", "node", "full"}
    valid_prog_environs = ["+mpi"]
    env_vars = ENGINES_ON


@rfm.simple_test
class mpi_collectives_engine_off(MpiCollectivesCheck):
    """The same without the copy engines."""

    descr = "MPI collectives on 2 ranks to all, copy engines disabled (E10)"
    tags = {"E10", "full"}
    valid_systems = ["+devices +peers +sdma +ranks"]
    valid_prog_environs = ["+mpi +gpu_aware_mpi"]
    env_vars = ENGINES_OFF


@rfm.simple_test
class mpi_collectives_best(BestFirstCheck):
    """The same on the best 2, 3 ... devices by the node model instead of the first ones."""

    descr = "MPI collectives on the best 2, 3 ... devices, 1 MiB (E10)"
    tags = {"E10", "full"}
    env_vars = ENGINES_ON


@rfm.simple_test
class mpi_collectives_best_engine_off(BestFirstCheck):
    """The same on the best devices without the copy engines."""

    descr = "MPI collectives on the best devices, copy engines disabled (E10)"
    tags = {"E10", "full"}
    valid_systems = ["+devices +several_devices +peers +sdma +ranks +placements"]
    env_vars = ENGINES_OFF


@rfm.simple_test
class mpi_data(MpiCheck):
    """Messages and collectives verified on all ranks, for several types and sizes not multiples of
    them.
    """

    descr = "Right data of MPI messages and collectives, for several types and sizes (E12)"
    tags = {"E12", "smoke", "node", "full"}
    valid_prog_environs = ["+mpi"]
    arguments = (
        *("--trial", "--types", ",".join(ELEMENT_BYTES)),
        *("--counts", ",".join(map(str, COUNTS))),
    )
    metrics = (Unverified("unverified", over=(), unit="count"),)

    def population(self):
        """Return what must be verified, and the ranks that must take part."""
        operations = ["exchange", *self.collectives]
        return {"cases": cases(operations, COUNTS), "ranks": range(len(self.rank_devices))}
