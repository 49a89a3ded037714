"""Prolog, Epilog and HealthCheckProgram of ci/slurm under a real Slurm of one node.

The node's devices are folders in the place of the kernel's: a fault is put into them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from driver_trees import Tree
from fabricheck.core.checkout import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.full]

SCRIPTS = ROOT / "ci" / "slurm"

#: How Slurm calls a script: with what a site writes into it.
CALLED = """#!/bin/sh
export SLURM_CONF={folder}/slurm.conf FABRICHECK={fabricheck}
export LOOK="mi250x --root {folder}/node --programs {programs} --state {folder}/look.json"
{script}; code=$?
echo "$code" >> {folder}/{name}.codes
exit $code
"""


class Slurm:
    """A Slurm in a folder whose node is a tree of files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.node = folder, Tree(folder / "node")
        self.environment = os.environ | {"SLURM_CONF": f"{folder}/slurm.conf"}

    def start(self, configuration: str) -> None:
        for name in ("prolog", "health-check"):
            text = CALLED.format(
                folder=self.folder,
                fabricheck=Path(sys.executable).with_name("fabricheck"),
                programs=ROOT / "build/host/bin",
                script=SCRIPTS / f"{name}.sh",
                name=name,
            )
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        (self.folder / "extra.conf").write_text(configuration.format(folder=self.folder))
        self.run(SCRIPTS / "slurm.sh", "start", self.folder, "4", "2")

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        command = [str(word) for word in words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=120, check=False)  # fmt: skip

    def codes(self, name: str) -> list[str]:
        file = self.folder / f"{name}.codes"
        return file.read_text().split() if file.exists() else []

    def state(self) -> str:
        return self.run("scontrol", "show", "node", "localhost").stdout

    def wait_for(self, words: str, seconds: float = 60) -> str:
        ends = time.monotonic() + seconds
        while words not in self.state() and time.monotonic() < ends:
            time.sleep(0.5)
        return self.state()


@pytest.fixture
def slurm(tmp_path):
    machine = Slurm(tmp_path)
    yield machine
    machine.run(SCRIPTS / "slurm.sh", "stop", tmp_path)


def test_the_prolog_keeps_jobs_from_a_node_with_a_fault(slurm):
    slurm.start("Prolog={folder}/prolog\nEpilog={folder}/prolog\n")
    assert slurm.run("srun", "--time=1", "true").returncode == 0
    slurm.wait_for("State=IDLE ")
    assert slurm.codes("prolog") == ["0", "0"], "before the job, and after it"
    slurm.node.count(3, "umc", 2)
    ended = slurm.run("srun", "--time=1", "true")
    assert ended.returncode != 0 and "prolog failed" in ended.stderr.lower()
    assert "DRAIN" in slurm.wait_for("DRAIN")


def test_the_health_check_drains_on_evidence_with_its_reason(slurm):
    slurm.start("HealthCheckProgram={folder}/health-check\nHealthCheckInterval=5\n")
    slurm.wait_for("nothing", seconds=8)
    assert set(slurm.codes("health-check")) == {"0"} and "DRAIN" not in slurm.state()
    slurm.node.count(3, "umc", 2)
    state = slurm.wait_for("DRAIN")
    assert "Reason=fabricheck HW-FAIL: Device 3 (0000:ce:00.0) had 2 new uncorrected" in state
