"""Predicted time of a check, from its command line and the timing of its node model.

A program starts, pins memory and measures series: batches until one is long enough, then samples,
each into a poisoned destination that is compared after the last one (docs/evidence/method.md).
The functions below follow the plans of the programs in src/bench. The key ``timing`` of the node
model states the cost of each step on a kind of node (docs/node-models.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, permutations

from fabricheck.core.errors import FabricheckError
from fabricheck.core.lines import doubled
from fabricheck.core.vocabulary import STREAM_ARRAYS, Mover
from fabricheck.node import NodeModel
from fabricheck.node.schema import TimingSection
from fabricheck.tools.benchmarks import NCCL_TESTS, Launch

#: Sampling rules that no option of a check sets: the samples of a series whose interval is narrow
#: at once, and the seconds until a device is warm (src/bench/harness/sampling.hpp).
SAMPLES, WARM_UP_S = 7, 0.2

#: Seconds of a small operation: a launch, a copy of few bytes, a message.
SMALL_S = 20e-6

#: Seconds in which ranks agree on a sample: they check twice, at most 1 ms apart.
AGREED_S = 2e-3

#: Operations of a benchmark per operation in its mean: the warm-up adds a tenth to a fifth.
NCCL_WARMED, OSU_WARMED = 1.1, 1.2

#: Seconds between both readings of a NIC's counters, and of a vendor's loopback on one NIC: HPE's
#: moves 107 GB, perftest's measures 5 s.
NICS_S, LOOPBACK_S = 1.0, 7.0

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class Unpredicted(FabricheckError):
    """There is no basis for a prediction of a check's time."""


def of_program(program: str, arguments: Sequence[str], node: NodeModel) -> float:
    """Return the predicted time in s of one of the suite's programs, from start to end.

    :raises Unpredicted: when the node model has no timing, or the command line is not understood.
    """
    run = _Run(arguments, node)
    try:
        return PLANS[program](run)
    except (FabricheckError, LookupError, ValueError):
        raise Unpredicted(
            f"The time of '{program} {' '.join(arguments)}' cannot be predicted."
        ) from None


def of_launches(launches: Iterable[Launch], node: NodeModel) -> float:
    """Return the predicted time in s of ``fabricheck results record`` for launches of a third-party
    benchmark.

    :raises Unpredicted: when the node model has no timing.
    """
    run = _Run([], node)
    # The first launch is that of the program that describes the node.
    return run.timing.command_s.value + run.start_s + sum(_launch(run, one) for one in launches)


