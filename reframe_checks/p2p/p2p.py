"""Transfers between the devices of a node, by copy engine (E7) and by kernel (E8)."""

from dataclasses import replace
from itertools import chain, permutations

import reframe as rfm

from fabricheck.core.vocabulary import ENGINES_OFF, ENGINES_ON, ENV_PEER_ENGINES
from fabricheck.results.series import SMALL_COPIES
from fabricheck.rfm import relative
from fabricheck.rfm.base import MeasuringCheck
from fabricheck.rfm.metrics import LARGEST, WORST_AND_MEDIAN, Metric
from fabricheck.rfm.pairs import one_each, ordered_pairs, pair_arguments, peers_of_the_first

#: By operation its convention of counting bytes; another one changes values by a factor of two
#: (docs/reference/result-document.md).
CONVENTION = {
    "engine": ("copy-engine", "once", "device", "peer"),
    "engine-both": ("copy-engine", "once", "device", "peer"),
    "latency": ("copy-engine", "once", "device", "peer"),
    "read": ("kernel", "once", "peer", "device"),
    "write": ("kernel", "once", "device", "peer"),
    "copy": ("kernel", "read+write", "peer", "peer"),
}
FIELDS = ("engine", "bytes_counted", "source.memory", "destination.memory")


class PairCheck(MeasuringCheck):
    """All ordered pairs in one launch; the metrics are the worst and the median of a link class.

    operations: by operation of p2p the role of its series, and their unit. moved_by: what moves
    copies if the environment selects something other than an engine; empty otherwise.
    """

    moved_by: str | None = None

    program = "p2p"
    valid_systems = ["+devices +several_devices +peers"]
    valid_prog_environs = ["+p2p"]

    def program_arguments(self):
        """Return the operations, and the partition's array size and noise limit."""
        return ["--operations", ",".join(self.operations), *pair_arguments(self)]

    def expected_metrics(self):
        """Return two metrics for each operation and link class of the healthy node."""
        return [
            self.metric(operation, role, unit, class_name, pairs, reduce)
            for operation, (role, unit) in self.operations.items()
            for class_name, pairs in ordered_pairs(self.node).items()
            for reduce in ("worst", "median")
        ]

    def both_ways(self, class_name, pairs):
        """Return the metric of both directions at once relative to each alone, of a class."""
        pairs = [pair for pair in pairs if pair[0] < pair[1]]
        at_once = self.metric("engine-both", "sum", "GB/s", class_name, pairs, "worst")
        there, back = (
            self.metric("engine", "single", "GB/s", class_name, direction, "worst")
            for direction in (pairs, [pair[::-1] for pair in pairs])
        )
        return relative.of_single(at_once, there, back)

    def metric(self, operation, role, unit, class_name, pairs, reduce):
        """Return the metric of the pairs of a class; both directions at once are one per pair."""
        convention = dict(zip(FIELDS, CONVENTION[operation], strict=True))
        if self.moved_by is not None:
            convention["engine"] = self.moved_by
        where = {"operation": operation, "role": role, **convention}
        where = {field: value for field, value in where.items() if value}
        if role == "sum":
            pairs = [pair for pair in pairs if pair[0] < pair[1]]
        name = f"{operation.replace('-', '_')}_{class_name}_{reduce}"
        among = one_each(pairs)
        return Metric(name, where, ("device_set",), reduce, unit, among, independent=True)


@rfm.simple_test
class p2p_engine(PairCheck):
    """hipMemcpyPeerAsync with copy engines, one direction and both; latency of 16 B."""

    descr = "Peer copies by copy engine: bandwidth and latency of all pairs (E7)"
    tags = {"E7", "smoke", "node", "full"}
    operations = {
        "engine": ("single", "GB/s"),
        "engine-both": ("sum", "GB/s"),
        "latency": ("single", "us"),
    }
    env_vars = ENGINES_ON

    def expected_metrics(self):
        """Return the metrics of each operation, and of both directions at once relative to each
        alone.
        """
        classes = ordered_pairs(self.node).items()
        return [
            *super().expected_metrics(),
            *(self.both_ways(*link_class) for link_class in classes),
        ]


@rfm.simple_test
class p2p_engine_off(PairCheck):
    """The same copies without the engines, in a separate process: kernels move the data."""

    descr = "Peer copies with copy engines disabled (E7)"
    tags = {"E7", "full"}
    valid_systems = ["+devices +several_devices +peers +sdma"]
    operations = {"engine": ("single", "GB/s")}
    moved_by = "kernel"
    env_vars = ENGINES_OFF


