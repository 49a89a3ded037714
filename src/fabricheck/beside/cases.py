"""The comparisons: equal measurements of our programs and of third-party benchmarks.

All bandwidths are in GB/s (1e9 bytes per second) and count bytes once. What the tools measure is
taken from their sources: nvbandwidth 0.8, BabelStream 5.0, cuda-samples, rocm_bandwidth_test 2.6.0,
TransferBench 1.52 and its successor. Nothing of those on AMD has run on an AMD GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fabricheck.beside.outputs import nvidia
from fabricheck.beside.outputs import rocm_bandwidth_test as rbt
from fabricheck.beside.outputs import transferbench as tb

#: Bytes of an array, except for latencies.
ARRAY_BYTES = 512 << 20

#: Bytes of the array of a pointer chase, as in nvbandwidth.
CHASE_BYTES = 2 << 20

#: Bytes of BabelStream's arrays, one launch each. BabelStream waits for the device after each
#: kernel, so that its rates grow with the size (H200: read plus written 3454 GB/s at 512 MiB, 3528
#: at 4 GiB).
BABELSTREAM_BYTES = {"512MiB": 512 << 20, "1GiB": 1 << 30}


@dataclass(frozen=True)
class Ours:
    """The one series of a launch (see `launches.ours`) with these fields.

    roles: a set of one pair has a single series, a set of several has a sum.

    to_host: whether the destination is host memory; None if no other series is alike.
    """

    launch: str
    operation: str
    roles: tuple[str, ...] = ("single",)
    direction: str | None = None
    to_host: bool | None = None


@dataclass(frozen=True)
class Cell:
    """One value of a tool.

    tool: a key of `launches.TOOLS`.

    place: its place for the tool's parser: a testcase, row and column; a kernel; a title, head, row
    and column.

    launch: the launch of the tool.

    factor: converts the printed value to the comparison's unit and convention.
    """

    tool: str
    place: tuple[str | int, ...]
    launch: str
    factor: float = 1.0


@dataclass(frozen=True)
class Comparison:
    """One row.

    target: the smallest ratio of ours over the best tool's value, for a time (us, ns) the largest;
    None if the tool measures something different.

    note: the difference between the tool's test and ours, printed at the end of the row.
    """

    name: str
    ours: Ours
    tools: tuple[Cell, ...]
    unit: Literal["GB/s", "us", "ns"] = "GB/s"
    target: float | None = 1.00
    note: str = ""

    @property
    def higher_is_better(self) -> bool:
        """Whether it is a bandwidth."""
        return self.unit == "GB/s"


#: The host's NUMA domain with a tool's best value; see `launches`.
HOST = "host"

SHARE = ("share",)
SUM = ("sum",)
SET = ("sum", "single")

#: BabelStream's copy, at half of the bytes that it counts.
BABELSTREAM_CELLS = tuple(
    Cell("babelstream", ("Copy",), f"babelstream-{size}", factor=0.5) for size in BABELSTREAM_BYTES
)


def _nvb(test: str, row: int = 0, column: int = 0) -> Cell:
    return Cell("nvbandwidth", (test, row, column), "nvbandwidth")


def _p2p(test: str, row: int, column: int, head: str = nvidia.BANDWIDTH) -> Cell:
    return Cell("p2p-test", (test, head, row, column), "p2p-test")


_BESIDE = "nvbandwidth keeps the other direction busy throughout; our two start together"
_QUEUED = "nvbandwidth's copies are queued by the destination, ours by the source"
_TOTAL = "nvbandwidth adds the rates of both; ours is all bytes over the time of the slower"
_SWAPPED = "nvbandwidth calls it {}; its kernels are the sources', ours the destinations'"
_RENAMED = "nvbandwidth calls it {}; its copies are queued by the destinations, ours by the sources"

#: The comparisons on NVIDIA: nvbandwidth, BabelStream and CUDA's sample with our programs.
#: Data moves from device 0 to device 1, or between one of them and the host, unless stated.
BESIDE_NVIDIA: tuple[Comparison, ...] = (
    Comparison(
        "copy on the device",
        Ours("stream", "copy"),
        (_nvb("device_local_copy"), *BABELSTREAM_CELLS),
        target=1.02,
        note="nvbandwidth's is by engine; BabelStream tells the best of its runs, half of it here, "
        f"of arrays of {' and of '.join(BABELSTREAM_BYTES)}: it waits after each kernel",
    ),
    Comparison(
        "host to device, engine", Ours("memcpy", "h2d"), (_nvb("host_to_device_memcpy_ce"),)
    ),
    Comparison(
        "device to host, engine", Ours("memcpy", "d2h"), (_nvb("device_to_host_memcpy_ce"),)
    ),
    Comparison(
        "host to device, engine, beside the other direction",
        Ours("memcpy", "both", SHARE, to_host=False),
        (_nvb("host_to_device_bidirectional_memcpy_ce"),),
        note=_BESIDE,
    ),
    Comparison(
        "device to host, engine, beside the other direction",
        Ours("memcpy", "both", SHARE, to_host=True),
        (_nvb("device_to_host_bidirectional_memcpy_ce"),),
        note=_BESIDE,
    ),
    Comparison(
        "host to device, kernel",
        Ours("stream-from-host", "copy"),
        (_nvb("host_to_device_memcpy_sm"),),
    ),
    Comparison(
        "device to host, kernel",
        Ours("stream-to-host", "copy"),
        (_nvb("device_to_host_memcpy_sm"),),
    ),
    Comparison(
        "to a peer, engine",
        Ours("p2p", "engine"),
        (_nvb("device_to_device_memcpy_write_ce", 0, 1), _p2p(nvidia.WRITES, 0, 1)),
    ),
    Comparison(
        "from a peer, engine",
        Ours("p2p", "engine"),
        (_nvb("device_to_device_memcpy_read_ce", 1, 0), _p2p(nvidia.READS, 1, 0)),
        note="the tools' copies are queued by the destination, ours by the source",
    ),
    Comparison(
        "both directions between peers, engine, beside writes",
        Ours("p2p", "engine-both", SUM),
        (_nvb("device_to_device_bidirectional_memcpy_write_ce", 0, 1), _p2p(nvidia.BOTH, 0, 1)),
        note=_TOTAL,
    ),
    Comparison(
        "both directions between peers, engine, beside reads",
        Ours("p2p", "engine-both", SUM),
        (_nvb("device_to_device_bidirectional_memcpy_read_ce", 0, 1),),
        note=f"{_TOTAL}; {_QUEUED}",
    ),
    Comparison(
        "read from a peer, kernel",
        Ours("p2p", "read"),
        (_nvb("device_to_device_memcpy_read_sm", 1, 0),),
    ),
    Comparison(
        "write to a peer, kernel",
        Ours("p2p", "write"),
        (_nvb("device_to_device_memcpy_write_sm", 0, 1),),
        target=1.01,
    ),
    Comparison(
        "both directions between peers, kernels that read",
        Ours("p2p", "read-both", SUM),
        (_nvb("device_to_device_bidirectional_memcpy_read_sm", 0, 1),),
        note=_TOTAL,
    ),
    Comparison(
        "both directions between peers, kernels that write",
        Ours("p2p", "write-both", SUM),
        (_nvb("device_to_device_bidirectional_memcpy_write_sm", 0, 1),),
        note=_TOTAL,
    ),
    # In nvbandwidth 0.8, a read of one device by all swaps source and destination (allToOneHelper,
    # oneToAllHelper), so data moves opposite to the name. Its kernels (PREFER_SRC_CONTEXT) are then
    # those of the sources.
    Comparison(
        "device 0 to all others, engine, beside writes",
        Ours("p2p-to-all", "engine", SET),
        (_nvb("one_to_all_write_ce"),),
    ),
    Comparison(
        "device 0 to all others, engine, beside reads",
        Ours("p2p-to-all", "engine", SET),
        (_nvb("all_to_one_read_ce"),),
        note=_RENAMED.format("all_to_one_read"),
    ),
    Comparison(
        "all others to device 0, engine, beside writes",
        Ours("p2p-to-one", "engine", SET),
        (_nvb("all_to_one_write_ce"),),
    ),
    Comparison(
        "all others to device 0, engine, beside reads",
        Ours("p2p-to-one", "engine", SET),
        (_nvb("one_to_all_read_ce"),),
        note=_RENAMED.format("one_to_all_read"),
    ),
    Comparison(
        "device 0 writes to all others, kernels",
        Ours("p2p-to-all", "write", SET),
        (_nvb("one_to_all_write_sm"),),
    ),
    Comparison(
        "all others read from device 0, kernels",
        Ours("p2p-to-all", "read", SET),
        (_nvb("all_to_one_read_sm"),),
        note=_SWAPPED.format("all_to_one_read"),
    ),
    Comparison(
        "all others write to device 0, kernels",
        Ours("p2p-to-one", "write", SET),
        (_nvb("all_to_one_write_sm"),),
    ),
    Comparison(
        "device 0 reads from all others, kernels",
        Ours("p2p-to-one", "read", SET),
        (_nvb("one_to_all_read_sm"),),
        note=_SWAPPED.format("one_to_all_read"),
    ),
    Comparison(
        "copy of 16 B to a peer, device's clock",
        Ours("p2p", "latency"),
        (_p2p(nvidia.LATENCY_WRITES, 0, 1, nvidia.DEVICE_CLOCK),),
        unit="us",
    ),
    Comparison(
        "copy of 16 B to a peer, host's clock",
        Ours("p2p", "latency-host"),
        (_p2p(nvidia.LATENCY_WRITES, 0, 1, nvidia.HOST_CLOCK),),
        unit="us",
        target=None,
        note="not the same: the test times the calls that queue 100 copies and waits for none; "
        "ours waits for each copy",
    ),
    Comparison(
        "load from a peer, pointer chase in 2 MiB",
        Ours("p2p-chase", "chase", direction="one-way"),
        (_nvb("device_to_device_latency_sm", 1, 0),),
        unit="ns",
        note="not the same walk: ours is random, 16 kernels a sample; the stride of nvbandwidth is "
        "128 B; both are means over multiprocessors",
    ),
)


def _tb(launch: str, *place: str) -> Cell:
    return Cell("transferbench", place, f"transferbench-{launch}")


def _rbt(title: str, source: str, target: str, factor: float = 1.0) -> Cell:
    return Cell("rocm-bandwidth-test", (title, source, target), "rocm-bandwidth-test", factor)


_GPU, _PEER = "GPU 00", "GPU 01"

_SMALL = "the tools' arrays are of 64 MiB"
_MEANS = f"{_SMALL}; TransferBench tells the mean of its runs, rocm_bandwidth_test the best"
_BEST_HOST = f"{_MEANS}; of the host's NUMA domains the tools' best"
_BY_TARGET = "TransferBench's is queued by the destination, ours by the source"
_ADDED = (
    f"{_SMALL}; TransferBench adds the rates of both; rocm_bandwidth_test's and ours are all bytes "
    "over the time of the slower"
)
_ADDED_ONE = (
    f"{_SMALL}; TransferBench adds the rates of all; ours is all bytes over the time of the slowest"
)

#: The comparisons on AMD: TransferBench, rocm_bandwidth_test and BabelStream HIP with our programs,
#: likewise.
BESIDE_AMD: tuple[Comparison, ...] = (
    Comparison(
        "copy on the device",
        Ours("stream", "copy"),
        BABELSTREAM_CELLS,
        note="BabelStream tells the best of its runs, half of it here, of arrays of 512MiB and of "
        "1GiB: it waits after each kernel",
    ),
    Comparison(
        "copy on the device, beside 64 MiB",
        Ours("stream", "copy"),
        (_tb("write", tb.ALONE, _GPU, _GPU), _rbt(rbt.ONE_WAY, _GPU, _GPU, 0.5)),
        target=None,
        note=f"not the same: {_MEANS}, half of it here; 256 MiB of cache of an MI300X hold them",
    ),
    Comparison(
        "host to device, engine",
        Ours("memcpy", "h2d"),
        (_tb("dma-read", tb.ALONE, HOST, _GPU), _rbt(rbt.ONE_WAY, HOST, _GPU)),
        note=f"{_BEST_HOST}; TransferBench's memory is not coherent, ours is as HIP has it",
    ),
    Comparison(
        "device to host, engine",
        Ours("memcpy", "d2h"),
        (_tb("dma-write", tb.ALONE, _GPU, HOST), _rbt(rbt.ONE_WAY, _GPU, HOST)),
        note=f"{_BEST_HOST}; TransferBench's memory is not coherent, ours is as HIP has it",
    ),
    Comparison(
        "host and device, both directions, engine",
        Ours("memcpy", "both", SUM),
        (_rbt(rbt.BOTH_WAYS, HOST, _GPU),),
        note=f"{_SMALL}; of the host's NUMA domains the tool's best; both are all bytes over the "
        "time of the slower, the tool's the best of its runs",
    ),
    Comparison(
        "host to device, kernel",
        Ours("stream-from-host", "copy"),
        (_tb("read", tb.ALONE, HOST, _GPU),),
        note=f"{_SMALL}, and not coherent; of the host's NUMA domains its best; its kernels have "
        "one block for each compute unit",
    ),
    Comparison(
        "device to host, kernel",
        Ours("stream-to-host", "copy"),
        (_tb("write", tb.ALONE, _GPU, HOST), _tb("scaling", tb.BEST, HOST)),
        note=f"{_SMALL}, and not coherent; of the host's NUMA domains its best; the second is the "
        "best of 1 to 32 compute units",
    ),
    Comparison(
        "to a peer, engine",
        Ours("p2p", "engine"),
        (_tb("dma-write", tb.ALONE, _GPU, _PEER), _rbt(rbt.ONE_WAY, _GPU, _PEER)),
        note=_MEANS,
    ),
    Comparison(
        "from a peer, engine",
        Ours("p2p", "engine"),
        (_tb("dma-read", tb.ALONE, _GPU, _PEER),),
        note=f"{_SMALL}; {_BY_TARGET}",
    ),
    Comparison(
        "both directions between peers, engine",
        Ours("p2p", "engine-both", SUM),
        (_tb("dma-write", tb.BOTH, _GPU, _PEER), _rbt(rbt.BOTH_WAYS, _GPU, _PEER)),
        note=_ADDED,
    ),
    Comparison(
        "read from a peer, kernel",
        Ours("p2p", "read"),
        (_tb("read", tb.ALONE, _GPU, _PEER),),
        note=_SMALL,
    ),
    Comparison(
        "write to a peer, kernel",
        Ours("p2p", "write"),
        (_tb("write", tb.ALONE, _GPU, _PEER), _tb("scaling", tb.BEST, _PEER)),
        note=f"{_SMALL}; the second is the best of 1 to 32 compute units",
    ),
    Comparison(
        "both directions between peers, kernels that read",
        Ours("p2p", "read-both", SUM),
        (_tb("read", tb.BOTH, _GPU, _PEER),),
        note=_ADDED_ONE,
    ),
    Comparison(
        "both directions between peers, kernels that write",
        Ours("p2p", "write-both", SUM),
        (_tb("write", tb.BOTH, _GPU, _PEER),),
        note=_ADDED_ONE,
    ),
    Comparison(
        "device 0 to all others, engine",
        Ours("p2p-to-all", "engine", SET),
        (_tb("one2all-dma", "D", tb.ALL),),
        note=_ADDED_ONE,
    ),
    Comparison(
        "device 0 writes to all others, kernels",
        Ours("p2p-to-all", "write", SET),
        (_tb("one2all", "G", tb.ALL),),
        note=f"{_ADDED_ONE}; its kernels have 4 compute units for each destination",
    ),
    Comparison(
        "all to all, engine",
        Ours("p2p-all", "engine", SET),
        (_tb("a2a-dma", *tb.SUM),),
        note=f"{_ADDED_ONE}; its memory is fine-grained",
    ),
    Comparison(
        "all to all, kernels that write",
        Ours("p2p-all", "write", SET),
        (_tb("a2a", *tb.SUM),),
        note=f"{_ADDED_ONE}; its memory is fine-grained, 8 compute units for each pair",
    ),
    Comparison(
        "all to all, kernels that read",
        Ours("p2p-all", "read", SET),
        (_tb("a2a-read", *tb.SUM),),
        note=f"{_ADDED_ONE}; its memory is fine-grained, 8 compute units for each pair",
    ),
)
