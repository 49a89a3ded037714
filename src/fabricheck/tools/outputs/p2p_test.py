"""Reading what CUDA's sample p2pBandwidthLatencyTest prints: matrices of devices.

Source of the format: p2pBandwidthLatencyTest.cu of cuda-samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fabricheck.core.errors import GarbledOutput
from fabricheck.core.lines import Line, ended_lines_of, printed

#: Bandwidths in GB/s (1e9 bytes per second), latencies in us.
Matrix = tuple[tuple[float, ...], ...]

_NAME = "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"
_DEVICE = re.compile(r"Device: (\d+), (.+), pciBusID: [0-9a-f]+, pciDeviceID: [0-9a-f]+, .*")
_NO_ACCESS = re.compile(r"Device=(\d+) CANNOT Access Peer Device=(\d+)")
_END = "NOTE: The CUDA Samples are not meant for performance measurements."

#: Titles of what it prints with ``--p2p_read``, in order; without it those of reads are not there.
CONNECTIVITY = "P2P Connectivity Matrix"
WRITES = "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)"
READS = "Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)"
BOTH = "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)"
LATENCY_WRITES = "P2P=Enabled Latency (P2P Writes) Matrix (us)"
TITLES = (
    CONNECTIVITY,
    "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)",
    WRITES,
    READS,
    "Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)",
    BOTH,
    "P2P=Disabled Latency Matrix (us)",
    LATENCY_WRITES,
    "P2P=Enabled Latency (P2P Reads) Matrix (us)",
)
_OF_READS = "(P2P Reads)"

#: The heads of the matrices below a title: latencies by the device's clock, then by the host's.
DEVICE_CLOCK, HOST_CLOCK, BANDWIDTH = "GPU", "CPU", "D\\D"


@dataclass(frozen=True)
class P2pTestResult:
    """One run: names of the devices, matrices by title and head, and pairs without peer access.

    It tells no version.
    """

    devices: tuple[str, ...]
    matrices: dict[tuple[str, str], Matrix]
    no_access: frozenset[tuple[int, int]]
    version: None = None

    def cell(self, title: str, head: str, row: int, column: int) -> float | None:
        """Return one value; None where there are not so many devices, or no peer access."""
        if max(row, column) >= len(self.devices) or (row, column) in self.no_access:
            return None
        matrix = self.matrices.get((title, head))
        return None if matrix is None else matrix[row][column]


def parse(text: str, origin: str, *, reads: bool) -> P2pTestResult:
    """Read the output of a run.

    :param origin: the file, for errors.
    :param reads: whether it ran with ``--p2p_read``.
    :raises GarbledOutput: when the text is cut or damaged, or the tool says that a call failed.
    """
    lines = ended_lines_of(text, origin)
    for line in lines:
        if line.text.startswith("Cuda failure"):
            raise line.garbled(f"the test ended with '{line.text}'")
    titles = tuple(title for title in TITLES if reads or _OF_READS not in title)
    return _Reader(origin, lines, titles).result()


class _Reader:
    def __init__(self, origin: str, lines: list[Line], titles: tuple[str, ...]) -> None:
        self.origin, self.lines, self.titles = origin, lines, titles
        self.at = 0

    def garbled(self, reason: str) -> GarbledOutput:
        number = self.lines[self.at].number if self.at < len(self.lines) else None
        return GarbledOutput(self.origin, number, reason)

    def next(self, wanted: str) -> str:
        if self.at >= len(self.lines):
            raise self.garbled(f"the text ends without {wanted}, so it is cut")
        text = self.lines[self.at].text.strip()
        self.at += 1
        return text

    def result(self) -> P2pTestResult:
        if self.next("the name of the test") != _NAME:
            raise self.garbled("it is no output of p2pBandwidthLatencyTest")
        devices: list[str] = []
        no_access = set()
        while (text := self.next(f"'{CONNECTIVITY}'")) != CONNECTIVITY:
            if match := _DEVICE.fullmatch(text):
                if int(match[1]) != len(devices):
                    raise self.garbled(f"device {match[1]} does not follow the one before")
                devices.append(match[2])
            elif match := _NO_ACCESS.fullmatch(text):
                no_access.add((int(match[1]), int(match[2])))
        if not devices:
            raise self.garbled("it names no device")
        matrices: dict[tuple[str, str], Matrix] = {}
        for title in self.titles:
            if title != CONNECTIVITY and self.next(f"'{title}'") != title:
                raise self.garbled(f"'{title}' is not where it has to be")
            for head in self._heads(title):
                matrices[title, head] = self._matrix(title, head, len(devices))
        if not self.next("its last note").startswith(_END):
            raise self.garbled("its last note is not where it has to be")
        return P2pTestResult(tuple(devices), matrices, frozenset(no_access))

    def _heads(self, title: str) -> Iterator[str]:
        if "Latency" in title:
            yield from (DEVICE_CLOCK, HOST_CLOCK)
        else:
            yield BANDWIDTH

    def _matrix(self, title: str, head: str, count: int) -> Matrix:
        columns = [str(index) for index in range(count)]
        if self.next(f"the columns of '{title}'").split() != [head, *columns]:
            raise self.garbled(f"the columns of '{title}' are damaged")
        rows = []
        for index in range(count):
            first, *words = self.next(f"row {index} of '{title}'").split()
            values = [printed(word) for word in words]
            numbers = [one.value for one in values if one is not None]
            if first != str(index) or len(words) != count or len(numbers) != count:
                raise self.garbled(f"row {index} of '{title}' is damaged")
            if title != CONNECTIVITY and min(numbers) <= 0:
                raise self.garbled(f"row {index} of '{title}' has no value above zero")
            rows.append(tuple(numbers))
        return tuple(rows)