class _Run:
    """A launch of one of the suite's programs, and the cost of its steps on a node.

    batch_s, longest_s: the shortest time of a sample and the longest time of a series in s, unless
    an option sets them.
    """

    batch_s = 0.01
    longest_s = 5.0

    def __init__(self, arguments: Sequence[str], node: NodeModel) -> None:
        if node.timing is None:
            raise Unpredicted(f"{node.file} has no key timing.")
        self.node = node
        self.timing: TimingSection = node.timing
        self.options: dict[str, list[str]] = {}
        for name, value in pairwise(arguments):
            if name.startswith("--"):
                self.options.setdefault(name, []).append(value)

    def option(self, name: str, default: str) -> str:
        return self.options.get(f"--{name}", [default])[-1]

    def variants(self) -> int:
        """Return the number of variants of a kernel."""
        options = {"elements": "1", "loads": "plain", "grid": "cover"}
        return math.prod(len(self.words(*one)) for one in options.items())

    def words(self, name: str, default: str) -> list[str]:
        return [word for word in self.option(name, default).split(",") if word]

    def sizes(self, default: str = "") -> list[int]:
        """The bytes that ``--sizes`` lists; sizes in a range double."""
        found: list[int] = []
        for item in self.words("sizes", self.option("size", default)):
            first, _, last = item.partition(":")
            found += doubled(_bytes(first), _bytes(last or first))
        return found

    def device_sets(self) -> list[tuple[int, ...]]:
        every = tuple(range(len(self.node.devices)))
        sets: list[tuple[int, ...]] = []
        for text in self.options.get("--devices", ["each"]):
            if text == "each":
                sets += [(device,) for device in every]
            else:
                sets.append(every if text == "all" else tuple(map(int, text.split(","))))
        return sets

    def devices(self) -> list[int]:
        """The devices, measured one after the other."""
        return [device for members in self.device_sets() for device in members]

    def ranks(self) -> list[int]:
        """The device of each rank; without a map, rank n has device n."""
        return [int(word) for word in self.words("map", "")] or list(range(len(self.node.devices)))

    @property
    def start_s(self) -> float:
        return self.timing.launch_s.value + self.timing.device_s.value * len(self.node.devices)

    @property
    def start_mpi_s(self) -> float:
        return self.timing.mpi_s.value + self.timing.rank_s.value * len(self.ranks())

    @property
    def memory_gbs(self) -> float:
        peak = self.node.device(0).memory_peak_gbs
        if peak is None:
            raise Unpredicted(f"The memory's peak of {self.node.name} is unknown.")
        return self.timing.part_of_peak.value * peak

    def copied_s(self, memory: str, size: int) -> float:
        """Return the time in s of a copy between a device and pinned or pageable memory."""
        pinned = memory != "pageable"
        return _moved_s(size, self.link_gbs if pinned else self.timing.pageable_gbs.value)

    def poisoned_s(self, memory: str, size: int) -> float:
        """Return the time in s to poison or compare host memory that the device pinned."""
        return _moved_s(size, self.link_gbs if memory == "pinned" else self.timing.cpu_gbs.value)

    @property
    def link_gbs(self) -> float:
        return self.timing.part_of_peak.value * self.node.host_peak_gbs(0)

    def peer_gbs(self, source: int, destination: int, engine: Mover) -> float:
        """Return the bandwidth in GB/s between two devices, or within the memory of one."""
        if source == destination:
            return self.memory_gbs / 2
        peak = self.node.peer_peak_gbs(source, destination, engine)
        return self.timing.part_of_peak.value * peak

    def pinned_s(self, size: int) -> float:
        """Return the time in s to allocate, touch and pin host memory."""
        return _moved_s(size, self.timing.pin_gbs.value)

    def series(
        self, operation_s: float, poison_s: float, *, single: bool = False, host: bool = False
    ) -> float:
        """Return the time in s of one series.

        :param operation_s: the time of one operation.
        :param poison_s: the time to poison the destination once, or to compare it.
        :param single: whether a sample is one operation, however short.
        :param host: whether host memory takes part, so that intervals are wide at first.
        """
        batch_s = float(self.option("batch-time", str(self.batch_s)))
        longest_s = float(self.option("series-time", str(self.longest_s)))
        operation_s += SMALL_S
        sample_s = operation_s if single else max(operation_s, 1.1 * batch_s)
        cycle_s = sample_s + poison_s
        samples = self.timing.host_samples.value if host else SAMPLES
        samples = min(samples, int(self.option("max-samples", str(samples))))
        samples = max(SAMPLES, min(samples, longest_s / cycle_s))
        # Before the samples: one operation, and one batch if that is longer.
        found_s = operation_s + poison_s + (cycle_s if sample_s > operation_s else 0)
        return found_s + samples * cycle_s + poison_s


def _bytes(text: str) -> int:
    number = text.rstrip("BKMGi")
    return int(number) * UNITS[text[len(number) :] or "B"]


def _moved_s(size: float, gbs: float) -> float:
    return size / (1e9 * gbs)


def _stream(run: _Run) -> float:
    ends = [run.option(end, "device") for end in ("source", "destination")]
    on_host = ends.count("host")
    blocks = len(run.words("block-sizes", "256")) * run.variants()
    kernels = [STREAM_ARRAYS[kernel] for kernel in run.words("kernels", "copy,scale,add,triad")]
    seconds = run.start_s
    ready: set[int] = set()
    for devices in run.device_sets():
        seconds += WARM_UP_S + len({*devices} - ready) * on_host * run.pinned_s(max(run.sizes()))
        ready.update(devices)
        for size in run.sizes():
            if on_host:
                moved = _moved_s(size, run.link_gbs)
                each = len(kernels) * run.series(moved, moved, host=True)
            else:
                moved = _moved_s(size, run.memory_gbs)
                each = sum(run.series(count * moved, moved) for count in kernels)
            seconds += blocks * each
    return seconds


