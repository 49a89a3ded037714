"""Copies by hipMemcpy between host memory and devices (experiments E2 and E4)."""

from dataclasses import dataclass, replace

import reframe as rfm

from fabricheck.core.vocabulary import ENGINES_ON
from fabricheck.results.series import SMALL_COPIES
from fabricheck.rfm import relative
from fabricheck.rfm.base import MeasuringCheck
from fabricheck.rfm.metrics import LARGEST, Figure, Metric, series_of

#: By operation, the side that is on the host, and the role of the series of its metrics.
OPERATIONS = {
    "h2d": ("source", "single"),
    "d2h": ("destination", "single"),
    "both": ("source", "sum"),
}
MEMORY = ("pinned", "pageable")

#: The engine that moves the bytes, counted once; another convention changes values by a factor of
#: two.
CONVENTION = {"regime": "memory", "engine": "copy-engine", "bytes_counted": "once"}


def copies(operation, memory, place, reduce, name="{}_{}_{}_{}", ends=None, **where):
    """Return a metric of one operation and kind of memory, beyond the caches.

    place: near or far: the NUMA domain, as seen from the device. ends: the pairs of device and NUMA
    domain; with ``None`` each device uses its own domain.
    """
    host, role = OPERATIONS[operation]
    other = "destination" if host == "source" else "source"
    kinds = {f"{host}.memory": f"host-{memory}", f"{other}.memory": "device"}
    fields = {**CONVENTION, **kinds, "operation": operation, "role": role, **where}
    # A sum has no single device, but a set of one device.
    who = ("device_set",) if role == "sum" else ("device",)
    name = name.format(operation, memory, place, reduce)
    if ends is None:
        return Metric(name, fields, who, reduce, independent=True)
    # Paths to another domain may differ between devices.
    alike = place == "near"
    among = tuple(([device] if role == "sum" else device, domain) for device, domain in ends)
    over = (*who, f"{host}.numa_domain")
    return Metric(name, fields, over, reduce, among=among, independent=True, alike=alike)


def near(memory):
    """Return the worst and the median device of each operation, with memory near it."""
    return tuple(
        copies(operation, memory, "near", reduce, experiment="E2")
        for operation in OPERATIONS
        for reduce in ("worst", "median")
    )


def both_ways(memory):
    """Return the metric of both directions at once relative to each alone, with memory near it."""
    each = (copies(operation, memory, "near", "worst") for operation in ("both", "h2d", "d2h"))
    return relative.of_single(*each)


def small(operation, size=None):
    """Return the metric of one direction at a size below those of `near`, of pinned memory.

    size: the name of one of SMALL_COPIES; None for the latency, the time of a copy of 16 B.
    """
    host, _ = OPERATIONS[operation]
    other = "destination" if host == "source" else "source"
    where = {
        "engine": "copy-engine",
        "role": "single",
        f"{host}.memory": "host-pinned",
        f"{other}.memory": "device",
    }
    if size is None:
        where["operation"] = f"{operation}-latency"
        name, unit = f"{operation}_latency_worst", "us"
    else:
        where |= {"operation": operation, "bytes": SMALL_COPIES[size]}
        name, unit = f"{operation}_{size}_worst", "GB/s"
    return Metric(name, where, unit=unit)


