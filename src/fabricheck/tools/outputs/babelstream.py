"""Reading what BabelStream prints with ``--csv``: one row for each kernel.

Lines about the device stand above the table; their words differ between versions. Sources of the
format: main.cpp of BabelStream 5.0 and of what followed it, which names the unit otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fabricheck.core.errors import GarbledOutput
from fabricheck.core.lines import Line, ended_lines_of, printed

_HEADER = re.compile(
    r"function,num_times,n_elements,sizeof,max_(?:mbytes|MB)_per_sec,"
    r"min_runtime,max_runtime,avg_runtime"
)

#: Arrays that a kernel reads and writes.
ARRAYS = {"Copy": 2, "Mul": 2, "Add": 3, "Triad": 3, "Dot": 2}

#: Values have six digits, two of them in a quotient.
_SLACK = 1e-4


@dataclass(frozen=True)
class BabelStreamRow:
    """One kernel: GB/s (1e9 bytes per second, read and written) of its best run, and times in s."""

    function: str
    runs: int
    array_bytes: int
    best: float
    shortest_s: float
    longest_s: float
    mean_s: float


@dataclass(frozen=True)
class BabelStreamResult:
    """One run: each kernel's row by its name. It tells neither its version nor the devices."""

    rows: dict[str, BabelStreamRow]
    version: None = None
    devices: tuple[str, ...] = ()

    def cell(self, kernel: str) -> float:
        """Return the best rate of a kernel."""
        return self.rows[kernel].best


def parse(text: str, origin: str, runs: int, array_bytes: int) -> BabelStreamResult:
    """Read the output of one run.

    It prints the table at its end, after it has compared the data, and nothing below it.

    :param origin: the file, for errors.
    :param runs: how often each kernel was to run.
    :param array_bytes: of one array.
    :raises GarbledOutput: when the text is cut, damaged, or its numbers contradict each other.
    :raises OtherRunError: when it is of other sizes or another number of runs.
    """
    lines = iter(ended_lines_of(text, origin))
    if not any(_HEADER.fullmatch(line.text) for line in lines):
        raise GarbledOutput(origin, None, "it has no table of BabelStream, so it is cut")
    rows = {row.function: row for row in _rows(lines, runs, array_bytes)}
    if list(rows) != list(ARRAYS):
        found = ", ".join(rows) or "nothing"
        raise GarbledOutput(origin, None, f"its kernels are {found}, not {', '.join(ARRAYS)}")
    return BabelStreamResult(rows)


def _rows(lines: Iterator[Line], runs: int, array_bytes: int) -> Iterator[BabelStreamRow]:
    seen: set[str] = set()
    for line in lines:
        row = _row(line)
        if (row.runs, row.array_bytes) != (runs, array_bytes):
            raise line.other_run(
                f"{row.runs} runs of {row.array_bytes} B, not {runs} of {array_bytes} B"
            )
        if row.function in seen:
            raise line.garbled(f"{row.function} stands twice")
        seen.add(row.function)
        yield row


def _row(line: Line) -> BabelStreamRow:
    name, *words = line.text.split(",")
    numbers = [printed(word) for word in words]
    whole = all(word.isdecimal() for word in words[:3])
    if name not in ARRAYS or len(numbers) != 7 or not whole:
        raise line.garbled(f"'{line.text}' is no row of a kernel")
    values = [number.value for number in numbers if number is not None]
    if len(values) != 7 or min(values) <= 0:
        raise line.garbled(f"'{line.text}' has no value above zero")
    runs, elements, size, rate, shortest, longest, mean = values
    array_bytes = int(elements) * int(size)
    row = BabelStreamRow(name, int(runs), array_bytes, rate / 1e3, shortest, longest, mean)
    by_time = ARRAYS[name] * array_bytes / row.shortest_s / 1e9
    slack = 1 + _SLACK
    if not row.best / slack <= by_time <= row.best * slack:
        raise line.garbled(f"{rate:g} MB/s contradicts {shortest:g} s, which is {by_time * 1e3:g}")
    if not shortest <= mean * slack or not mean <= longest * slack:
        raise line.garbled("the mean time is not between the shortest and the longest")
    return row
