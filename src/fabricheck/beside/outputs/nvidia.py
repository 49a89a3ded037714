"""Parsers of nvbandwidth, of BabelStream, whose table is the same with HIP, and of CUDA's sample
p2pBandwidthLatencyTest.

Sources of the formats: json_output.cpp and testcases_*.cpp of nvbandwidth 0.8; main.cpp of
BabelStream 5.0 and of its successors, which name the unit differently; p2pBandwidthLatencyTest.cu
of cuda-samples.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from fabricheck.beside.outputs import PlacedValues, Reader
from fabricheck.core import models, show
from fabricheck.core.errors import GarbledOutput, InvalidFile, OtherRunError, WrongDataError
from fabricheck.core.lines import Line, ended_lines_of, printed
from fabricheck.core.models import validated
from fabricheck.core.show import listed

#: Testcases of two directions append three matrices: each direction's, and their total.
_PARTS_OF_BOTH = 3

#: The message that its kernels print before the JSON when they find wrong data.
_WRONG = "Invalid value when checking the pattern"

#: Values have six digits; their sum is printed in full.
_SUM_SLACK = 1e-5


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, defer_build=True)


class _Testcase(_Part):
    name: str
    status: str
    error: Any = None
    bandwidth_description: str = ""
    bandwidth_matrix: list[list[Any]] = []
    sum: float | None = None


class _Report(_Part):
    error: Any = None
    version: str = ""
    devices: list[str] = Field(default=[], alias="GPU Device list")
    testcases: list[_Testcase] = []


class _Output(_Part):
    nvbandwidth: _Report


def parse_nvbandwidth(text: str, origin: str, testcases: Sequence[str]) -> PlacedValues:
    """Parse the JSON (``-j``) of one run: values by testcase, row and column.

    The tool prints once, at its end: after a crash there is nothing, or an object with an error.
    For two directions the values are the total. The testcase's description defines the rows: one
    row for the host or for all others, else one for each device. A testcase that this machine
    cannot run, such as one between devices on a single device, is waived and has no values.

    :param origin: the file, for errors.
    :param testcases: the names of the requested ones.
    :raises GarbledOutput: when the text is cut off or damaged, or when the tool or a testcase
        failed.
    :raises OtherRunError: when it ran other testcases than requested.
    :raises WrongDataError: when it found wrong data.
    """
    if _WRONG in text:
        raise WrongDataError(origin, None, "nvbandwidth found wrong data")
    try:
        report = validated(_Output, models.parse_json(text, origin), Path(origin)).nvbandwidth
    except InvalidFile as error:
        where = f"{error.key}: " if error.key else ""
        reason = f"it is cut off, or not JSON of nvbandwidth: {where}{error.reason}"
        raise GarbledOutput(origin, None, reason) from None
    if report.error is not None:
        raise GarbledOutput(origin, None, f"nvbandwidth reports: {_in_line(report.error)}")
    if not report.version or not report.devices:
        raise GarbledOutput(origin, None, "it states no version, or no devices")
    values: dict[tuple[str | int, ...], float] = {}
    for testcase in report.testcases:
        if testcase.status == "Waived":
            continue
        if testcase.status != "Passed" or testcase.error is not None:
            why = testcase.error or f"its status is {testcase.status}"
            reason = f"the testcase {testcase.name} failed ({_in_line(why)})"
            raise GarbledOutput(origin, None, reason)
        for row, cells in enumerate(_testcase_values(testcase, len(report.devices), origin)):
            for column, value in enumerate(cells):
                if value is not None:
                    values[testcase.name, row, column] = value
    names = [testcase.name for testcase in report.testcases]
    if names != list(testcases):
        listed = [show.listed(some) or "none" for some in (names, testcases)]
        raise OtherRunError(origin, None, f"its testcases are {listed[0]}, not {listed[1]}")
    return PlacedValues(values, report.version, tuple(report.devices))


def _in_line(text: object) -> str:
    return " ".join(str(text).split())


def _testcase_values(testcase: _Testcase, devices: int, origin: str) -> list[list[float | None]]:
    """Return the values: GB/s (1e9 bytes per second), or a latency in ns; None without one."""
    name, rows = testcase.name, testcase.bandwidth_matrix
    unit = "(ns)" if "latency" in name else "(GB/s)"
    if not testcase.bandwidth_description.endswith(unit):
        reason = f"the description of {name} does not give the unit {unit}"
        raise GarbledOutput(origin, None, reason)
    between = name.startswith("device_to_device_")
    expected = devices if between else 1
    if between and "_bidirectional_" in name:
        expected *= _PARTS_OF_BOTH
    if len(rows) != expected or any(len(row) != devices for row in rows):
        raise GarbledOutput(origin, None, f"the matrix of {name} does not fit {devices} devices")
    values = [[_testcase_value(word, name, origin) for word in row] for row in rows]
    last = values[-devices:] if between else values
    if between and any(last[index][index] is not None for index in range(devices)):
        reason = f"the matrix of {name} has a value between a device and itself"
        raise GarbledOutput(origin, None, reason)
    added = sum(value for value in chain.from_iterable(last) if value is not None)
    if testcase.sum is None or not math.isclose(testcase.sum, added, rel_tol=_SUM_SLACK):
        reason = f"the sum of {name} is {testcase.sum!r}, but its values give {added:g}"
        raise GarbledOutput(origin, None, reason)
    return last


def _testcase_value(word: Any, name: str, origin: str) -> float | None:
    if word == "N/A":
        return None
    number = printed(word) if isinstance(word, str) else None
    if number is None or number.value <= 0:
        reason = f"the matrix of {name} has {word!r}, which is not a positive value"
        raise GarbledOutput(origin, None, reason)
    return number.value


_HEADER = re.compile(
    r"function,num_times,n_elements,sizeof,max_(?:mbytes|MB)_per_sec,"
    r"min_runtime,max_runtime,avg_runtime"
)

#: Arrays that a kernel reads and writes.
_ARRAYS = {"Copy": 2, "Mul": 2, "Add": 3, "Triad": 3, "Dot": 2}

#: Values have six digits; two of them form a quotient.
_RATE_SLACK = 1e-4


def parse_babelstream(text: str, origin: str, runs: int, array_bytes: int) -> PlacedValues:
    """Parse the ``--csv`` of one run: by kernel, the GB/s read and written in its best run.

    The tool prints the table at its end, after comparing the data, and nothing below it. The lines
    about the device above it differ between versions. It reports neither its version nor the
    devices.

    :param origin: the file, for errors.
    :param runs: the requested number of runs of each kernel.
    :param array_bytes: the bytes of one array.
    :raises GarbledOutput: when the text is cut off or damaged, or its numbers contradict each
        other.
    :raises OtherRunError: when it has other sizes or another number of runs.
    """
    lines = iter(ended_lines_of(text, origin))
    if not any(_HEADER.fullmatch(line.text) for line in lines):
        raise GarbledOutput(origin, None, "it has no table of BabelStream, so it is cut off")
    rates: dict[str, float] = {}
    for line in lines:
        kernel, rate = _row(line, runs, array_bytes)
        if kernel in rates:
            raise line.garbled(f"{kernel} occurs twice")
        rates[kernel] = rate
    if list(rates) != list(_ARRAYS):
        kernels = listed(rates) or "nothing"
        raise GarbledOutput(origin, None, f"its kernels are {kernels}, not {listed(_ARRAYS)}")
    return PlacedValues({(kernel,): rate for kernel, rate in rates.items()})


def _row(line: Line, runs: int, array_bytes: int) -> tuple[str, float]:
    """Return the kernel and its best rate in GB/s."""
    kernel, *words = line.text.split(",")
    values = [number.value for word in words if (number := printed(word)) is not None]
    whole = all(word.isdecimal() for word in words[:3])
    if kernel not in _ARRAYS or len(words) != 7 or not whole:
        raise line.garbled(f"'{line.text}' is not a row of a kernel")
    if len(values) != 7 or min(values) <= 0:
        raise line.garbled(f"'{line.text}' has no positive value")
    ran, elements, size, rate, shortest, longest, mean = values
    if (ran, elements * size) != (runs, array_bytes):
        raise line.other_run(
            f"there are {ran:.0f} runs of {elements * size:.0f} B, not {runs} of {array_bytes} B"
        )
    by_time = _ARRAYS[kernel] * array_bytes / shortest / 1e6
    slack = 1 + _RATE_SLACK
    if not rate / slack <= by_time <= rate * slack:
        raise line.garbled(f"{rate:g} MB/s contradicts {shortest:g} s, which gives {by_time:g}")
    if not shortest <= mean * slack or not mean <= longest * slack:
        raise line.garbled("the mean time is not between the shortest and the longest")
    return kernel, rate / 1e3


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


def parse_p2p_test(text: str, origin: str) -> PlacedValues:
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
