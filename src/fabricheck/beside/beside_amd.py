"""The comparisons on AMD: TransferBench, rocm_bandwidth_test and BabelStream HIP with ours.

What the tools measure is taken from their sources: TransferBench 1.52 and its successor,
rocm_bandwidth_test 2.6.0, BabelStream 5.0. Nothing of this has run on an AMD GPU.
"""

from __future__ import annotations

from fabricheck.beside.cases import (
    BABELSTREAM_CELLS,
    HOST,
    SET,
    SUM,
    Cell,
    Comparison,
    Ours,
)
from fabricheck.beside.outputs import rocm_bandwidth_test as rbt
from fabricheck.beside.outputs import transferbench as tb


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

#: Data moves from device 0 to device 1, or between one of them and the host, unless stated.
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
