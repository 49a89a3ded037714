"""A real Slurm of one node or several on this machine, and its commands.

It is started by ci/slurm/slurm.sh and needs no root. Every wait is for a state, with a limit that
only a broken Slurm reaches.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fabricheck.node import load, node_directory
from fabricheck.node.system import platform_json

ROOT = Path(__file__).resolve().parents[2]
SLURM = ROOT / "ci" / "slurm" / "slurm.sh"
SITE = ROOT / "tests" / "rfm" / "cluster_site.py"

#: Seconds until a state that is waited for has failed to come.
PATIENCE_S = 100

#: Marks the tests of a Slurm of several nodes, which wait for their turn (see `started`).
IN_TURN = [pytest.mark.full, pytest.mark.timeout(900)]


def tell(*command: str | Path) -> str:
    """Call one of Slurm's commands and return what it says."""
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    ).stdout.strip()


def until(state: Callable[[], object], what: str) -> None:
    """Wait until a function returns something true."""
    ends = time.monotonic() + PATIENCE_S
    while not state():
        assert time.monotonic() < ends, f"{what}: not within {PATIENCE_S} s"
        time.sleep(0.1)


def record(job: str) -> dict[str, str]:
    """Return what Slurm knows of a job."""
    return dict(re.findall(r"(\w+)=(\S*)", tell("scontrol", "show", "job", "--oneliner", job)))


@contextlib.contextmanager
def started(folder: Path, nodes: int = 1, cores: int = 64, devices: int = 8) -> Iterator[Path]:
    """Start a Slurm in a folder and stop it: of one node (localhost), or of node1, node2 and so on.

    Those of several nodes run in turn: their nodes have the same names on the same machine, so a
    session on one would wait for the lock of a node that a session on another holds.

    :param folder: no longer than the address of a socket may be.
    """
    command = [str(part) for part in (SLURM, "start", folder, cores, devices, nodes)]
    with contextlib.ExitStack() as stack:
        if nodes > 1:
            turn = Path(tempfile.gettempdir()) / f"fabricheck-test-slurm-{os.getuid()}.lock"
            fcntl.flock(stack.enter_context(turn.open("a")), fcntl.LOCK_EX)
        start = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert start.returncode == 0, start.stderr
        stack.callback(subprocess.run, [SLURM, "stop", folder], timeout=300, check=True)
        yield folder


@contextlib.contextmanager
def used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let commands find that Slurm and no other, and leave it with an empty queue."""
    for name in [name for name in os.environ if name.startswith(("SLURM_", "SBATCH_", "SALLOC_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    yield
    for job in tell("squeue", "--noheader", "--format=%i").split():
        subprocess.run(["scancel", "--full", job], timeout=PATIENCE_S, check=False)
    until(lambda: not tell("squeue", "--noheader", "--format=%i"), "the queue is empty")


def make_cluster(suite: Any, *topics: str) -> None:
    """Let a suite measure a cluster whose programs are those of the simulated node.

    :param topics: the folders of checks.
    """
    suite.topics = topics
    suite.own_site(SITE)
    suite.variables["RFM_REFERENCE_PREFIX"] = str(ROOT / "reference_values")
    suite.variables["FABRICHECK_SIM_PROGRAMS"] = str(ROOT / "build" / "sim" / "bin")
    suite.variables["FABRICHECK_HOST_PROGRAMS"] = str(ROOT / "build" / "host" / "bin")


def slow_platform(folder: Path) -> Path:
    """Return a simulated node whose device 3 has slow memory where its model says that it has not.

    :param folder: where its file is written.
    """
    healthy = json.loads(platform_json(load("mi250x")))
    overlay = node_directory() / "overlays" / "device-3-memory-slow.yaml"
    slow = json.loads(platform_json(load("mi250x", str(overlay))))
    file = folder / "slow.json"
    file.write_text(json.dumps({**slow, "node": healthy["node"]}))
    return file


class Competitor:
    """A job that wants one core of the node, and ends at once when it gets it."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.job = tell("sbatch", "--parsable", f"--chdir={folder}", *options, "--wrap=true")

    def is_kept_waiting(self) -> bool:
        """Return whether it waits for the node, and not for the scheduler's next look."""
        known = record(self.job)
        assert known["JobState"] == "PENDING", known
        return known["Reason"] in ("Resources", "Priority")

    def started_after(self, job: str) -> bool:
        """Return whether it had to wait for the end of another job."""
        until(lambda: record(self.job)["JobState"] == "COMPLETED", "the competitor ends")
        # Times of one form, in s: they compare as text.
        return record(self.job)["StartTime"] >= record(job)["EndTime"]
