"""Memory shared by host and devices: zero-copy and page migration (experiment E3)."""

from contextlib import suppress
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before

from fabricheck.core.errors import FabricheckError
from fabricheck.references.entries import plain, requires
from fabricheck.results.document import load
from fabricheck.rfm.base import RESULT, MeasuringCheck
from fabricheck.rfm.metrics import LARGEST, Metric

#: By operation, what moves the data, and the kinds of memory at both ends.
OPERATIONS = {
    "read": ("kernel", "managed", "device"),
    "write": ("kernel", "device", "managed"),
    "host-read": ("cpu", "managed", "host-pageable"),
    "host-write": ("cpu", "host-pageable", "managed"),
    "prefetch-h2d": ("copy-engine", "managed", "managed"),
    "prefetch-d2h": ("copy-engine", "managed", "managed"),
}
FIELDS = ("engine", "source.memory", "destination.memory")
#: Operations on pages that are on the host; the others need pages that migrate.
FROM_THE_HOST = ("read", "write")


def series_of(operation, movement):
    """Return the distinguishing fields of one operation's series, beyond the caches."""
    fields = dict(zip(FIELDS, OPERATIONS[operation], strict=True))
    where = {"experiment": "E3", "role": "single", "operation": operation, **fields}
    return {**where, "movement": movement, "regime": "memory", "bytes_counted": "once"}


def moved(operation, movement):
    """Return the worst and the median device of one operation."""
    stem, where = operation.replace("-", "_"), series_of(operation, movement)
    return [
        Metric(f"{stem}_{reduce}", where, ("device",), reduce, independent=True)
        for reduce in ("worst", "median")
    ]


def largest(operation, movement):
    """Return the value of one operation at the largest size of a scan."""
    where = {**series_of(operation, movement), "bytes": LARGEST}
    return Metric(operation, where, independent=True)


class ManagedCheck(MeasuringCheck):
    """Each device alone; the kind of page movement is requested, and verified in every series.

    movement: zero-copy or page-migration; the program refuses a device that would use the other.
    operations: those of the program managed. devices: in the form of the program's option.
    """

    program = "managed"
    arguments = ("--series-time", "1")
    valid_prog_environs = ["+managed"]
    devices = "each"

    def sizes(self):
        """Return the sizes of the array, in the form of the program's option."""
        return str(self.extra("array_bytes"))

    def program_arguments(self):
        """Return the arguments, and the partition's sizes and noise limit."""
        what = ["--devices", self.devices, "--memory", "managed", "--expect", self.movement]
        sizes = ["--operations", ",".join(self.operations), "--sizes", self.sizes()]
        return [*what, *sizes, *self.arguments, "--noise-limit", str(self.host_noise_limit)]


@rfm.simple_test
class managed_zero_copy(ManagedCheck):
    """Pages stay in place, and every access crosses the link."""

    descr = "Managed memory that stays in place, read and written over the link (E3)"
    tags = {"E3", "node", "full"}
    valid_systems = ["+devices +xnack"]
    env_vars = {"HSA_XNACK": "0"}
    movement = "zero-copy"
    arguments = ("--series-time", "0.25")
    operations = FROM_THE_HOST
    metrics = tuple(metric for name in FROM_THE_HOST for metric in moved(name, "zero-copy"))


@rfm.simple_test
class managed_migration(ManagedCheck):
    """Pages migrate to the accessing side; in its own process, since some systems hang."""

    descr = "Managed memory that migrates on page faults, and by prefetch (E3)"
    tags = {"E3", "full"}
    valid_systems = ["+devices +managed_memory"]
    env_vars = {"HSA_XNACK": "1"}
    movement = "page-migration"
    operations = tuple(OPERATIONS)
    seconds = 600
    metrics = tuple(
        metric
        for name in OPERATIONS
        for metric in moved(name, "prefetch" if "prefetch" in name else "page-migration")
    )
    #: Names of metrics without a value on the node, and without a required one.
    stayed = ()

    def expected_metrics(self):
        """Return the metrics without those of operations that move no pages on this node."""
        return [metric for metric in self.metrics if metric.name not in self.stayed]

    @run_before("sanity")
    def leave_out_what_stayed(self):
        """Leave out report-only metrics of host accesses and prefetches that moved no page.

        Pages may stay on the device when the host accesses them, and a prefetch may do nothing.
        Both depend on kernel and driver and are no fault of the node. The document states which
        happened.
        """
        with suppress(FabricheckError):  # the base judges and reports this
            document = load(Path(self.stagedir) / RESULT)
            skipped = {skip["operation"]: skip["reason"] for skip in document.get("skipped") or ()}
            measured = {(series["operation"], series["movement"]) for series in document["series"]}
            self.stayed = [
                metric.name
                for metric in self.metrics
                if self.report_only(metric)
                and (metric.where["operation"], metric.where["movement"]) not in measured
                and (
                    metric.where["operation"] in skipped
                    or (metric.where["operation"], "zero-copy") in measured
                )
            ]
            for name in self.perf_variables.keys() - {
                metric.name for metric in self.judged_metrics()
            }:
                del self.perf_variables[name]
            if self.stayed:
                why = "; ".join([*document["notes"], *skipped.values()])
                self.logger.info(f"{self.name}: no value for {', '.join(self.stayed)}: {why}")

    def report_only(self, metric):
        """Whether the partition's reference of a metric requires nothing."""
        return not requires(plain(self.entries[metric.name]))


class ManagedScan(ManagedCheck):
    """Array sizes on the first device; the document keeps the curves."""

    devices = "0"
    operations = FROM_THE_HOST
    # Many series of few samples: the curve matters, and every point has its uncertainty.
    arguments = ("--max-samples", "15", "--series-time", "1")
    seconds = 300

    def sizes(self):
        """Return the sizes of the paper's figure 3, and larger ones where caches require larger
        arrays.
        """
        return f"4KiB:{max(1 << 30, int(self.extra('array_bytes')))}"

    def population(self):
        """Return the one device."""
        return {"device": [0]}


@rfm.simple_test
class managed_scan_zero_copy(ManagedScan):
    """Pages stay in place, and every access crosses the link."""

    descr = "Managed memory that stays in place, over array sizes on the first device (E3)"
    tags = {"E3", "full"}
    valid_systems = ["+devices +xnack"]
    env_vars = {"HSA_XNACK": "0"}
    movement = "zero-copy"
    metrics = tuple(largest(name, "zero-copy") for name in FROM_THE_HOST)


@rfm.simple_test
class managed_scan_migration(ManagedScan):
    """Pages migrate to the kernel that accesses them."""

    descr = "Managed memory that migrates on page faults, over array sizes (E3)"
    tags = {"E3", "full"}
    valid_systems = ["+devices +managed_memory"]
    env_vars = {"HSA_XNACK": "1"}
    movement = "page-migration"
    metrics = tuple(largest(name, "page-migration") for name in FROM_THE_HOST)
