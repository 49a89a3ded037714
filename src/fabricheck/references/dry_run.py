"""The metrics and references of a system's checks, from a dry run of ReFrame."""

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

from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.vocabulary import ENV_METRICS, ENV_RESULTS
from fabricheck.references.published import PREFIX_VARIABLE

SETTINGS = ROOT / "config" / "settings.py"

#: A dry run takes seconds; the limit is for a busy machine.
LIMIT_S = 300

#: The lines in which ReFrame states why a session stopped or a check failed; colours are removed.
_REASON = re.compile(r"^\W*(?:ERROR: |(?=\S*: error: |Reason: ))(.+)$", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[\d*m")


@dataclass(frozen=True)
class CheckMetrics:
    """What a check reported about itself; for each metric its ``unit``, ``entry`` (None without
    one), ``rule`` and ``independent``, whether it means the same on any number of devices. metrics:
    empty if the check failed before it listed any.

    limit_s: the time limit of its program, in s.
    """

    check: str
    partition: str
    environment: str
    metrics: dict[str, dict[str, Any]]
    tags: Sequence[str] = ()
    limit_s: float = 0


def ask(system: str, checks: Sequence[Path], references: Path | None = None) -> list[CheckMetrics]:
    """Return what the checks report, in ReFrame's order.

    :param system: as ReFrame's option: a system, or ``system:partition``; empty for this machine's.
    :param checks: the folders of checks.
    :param references: the folder of reference files; by default the session's.
    :raises NotFoundError: when there are no checks.
    :raises InvalidInputError: when no check reported anything, with ReFrame's reason.
    """
    named = system or "this machine"
    if not checks:
        raise NotFoundError("The checks were not found: change to the root of the repository.")
    with tempfile.TemporaryDirectory(prefix="fabricheck-") as folder:
        file = Path(folder) / "metrics"
        environment = {
            "RFM_CONFIG_FILES": str(SETTINGS),
            **os.environ,
            ENV_RESULTS: folder,
            ENV_METRICS: str(file),
        }
        if references is not None:
            environment[PREFIX_VARIABLE] = str(references)
        command = [
            str(Path(sys.executable).with_name("reframe")),
            *([f"--system={system}"] if system else []),
            *("--dry-run", *(word for check in checks for word in ("-c", str(check)))),
        ]
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=LIMIT_S
            )
        except subprocess.TimeoutExpired:
            raise InvalidInputError(
                f"ReFrame's dry run on {named} took more than {LIMIT_S} s."
            ) from None
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    asked = [CheckMetrics(**json.loads(line)) for line in lines]
    if not any(metrics.metrics for metrics in asked):
        ended = f" and ended with exit code {done.returncode}" if done.returncode else ""
        said = reason(f"{done.stdout}\n{done.stderr}")
        raise InvalidInputError(
            f"ReFrame's dry run on {named} reached no check{ended}; ReFrame reported: {said}"
        )
    return asked


def reason(said: str) -> str:
    """Return the first reason in ReFrame's output, else its last line."""
    plain = _COLOUR.sub("", said).strip()
    found = _REASON.search(plain)
    return found[1].strip() if found else (plain.splitlines() or ["nothing"])[-1]