class CopyCheck(MeasuringCheck):
    """All cases in one launch, one device after the other.

    domains: the NUMA domains of the host memory, as memcpy takes them.
    memory: the kinds of host memory, as memcpy takes them.
    operations: those of OPERATIONS.
    """

    program = "memcpy"
    valid_systems = ["+devices"]
    valid_prog_environs = ["+memcpy"]
    domains = "near"
    memory = MEMORY
    operations = tuple(OPERATIONS)
    devices = "each"
    arguments = ("--series-time", "0.5")
    env_vars = ENGINES_ON

    def sizes(self):
        """Return the sizes of a message, in the form of memcpy's option."""
        return str(self.extra("array_bytes"))

    def program_arguments(self):
        """Return the arguments, and the partition's sizes and noise limit."""
        devices = self.alone_option if self.devices == "each" else self.devices
        places = ["--devices", devices, "--domains", self.domains]
        what = ["--memory", ",".join(self.memory)]
        what += ["--operations", ",".join(self.operations)]
        limits = ["--sizes", self.sizes(), "--noise-limit", str(self.host_noise_limit)]
        return [*places, *what, *self.arguments, *limits]

    def population(self):
        """Return the devices that must have been measured, each alone."""
        named = self.devices.split(",")
        devices = self.alone if self.devices == "each" else list(map(int, named))
        return {"device": devices, "device_set": [[device] for device in devices]}


@rfm.simple_test
class memcpy_near(CopyCheck):
    """Pinned memory, which shows the host link of each device."""

    descr = "hipMemcpy between each device and pinned memory near it (E2)"
    tags = {"E2", "smoke", "node", "full"}
    memory = ("pinned",)
    metrics = near("pinned")

    def expected_metrics(self):
        """Return the metrics of each operation; on nodes with engines also of both at once relative
        to each.
        """
        metrics = super().expected_metrics()
        return metrics if self.node is None else [*metrics, both_ways("pinned")]


@rfm.simple_test
class memcpy_near_pageable(CopyCheck):
    """Pageable memory, whose pages the runtime pins for a copy above 1 MiB."""

    descr = "hipMemcpy between each device and pageable memory near it (E2)"
    tags = {"E2", "node", "full"}
    memory = ("pageable",)
    metrics = near("pageable")


@rfm.simple_test
class memcpy_small(CopyCheck):
    """Small copies, whose time is mostly that of their start, and the start alone.

    No document states values, so that devices are compared with each other: a node of one device is
    left out.
    """

    descr = "hipMemcpy of 16 B to 4 MiB between each device and pinned memory near it (E2)"
    tags = {"E2", "node", "full"}
    valid_systems = ["+devices +several_devices +peers"]
    memory = ("pinned",)
    operations = ("h2d-latency", "d2h-latency", "h2d", "d2h")
    # Some hundred series of copies that take microseconds.
    arguments = ("--max-samples", "15", "--batch-time", "0.001")

    def sizes(self):
        """Return the sizes of a message, in the form of memcpy's option."""
        return ",".join(SMALL_COPIES)

    def expected_metrics(self):
        """Return for each direction and size how the worst device compares."""
        return [
            relative.of_members(small(operation, size), self.node)
            for operation in ("h2d", "d2h")
            for size in (None, *SMALL_COPIES)
        ]


@rfm.simple_test
class memcpy_again(CopyCheck):
    """Copies one way of pinned memory once more, for what began while the session ran."""

    descr = "hipMemcpy between each device and pinned memory, at the end of the session (E2)"
    tags = {"E2", "node", "full"}
    valid_systems = ["+devices +peers"]
    memory = ("pinned",)
    operations = ("h2d", "d2h")
    arguments = ("--max-samples", "7")
    repeats = "memcpy_near"
    metrics = tuple(
        relative.of_first(copies(operation, "pinned", "near", "worst"))
        for operation in ("h2d", "d2h")
    )


@rfm.simple_test
class memcpy_scan(CopyCheck):
    """Message sizes on the first device; the document keeps the full curve."""

    descr = "hipMemcpy over message sizes on the first device (E2)"
    tags = {"E2", "full"}
    devices = "0"
    seconds = 300
    # Many series of few samples: the curve matters, and every point has its uncertainty. With 15
    # samples the interval excludes the three extreme ones on either side, which other work on a
    # host causes.
    arguments = ("--max-samples", "15", "--series-time", "1", "--batch-time", "0.003")
    metrics = tuple(
        copies(operation, memory, "near", "worst", "{}_{}_{}", experiment="E2", bytes=LARGEST)
        for operation in OPERATIONS
        for memory in MEMORY
    )

    def sizes(self):
        """Return the sizes of the scan."""
        return self.extra("copy_sizes")


