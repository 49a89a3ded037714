"""What a comparison is: what our programs and third-party benchmarks measure alike.

All bandwidths are GB/s (1e9 bytes per second) and count bytes once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Bytes of an array, but for latencies.
ARRAY_BYTES = 512 << 20

#: Bytes of the array of a pointer chase: nvbandwidth's own.
CHASE_BYTES = 2 << 20

#: Bytes of BabelStream's arrays, a launch each: it waits for the device after each kernel, so that
#: its rates grow with the size (H200: read plus written 3454 GB/s at 512 MiB, 3528 at 4 GiB).
BABELSTREAM_BYTES = {"512MiB": 512 << 20, "1GiB": 1 << 30}


@dataclass(frozen=True)
class Ours:
    """The one series of a launch (see `launches.ours`) with these fields.

    roles: a set of one pair is a single, of several it has a sum.
    to_host: the destination's memory is the host's; None where no other series is alike.
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
    place: where it stands, as the tool's parser takes it: a testcase, row and column; a kernel; a
        title, head, row and column.
    launch: which one of the tool's.
    factor: times what the tool prints is in the comparison's unit and convention.
    """

    tool: str
    place: tuple[str | int, ...]
    launch: str
    factor: float = 1.0


@dataclass(frozen=True)
class Comparison:
    """One row.

    target: of ours over the best tool's: at least, or for a time (us, ns) at most; None where the
        tool's is another thing.
    note: where a tool's test is not the same thing, the end of the row says what differs.
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


#: The host's NUMA domain that gives a tool its best value; see `launches`.
HOST = "host"

SHARE = ("share",)
SUM = ("sum",)
SET = ("sum", "single")

#: BabelStream's copy, half of what it counts.
BABELSTREAM_CELLS = tuple(
    Cell("babelstream", ("Copy",), f"babelstream-{size}", factor=0.5) for size in BABELSTREAM_BYTES
)
