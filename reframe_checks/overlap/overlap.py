"""A computing kernel and simultaneous copies: the rates that each keeps, in % of its rate alone.

Copies are by engine and by kernel. Copies to a peer belong to experiments E7 (by engine) and E8 (by
kernel), copies to pinned host memory to E2 and E3. The advantage of engines is that compute units
stay free: V.A.2 and V.C of the paper, and "GPU-to-GPU communication options" of AMD's lab notes.

The computing kernel fills every compute unit. What a copy by kernels keeps beside it is how the
device shares full units between two queues, not how much of its links it can use.
"""

import reframe as rfm

from fabricheck.core.vocabulary import ENGINES_ON
from fabricheck.rfm import relative
from fabricheck.rfm.base import MeasuringCheck
from fabricheck.rfm.metrics import Metric

#: Fields that distinguish the kernel's series from those of copies.
COMPUTED = {"operation": "compute", "engine": "kernel"}


class OverlapCheck(MeasuringCheck):
    """Two metrics for each way of copying: the kernel's and the copies', of the worst device.

    ways: for each way, the experiment, operation and engine of the copies' series. target: the
    options for the destination of copies.
    """

    program = "overlap"
    tags = {"full"}
    valid_prog_environs = ["+overlap"]
    seconds = 300
    env_vars = ENGINES_ON

    def program_arguments(self):
        """Return the destination of copies, the number of samples, and the partition's size and
        limit.
        """
        limits = ["--size", str(self.extra("array_bytes"))]
        limits += ["--noise-limit", str(self.host_noise_limit)]
        # Devices of the host runtime share a core between kernel and copies: time slices of 4 ms.
        longer = ["--batch-time", "0.1"] if self.node is None else []
        return [*self.target, "--series-time", "1", *longer, *limits]

    def expected_metrics(self):
        """Return what the kernel and the copies keep of their rates, for each way of copying."""
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
        """Return the metric of a series in percent of its value alone."""
        unit = "us" if where["operation"] == "compute" else "GB/s"
        beside, alone = (
            Metric(name, {**where, "role": role}, unit=unit, independent=True)
            for role in ("beside", "single")
        )
        return relative.beside(beside, alone)


@rfm.simple_test
class overlap_peers(OverlapCheck):
    """Copies from each device to the one after it."""

    descr = "A kernel and simultaneous copies to a peer, by engine and by kernel (E7, E8)"
    tags = {"E7", "E8", "full"}
    valid_systems = ["+devices +several_devices +peers -simulated"]
    target = ("--pairs", "next", "--devices", "none")
    ways = {"engine": ("E7", "engine", "copy-engine"), "kernel": ("E8", "write", "kernel")}


@rfm.simple_test
class overlap_host(OverlapCheck):
    """Copies from each device to pinned host memory next to it."""

    descr = (
        "A kernel and simultaneous copies to pinned host memory, by engine and by kernel (E2, E3)"
    )
    tags = {"E2", "E3", "full"}
    valid_systems = ["+devices +peers -simulated"]
    target = ("--pairs", "none", "--devices", "each")
    ways = {"engine": ("E2", "d2h", "copy-engine"), "kernel": ("E3", "write", "kernel")}
