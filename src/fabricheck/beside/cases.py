"""The terms of a comparison: equal measurements of our programs and third-party benchmarks.

All bandwidths are in GB/s (1e9 bytes per second) and count bytes once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
