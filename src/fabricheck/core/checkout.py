"""The checkout that this package runs from, by git; for an installation, its copy."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fabricheck.core.vocabulary import UNKNOWN

#: The parts of the checkout that a wheel contains (setup.py): node models, site files, references.
_INSTALLED = Path(__file__).resolve().parents[1] / "suite"

ROOT = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).resolve().parents[3]

#: The folder of the programs' sources.
SOURCES = ("CMakeLists.txt", "cmake", "src/bench", "src/runtime")

_TIME_LIMIT_S = 10


def commit(root: Path = ROOT) -> str:
    """Return the commit as the programs report theirs, ``unknown`` outside a git checkout."""
    done = _git(root, "describe", "--always", "--dirty")
    return (done.stdout.strip() if done and done.returncode == 0 else "") or UNKNOWN


def has_sources_of(told: str, root: Path = ROOT) -> bool:
    """Whether a program that reports this commit was built from the sources of this checkout.

    Uncommitted changes (``-dirty``) can be compared only in the checkout that has them.
    """
    if told == commit(root):
        return True
    done = _git(root, "diff", "--quiet", told, "--", *SOURCES)
    return done is not None and done.returncode == 0


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    command = ["git", "-C", str(root), *arguments]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=_TIME_LIMIT_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