@rfm.simple_test
class memcpy_noncoherent(CopyCheck):
    """Pinned memory that is not coherent, beside the coherent one of memcpy_near; of ROCm alone."""

    descr = "hipMemcpy between each device and pinned memory that is not coherent, next to it (E2)"
    tags = {"E2", "full"}
    valid_systems = ["+devices +sdma -simulated"]
    memory = ("noncoherent",)
    metrics = near("noncoherent")


@dataclass(frozen=True)
class Elsewhere(Metric):
    """The number of devices whose memory is not on their own NUMA domain."""

    def figure(self, document, population):
        """Count the series whose verified domain is another one, or which are on several."""
        chosen = series_of(document, self, population, "GB/s")
        near = {device["index"]: device["numa_domain"] for device in document["devices"]}
        away = tuple(
            series for series in chosen if series["source"]["numa_domain"] != near[series["device"]]
        )
        return Figure(self, float(len(away)), chosen, away)


@rfm.simple_test
class memcpy_unplaced(CopyCheck):
    """Memory of plain hipHostMalloc, without a requested NUMA domain; its place is verified."""

    descr = "hipMemcpy between each device and pinned memory where the runtime places it (E2)"
    tags = {"E2", "full"}
    valid_systems = ["+devices +several_domains -simulated"]
    memory = ("pinned",)
    domains = "any"
    operations = ("h2d", "d2h")

    def expected_metrics(self):
        """Return the worst device of each direction, and the number with memory elsewhere."""
        worst = [
            replace(copies(operation, "pinned", "unplaced", "worst", experiment="E2"), alike=False)
            for operation in self.operations
        ]
        where = {"operation": "h2d", "role": "single", "source.memory": "host-pinned"}
        return [*worst, Elsewhere("pages_elsewhere", where, unit="count")]


class DomainsCheck(CopyCheck):
    """Devices with every NUMA domain; the place of the pages is verified, not assumed."""

    valid_systems = ["+devices +several_domains"]
    domains = "each"
    seconds = 300

    def paired(self):
        """Return the devices that are measured."""
        return self.node.devices

    def ends(self):
        """Return the pairs of device and domain that are near and far in the node model."""
        near = [(device.index, device.domain) for device in self.paired()]
        pairs = [(device, domain.index) for device, _ in near for domain in self.node.domains]
        return {"near": near, "far": [pair for pair in pairs if pair not in near]}

    def expected_metrics(self):
        """Return the worst and the median of the near and of the far pairs."""
        return [
            copies(operation, memory, place, reduce, ends=ends, experiment="E4")
            for operation in self.operations
            for memory in self.memory
            for place, ends in self.ends().items()
            for reduce in ("worst", "median")
        ]


@rfm.simple_test
class memcpy_numa(DomainsCheck):
    """Pinned memory, which the device's engine reads and writes.

    One device near each domain: devices near the same domain share the path between domains, and
    memcpy_near measures the link of each.
    """

    descr = "hipMemcpy between every NUMA domain and the first device near each (E4)"
    tags = {"E4", "node", "full"}
    memory = ("pinned",)
    arguments = ("--series-time", "0.25")

    def paired(self):
        """Return the first device near each domain."""
        first = {device.domain: device for device in reversed(self.node.devices)}
        return sorted(first.values(), key=lambda device: device.index)

    @property
    def devices(self):
        """The device numbers, in the form of memcpy's option."""
        return ",".join(str(device.index) for device in self.paired())


@rfm.simple_test
class memcpy_numa_pageable(DomainsCheck):
    """Pageable memory, which a nearby thread pins or copies; one direction after the other."""

    descr = "hipMemcpy of pageable memory between every NUMA domain and every device (E4)"
    tags = {"E4", "full"}
    memory = ("pageable",)
    operations = ("h2d", "d2h")