def _memcpy(run: _Run) -> float:
    devices, sizes = run.devices(), run.sizes()
    if run.option("domains", "near") == "near":
        domains, positions = len({run.node.device(one).domain for one in devices}), len(devices)
    else:
        domains = len(run.node.domains)
        positions = domains * len(devices)
    seconds = run.start_s + WARM_UP_S * len(devices)
    for memory in run.words("memory", "pinned,pageable"):
        seconds += domains * 2 * run.pinned_s(max(sizes))
        for operation in run.words("operations", "h2d,d2h,both"):
            seconds += positions * sum(_copies(run, memory, operation, size) for size in sizes)
    return seconds


def _copies(run: _Run, memory: str, operation: str, size: int) -> float:
    """Return the time in s of a series of copies between one device and one NUMA domain."""
    both, pinned = operation == "both", memory != "pageable"
    # Both directions of pageable memory share the processor.
    moved = (2 if both and not pinned else 1) * run.copied_s(memory, size)
    to_device = operation.startswith("h2d")
    poison = _moved_s(size, run.memory_gbs) if to_device else run.poisoned_s(memory, size)
    # Pinned copies in one direction are as steady as transfers between devices.
    return run.series(moved, poison, host=both or not pinned)


def _p2p(run: _Run) -> float:
    run.batch_s = 0.003
    stated = run.option("pairs", "all")
    ordered = list(permutations(range(len(run.node.devices)), 2))
    if stated == "self":
        ordered = [(device, device) for device in range(len(run.node.devices))]
    elif stated != "all":
        ordered = [(int(a), int(b)) for a, b in (pair.split("-") for pair in stated.split(","))]
    # The first job warms two devices, others at most one.
    seconds = run.start_s + WARM_UP_S * (len({device for pair in ordered for device in pair}) - 1)
    for operation in run.words("operations", ""):
        latency = operation.startswith("latency")
        engine: Mover = "copy-engine" if operation.startswith("engine") else "kernel"
        both = operation.endswith("-both")
        for a, b in {(min(pair), max(pair)) for pair in ordered} if both else ordered:
            variants = run.variants() if engine == "kernel" else 1
            for size in [16] if latency else run.sizes() * variants:
                # Within a device the memory reads and writes each byte.
                gbs = run.memory_gbs / 2 if a == b else run.peer_gbs(a, b, engine)
                poisoned_s = _moved_s(size, run.memory_gbs)
                seconds += run.series(_moved_s(size, gbs), poisoned_s, single=latency)
        if run.option("together", "") == "all" and not latency:
            # Each device has a destination for every other one.
            others = len(run.node.devices) - 1
            slowest = min(run.peer_gbs(*pair, engine) for pair in ordered) / others
            for size in run.sizes():
                poisoned_s = _moved_s(others * size, run.memory_gbs)
                seconds += run.series(_moved_s(size, slowest), poisoned_s)
    return seconds


def _overlap(run: _Run) -> float:
    size = max(run.sizes("256MiB"))
    devices = len(run.node.devices)
    pairs = 0 if run.option("pairs", "next") == "none" else devices
    hosts = 0 if run.option("devices", "each") == "none" else devices
    jobs = len(run.words("by", "engine,kernel")) * (pairs + hosts)
    # Twice alone, then twice with the other one for twice as long; data is compared after each.
    batch_s = 1.1 * float(run.option("batch-time", "0.02"))
    compared_s = 2 * _moved_s(size, run.link_gbs if hosts else run.memory_gbs)
    cycle_s = 6 * batch_s + 4 * compared_s
    warm_s = 2 * WARM_UP_S + 4 * (batch_s + compared_s)
    return run.start_s + hosts * run.pinned_s(size) + jobs * (warm_s + SAMPLES * cycle_s)


