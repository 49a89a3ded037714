"""Run the quick tests of what differs from main, at most so long: `make check`.

A test file is of a changed file if it is that file, if it imports that module, or if it names that
file. The test files that import least come first: they are the most particular.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))

#: Seconds of tests; `make lint`, and the tests that run at that moment, take the rest of a minute.
LIMIT_S = 45


def changed() -> set[Path]:
    """Return the files that differ from main, or on main from what was published last."""
    base = git("merge-base", "HEAD", "main")
    if base == git("rev-parse", "HEAD"):
        base = git("rev-parse", "--verify", "-q", "origin/main") or base
    differ = git("diff", "--name-only", base).splitlines()
    new = git("ls-files", "--others", "--exclude-standard").splitlines()
    return {ROOT / name for name in (*differ, *new)}


def git(*arguments: str) -> str:
    """Return what git says, empty where it fails."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def imported(text: str) -> set[str]:
    """Return the modules that a text imports, each with those that hold it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def module_of(file: Path) -> str:
    """Return the name by which a file of src is imported."""
    return ".".join(file.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def tests_of(files: set[Path]) -> Iterator[Path]:
    """Yield the test files of some files, the most particular first."""
    modules = {
        module_of(file) for file in files if file.suffix == ".py" and ROOT / "src" in file.parents
    }
    helpers = {
        file.stem for file in files if file.suffix == ".py" and ROOT / "tests" in file.parents
    }
    names = {file.name for file in files if file.suffix != ".py"}
    folders = {file.parent for file in files if file.name == "conftest.py"}
    reach = {}
    for test in TESTS:
        text = test.read_text(encoding="utf-8")
        own = imported(text)
        if (
            test in files
            or own & (modules | helpers)
            or folders & {*test.parents}
            or any(name in text for name in names)
        ):
            reach[test] = 0 if test in files else len(own)
    yield from sorted(reach, key=reach.__getitem__)


class Deadline:
    """Ends the tests when their time is over."""

    def __init__(self) -> None:
        self.ends = time.monotonic() + LIMIT_S
        self.files: set[str] = set()
        self.failed = self.over = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note the file of a test, and whether it failed."""
        self.files.add(report.nodeid.partition("::")[0])
        self.failed |= report.failed

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self) -> None:
        """End the tests where no time is left."""
        if time.monotonic() > self.ends and not self.over:
            self.over = True
            pytest.exit(f"{LIMIT_S} s are over", returncode=int(self.failed))


def main() -> int:
    """Return pytest's exit code; 0 without a test to run."""
    files = changed()
    tests = list(tests_of(files))
    print(f"check: {len(tests)} test files are of the {len(files)} files that differ")
    if not tests:
        return 0
    deadline = Deadline()
    chosen = [str(test) for test in tests]
    code = pytest.main(["-q", "-n2", "-m", "not slow and not full", *chosen], plugins=[deadline])
    if deadline.over:
        print(f"check: {len(deadline.files)} of {len(tests)} had their turn; make test runs all")
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else int(code)


if __name__ == "__main__":
    sys.exit(main())
