"""Stand-ins: third-party benchmarks and a launcher as scripts, and a check without ReFrame."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from types import SimpleNamespace

from fabricheck.rfm.findings import Findings
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


def findings_figure(kind, document, **attributes):
    """Return the figure of a check of findings that has some attributes, without ReFrame."""
    check = SimpleNamespace(**attributes)
    check.findings = functools.partial(kind.findings, check)
    return Findings.figure(check, document, kind.metrics[0])
