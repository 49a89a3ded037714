"""Memory that host and devices share: zero-copy and page migration (experiment E3)."""

import reframe as rfm

from fabricheck.rfm.base import MeasuringCheck
from fabricheck.rfm.metrics import Metric

#: Of each operation who moves the data, and the kinds of memory at its ends.
OPERATIONS = {
    "read": ("kernel", "managed", "device"),
    "write": ("kernel", "device", "managed"),
    "host-read": ("cpu", "managed", "host-pageable"),
    "host-write": ("cpu", "host-pageable", "managed"),
    "prefetch-h2d": ("copy-engine", "managed", "managed"),
    "prefetch-d2h": ("copy-engine", "managed", "managed"),
}
FIELDS = ("engine", "source.memory", "destination.memory")
#: The operations on pages that are on the host; the others need pages that migrate.
FROM_THE_HOST = ("read", "write")


def moved(operation, movement):
    """Return the worst and the median over the devices of one operation, past the caches."""
    fields = dict(zip(FIELDS, OPERATIONS[operation], strict=True))
    where = {"experiment": "E3", "role": "single", "operation": operation, **fields}
    how = {"movement": movement, "regime": "memory", "bytes_counted": "once"}
    stem = operation.replace("-", "_")
    return [
        Metric(f"{stem}_{reduce}", {**where, **how}, ("device",), reduce)
        for reduce in ("worst", "median")
    ]


class ManagedCheck(MeasuringCheck):
    """Every device alone; what moves the pages is asked for, and read from every series.

    movement: zero-copy or page-migration; the program refuses a device that would do the other.
    operations: what managed measures.
    """

    program = "managed"
    arguments = ("--series-time", "1")
    valid_prog_environs = ["+managed"]
    reference = {"$ref": "managed.yaml"}

    def program_arguments(self):
        """Return what the check asks for, and the size and noise limit of the partition."""
        what = ["--devices", "each", "--memory", "managed", "--expect", self.movement]
        sizes = [
            "--operations",
            ",".join(self.operations),
            "--sizes",
            str(self.extra("array_bytes")),
        ]
        return [*what, *sizes, *self.arguments, "--noise-limit", str(self.host_noise_limit)]


@rfm.simple_test
class managed_zero_copy(ManagedCheck):
    """Pages stay where they are, and every access crosses the link."""

    descr = "Managed memory that stays in place, read and written over the link (E3)"
    tags = {"E3", "node", "full"}
    valid_systems = ["+devices +xnack"]
    env_vars = {"HSA_XNACK": "0"}
    movement = "zero-copy"
    operations = FROM_THE_HOST
    metrics = tuple(metric for name in FROM_THE_HOST for metric in moved(name, "zero-copy"))


@rfm.simple_test
class managed_migration(ManagedCheck):
    """Pages move to who touches them: a process of its own, since some systems hang."""

    descr = "Managed memory that migrates on page faults, and by prefetch (E3)"
    tags = {"E3", "full"}
    valid_systems = ["+devices +managed_memory"]
    env_vars = {"HSA_XNACK": "1"}
    movement = "page-migration"
    operations = tuple(OPERATIONS)
    seconds = 300
    metrics = tuple(
        metric
        for name in OPERATIONS
        for metric in moved(name, "prefetch" if "prefetch" in name else "page-migration")
    )
