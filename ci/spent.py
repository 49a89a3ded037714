#!/usr/bin/env python3
"""Prints where the seconds of a make went, for ci/times.sh: spent.py KIND FILE...

recipes FILE  lines of recipes, as ci/timed.sh wrote them
units FILE    what was compiled and linked, of a build's .ninja_log
tests FILE    folders of tests and the longest tests, of pytest's JUnit file
checks FILE   checks of a session, of ReFrame's report

A row is a name, seconds by the clock and, where they are known, of the processor; longest first.
What runs beside something else counts whole, so that rows may be more than the clock's time.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

#: The most rows of one kind, and the least seconds of a row.
MOST = 15
LEAST_S = 1.0

#: A name, seconds by the clock, and of the processor where they are known.
Row = tuple[str, float, float | None]


def recipes(file: Path) -> Iterator[Row]:
    """Yield the lines of recipes."""
    for line in file.read_text().splitlines():
        clock, user, system, command = line.split(" ", 3)
        yield command, float(clock), float(user) + float(system)


def units(file: Path) -> Iterator[Row]:
    """Yield what a build made, and all of it; of what was made twice the last time."""
    taken = {}
    for line in file.read_text().splitlines():
        if line.startswith("#"):
            continue
        begin, end, _, output, _ = line.split("\t")
        taken[output] = (int(end) - int(begin)) / 1000
    for output, seconds in taken.items():
        yield output.replace("CMakeFiles/", "").replace(".dir/", " "), seconds, None
    yield f"all of {file.parent.name}, one after another", sum(taken.values()), None


def tests(file: Path) -> Iterator[Row]:
    """Yield the folders of tests, and tests."""
    folders: Counter[str] = Counter()
    for test in ElementTree.parse(file).iter("testcase"):
        parts = test.get("classname", "").split(".")
        seconds = float(test.get("time", "0"))
        folders["/".join(parts[:2])] += seconds
        yield f"{parts[-1]}::{test.get('name', '')}", seconds, None
    for folder, seconds in folders.items():
        yield f"{folder}/", seconds, None


def checks(file: Path) -> Iterator[Row]:
    """Yield the checks of a session, from the start of their program to its end."""
    for run in json.loads(file.read_text())["runs"]:
        for case in run["testcases"]:
            name = f"{case['display_name']} @{case['partition']}"
            yield name, float(case["time_run"] or 0), None


KINDS = {"recipes": recipes, "units": units, "tests": tests, "checks": checks}


def show(rows: Iterable[Row]) -> None:
    """Print the longest rows, longest first."""
    longest = sorted(rows, key=lambda row: row[1], reverse=True)
    for name, clock, processor in longest[:MOST]:
        if clock >= LEAST_S:
            spent = "-" if processor is None else f"{processor:.2f}"
            print(f"  {name[:50]:50} {clock:8.2f} {spent:>8}")


def main() -> None:
    """Print the rows of each file that the command line names."""
    kind, *files = sys.argv[1:]
    for file in files:
        show(KINDS[kind](Path(file)))


if __name__ == "__main__":
    main()
