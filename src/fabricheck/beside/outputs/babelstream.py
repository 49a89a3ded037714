"""Parser of BabelStream's ``--csv`` output: one row for each kernel.

The lines about the device above the table differ between versions. Source of the format: main.cpp
of BabelStream 5.0 and of its successors, which name the unit differently.
"""

from __future__ import annotations

import re

from fabricheck.beside.outputs import PlacedValues
from fabricheck.core.errors import GarbledOutput
from fabricheck.core.lines import Line, ended_lines_of, printed

_HEADER = re.compile(
    r"function,num_times,n_elements,sizeof,max_(?:mbytes|MB)_per_sec,"
    r"min_runtime,max_runtime,avg_runtime"
)

#: Arrays that a kernel reads and writes.
_ARRAYS = {"Copy": 2, "Mul": 2, "Add": 3, "Triad": 3, "Dot": 2}

#: Values have six digits; two of them form a quotient.
_SLACK = 1e-4


def parse(text: str, origin: str, runs: int, array_bytes: int) -> PlacedValues:
    """Parse the output of one run: by kernel, the GB/s read and written in its best run.

    The tool prints the table at its end, after comparing the data, and nothing below it. It reports
    neither its version nor the devices.

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
        found = ", ".join(rates) or "nothing"
        raise GarbledOutput(origin, None, f"its kernels are {found}, not {', '.join(_ARRAYS)}")
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
    slack = 1 + _SLACK
    if not rate / slack <= by_time <= rate * slack:
        raise line.garbled(f"{rate:g} MB/s contradicts {shortest:g} s, which gives {by_time:g}")
    if not shortest <= mean * slack or not mean <= longest * slack:
        raise line.garbled("the mean time is not between the shortest and the longest")
    return kernel, rate / 1e3