@rfm.simple_test
class p2p_peer_engine_off(PairCheck):
    """The same copies with HSA_ENABLE_PEER_SDMA=0 alone, as the paper names it.

    Its effect depends on ROCm: before 5.7 there is no such variable; in 5.7 and 6.0 kernels move
    the data; from 6.1 on they replace single engines, while engines still share copies over several
    direct links, which ignore the variable. The result states which.
    """

    descr = "Peer copies with HSA_ENABLE_PEER_SDMA=0 alone (E7)"
    tags = {"E7", "full"}
    valid_systems = ["+devices +several_devices +peers +sdma"]
    operations = {"engine": ("single", "GB/s")}
    moved_by = ""
    env_vars = {ENV_PEER_ENGINES: "0"}


@rfm.simple_test
class p2p_defaults(PairCheck):
    """The same copies with default settings: ROCm's version decides what moves the data."""

    descr = "Peer copies with the runtime's defaults: bandwidth and latency of all pairs (E7)"
    tags = {"E7", "node", "full"}
    valid_systems = ["+devices +several_devices +peers +sdma"]
    operations = {"engine": ("single", "GB/s"), "latency": ("single", "us")}
    moved_by = ""


@rfm.simple_test
class p2p_kernel(PairCheck):
    """Kernels that read from a peer, write to it, and copy within its memory."""

    descr = "Peer access by kernel: read, write, copy of all pairs (E8)"
    tags = {"E8", "smoke", "node", "full"}
    operations = {name: ("single", "GB/s") for name in ("read", "write", "copy")}


@rfm.simple_test
class p2p_small(PairCheck):
    """Small copy-engine transfers; pairs of a link class are compared with each other."""

    descr = "Peer copies of 64 KiB to 4 MiB by copy engine, all pairs (E7)"
    tags = {"E7", "node", "full"}
    operations = {"engine": ("single", "GB/s")}
    # Some hundred series of copies that take microseconds.
    arguments = ("--max-samples", "15", "--batch-time", "0.001")
    env_vars = ENGINES_ON

    def program_arguments(self):
        """Return the operations, the sizes, and the partition's noise limit."""
        what = ["--operations", ",".join(self.operations), "--sizes", ",".join(SMALL_COPIES)]
        return [*what, *self.arguments, "--noise-limit", str(self.extra("noise_limit"))]

    def expected_metrics(self):
        """Return for each size and link class of several pairs how the worst compares."""
        worst = [
            self.metric(operation, role, unit, class_name, pairs, "worst")
            for operation, (role, unit) in self.operations.items()
            for class_name, pairs in ordered_pairs(self.node).items()
        ]
        sized = [
            replace(
                metric,
                name=f"{metric.name.removesuffix('_worst')}_{size}",
                where={**metric.where, "bytes": number},
                alike=False,
            )
            for metric in worst
            for size, number in SMALL_COPIES.items()
        ]
        return [relative.of_members(metric, self.node) for metric in sized]


@rfm.simple_test
class p2p_again(PairCheck):
    """Writes by kernel of all pairs once more, for what began while the session ran."""

    descr = "Peer access by kernel of all pairs, at the end of the session (E8)"
    tags = {"E8", "node", "full"}
    operations = {"write": ("single", "GB/s")}
    repeats = "p2p_kernel"

    def program_arguments(self):
        """Return the operation, the array size and the noise limit, with few samples."""
        return [*super().program_arguments(), "--max-samples", "7"]

    def expected_metrics(self):
        """Return the metric of each link class."""
        return [
            relative.of_first(self.metric(operation, role, unit, class_name, pairs, "worst"))
            for operation, (role, unit) in self.operations.items()
            for class_name, pairs in ordered_pairs(self.node).items()
        ]


@rfm.simple_test
class p2p_all_to_all(PairCheck):
    """Every ordered pair at the same time, by engine and by kernel, and each pair alone.

    A limit applies to kernels: the rate that the links leave the slowest pair. It does not apply to
    copy-engine transfers, because so many copies also share the engines of a device.
    """

    descr = "Transfers between all pairs of devices at the same time (E7, E8)"
    tags = {"E7", "E8", "full"}
    operations = {name: ("single", "GB/s") for name in ("engine", "read", "write")}
    env_vars = ENGINES_ON

    def program_arguments(self):
        """Return pairs, sets and operations, and the array size and noise limit."""
        return ["--pairs", "all", "--together", "all", *super().program_arguments()]

    def expected_metrics(self):
        """Return the sum of each operation; for kernels also relative to what the links leave."""
        self.skip_if(
            any(not link_class.links for link_class in self.node.link_classes),
            f"On {self.node.name} some devices have no way to each other.",
        )
        metrics = []
        for operation, (role, unit) in self.operations.items():
            pairs = list(permutations(range(self.device_count), 2))
            alone = self.metric(operation, role, unit, "all", pairs, "worst")
            where = {**alone.where, "role": "sum"}
            among = one_each([range(self.device_count)])
            total = Metric(f"{operation}_sum", where, ("device_set",), among=among)
            metrics.append(total)
            if operation != "engine":
                name = f"{operation}_of_links"
                metrics.append(relative.of_links(name, total, alone, self.node))
        return metrics