def _managed(run: _Run) -> float:
    migrates = run.option("expect", "") == "page-migration"
    gbs = run.timing.migration_gbs.value if migrates else run.link_gbs
    # Before each sample, pages are moved back, or poisoned in place.
    each = sum(
        run.series(_moved_s(size, gbs), _moved_s(size, gbs), single=True, host=True)
        for size in run.sizes()
    )
    arrays = 2 * run.pinned_s(max(run.sizes()))
    series = len(run.words("operations", "")) * each
    return run.start_s + len(run.devices()) * (WARM_UP_S + arrays + series)


def _pingpong(run: _Run) -> float:
    # All ranks work at the same time.
    seconds = run.start_mpi_s + WARM_UP_S
    for memory in run.words("memory", "pageable,pinned"):
        seconds += 2 * run.pinned_s(max(run.sizes()))
        for size in run.sizes():
            moved, poison = run.copied_s(memory, size), run.poisoned_s(memory, size) + AGREED_S
            for operation in run.words("operations", "h2d,d2h,both"):
                ways, before = 2 if operation == "both" else 1, poison
                if operation == "h2d":  # the device poisons its own memory
                    before = AGREED_S
                seconds += run.series(ways * moved, before, single=True, host=True)
    return seconds


def _mpi(run: _Run) -> float:
    run.batch_s, run.longest_s = 0.003, 0.03
    ranks = run.ranks()
    seconds = run.start_mpi_s
    if "--trial" in run.options:
        return seconds  # each message once, and none above 2 MiB
    seconds += WARM_UP_S * len(ranks)
    stated = run.option("pairs", "all")
    pairs = list(permutations(ranks, 2)) if stated == "all" else []
    if stated not in ("all", "none"):
        places = [map(int, pair.split("-")) for pair in stated.split(",")]
        pairs = [(ranks[source], ranks[target]) for source, target in places]
    for operation in run.words("operations", "latency,bandwidth"):
        if operation == "latency":
            seconds += len(pairs) * run.series(0, 0)
            continue
        for size in run.sizes("256MiB"):
            window = int(run.option("window", "0")) or max(4, min(64, (16 << 20) // size))
            each = [
                run.series(
                    _moved_s(window * size, run.peer_gbs(*pair, "copy-engine")),
                    _moved_s(size, run.memory_gbs),
                )
                for pair in pairs
            ]
            seconds += sum(each)
            if run.option("together", "rounds") == "rounds" and len(ranks) > 3 and each:
                # The rounds of a tournament, in both directions, each as slow as its slowest pair.
                seconds += 2 * (len(ranks) - 1) * max(each)
    without = {"none", *run.words("without", "")}
    collectives = {*run.words("collectives", ",".join(NCCL_TESTS.operations.values()))} - without
    return seconds + (len(ranks) - 1) * len(collectives) * run.series(0, 0)


def _nics(run: _Run) -> float:
    """Both readings of the counters, and the loopback of one NIC after the other."""
    seconds = run.timing.command_s.value + NICS_S
    return seconds + LOOPBACK_S * len(run.node.nics) * ("--loopback" in run.options)


PLANS: Mapping[str, Callable[[_Run], float]] = {
    "stream": _stream,
    "memcpy": _memcpy,
    "p2p": _p2p,
    "overlap": _overlap,
    "managed": _managed,
    "pingpong": _pingpong,
    "mpi": _mpi,
    "affinity": lambda run: run.start_mpi_s,
    "topology": lambda run: run.timing.command_s.value,
    "nics": _nics,
}


def _launch(run: _Run, launch: Launch) -> float:
    """Return the time in s of a benchmark's launch: its start, transfers and comparisons."""
    timing = run.timing
    every = [run.peer_gbs(*pair, "copy-engine") for pair in permutations(launch.devices, 2)]
    one_s = _moved_s(sum(launch.sizes), min(every, default=run.link_gbs))
    one_s += SMALL_S * launch.ranks * len(launch.sizes)
    join_s = timing.rank_s.value * launch.ranks
    if launch.program in NCCL_TESTS.operations:  # out of place, and in place
        return run.start_s + join_s + 2 * NCCL_WARMED * launch.batch * one_s
    compared_s = _moved_s(sum(launch.sizes), timing.osu_compares_gbs.value)
    seconds = timing.mpi_s.value + join_s + OSU_WARMED * launch.batch * one_s
    return seconds + (compared_s if launch.verifies else 0)
