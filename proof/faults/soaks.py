"""Soaks of the simulated node with a fault that begins, grows, or comes and goes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabricheck.judge.drift import judging
from fabricheck.report.soak import note, what
from fabricheck.results import soaks
from proof.faults.sessions import OWN, Said, Session, Site, flow

#: The noise of each operation of the simulated node, as a part of its time.
NOISE = "0.003"


@dataclass(frozen=True)
class OverHours:
    """Rounds, each counted by the clock of the simulated node.

    overlay: what changes the node with time. hours: in all. minutes: of a
    round. seed: of the noise.
    """

    overlay: Mapping[str, Any] = field(default_factory=dict)
    hours: float = 10.0
    minutes: float = 60.0
    seed: int = 1

    def __str__(self) -> str:
        """Say how the fault is made."""
        changed = f"overlay `{flow(self.overlay)}`" if self.overlay else "no overlay"
        return f"{self.hours:g} simulated hours; {changed}"

    def __call__(self, folder: Path, site: Site = OWN) -> Said:
        """Run them in a folder, and judge what changed."""
        command = Session(["soak_all"], overlay=self.overlay).command(folder, site)
        path = folder / "overlay.yaml"
        changed = ["-S", f"overlay={path}"] if self.overlay else []
        _, system = site.settings(folder)
        command["args"] = [
            str(Path(sys.executable).with_name("fabricheck")),
            *(
                "soak",
                f"--hours={self.hours}",
                f"--round-minutes={self.minutes:g}",
                "--quiet-set=none",
            ),
            *("--", f"--system={system}", *changed),
        ]
        noise = {"FABRICHECK_SIM_NOISE": NOISE, "FABRICHECK_SIM_SEED": str(100 * self.seed)}
        command["env"] = command["env"] | noise
        (folder / "results").mkdir()
        done = subprocess.run(
            **command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
            check=False,
        )  # fmt: skip
        (folder / "printed").write_text(done.stdout)
        return said(folder / "results")


def said(results: Path) -> Said:
    """Return what is judged of the one soak of a results folder."""
    (soak,) = soaks.read(results)
    judged = judging.judge(soak)
    findings = [finding for finding in judged.findings if finding.status is not None]
    return Said(
        judged.status,
        [
            (str(finding.status), f"{finding.rule}: {what(finding)}, {note(finding)}")
            for finding in findings
        ],
        drained=[judged.node] if judged.live and judged.node else [],
    )
