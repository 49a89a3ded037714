"""Checks that distinguish equal explanations of missed limits: their command line, and a run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from fabricheck.core import show
from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.judge.verdict.model import NodeVerdict
from fabricheck.report import rerun
from fabricheck.results import marking

#: The file descriptor of standard error.
_STDERR = 2


def sessions_of(verdicts: Iterable[NodeVerdict]) -> set[tuple[str, str]]:
    """Return the sessions of some verdicts: the results folder and the id of each."""
    return {(session.results, session.id) for verdict in verdicts for session in verdict.sessions}


def command_line(verdict: NodeVerdict, checks: Iterable[str]) -> list[str]:
    """Return the command line that runs checks on the partition of a node."""
    return rerun.command_line(verdict.partitions[0] if verdict.partitions else "", checks)


def measured(verdicts: Sequence[NodeVerdict]) -> str | None:
    """Run the checks that distinguish components.

    :returns: the name of the session; None where there is nothing to distinguish.

    :raises UsageError: for several nodes, and for a node changed by an overlay.
    :raises NotFoundError: when ReFrame or its checks are not found.
    """
    if len(verdicts) != 1:
        raise UsageError(f"--measure needs exactly one node; there are {len(verdicts)}.")
    (verdict,) = verdicts
    components = verdict.diagnosis.degraded if verdict.diagnosis is not None else ()
    checks = [check for degraded in components for check in degraded.next]
    if not checks:
        return None
    command = command_line(verdict, checks)
    if verdict.simulated is not None and verdict.simulated.overlay is not None:
        raise UsageError(
            f"An overlay changed the simulated node: run {' '.join(command)} with the same overlay "
            "(-S overlay=FILE)."
        )
    reframe = Path(sys.executable).with_name("reframe")
    if not (ROOT / "reframe_checks").is_dir() or not reframe.exists():
        raise NotFoundError(
            "ReFrame and the checks were not found: change to the root of the repository."
        )
    # Standard output is for the diagnosis.
    show.line(f"Runs {' '.join(command)}", to_stderr=True)
    name = f"diagnose-{os.getpid()}"
    variables = {**os.environ, marking.ENV_SESSION: name}
    subprocess.run(
        [str(reframe), *command[1:]], cwd=ROOT, env=variables, stdout=_STDERR, check=False
    )
    return name
