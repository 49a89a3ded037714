"""Run the tests that can see what differs from main, the likeliest first: `make check`.

`ci/choosing.py` says which they are. They end when their time is over.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from choosing import Change, chosen

ROOT = Path(__file__).resolve().parents[1]

#: Seconds of choosing and testing; `make lint`, and the tests that run at that moment, take the
#: rest of a minute.
LIMIT_S = 38

#: Test functions that are chosen at most: more do not have their turn.
MOST = 300

#: So many of the likeliest run file by file, so that fixtures serve several; then the next.
TOGETHER = 30


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


def in_turn(tests: list[str]) -> list[str]:
    """Return tests in the order in which they run."""
    ordered = []
    for first in range(0, len(tests), TOGETHER):
        together = tests[first : first + TOGETHER]
        files = [test.partition("::")[0] for test in together]
        ordered += sorted(together, key=lambda test: files.index(test.partition("::")[0]))
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


def main() -> int:
    """Return pytest's exit code; 0 without a test to run."""
    deadline = Deadline(time.monotonic() + LIMIT_S)
    differ = changes()
    tests = chosen(ROOT, differ, MOST)
    print(f"check: {len(tests)} tests are the likeliest to see the {len(differ)} files that differ")
    if not tests:
        return 0
    options = ["-q", "-n2", "--maxschedchunk=1", "-m", "not full"]
    code = pytest.main([*options, *in_turn(tests)], plugins=[deadline])
    if deadline.over:
        print(f"check: {len(deadline.tests)} of them had their turn; make test runs all")
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else int(code)


if __name__ == "__main__":
    sys.exit(main())
