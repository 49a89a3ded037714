"""Run the tests that can see what differs from main, the likeliest first: `make check`.

`ci/choosing.py` says which they are. One process runs the quick ones, another one the slow ones, so
that neither takes the time of the other. Both end when their time is over.
"""

from __future__ import annotations

import io
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from choosing import Change, chosen

ROOT = Path(__file__).resolve().parents[1]

#: Seconds of choosing and testing; `make lint`, and the tests that run at that moment, take the
#: rest of a minute.
LIMIT_S = 38

#: Test functions that are chosen at most: more do not have their turn.
QUICK, SLOW = 400, 60

#: So many of the likeliest run file by file, so that fixtures serve several; then the next.
TOGETHER, SLOW_TOGETHER = 30, 6

#: So many tests are collected and run before the next.
AT_ONCE = 30

#: So many files are named that were not reached.
NAMED = 10


@dataclass(frozen=True)
class Outcome:
    """What came of a process of tests.

    reached: the tests that had their turn, without their parameters. over: whether time was over.
    """

    code: int
    reached: set[str]
    over: bool
    printed: str


def git(*arguments: str) -> str:
    """Return what git says, empty where it fails."""
    command = ["git", "-C", str(ROOT), *arguments]
    output = subprocess.run(command, capture_output=True, check=False).stdout
    return output.decode(errors="replace")


def changes() -> list[Change]:
    """Return the files that differ from main, or on main from what was published last."""
    base = git("merge-base", "HEAD", "main").strip()
    if base == git("rev-parse", "HEAD").strip():
        base = git("rev-parse", "--verify", "-q", "origin/main").strip() or base
    differ = git("diff", "--no-renames", "--name-only", base).splitlines()
    new = git("ls-files", "--others", "--exclude-standard").splitlines()
    return [
        Change(name, git("show", f"{base}:{name}"), text_of(ROOT / name))
        for name in (*differ, *new)
    ]


def text_of(path: Path) -> str:
    """Return the text of a file, empty where there is none."""
    return path.read_bytes().decode(errors="replace") if path.is_file() else ""


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


def in_turn(tests: list[str], together: int) -> list[str]:
    """Return tests in the order in which they run."""
    ordered = []
    for first in range(0, len(tests), together):
        part = tests[first : first + together]
        files = [file_of(test) for test in part]
        ordered += sorted(part, key=lambda test: files.index(file_of(test)))
    return ordered


class Deadline:
    """Ends the tests when their time is over."""

    def __init__(self, ends: float) -> None:
        self.ends = ends
        self.tests: set[str] = set()
        self.failed = self.over = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test, and whether it failed."""
        self.tests.add(report.nodeid.partition("[")[0])
        self.failed |= report.failed

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self) -> None:
        """End the tests where no time is left."""
        if time.monotonic() > self.ends and not self.over:
            self.over = True
            pytest.exit(f"{LIMIT_S} s are over", returncode=int(self.failed))


def run(tests: list[str], ends: float) -> Outcome:
    """Run tests in this process until their time is over.

    A part of them is collected at a time: of hundreds that alone would take the time there is.

    :param ends: the time of the monotonic clock, in s.
    """
    deadline = Deadline(ends)
    code = 0
    with redirect_stdout(io.StringIO()) as printed:
        for first in range(0, len(tests), AT_ONCE):
            part = tests[first : first + AT_ONCE]
            ended = pytest.main(["-q", "-m", "not full", *part], plugins=[deadline])
            if ended not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                code = max(code, int(ended))
            if deadline.over:
                break
    return Outcome(code, deadline.tests, deadline.over, printed.getvalue().strip())


def not_reached(tests: list[str], reached: set[str]) -> list[str]:
    """Return the files of chosen tests of which none had its turn, the likeliest first."""
    files = {file_of(test) for test in reached}
    return [file for file in dict.fromkeys(map(file_of, tests)) if file not in files]


def main() -> int:
    """Return 1, or pytest's exit code, where a test fails or cannot run."""
    ends = time.monotonic() + LIMIT_S
    differ = changes()
    tests = chosen(ROOT, differ, QUICK, SLOW)
    print(
        f"check: {len(tests.quick)} quick tests and {len(tests.slow)} slow ones are the likeliest "
        f"to see the {len(differ)} files that differ; {LIMIT_S} s for both at once"
    )
    if tests.recording:
        names = [test.partition("[")[2].rstrip("]") for test in tests.recording]
        print(f"check: recorded texts have a phrase that is gone: {', '.join(names)}")
    sys.stdout.flush()
    lists = [in_turn(tests.quick, TOGETHER), in_turn(tests.slow, SLOW_TOGETHER)]
    with ProcessPoolExecutor(len(lists)) as processes:
        outcomes = [*processes.map(partial(run, ends=ends), lists)]
    for word, ordered, outcome in zip(("quick", "slow"), lists, outcomes, strict=True):
        if not ordered:
            continue
        print(outcome.printed)
        print(f"check: {len(outcome.reached)} of {len(ordered)} {word} tests had their turn")
        left = not_reached(ordered, outcome.reached)
        more = f" and {len(left) - NAMED} files more" if len(left) > NAMED else ""
        if left:
            print(f"check: not reached, likeliest first: {', '.join(left[:NAMED])}{more}")
    if any(outcome.over for outcome in outcomes):
        print("check: passing here says nothing of what was not reached; make test runs all")
    return max(outcome.code for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
