"""Energy of a moved bit by path: each series is held until the counters of energy give watts.

Report only: no limit of energy is known. Of collectives those of MPI are held: rccl-tests and
nccl-tests time loops that have an end.
"""

import reframe as rfm
from reframe.core.builtins import variable

from fabricheck.core.vocabulary import COLLECTIVES, ENGINES_ON
from fabricheck.rfm.base import MeasuringCheck
from fabricheck.rfm.metrics import Metric
from fabricheck.rfm.pairs import one_each, peers_of_the_first
from fabricheck.rfm.ranks import CONVENTION, MpiCheck

#: Seconds that a series takes besides: its samples, two quiet times, and up to 10 s of load where a
#: counter changes ten times a second (HPE Cray EX).
BESIDE_S = 15


class Held(rfm.RegressionTestPlugin):
    """The common part: a large size and a small one, by many, of each path.

    energy_s: seconds for which each series is held, at least, set by ``-S energy_s=N``. operations:
    by operation its experiment.
    """

    energy_s = variable(float, value=5.0)
    operations = {}
    large = 1 << 30
    small = 256 << 10

    def seconds_needed(self):
        """Return the time of all holds."""
        series = 2 * len(self.operations) * max(1, self.paths())
        return 60 + int(series * (self.energy_s + BESIDE_S))

    def paths(self):
        """Return the number of devices, pairs or sets that are measured one after the other."""
        return self.device_count

    def held_sizes(self):
        """Return the list of both sizes, as options take it."""
        return f"{self.small},{self.large}"

    def held(self):
        """Return the arguments that all programs share."""
        return ["--energy-time", f"{self.energy_s:g}", "--max-samples", "7"]


class EnergyCheck(Held, MeasuringCheck):
    """The paths of one process: their rates are the metrics."""

    valid_systems = ["+devices +peers -simulated"]
    env_vars = ENGINES_ON

    def held(self):
        """Return the arguments of these programs."""
        return ["--sizes", self.held_sizes(), *super().held(), "--noise-limit", "10"]

    def expected_metrics(self):
        """Return the rate of the slowest member of each operation at the large size."""
        return [
            Metric(
                f"{operation.replace('-', '_')}_worst",
                {
                    "operation": operation,
                    "experiment": experiment,
                    "role": "single",
                    "bytes": self.large,
                },
                alike=False,
            )
            for operation, experiment in self.operations.items()
        ]


@rfm.simple_test
class energy_memory(EnergyCheck):
    """Reading and copying in the memory of each device alone."""

    descr = "Energy of a bit in the memory of each device, by the counters of the devices (E1)"
    tags = {"E1", "full"}
    program = "stream"
    valid_prog_environs = ["+stream"]
    operations = {"copy": "E1", "read-only": "E1"}

    def program_arguments(self):
        """Return both kernels on each device."""
        return ["--devices", "each", "--kernels", ",".join(self.operations), *self.held()]


@rfm.simple_test
class energy_host(EnergyCheck):
    """Copies to and from pinned memory near each device."""

    descr = "Energy of a bit between host and each device, by the counters of the devices (E2)"
    tags = {"E2", "full"}
    program = "memcpy"
    valid_prog_environs = ["+memcpy"]
    operations = {"h2d": "E2", "d2h": "E2"}

    def program_arguments(self):
        """Return both directions of each device."""
        operations = ",".join(self.operations)
        return ["--memory", "pinned", "--operations", operations, *self.held()]


@rfm.simple_test
class energy_peers(EnergyCheck):
    """Copy-engine transfers from device 0 to the first peer of each link class."""

    descr = "Energy of a bit over each class of link, by the counters of the devices (E7)"
    tags = {"E7", "full"}
    valid_systems = ["+devices +several_devices +peers -simulated"]
    program = "p2p"
    valid_prog_environs = ["+p2p"]
    operations = {"engine": "E7"}

    def pairs(self):
        """Return a pair of each link class; of a node without a model that of the first two."""
        of_classes = list(peers_of_the_first(self.node).values()) if self.node else []
        return of_classes or [(0, 1)]

    def paths(self):
        """Return the number of pairs."""
        return len(self.pairs())

    def program_arguments(self):
        """Return the copies of the pairs."""
        pairs = ",".join(f"{a}-{b}" for a, b in self.pairs())
        return ["--pairs", pairs, "--operations", "engine", *self.held()]

    def expected_metrics(self):
        """Return the rate of the slowest pair."""
        where = {"operation": "engine", "role": "single", "bytes": self.large}
        among = one_each(self.pairs())
        return [Metric("engine_worst", where, ("device_set",), among=among, alike=False)]


@rfm.simple_test
class energy_collectives(Held, MpiCheck):
    """Collectives of all ranks, each on its device, on buffers of the devices."""

    descr = "Energy of a bit of MPI collectives on all devices, by their counters (E10)"
    tags = {"E10", "full"}
    valid_systems = ["+devices +several_devices +peers +ranks -simulated"]
    valid_prog_environs = ["+mpi +gpu_aware_mpi"]
    env_vars = ENGINES_ON
    arguments = ("--pairs", "none", "--together", "none", "--types", "none", "--ranks", "all")
    operations = dict.fromkeys(COLLECTIVES, "E10")
    large = 64 << 20

    def paths(self):
        """Return one: all ranks take part in each collective."""
        return 1

    def program_arguments(self):
        """Return what is held, after the arguments of all checks of MPI."""
        return [*super().program_arguments(), "--collective-sizes", self.held_sizes(), *self.held()]

    def sizes_measured(self):
        """Return the sizes of messages, as `Check.sizes_measured` does."""
        return self.held_sizes()

    def expected_metrics(self):
        """Return the time of each collective that this MPI supports, at the large size."""
        where = {"experiment": "E10", "ranks": list(range(len(self.rank_devices))), **CONVENTION}
        return [
            Metric(name, {**where, "operation": name, "bytes": self.large}, (), unit="us")
            for name in self.collectives
        ]
