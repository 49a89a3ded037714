"""Parser of nvbandwidth 0.8's JSON (``-j``): a matrix for each testcase.

The tool prints once, at its end: after a crash there is nothing, or an object with an ``error``.
Sources of the format: json_output.cpp and testcases_*.cpp of nvbandwidth 0.8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fabricheck.beside.outputs import PlacedValues
from fabricheck.core import strict_json
from fabricheck.core.errors import GarbledOutput, InvalidFile, OtherRunError, WrongDataError
from fabricheck.core.lines import printed

#: In GB/s (1e9 bytes per second), a latency in ns; None without a measurement.
Matrix = list[list[float | None]]

#: Testcases of two directions append three matrices: each direction's, and their total.
PARTS_OF_BOTH = 3

#: The message that its kernels print before the JSON when they find wrong data.
_WRONG = "Invalid value when checking the pattern"

#: Values have six digits; their sum is printed in full.
_SLACK = 1e-5


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
    reader = _Reader(origin)
    root = reader.root(text)
    version, devices = reader.text(root, "version"), reader.devices(root)
    values: dict[tuple[str | int, ...], float] = {}
    names = []
    for entry in reader.entries(root):
        name, status = (reader.text(entry, key) for key in ("name", "status"))
        names.append(name)
        if status == "Waived":
            continue
        if status != "Passed" or "error" in entry:
            why = entry.get("error", f"its status is {status}")
            raise reader.garbled(f"the testcase {name} failed ({' '.join(str(why).split())})")
        for row, cells in enumerate(reader.matrix(entry, name, len(devices))):
            for column, value in enumerate(cells):
                if value is not None:
                    values[name, row, column] = value
    if names != list(testcases):
        raise OtherRunError(
            origin, None, f"its testcases are {_list(names)}, not {_list(testcases)}"
        )
    return PlacedValues(values, version, devices)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


class _Reader:
    def __init__(self, origin: str) -> None:
        self.origin = origin

    def garbled(self, reason: str) -> GarbledOutput:
        return GarbledOutput(self.origin, None, reason)

    def root(self, text: str) -> dict[str, Any]:
        if not text.strip():
            raise self.garbled("the text is empty, so nvbandwidth did not finish")
        try:
            value = strict_json.parse(text, self.origin)
        except InvalidFile as error:
            raise self.garbled(
                f"it is cut off, or not JSON of nvbandwidth: it {error.reason}"
            ) from None
        root = value.get("nvbandwidth") if isinstance(value, dict) else None
        if not isinstance(root, dict):
            raise self.garbled("it is not JSON of nvbandwidth")
        if "error" in root:
            raise self.garbled(f"nvbandwidth reports: {' '.join(str(root['error']).split())}")
        return root

    def text(self, value: dict[str, Any], key: str) -> str:
        found = value.get(key)
        if not isinstance(found, str) or not found:
            raise self.garbled(f"'{key}' is missing or not a text")
        return found

    def devices(self, root: dict[str, Any]) -> tuple[str, ...]:
        found = root.get("GPU Device list")
        if not isinstance(found, list) or not found or not all(isinstance(x, str) for x in found):
            raise self.garbled("'GPU Device list' is missing or not a list of texts")
        return tuple(found)

    def entries(self, root: dict[str, Any]) -> list[dict[str, Any]]:
        found = root.get("testcases")
        if not isinstance(found, list) or not all(isinstance(x, dict) for x in found):
            raise self.garbled("'testcases' is missing or not a list")
        return found

    def matrix(self, entry: dict[str, Any], name: str, devices: int) -> Matrix:
        unit = "(ns)" if "latency" in name else "(GB/s)"
        if not self.text(entry, "bandwidth_description").endswith(unit):
            raise self.garbled(f"the description of {name} does not give the unit {unit}")
        rows = entry.get("bandwidth_matrix")
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise self.garbled(f"the testcase {name} has no matrix")
        between = name.startswith("device_to_device_")
        expected = devices if between else 1
        if between and "_bidirectional_" in name:
            expected *= PARTS_OF_BOTH
        if len(rows) != expected or any(len(row) != devices for row in rows):
            raise self.garbled(f"the matrix of {name} does not fit {devices} devices")
        values = [[self._value(word, name) for word in row] for row in rows]
        last = values[-devices:] if between else values
        if between and any(last[index][index] is not None for index in range(devices)):
            raise self.garbled(f"the matrix of {name} has a value between a device and itself")
        self._same_sum(entry, name, last)
        return last

    def _value(self, word: Any, name: str) -> float | None:
        if word == "N/A":
            return None
        number = printed(word) if isinstance(word, str) else None
        if number is None or number.value <= 0:
            raise self.garbled(f"the matrix of {name} has {word!r}, which is not a positive value")
        return number.value

    def _same_sum(self, entry: dict[str, Any], name: str, matrix: Matrix) -> None:
        told = entry.get("sum")
        added = sum(value for row in matrix for value in row if value is not None)
        if not isinstance(told, int | float) or not math.isclose(told, added, rel_tol=_SLACK):
            raise self.garbled(f"the sum of {name} is {told!r}, but its values give {added:g}")
