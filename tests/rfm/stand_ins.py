"""Third-party benchmarks, and a launcher, as scripts that run fake_tools.py."""

from __future__ import annotations

import sys
from pathlib import Path

from fabricheck.tools.benchmarks import NCCL_TESTS, OSU

HERE = Path(__file__).parent


def script(path: Path, body: str) -> None:
    """Write a shell script, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def fake_tools(folder: Path, launcher: str = "mpiexec") -> None:
    """Put stand-ins into the folders osu, nccl and launchers.

    :param launcher: the name of a command whose first two words say how many ranks.
    """
    run = f'exec "{sys.executable}" -S -E "{HERE / "fake_tools.py"}"'
    for name in OSU.operations:
        script(folder / "osu" / OSU.path(name), f'{run} {name} "$@"')
    for name in NCCL_TESTS.operations:
        script(folder / "nccl" / NCCL_TESTS.path(name), f'{run} {name} "$@"')
    # Prints for all ranks, as rank 0 does.
    script(folder / "launchers" / launcher, 'shift 2\nexec "$@"')
