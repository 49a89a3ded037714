"""Parser of perftest's ib_write_bw with ``--report_gbits``: RDMA writes, here to the same NIC.

Source of the format: perftest (linux-rdma/perftest, src/perftest_parameters.h), and outputs that
users published.
"""

from __future__ import annotations

import re

from fabricheck.core.errors import GarbledOutput
from fabricheck.core.lines import agree, ended_lines_of, printed
from fabricheck.tools.outputs.cxi_loopback import Loopback

_TITLE = "RDMA_Write BW Test"
_DEVICE = re.compile(r"\s*Dual-port\s+: O(?:N|FF)\s+Device\s+: (\S+)")
_HEADER = ["#bytes", "#iterations", "BW", "peak[Gb/sec]", "BW", "average[Gb/sec]", "MsgRate[Mpps]"]

#: Words of lines between header and row that are no row: the clock of the processor varies.
_REMARKS = ("Conflicting", "Warning:")


def parse(text: str, origin: str, nic: str, size: int) -> Loopback:
    """Parse the output of ``ib_write_bw -d NIC --report_gbits`` of one size.

    The peak of a run with a duration (``-D``) is 0.00, so only the average is read. It compares no
    data.

    :param origin: the file or command, for errors.
    :param nic: the NIC that was asked for.
    :param size: of a message, in bytes.
    :raises GarbledOutput: when it is cut off, damaged or contradicts itself.
    :raises OtherRunError: when it is of another NIC or size.
    """
    lines = ended_lines_of(text, origin)
    start = next((at for at, line in enumerate(lines) if line.text.strip() == _TITLE), None)
    if start is None:
        raise GarbledOutput(origin, None, f"it has no '{_TITLE}'")
    devices = [(one, match) for one in lines if (match := _DEVICE.fullmatch(one.text))]
    if len(devices) != 1:
        raise GarbledOutput(origin, None, "it does not name one device")
    line, match = devices[0]
    if match[1] != nic:
        raise line.other_run(f"it is of {match[1]}, not of {nic}")
    heads = [at for at, one in enumerate(lines) if one.words[0] == _HEADER[0]]
    if len(heads) != 1 or lines[heads[0]].words != _HEADER:
        raise GarbledOutput(origin, None, "it has no header with bandwidths in Gb/s")
    below = [one for one in lines[heads[0] + 1 :] if one.words[0] not in _REMARKS]
    if len(below) != 2 or below[1].text.strip().strip("-"):
        raise GarbledOutput(origin, None, "it has no whole table with one row")
    row = below[0]
    numbers = [printed(word) for word in row.words]
    if len(numbers) != 5 or not (row.words[0] + row.words[1]).isdecimal():
        raise row.garbled("it is no row of five numbers")
    _, _, peak, average, rate = numbers
    if peak is None or average is None or rate is None:
        raise row.garbled("it is no row of five numbers")
    if int(row.words[0]) != size:
        raise row.other_run(f"messages have {row.words[0]} bytes, not {size}")
    bits = 8 * size / 1000
    if average.value <= 0 or not agree(
        (average.low, average.high), (bits * rate.low, bits * rate.high)
    ):
        raise row.garbled("its bandwidth and its rate of messages contradict each other")
    return Loopback(size, average.value)
