"""Parser of CUDA's sample p2pBandwidthLatencyTest: matrices of devices.

Source of the format: p2pBandwidthLatencyTest.cu of cuda-samples.
"""

from __future__ import annotations

import re

from fabricheck.beside.outputs import PlacedValues, Reader
from fabricheck.core.lines import ended_lines_of

_NAME = "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"
_DEVICE = re.compile(r"Device: (\d+), (.+), pciBusID: [0-9a-f]+, pciDeviceID: [0-9a-f]+, .*")
_NO_ACCESS = re.compile(r"Device=(\d+) CANNOT Access Peer Device=(\d+)")
_VALUE = re.compile(r"[0-9]+\.[0-9]{2}")
_LINKED = re.compile("[01]")
_END = "NOTE: The CUDA Samples are not meant for performance measurements."

#: Titles of what it prints with ``--p2p_read``, in order.
_CONNECTIVITY = "P2P Connectivity Matrix"
WRITES = "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)"
READS = "Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)"
BOTH = "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)"
LATENCY_WRITES = "P2P=Enabled Latency (P2P Writes) Matrix (us)"
_TITLES = (
    _CONNECTIVITY,
    "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)",
    WRITES,
    READS,
    "Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)",
    BOTH,
    "P2P=Disabled Latency Matrix (us)",
    LATENCY_WRITES,
    "P2P=Enabled Latency (P2P Reads) Matrix (us)",
)

#: The headers of the matrices below a title: latencies by the device's clock, then by the host's.
DEVICE_CLOCK, HOST_CLOCK, BANDWIDTH = "GPU", "CPU", "D\\D"


def parse(text: str, origin: str) -> PlacedValues:
    """Parse the output of a run with ``--p2p_read``: values by title, header, row and column.

    Bandwidths are in GB/s (1e9 bytes per second), latencies in us. It reports no version.

    :param origin: the file, for errors.
    :raises GarbledOutput: when the text is cut off or damaged, or the tool reports a failed call.
    """
    lines = ended_lines_of(text, origin)
    for line in lines:
        if line.text.startswith("Cuda failure"):
            raise line.garbled(f"the test ended with '{line.text}'")
    reader = Reader(lines, origin)
    reader.title(_NAME)
    devices: list[str] = []
    no_access = set()
    while (line := reader.take(f"'{_CONNECTIVITY}'")).text.strip() != _CONNECTIVITY:
        text = line.text.strip()
        if match := _DEVICE.fullmatch(text):
            if int(match[1]) != len(devices):
                raise line.garbled(f"device {match[1]} does not follow the one before")
            devices.append(match[2])
        elif match := _NO_ACCESS.fullmatch(text):
            no_access.add((int(match[1]), int(match[2])))
    if not devices:
        raise line.garbled("it names no device")
    values: dict[tuple[str | int, ...], float] = {}
    for title in _TITLES:
        if title != _CONNECTIVITY:
            reader.title(title)
        heads = (DEVICE_CLOCK, HOST_CLOCK) if "Latency" in title else (BANDWIDTH,)
        for head in heads:
            for row, cells in enumerate(_matrix(reader, title, head, len(devices))):
                for column, value in enumerate(cells):
                    if value is not None and (row, column) not in no_access:
                        values[title, head, row, column] = value
    line = reader.take("its last note")
    if not line.text.strip().startswith(_END):
        raise line.garbled("its last note is not in its place")
    return PlacedValues(values, devices=tuple(devices))


def _matrix(reader: Reader, title: str, head: str, count: int) -> list[list[float | None]]:
    reader.row([head, *map(str, range(count))], 0)
    form = _LINKED if title == _CONNECTIVITY else _VALUE
    return [reader.values([str(index)], count, form)[1] for index in range(count)]
