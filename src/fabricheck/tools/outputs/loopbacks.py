"""Parsers of vendors' loopbacks of a NIC: each prints one table with one row below its title.

cxi_gpu_loopback_bw has a Slingshot NIC write to itself, over its switch. Source of the format:
HPE's "Loopback performance test" (HewlettPackard/shs-docs, fabric_validation/
loopback_performance_test.md). perftest's ib_write_bw with ``--report_gbits`` writes by RDMA, here
to the same NIC. Source of the format: perftest (linux-rdma/perftest, src/perftest_parameters.h),
and outputs that users published. Neither compares data.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fabricheck.core.errors import GarbledOutput
from fabricheck.core.lines import Line, Printed, agree, ended_lines_of, printed

_CXI_TITLE, _IB_TITLE = "CXI Loopback Bandwidth Test", "RDMA_Write BW Test"
_CXI_HEADER = ["RDMA", "Size[B]", "Writes", "BW[Gb/s]", "PktRate[Mpkt/s]"]
_IB_HEADER = [
    "#bytes", "#iterations", "BW", "peak[Gb/sec]", "BW", "average[Gb/sec]", "MsgRate[Mpps]"
]  # fmt: skip

_FIELD = re.compile(r"\s*([A-Z][\w() ]*?)\s*: (\S.*)")
_DEVICE = re.compile(r"\s*Dual-port\s+: O(?:N|FF)\s+Device\s+: (\S+)")

#: The bits of data in a packet of CXI, and the part by which both rates of a row may differ.
_PACKET_BITS, _APART = 8 * 2048, 0.03

#: Words of lines of ib_write_bw between header and row: the clock of the processor varies.
_REMARKS = ("Conflicting", "Warning:")


@dataclass(frozen=True)
class Loopback:
    """What a NIC reached in writing to itself: the size of a write in bytes, and the bandwidth.

    memory: where the data was read, in the tool's words (System); ``None`` where it does not say.
    """

    size: int
    gbit_per_s: float
    memory: str | None = None


def parse_cxi(text: str, origin: str, nic: str) -> Loopback:
    """Parse the output of ``cxi_gpu_loopback_bw --device NIC``; it states no version.

    :param origin: the file or command, for errors.
    :param nic: the NIC that was asked for.
    :raises GarbledOutput: when it is cut off or damaged.
    :raises OtherRunError: when it is of another NIC.
    """
    lines = _below(_CXI_TITLE, text, origin)
    fields: dict[str, tuple[Line, str]] = {}
    while lines and (match := _FIELD.fullmatch(lines[0].text)):
        if match[1] in fields:
            raise lines[0].garbled(f"it states '{match[1]}' twice")
        fields[match[1]] = (lines.pop(0), match[2].strip())
    for name in ("Device", "TX Mem", "Write Size (B)"):
        if name not in fields:
            raise GarbledOutput(origin, None, f"it does not state '{name}'")
    line, device = fields["Device"]
    if device != nic:
        raise line.other_run(f"it is of {device}, not of {nic}")
    while lines and not lines[0].text.strip().strip("-"):
        lines.pop(0)
    if not lines or lines[0].words != _CXI_HEADER:
        raise GarbledOutput(origin, None, "it has no whole table with one row")
    row, (_, _, bandwidth, packets) = _only_row(lines[1:], 4, origin)
    size_line, size = fields["Write Size (B)"]
    if not size.isdecimal() or row.words[0] != size:
        raise size_line.garbled(f"writes of {size} bytes do not fit the row's {row.words[0]}")
    # In HPE's own listing one row of six differs from the others by 2 %.
    apart = abs(packets.value * _PACKET_BITS / 1000 - bandwidth.value)
    if bandwidth.value <= 0 or apart > _APART * bandwidth.value:
        raise row.garbled("its bandwidth and its rate of packets contradict each other")
    return Loopback(int(size), bandwidth.value, fields["TX Mem"][1])


def parse_ib(text: str, origin: str, nic: str, size: int) -> Loopback:
    """Parse the output of ``ib_write_bw -d NIC --report_gbits`` of one size.

    The peak of a run with a duration (``-D``) is 0.00, so only the average is read.

    :param origin: the file or command, for errors.
    :param nic: the NIC that was asked for.
    :param size: of a message, in bytes.
    :raises GarbledOutput: when it is cut off, damaged or contradicts itself.
    :raises OtherRunError: when it is of another NIC or size.
    """
    lines = _below(_IB_TITLE, text, origin)
    devices = [(one, match) for one in lines if (match := _DEVICE.fullmatch(one.text))]
    if len(devices) != 1:
        raise GarbledOutput(origin, None, "it does not name one device")
    line, match = devices[0]
    if match[1] != nic:
        raise line.other_run(f"it is of {match[1]}, not of {nic}")
    heads = [at for at, one in enumerate(lines) if one.words[0] == _IB_HEADER[0]]
    if len(heads) != 1 or lines[heads[0]].words != _IB_HEADER:
        raise GarbledOutput(origin, None, "it has no header with bandwidths in Gb/s")
    below = [one for one in lines[heads[0] + 1 :] if one.words[0] not in _REMARKS]
    row, (_, _, _, average, rate) = _only_row(below, 5, origin)
    if int(row.words[0]) != size:
        raise row.other_run(f"messages have {row.words[0]} bytes, not {size}")
    bits = 8 * size / 1000
    by_messages = bits * rate.low, bits * rate.high
    if average.value <= 0 or not agree((average.low, average.high), by_messages):
        raise row.garbled("its bandwidth and its rate of messages contradict each other")
    return Loopback(size, average.value)


def _below(title: str, text: str, origin: str) -> list[Line]:
    lines = ended_lines_of(text, origin)
    start = next((at for at, line in enumerate(lines) if line.text.strip() == title), None)
    if start is None:
        raise GarbledOutput(origin, None, f"it has no '{title}'")
    return list(lines[start + 1 :])


def _only_row(lines: Sequence[Line], cells: int, origin: str) -> tuple[Line, list[Printed]]:
    """Return the one row of a table, which a line of hyphens ends, and its numbers."""
    table = [line for line in lines if line.text.strip().strip("-")]
    closed = bool(lines) and not lines[-1].text.strip().strip("-")
    if len(table) != 1 or not closed:
        raise GarbledOutput(origin, None, "it has no whole table with one row")
    (row,) = table
    numbers = [one for one in map(printed, row.words) if one is not None]
    whole = row.words[0] + row.words[1] if len(row.words) > 1 else ""
    if len(row.words) != cells or len(numbers) != cells or not whole.isdecimal():
        raise row.garbled(f"it is no row of {cells} numbers")
    return row, numbers
