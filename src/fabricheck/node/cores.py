"""Lists of cores, as Linux and Slurm write them: ``0-7,12``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

_PART = re.compile(r"([0-9]{1,20})(?:-([0-9]{1,20}))?")

#: More cores than any node has, so that a damaged range does not fill the memory.
MOST = 1 << 16


def parse_cores(text: str | int) -> tuple[int, ...]:
    """Parse a list of cores.

    :param text: such as ``0-7,12``; a single number may be an integer; an empty text is no core.
    :returns: the cores, ascending.
    :raises ValueError: for a malformed list, a descending range, or a core given twice.
    """
    cores: list[int] = []
    for part in filter(None, str(text).replace(" ", "").split(",")):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"'{part[:40]}' is neither a core nor a range of cores such as 0-7")
        first = int(match[1])
        last = int(match[2] or first)
        if last >= MOST:
            raise ValueError(f"the core {last} exceeds any machine")
        if last < first:
            raise ValueError(f"the range {part} descends")
        cores.extend(range(first, last + 1))
    ordered = sorted(cores)
    for core, following in pairwise(ordered):
        if core == following:
            raise ValueError(f"core {core} is named twice")
    return tuple(ordered)


def format_cores(cores: Iterable[int]) -> str:
    """Format cores as a list with ranges: ``0-7,12``."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
