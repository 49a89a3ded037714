"""Running tests against a copy of the tree, with and without an error in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: What git ignores and tests need.
_LINKED = ("build", ".venv")

#: The plugin that looks which package is tested.
_PLUGIN = "proof.mutants.imported"

#: How pytest ends where all tests passed, where one failed, and where all of them are left out; all
#: else tells nothing of tests.
_PASSED, _FAILED, _NONE_RAN = 0, 1, 5

#: Seconds that the tests of one mutant may take.
_LIMIT_S = 300

_FIRST = re.compile(r"^(?:FAILED|ERROR) tests/(.+?)(?:\[.*)?(?: - .*)?$", re.MULTILINE)


class NotRunError(Exception):
    """Tests did not run; the text says why."""


@dataclass(frozen=True)
class Tree:
    """A copy of the tree, whose package and tests are those that run."""

    folder: Path

    @classmethod
    def copied(cls, folder: Path) -> Tree:
        """Copy all files that git has or would take."""
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.check_output(listed, cwd=ROOT, text=True).split("\0"):
            if name and (ROOT / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
        for name in _LINKED:
            (folder / name).symlink_to((ROOT / name).resolve())
        # By content: two changes within a second can have the same time and size.
        compiled = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash"]
        subprocess.run([*compiled, "src"], cwd=folder, check=True)
        return cls(folder)

    @contextmanager
    def changed(self, file: str, text: str) -> Iterator[None]:
        """Give a file another text for a while."""
        path = self.folder / file
        before = path.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")

    def first_failure(
        self, tests: Collection[str], limit_s: float = _LIMIT_S, *, left_out: Collection[str] = ()
    ) -> str | None:
        """Return the first test that fails; None where all pass.

        :param tests: files, folders or single tests, below the folder of tests.
        :param limit_s: the time that they may take together, in s.
        :param left_out: those of them that do not run.
        :raises NotRunError: when they did not run, as where one cannot be imported.
        """
        paths = [str(self.folder / part) for part in ("src", ".")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "1",
            "RFM_CONFIG_FILES": str(self.folder / "config" / "settings.py"),
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--tb=no"]
        command += ["-p", "no:cacheprovider", "-p", _PLUGIN, *(f"tests/{one}" for one in tests)]
        command += [f"--deselect=tests/{one}" for one in left_out]
        try:
            ended = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, text=True,
                timeout=limit_s,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise NotRunError(f"took more than {limit_s} s") from None
        if ended.returncode in (_PASSED, _NONE_RAN):
            return None
        found = _FIRST.search(ended.stdout)
        if ended.returncode != _FAILED or found is None:
            said = (ended.stdout + ended.stderr).strip().splitlines()[-3:]
            raise NotRunError(f"pytest ended with {ended.returncode}: {' '.join(said)}")
        return found[1]
