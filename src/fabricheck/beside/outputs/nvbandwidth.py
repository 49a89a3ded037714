"""Parser of nvbandwidth 0.8's JSON (``-j``): a matrix for each testcase.

The tool prints once, at its end: after a crash there is nothing, or an object with an ``error``.
Sources of the format: json_output.cpp and testcases_*.cpp of nvbandwidth 0.8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from fabricheck.beside.outputs import PlacedValues
from fabricheck.core import models, show
from fabricheck.core.errors import GarbledOutput, InvalidFile, OtherRunError, WrongDataError
from fabricheck.core.lines import printed
from fabricheck.core.models import validated

#: Testcases of two directions append three matrices: each direction's, and their total.
_PARTS_OF_BOTH = 3

#: The message that its kernels print before the JSON when they find wrong data.
_WRONG = "Invalid value when checking the pattern"

#: Values have six digits; their sum is printed in full.
_SLACK = 1e-5


class _Testcase(BaseModel):
    model_config = ConfigDict(strict=True, defer_build=True)

    name: str
    status: str
    error: Any = None
    bandwidth_description: str = ""
    bandwidth_matrix: list[list[Any]] = []
    sum: float | None = None


class _Report(BaseModel):
    model_config = ConfigDict(strict=True, defer_build=True)

    error: Any = None
    version: str = ""
    devices: list[str] = Field(default=[], alias="GPU Device list")
    testcases: list[_Testcase] = []


class _Output(BaseModel):
    model_config = ConfigDict(strict=True, defer_build=True)

    nvbandwidth: _Report


def parse(text: str, origin: str, testcases: Sequence[str]) -> PlacedValues:
    """Parse the output of one run: values by testcase, row and column.

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
        for row, cells in enumerate(_matrix(testcase, len(report.devices), origin)):
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


def _matrix(testcase: _Testcase, devices: int, origin: str) -> list[list[float | None]]:
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
    values = [[_value(word, name, origin) for word in row] for row in rows]
    last = values[-devices:] if between else values
    if between and any(last[index][index] is not None for index in range(devices)):
        reason = f"the matrix of {name} has a value between a device and itself"
        raise GarbledOutput(origin, None, reason)
    added = sum(value for row in last for value in row if value is not None)
    if testcase.sum is None or not math.isclose(testcase.sum, added, rel_tol=_SLACK):
        reason = f"the sum of {name} is {testcase.sum!r}, but its values give {added:g}"
        raise GarbledOutput(origin, None, reason)
    return last


def _value(word: Any, name: str, origin: str) -> float | None:
    if word == "N/A":
        return None
    number = printed(word) if isinstance(word, str) else None
    if number is None or number.value <= 0:
        reason = f"the matrix of {name} has {word!r}, which is not a positive value"
        raise GarbledOutput(origin, None, reason)
    return number.value