@rfm.simple_test
class p2p_one_to_many(PairCheck):
    """Each device to all its neighbours at the same time, and all of them to it.

    Kernels run on the neighbours, one each, so that none shares its device's compute units: they
    read from the device, and write to it. Devices whose links are alike are compared by the rates
    of all their transfers together, because no document states what several transfers leave each
    other.
    """

    descr = "Transfers between each device and all its neighbours at the same time (E7, E8)"
    tags = {"E7", "E8", "node", "full"}
    operations = {name: ("share", "GB/s") for name in ("engine", "read", "write")}
    #: What is compared: from the device, or to it.
    ways = {"engine": ("from", "to"), "read": ("from",), "write": ("to",)}
    env_vars = ENGINES_ON

    def neighbours(self):
        """Return by device the devices with a direct link to it, where they are several."""
        devices, node = range(self.device_count), self.required_node
        direct = {
            device: [
                other
                for other in devices
                if other != device and node.link_class(device, other).direct
            ]
            for device in devices
        }
        return {device: others for device, others in direct.items() if len(others) > 1}

    def pairs(self, device, way):
        """Return the pairs that work at the same time, from a device or to it."""
        others = self.neighbours()[device]
        return [(device, other) if way == "from" else (other, device) for other in others]

    def program_arguments(self):
        """Return the sets of pairs and the operations, and the array size and noise limit."""
        sets = []
        for device in self.neighbours():
            for way in ("from", "to"):
                pairs = ",".join(f"{a}-{b}" for a, b in self.pairs(device, way))
                sets += ["--together", pairs]
        return [*sets, *super().program_arguments(), "--max-samples", "15"]

    def alike(self):
        """Return the devices with equally wide links where there are several, by these widths.

        Of links to three neighbours: links1_2_4, or links3x2 where all are equally wide.
        """
        devices_of = {}
        for device, others in self.neighbours().items():
            widths = sorted(self.node.link_class(device, other).links for other in others)
            name = "links" + "_".join(map(str, widths))
            if len(set(widths)) == 1:
                name = f"links{len(widths)}x{widths[0]}"
            devices_of.setdefault(name, []).append(device)
        return {name: devices for name, devices in devices_of.items() if len(devices) > 1}

    def expected_metrics(self):
        """Return for each way how the worst device compares with those of equal links."""
        self.skip_if(
            not self.alike(),
            f"On {self.node.name} no two devices have the same links to several neighbours.",
        )
        return [
            self.compared(operation, way, name, devices)
            for operation, ways in self.ways.items()
            for way in ways
            for name, devices in self.alike().items()
        ]

    def compared(self, operation, way, name, devices):
        """Return the metric of some devices: what each moves to or from all its neighbours."""
        pairs = {device: self.pairs(device, way) for device in devices}
        role, unit = self.operations[operation]
        shares = self.metric(operation, role, unit, name, [], "worst")
        among = tuple(
            ([*dict.fromkeys(chain(*members))], *pair)
            for members in pairs.values()
            for pair in members
        )
        shares = replace(
            shares,
            name=f"{operation}_{way}_each_{name}",
            over=("device_set", "source.device", "destination.device"),
            among=among,
        )
        members = [device for device, pairs_of_device in pairs.items() for _ in pairs_of_device]
        return relative.of_members(shares, self.node, members)


