"""Which metrics and references the checks of a system have: asked of ReFrame, by a dry run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricheck.core.checkout import RESULTS_VARIABLE, ROOT
from fabricheck.core.errors import InvalidInputError, NotFoundError

#: Names the file that the checks of a dry run write to (`rfm.recorded`).
VARIABLE = "FABRICHECK_METRICS_FILE"

SETTINGS = ROOT / "config" / "settings.py"

#: A dry run takes seconds; this is for a machine that does something else.
LIMIT_S = 300

#: How ReFrame marks why a session stopped, or why a check failed; it also writes colours.
_REASON = re.compile(r"^\W*(?:ERROR: |(?=\S*: error: |Reason: ))(.+)$", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[\d*m")


@dataclass(frozen=True)
class Told:
    """What a check told of itself; of each metric its ``unit`` and ``entry``, None for none.

    limit_s: the time limit of its program. predicted_s: how long its job will take, and
    not_predicted why that is None.
    """

    check: str
    partition: str
    environment: str
    metrics: dict[str, dict[str, Any]]
    tags: Sequence[str] = ()
    limit_s: float = 0
    predicted_s: float | None = None
    not_predicted: str = ""


def ask(system: str, checks: Sequence[Path]) -> list[Told]:
    """Return what the checks tell, in ReFrame's order.

    :param system: as ReFrame's option: a system, or ``system:partition``; empty for this machine's.
    :param checks: the folders of checks.
    :raises NotFoundError: when there are no checks.
    :raises InvalidInputError: when no check told anything, with why ReFrame says so.
    """
    named = system or "this machine"
    if not checks:
        raise NotFoundError("The checks were not found: run this in the repository.")
    with tempfile.TemporaryDirectory(prefix="fabricheck-") as folder:
        file = Path(folder) / "metrics"
        environment = {
            "RFM_CONFIG_FILES": str(SETTINGS),
            **os.environ,
            RESULTS_VARIABLE: folder,
            VARIABLE: str(file),
        }
        command = [sys.executable, "-c", "from reframe.frontend.cli import main; main()"]
        command += [*([f"--system={system}"] if system else []), "--dry-run"]
        for one in checks:
            command += ["-c", str(one)]
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=LIMIT_S
            )
        except subprocess.TimeoutExpired:
            raise InvalidInputError(
                f"ReFrame's dry run on {named} took more than {LIMIT_S} s."
            ) from None
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    if not lines:
        ended = f" and ended with exit code {done.returncode}" if done.returncode else ""
        said = reason(f"{done.stdout}\n{done.stderr}")
        raise InvalidInputError(
            f"ReFrame's dry run on {named} reached no check{ended}; it said: {said}"
        )
    return [Told(**json.loads(line)) for line in lines]


def reason(said: str) -> str:
    """Return the first reason in what ReFrame said, else its last line."""
    plain = _COLOUR.sub("", said).strip()
    found = _REASON.search(plain)
    return found[1].strip() if found else (plain.splitlines() or ["nothing"])[-1]
