"""The comparisons on NVIDIA: nvbandwidth, BabelStream and CUDA's sample with our programs.

What the tools measure is taken from their sources: nvbandwidth 0.8, BabelStream 5.0, cuda-samples.
"""

from __future__ import annotations

from fabricheck.beside.cases import (
    BABELSTREAM_BYTES,
    BABELSTREAM_CELLS,
    SET,
    SHARE,
    SUM,
    Cell,
    Comparison,
    Ours,
)
from fabricheck.beside.outputs import p2p_test


def _nvb(test: str, row: int = 0, column: int = 0) -> Cell:
    return Cell("nvbandwidth", (test, row, column), "nvbandwidth")


def _p2p(test: str, row: int, column: int, head: str = p2p_test.BANDWIDTH) -> Cell:
    return Cell("p2p-test", (test, head, row, column), "p2p-test")


_BESIDE = "nvbandwidth keeps the other direction busy throughout; our two start together"
_QUEUED = "nvbandwidth's copies are queued by the destination, ours by the source"
_TOTAL = "nvbandwidth adds the rates of both; ours is all bytes over the time of the slower"
_SWAPPED = "nvbandwidth calls it {}; its kernels are the sources', ours the destinations'"
_RENAMED = "nvbandwidth calls it {}; its copies are queued by the destinations, ours by the sources"

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
        (_nvb("device_to_device_memcpy_write_ce", 0, 1), _p2p(p2p_test.WRITES, 0, 1)),
    ),
    Comparison(
        "from a peer, engine",
        Ours("p2p", "engine"),
        (_nvb("device_to_device_memcpy_read_ce", 1, 0), _p2p(p2p_test.READS, 1, 0)),
        note="the tools' copies are queued by the destination, ours by the source",
    ),
    Comparison(
        "both directions between peers, engine, beside writes",
        Ours("p2p", "engine-both", SUM),
        (_nvb("device_to_device_bidirectional_memcpy_write_ce", 0, 1), _p2p(p2p_test.BOTH, 0, 1)),
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
        (_p2p(p2p_test.LATENCY_WRITES, 0, 1, p2p_test.DEVICE_CLOCK),),
        unit="us",
    ),
    Comparison(
        "copy of 16 B to a peer, host's clock",
        Ours("p2p", "latency-host"),
        (_p2p(p2p_test.LATENCY_WRITES, 0, 1, p2p_test.HOST_CLOCK),),
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
