"""Copies by hipMemcpy between host memory and devices (experiments E2 and E4)."""

from dataclasses import dataclass, replace

import reframe as rfm

from fabricheck.core.vocabulary import ENGINES_ON
from fabricheck.rfm import relative
from fabricheck.rfm.base import MeasuringCheck
from fabricheck.rfm.metrics import LARGEST, Figure, Metric, series_of

#: Of each operation the side that is on the host, and the role whose series make its metrics.
OPERATIONS = {
    "h2d": ("source", "single"),
    "d2h": ("destination", "single"),
    "both": ("source", "sum"),
}
MEMORY = ("pinned", "pageable")

#: What moves the bytes, and that each counts once: another convention is a factor of two.
CONVENTION = {"regime": "memory", "engine": "copy-engine", "bytes_counted": "once"}


def copies(operation, memory, place, reduce, name="{}_{}_{}_{}", ends=None, **where):
    """Return a metric of one operation and kind of memory, past the caches.

    place: near or far: of the NUMA domain, as seen from the device.
    ends: the pairs of device and NUMA domain; ``None`` is each device with the domain it has.
    """
    host, role = OPERATIONS[operation]
    other = "destination" if host == "source" else "source"
    kinds = {f"{host}.memory": f"host-{memory}", f"{other}.memory": "device"}
    fields = {**CONVENTION, **kinds, "operation": operation, "role": role, **where}
    # A sum has no device of its own; the set that it is of has one.
    who = ("device_set",) if role == "sum" else ("device",)
    name = name.format(operation, memory, place, reduce)
    if ends is None:
        return Metric(name, fields, who, reduce, independent=True)
    # The way to another domain need not be the same for all devices.
    alike = place == "near"
    among = tuple(([device] if role == "sum" else device, domain) for device, domain in ends)
    over = (*who, f"{host}.numa_domain")
    return Metric(name, fields, over, reduce, among=among, independent=True, alike=alike)


def near(memory):
    """Return the worst and the median device of each operation, with memory next to it."""
    return tuple(
        copies(operation, memory, "near", reduce, experiment="E2")
        for operation in OPERATIONS
        for reduce in ("worst", "median")
    )


def both_ways(memory):
    """Return the metric of both directions at once beside the two alone, with memory next to it."""
    each = (copies(operation, memory, "near", "worst") for operation in ("both", "h2d", "d2h"))
    return relative.both_ways(*each)


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
        """Return the sizes of a message, as memcpy takes them."""
        return str(self.extra("array_bytes"))

    def program_arguments(self):
        """Return what the check asks for, and the sizes and noise limit of the partition."""
        places = ["--devices", self.devices, "--domains", self.domains]
        what = ["--memory", ",".join(self.memory)]
        what += ["--operations", ",".join(self.operations)]
        limits = ["--sizes", self.sizes(), "--noise-limit", str(self.host_noise_limit)]
        return [*places, *what, *self.arguments, *limits]

    def population(self):
        """Return the devices that must have been measured, each alone."""
        named = self.devices.split(",")
        devices = range(self.device_count) if self.devices == "each" else list(map(int, named))
        return {"device": devices, "device_set": [[device] for device in devices]}


@rfm.simple_test
class memcpy_near(CopyCheck):
    """Pinned memory, which shows the host link of each device."""

    descr = "hipMemcpy between each device and pinned memory next to it (E2)"
    tags = {"E2", "smoke", "node", "full"}
    memory = ("pinned",)
    metrics = near("pinned")

    def expected_metrics(self):
        """Return those of each operation; on nodes with engines both at once beside the two."""
        own = super().expected_metrics()
        return own if self.node is None else [*own, both_ways("pinned")]


@rfm.simple_test
class memcpy_near_pageable(CopyCheck):
    """Pageable memory, whose pages the runtime pins for a copy above 1 MiB."""

    descr = "hipMemcpy between each device and pageable memory next to it (E2)"
    tags = {"E2", "node", "full"}
    memory = ("pageable",)
    metrics = near("pageable")


@rfm.simple_test
class memcpy_scan(CopyCheck):
    """Message sizes on the first device; the document keeps the full curve."""

    descr = "hipMemcpy over message sizes on the first device (E2)"
    tags = {"E2", "full"}
    devices = "0"
    # Many series of few samples: the curve matters, and every point says how sure it is. Of 15 the
    # interval leaves out the three extreme ones on either side, which other work on a host makes.
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
    """On how many devices memory is not on the NUMA domain that the device is attached to."""

    def figure(self, document, population):
        """Count the series whose proved domain is another one, or which is on several."""
        chosen = series_of(document, self, population, "GB/s")
        near = {device["index"]: device["numa_domain"] for device in document["devices"]}
        away = tuple(one for one in chosen if one["source"]["numa_domain"] != near[one["device"]])
        return Figure(self, float(len(away)), chosen, away)


@rfm.simple_test
class memcpy_unplaced(CopyCheck):
    """Memory of plain hipHostMalloc, for which no NUMA domain is asked; where it lies is proved."""

    descr = "hipMemcpy between each device and pinned memory wherever the runtime puts it (E2)"
    tags = {"E2", "full"}
    valid_systems = ["+devices +several_domains -simulated"]
    memory = ("pinned",)
    domains = "any"
    operations = ("h2d", "d2h")

    def expected_metrics(self):
        """Return the worst device of each direction, and on how many memory is elsewhere."""
        worst = [
            replace(copies(operation, "pinned", "unplaced", "worst", experiment="E2"), alike=False)
            for operation in self.operations
        ]
        where = {"operation": "h2d", "role": "single", "source.memory": "host-pinned"}
        return [*worst, Elsewhere("pages_elsewhere", where, unit="count")]


class DomainsCheck(CopyCheck):
    """Devices with every NUMA domain; where the pages lie is proved, not assumed."""

    valid_systems = ["+devices +several_domains"]
    domains = "each"

    def paired(self):
        """Return the devices that are measured."""
        return self.node.devices

    def ends(self):
        """Return the pairs of device and domain of the node model that are near, and far."""
        near = [(device.index, device.domain) for device in self.paired()]
        every = [(device, one.index) for device, _ in near for one in self.node.domains]
        return {"near": near, "far": [pair for pair in every if pair not in near]}

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

    One device near each domain: devices near the same one share the way between domains, and the
    link of each is measured by memcpy_near.
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
        """Their numbers, as memcpy takes them."""
        return ",".join(str(device.index) for device in self.paired())


@rfm.simple_test
class memcpy_numa_pageable(DomainsCheck):
    """Pageable memory, which a thread beside it pins or copies; one direction after the other."""

    descr = "hipMemcpy of pageable memory between every NUMA domain and every device (E4)"
    tags = {"E4", "full"}
    memory = ("pageable",)
    operations = ("h2d", "d2h")
