"""A kernel that computes beside copies, by engine and by kernel: what each keeps of its own rate.

Copies to a peer are of experiments E7 (by engine) and E8 (by kernel), those to pinned host memory
of E2 and E3. That engines leave the compute units free is their advantage: V.A.2 and V.C of the
paper, and "GPU-to-GPU communication options" of AMD's lab notes.
"""

import reframe as rfm

from fabricheck.core.vocabulary import ENGINES_ON
from fabricheck.rfm import relative
from fabricheck.rfm.base import MeasuringCheck
from fabricheck.rfm.metrics import Metric

#: What tells the kernel's series from those of copies.
COMPUTED = {"operation": "compute", "engine": "kernel"}


class OverlapCheck(MeasuringCheck):
    """Two metrics for each way of copying: of the kernel and of the copies, the worst device.

    ways: by what copies the experiment, the operation and the engine of its series.
    target: the options that say where copies go to.
    """

    program = "overlap"
    tags = {"full"}
    valid_prog_environs = ["+overlap"]
    seconds = 300
    env_vars = ENGINES_ON

    def program_arguments(self):
        """Return where copies go, how many samples, and the size and limit of the partition."""
        limits = ["--size", str(self.extra("array_bytes"))]
        limits += ["--noise-limit", str(self.host_noise_limit)]
        # Devices of the host runtime share a core between both: time slices of 4 ms.
        longer = ["--batch-time", "0.1"] if self.node is None else []
        return [*self.target, "--series-time", "1", *longer, *limits]

    def expected_metrics(self):
        """Return what the kernel and the copies keep, for each way of copying."""
        return [
            self.metric(name, {"experiment": experiment, **fields})
            for way, (experiment, operation, engine) in self.ways.items()
            for name, fields in (
                (f"compute_beside_{way}", COMPUTED),
                (
                    f"{way}_beside_compute",
                    {"operation": operation, "engine": engine, "bytes_counted": "once"},
                ),
            )
        ]

    def metric(self, name, where):
        """Return the metric of what works beside the other one, in percent of itself alone."""
        unit = "us" if where["operation"] == "compute" else "GB/s"
        beside, alone = (
            Metric(name, {**where, "role": role}, unit=unit, independent=True)
            for role in ("beside", "single")
        )
        return relative.beside(beside, alone)


@rfm.simple_test
class overlap_peers(OverlapCheck):
    """Copies from each device to the one after it."""

    descr = "A kernel beside copies to a peer, by engine and by kernel (E7, E8)"
    tags = {"E7", "E8", "full"}
    valid_systems = ["+devices +several_devices +peers -simulated"]
    target = ("--pairs", "next", "--devices", "none")
    ways = {"engine": ("E7", "engine", "copy-engine"), "kernel": ("E8", "write", "kernel")}


@rfm.simple_test
class overlap_host(OverlapCheck):
    """Copies from each device to pinned host memory next to it."""

    descr = "A kernel beside copies to pinned host memory, by engine and by kernel (E2, E3)"
    tags = {"E2", "E3", "full"}
    valid_systems = ["+devices +peers -simulated"]
    target = ("--pairs", "none", "--devices", "each")
    ways = {"engine": ("E2", "d2h", "copy-engine"), "kernel": ("E3", "write", "kernel")}