@rfm.simple_test
class p2p_scan(MeasuringCheck):
    """Array sizes from device 0 to one device of each class; the document keeps the curves."""

    descr = "Peer copies and peer access over sizes, from device 0 to each link class (E7, E8)"
    tags = {"E7", "E8", "full"}
    program = "p2p"
    valid_systems = ["+devices +several_devices +peers"]
    valid_prog_environs = ["+p2p"]
    operations = ("engine", "read", "write", "copy")
    # Many series of few samples: the curve matters, and every point has its uncertainty.
    arguments = ("--max-samples", "15", "--series-time", "1")
    seconds = 300
    env_vars = ENGINES_ON

    def program_arguments(self):
        """Return pairs and operations, and the sizes and noise limit of the partition."""
        pairs = ",".join(f"{a}-{b}" for a, b in peers_of_the_first(self.required_node).values())
        what = ["--pairs", pairs, "--operations", ",".join(self.operations)]
        sizes = ["--sizes", self.extra("copy_sizes")]
        return [*what, *sizes, *self.arguments, "--noise-limit", str(self.extra("noise_limit"))]

    def expected_metrics(self):
        """Return the value of each operation at the largest size, by link class."""
        return [
            self.metric(operation, class_name, pair)
            for operation in self.operations
            for class_name, pair in peers_of_the_first(self.required_node).items()
        ]

    def metric(self, operation, class_name, pair):
        """Return the metric of one pair; its value is of the largest size."""
        convention = dict(zip(FIELDS, CONVENTION[operation], strict=True))
        where = {"operation": operation, "role": "single", "bytes": LARGEST, **convention}
        name, among = f"{operation}_{class_name}", one_each([pair])
        return Metric(name, where, ("device_set",), among=among, independent=True)


@rfm.simple_test
class p2p_block_128(MeasuringCheck):
    """Kernels of device 0 with 128 threads per block, as in the paper, over array sizes.

    Figures 8 and 9 of the paper have one curve for each neighbour. Its text says that the data are
    on the neighbour, which is `copy`; its code (`stream_gpugpu.cpp` of multi-gpu-comm) reads there
    and writes the result to local memory, which is `read` by device 0, as "direct P2P" of figure 10
    is. `write` has only the result on the neighbour. All other checks of kernels between devices
    use 1024 threads per block.
    """

    descr = "Peer access by kernels of 128 threads per block, with local and remote results (E8)"
    tags = {"E8", "full"}
    program = "p2p"
    valid_systems = ["+devices +several_devices +peers"]
    valid_prog_environs = ["+p2p"]
    operations = ("read", "write", "copy")
    arguments = ("--block-size", "128", *p2p_scan.arguments)
    seconds = 300

    def pairs(self, operation):
        """Return by link class the pair whose kernel runs on device 0, source first."""
        classes = peers_of_the_first(self.required_node).items()
        return {name: pair[::-1] if operation == "read" else pair for name, pair in classes}

    def program_arguments(self):
        """Return pairs, operations and block, and the sizes and noise limit of the partition."""
        wanted = [self.pairs(operation) for operation in ("copy", "read")]
        pairs = ",".join(f"{a}-{b}" for classes in wanted for a, b in classes.values())
        what = ["--pairs", pairs, "--operations", ",".join(self.operations)]
        limits = ["--noise-limit", str(self.extra("noise_limit"))]
        return [*what, "--sizes", self.extra("copy_sizes"), *self.arguments, *limits]

    def expected_metrics(self):
        """Return the value of each operation of device 0 at the largest size, by link class."""
        return [
            Metric(
                f"{operation}_{class_name}",
                {
                    "operation": operation,
                    "role": "single",
                    "bytes": LARGEST,
                    "block_size": 128,
                    **dict(zip(FIELDS, CONVENTION[operation], strict=True)),
                },
                ("device_set",),
                among=one_each([pair]),
                independent=True,
            )
            for operation in self.operations
            for class_name, pair in self.pairs(operation).items()
        ]


@rfm.simple_test
class p2p_local(MeasuringCheck):
    """hipMemcpyPeerAsync from a device to itself: the diagonals of the paper's figures 6b and 6c.

    Bytes are counted once, so that the memory moves twice as many. On AMD's devices a kernel of the
    runtime makes such copies, whatever the engines are.
    """

    descr = "Copies within each device by the peer call: bandwidth, latency (E7)"
    tags = {"E7", "full"}
    program = "p2p"
    valid_systems = ["+devices +peers"]
    valid_prog_environs = ["+p2p"]
    arguments = ("--pairs", "self", "--operations", "engine,latency")

    def program_arguments(self):
        """Return pairs and operations, and the array size and noise limit of the partition."""
        return [*self.arguments, *pair_arguments(self)]

    def expected_metrics(self):
        """Return bandwidth and latency of the worst and the median device."""
        where = {"role": "single", "direction": "local"}
        where |= {"source.memory": "device", "destination.memory": "device"}
        return [
            Metric(
                f"local_{operation}_{reduce}",
                {"operation": operation, **where},
                ("device",),
                reduce,
                unit,
                independent=True,
            )
            for operation, unit in (("engine", "GB/s"), ("latency", "us"))
            for reduce in WORST_AND_MEDIAN
        ]
