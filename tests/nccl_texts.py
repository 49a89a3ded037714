"""Outputs of nccl-tests and rccl-tests composed by their documented formats.

None of these was recorded; the values are made up and only fit each other.
"""

from __future__ import annotations

from collections.abc import Sequence

MIB = 1 << 20
UNITS = (
    "#        (B)    (elements)                               "
    "(us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
)
COLUMNS = "#       size         count      type   redop    root  "
GROUP = "   time   algbw   busbw #wrong"
WARNING = (
    "[2026-01-02 03:04:05] node1:11:12 [0] init.cc:140 NCCL WARN NUMA auto balancing is enabled\n"
)


def parameters(smallest: int, largest: int, step: str = "2(factor)", validation: int = 1) -> str:
    return (
        f"# nThread 1 nGpus 1 minBytes {smallest} maxBytes {largest} step: {step} "
        f"warmup iters: 5 iters: 20 agg iters: 1 validation: {validation} graph: 0\n#\n"
    )


def ranks(count: int) -> str:
    return "# Using devices\n" + "".join(
        f"#   Rank {rank:2} Pid {100 + rank:6} on      node1 device {rank:2} "
        f"[0000:{0xC1 + rank:02x}:00.0] AMD Instinct MI250X\n"
        for rank in range(count)
    )


def timing(size: int, time: float, factor: float, wrong: str = "0") -> str:
    algbw = size / time / 1e3
    return f"  {time:7.2f}  {algbw:6.2f}  {algbw * factor:6.2f}  {wrong:>5}"


def row(
    size: int,
    *,
    count: int | None = None,
    left: str = "float     sum      -1",
    factor: float = 1.75,
    wrong: str = "0",
    times: Sequence[float] | None = None,
) -> str:
    times = times or (10 + size / 5e4, 11 + size / 5e4)
    head = f"{size:12}  {size // 4 if count is None else count:12}  {left:>24}"
    return head + "".join(timing(size, time, factor, wrong) for time in times) + "\n"


def end(named: str | None = None, bounds: str = "0 OK") -> str:
    text = f"# Out of bounds values : {bounds}\n# Avg bus bandwidth    : 47.5262 \n#\n"
    return text + (f"# Collective test concluded: {named}_perf\n#\n\n" if named else "\n")


def rccl_2024(body: str, *, first: int = MIB, last: int = 4 * MIB, count: int = 8) -> str:
    """rccl-tests of ROCm 6: no name of the collective, versions between ranks and table."""
    return (
        parameters(first, last)
        + "rccl-tests: Version develop:ae3e635\n"
        + ranks(count)
        + "RCCL version : 2.20.5-develop:abcdef0\nHIP version  : 6.2.41133\n"
        + "ROCm version : 6.2.0.0-66\nHostname     : node1\n"
        + f"#\n#{'out-of-place':>73}{'in-place':>31}          \n{COLUMNS}{GROUP}{GROUP}\n{UNITS}"
        + body
        + "# Errors with asterisks indicate errors that have exceeded the maximum threshold.\n"
        + end()
    )


def rccl_2025(body: str, *, first: int = MIB, last: int = 4 * MIB, count: int = 8) -> str:
    """rccl-tests of ROCm 7: tells the collective at both ends."""
    text = rccl_2024("", first=first, last=last, count=count)
    return (
        "# Collective test starting: all_reduce_perf\n"
        + text[: text.index("# Errors")]
        + body
        + end("all_reduce")
    )


SCAN = "".join(row(size) for size in (MIB, 2 * MIB, 4 * MIB))
