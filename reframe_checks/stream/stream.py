"""STREAM on device memory and between host and devices (experiments E1 and E5)."""

import itertools

import reframe as rfm

from fabricheck.node import products
from fabricheck.rfm import relative
from fabricheck.rfm.base import MeasuringCheck
from fabricheck.rfm.metrics import LARGEST, Metric
from fabricheck.rfm.pairs import one_each

KERNELS = ("copy", "scale", "add", "triad")


#: STREAM's count of bytes, and the engine; another convention changes values by a factor of two.
CONVENTION = {"bytes_counted": "read+write", "engine": "kernel"}


def stream(name, reduce, over=("device",), among=None, memory="device", alike=None, **where):
    """Return a metric of one STREAM kernel on arrays far beyond the caches."""
    places = {"source.memory": memory, "destination.memory": memory}
    where = {"regime": "memory", **CONVENTION, **places, **where}
    alone = where.get("role") not in ("sum", "share")
    return Metric(name, where, over, reduce, among=among, independent=alone, alike=alike)


def of_set(name, members):
    """Return the metrics of a set of devices that work at the same time."""
    alone = len(members) == 1
    where = {"experiment": "E5", "operation": "copy", "device_set": list(members)}
    where["memory"] = "host-pinned"
    if alone:
        return [stream(f"copy_{name}", "worst", (), role="single", **where)]
    each = tuple((device,) for device in members)
    return [
        stream(f"copy_{name}_sum", "worst", (), role="sum", **where),
        stream(f"copy_{name}_share", "worst", among=each, role="share", **where),
    ]


def of_packages(packages):
    """Return the metrics of packages of several devices, each package alone."""
    where = {"experiment": "E5", "operation": "copy", "memory": "host-pinned"}
    sets = one_each(packages)
    each = tuple((list(members), device) for members in packages for device in members)
    return [
        stream("copy_package_sum", "worst", ("device_set",), sets, role="sum", **where),
        stream(
            "copy_package_share", "worst", ("device_set", "device"), each, role="share", **where
        ),
    ]


def of_blocks(kernel):
    """Return the best and the worst block of one kernel at the largest size of a scan."""
    fixed = {"operation": kernel, "bytes": LARGEST, "alike": False}
    return [
        stream(f"{kernel}_{reduce}_block", reduce, ("block_size",), **fixed)
        for reduce in ("best", "worst")
    ]


class StreamCheck(MeasuringCheck):
    """The common part of the checks of program stream."""

    program = "stream"
    valid_systems = ["+devices"]
    valid_prog_environs = ["+stream"]

    def program_arguments(self):
        """Return the arguments of the class and those of the partition."""
        size = str(self.extra("array_bytes"))
        alone = self.alone_option
        arguments = [each.format(array_bytes=size, alone=alone) for each in self.arguments]
        return [*arguments, "--noise-limit", str(self.extra("noise_limit"))]


class OwnMemoryCheck(StreamCheck):
    """The common part of the checks of a device's own memory, by the shape of its kernels."""

    def program_arguments(self):
        """Return the arguments, and the shape that the product of the devices has."""
        product = self.node.device_model if self.node else None
        return [*super().program_arguments(), *products.kernel_shape(product).options]

    def population(self):
        """Return the devices that must have been measured, each alone."""
        return {"device": self.alone}


@rfm.simple_test
class stream_local(OwnMemoryCheck):
    """Every device alone on its own memory."""

    descr = "STREAM on the memory of each device alone (E1)"
    tags = {"E1", "smoke", "node", "full"}
    arguments = ("--devices", "{alone}", "--sizes", "{array_bytes}", "--series-time", "1")
    metrics = tuple(
        stream(f"{kernel}_{reduce}", reduce, experiment="E1", role="single", operation=kernel)
        for kernel in KERNELS
        for reduce in ("worst", "median")
    )


@rfm.simple_test
class stream_again(OwnMemoryCheck):
    """The copy of each device once more, for what began while the session ran."""

    descr = "STREAM copy on each device's memory, at the end of the session (E1)"
    tags = {"E1", "node", "full"}
    valid_systems = ["+devices +peers"]
    repeats = "stream_local"
    arguments = (
        *("--devices", "{alone}", "--kernels", "copy", "--sizes", "{array_bytes}"),
        *("--max-samples", "7"),
    )
    metrics = (
        relative.of_first(
            stream("copy_worst", "worst", experiment="E1", role="single", operation="copy")
        ),
    )


