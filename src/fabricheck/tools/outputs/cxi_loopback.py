"""Parser of cxi_gpu_loopback_bw: writes of a Slingshot NIC to itself, over its switch.

Source of the format: HPE's "Loopback performance test" (HewlettPackard/shs-docs, fabric_validation/
loopback_performance_test.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fabricheck.core.errors import GarbledOutput
from fabricheck.core.lines import Line, ended_lines_of, printed

_TITLE = "CXI Loopback Bandwidth Test"
_FIELD = re.compile(r"\s*([A-Z][\w() ]*?)\s*: (\S.*)")
#: The bits of data in a packet, and the part by which both rates of a row may differ.
_PACKET_BITS, _APART = 8 * 2048, 0.03

_HEADER = ["RDMA", "Size[B]", "Writes", "BW[Gb/s]", "PktRate[Mpkt/s]"]


@dataclass(frozen=True)
class Loopback:
    """What a NIC reached in writing to itself: the size of a write in bytes, and the bandwidth.

    memory: where the data was read, in the tool's words (System); ``None`` where it does not say.
    """

    size: int
    gbit_per_s: float
    memory: str | None = None


def parse(text: str, origin: str, nic: str) -> Loopback:
    """Parse the output of ``cxi_gpu_loopback_bw --device NIC``.

    It compares no data, and states no version.

    :param origin: the file or command, for errors.
    :param nic: the NIC that was asked for.
    :raises GarbledOutput: when it is cut off or damaged.
    :raises OtherRunError: when it is of another NIC.
    """
    lines = ended_lines_of(text, origin)
    start = next((at for at, line in enumerate(lines) if line.text.strip() == _TITLE), None)
    if start is None:
        raise GarbledOutput(origin, None, f"it has no '{_TITLE}'")
    fields: dict[str, tuple[Line, str]] = {}
    lines = lines[start + 1 :]
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
    table = [line for line in lines if line.text.strip().strip("-")]
    closed = bool(lines) and not lines[-1].text.strip().strip("-")
    if len(table) != 2 or table[0].words != _HEADER or not closed:
        raise GarbledOutput(origin, None, "it has no whole table with one row")
    row = table[1]
    words = row.words
    numbers = [printed(word) for word in words]
    size, size_line = fields["Write Size (B)"][1], fields["Write Size (B)"][0]
    if len(words) != 4 or None in numbers or not (words[0] + words[1]).isdecimal():
        raise row.garbled("it is no row of four numbers")
    if not size.isdecimal() or words[0] != size:
        raise size_line.garbled(f"writes of {size} bytes do not fit the row's {words[0]}")
    bandwidth, packets = float(words[2]), float(words[3])
    # In HPE's own listing one row of six differs from the others by 2 %.
    if bandwidth <= 0 or abs(packets * _PACKET_BITS / 1000 - bandwidth) > _APART * bandwidth:
        raise row.garbled("its bandwidth and its rate of packets contradict each other")
    return Loopback(int(size), bandwidth, fields["TX Mem"][1])