@rfm.simple_test
class stream_scan(StreamCheck):
    """Array sizes and block sizes in one launch; the document keeps the full curves."""

    descr = "STREAM over array sizes and block sizes on the first device (E1)"
    tags = {"E1", "full"}
    # Many series of few samples: the curve matters, and every point has its uncertainty.
    arguments = (
        *("--devices", "0"),
        *("--max-samples", "7", "--batch-time", "0.003"),
    )
    # For a partition that requests no other kernel.
    metrics = tuple(of_blocks("triad"))

    def kernels(self):
        """Return the kernels of the partition; triad where it states none."""
        return self.current_partition.extras.get("scan_kernels", ["triad"])

    def program_arguments(self):
        """Return the arguments with the kernels, sizes and blocks of the partition."""
        blocks = ",".join(map(str, self.extra("scan_block_sizes")))
        scan = ["--sizes", self.extra("scan_sizes"), "--block-sizes", blocks]
        kernels = ["--kernels", ",".join(self.kernels())]
        return [*super().program_arguments(), *kernels, *scan]

    def expected_metrics(self):
        """Return the best and the worst block of each kernel."""
        return [metric for kernel in self.kernels() for metric in of_blocks(kernel)]

    def population(self):
        """Return the block sizes that must have been measured."""
        return {"block_size": self.extra("scan_block_sizes")}


@rfm.simple_test
class stream_concurrent(StreamCheck):
    """Host memory to host memory through the devices: sets that work at the same time."""

    descr = "STREAM copy between host arrays by sets of devices at once (E5)"
    tags = {"E5", "node", "full"}
    valid_systems = ["+devices +several_devices"]
    arguments = (
        *("--kernels", "copy", "--source", "host", "--destination", "host"),
        *("--sizes", "{array_bytes}", "--series-time", "1"),
    )

    def sets(self):
        """Return the sets of the node model; without one, the first device, and all of them."""
        devices = tuple(range(self.device_count))
        return self.node.device_sets() if self.node else {"one": devices[:1], "all": devices}

    def program_arguments(self):
        """Return the arguments with a set of devices each."""
        sets = [("--devices", ",".join(map(str, members))) for members in self.sets().values()]
        return [*super().program_arguments(), *itertools.chain.from_iterable(sets)]

    def expected_metrics(self):
        """Return the copy of a device alone, and of each set the sum and the worst share.

        Of all devices also the worst NUMA domain beside the others: the shares of its devices.
        """
        metrics = []
        domains = [device.domain for device in self.node.devices] if self.node else []
        for name, members in self.sets().items():
            metrics += of_set(name, members)
            if len(members) == len(domains) and len(set(domains)) > 1:
                metrics.append(relative.of_members(metrics[-1], self.node, domains))
        return metrics


@rfm.simple_test
class stream_concurrent_large(stream_concurrent):
    """The same as in the paper: arrays of 8 GiB, each device and each package alone, then sets.

    Blocks have 128 threads, as in the paper's script.
    """

    descr = "STREAM copy between host arrays of 8 GiB by each device, each package and sets (E5)"
    tags = {"E5", "full"}
    valid_systems = ["+devices +several_devices +peers"]
    arguments = (
        *("--kernels", "copy", "--source", "host", "--destination", "host"),
        *("--block-sizes", "128", "--series-time", "1"),
    )
    seconds = 600

    def sets(self):
        """Return the growing sets of several devices that are not a package."""
        packages = self.required_node.packages
        return {
            name: members
            for name, members in super().sets().items()
            if len(members) > 1 and members not in packages
        }

    def packages(self):
        """Return the packages of several devices."""
        return [package for package in self.required_node.packages if len(package) > 1]

    def program_arguments(self):
        """Return the arguments with each device, each package and the sets."""
        size = ["--sizes", str(self.extra("concurrent_bytes"))]
        packages = [("--devices", ",".join(map(str, members))) for members in self.packages()]
        first = ["--devices", "each", *itertools.chain.from_iterable(packages)]
        return [*size, *first, *super().program_arguments()]

    def expected_metrics(self):
        """Return the copy of the devices and the packages alone, and of each set as before."""
        where = {"experiment": "E5", "operation": "copy", "memory": "host-pinned", "role": "single"}
        alone = [stream(f"copy_alone_{how}", how, **where) for how in ("worst", "median")]
        packages = of_packages(self.packages()) if self.packages() else []
        return [*alone, *packages, *super().expected_metrics()]
