"""One job over many nodes, by `fabricheck every-node` on a real Slurm of five nodes.

node1 is healthy, node2 has a device whose memory is slow, on node3 a program hangs, node4 is lost
while it measures, and node5 was lost before, in the same job.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from real_slurm import (
    IN_TURN,
    PATIENCE_S,
    SLURM,
    make_cluster,
    slow_platform,
    started,
    tell,
    until,
    used,
)

from fabricheck.results import requested_nodes
from fabricheck.results.requested_nodes import RequestedNodes

pytestmark = IN_TURN

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
NODES = ("node1", "node2", "node3", "node4", "node5")
JOB = ("salloc", "--quiet", "--no-kill", "--exclusive", "--nodes=5", "--gpus-per-node=8")

#: A program that is another one on each node.
PROGRAM = """#!/bin/sh
case $SLURMD_NODENAME in
  node2) FABRICHECK_SIMULATED_NODE={slow} ;;
  node[34]) : > "{folder}/$SLURMD_NODENAME.started"; exec sleep 3600 ;;
esac
exec {program} "$@"
"""

#: The time limit of a session: none of them reaches it because the machine is slow.
MINUTES = 10

#: `fabricheck every-node`, for which that time passes at once when a file is there; and a session
#: that is stopped has the time to write its report on a slow machine, too.
EVERY_NODE = f"""
import sys, time
from pathlib import Path
from types import SimpleNamespace
from fabricheck.cli import app
from fabricheck.run.every_node import driver

late = Path(sys.argv.pop(1))

def monotonic():
    return time.monotonic() + {60 * MINUTES} * late.exists()

driver.time = SimpleNamespace(monotonic=monotonic, sleep=time.sleep)
driver.GRACE_S = {PATIENCE_S}
app()
"""

#: What the job does: it loses a node, and measures the others.
SCRIPT = """
"{slurm}" kill "{folder}" node5
scontrol update NodeName=node5 State=DOWN Reason='fan 3 is broken'
python {every_node} {late} every-node --stage --minutes {minutes} -- \\
  --system=cluster:allocation -n ^stream_local$
echo "status $?"
left() {{ squeue --noheader --steps --jobs=$SLURM_JOB_ID --format='left %j on %N'; }}
for _ in $(seq 500); do left | grep -q node3 || break; sleep 0.2; done
left
"""


@dataclass
class Ended:
    """What a job left: its output, its folder and file of nodes, and the verdict on each node."""

    suite: Any
    text: str
    folder: Path
    requested: RequestedNodes
    verdicts: dict[str, Any]


def script_of(folder: Path) -> str:
    (file,) = folder.glob("*/*/cluster/allocation/sim/stream_local/rfm_job.sh")
    return file.read_text()


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with (
        started(tmp_path_factory.mktemp("slurm"), nodes=5) as folder,
        pytest.MonkeyPatch.context() as patch,
        used(folder, patch),
    ):
        yield folder


@pytest.fixture(scope="module")
def ended(request, slurm, shared_suite):
    """Run the job, and lose a node meanwhile."""
    suite = shared_suite
    make_cluster(suite, "stream")
    # Its site beside the settings of the checkout: only those are staged.
    sites = suite.folder / "sites"
    sites.mkdir()
    for file in suite.config.glob("sites/cluster_site.*"):
        file.rename(sites / file.name)
    suite.variables["FABRICHECK_SITES"] = str(sites)
    suite.config = ROOT / "config"
    # The copy of the node that is lost stays.
    suite.variables["TMPDIR"] = str(suite.folder)
    program = suite.programs / "stream"
    program.write_text(
        PROGRAM.format(
            slow=slow_platform(suite.folder),
            folder=suite.folder,
            program=ROOT / "build" / "sim" / "bin" / "stream",
        )
    )
    suite.variables["FABRICHECK_SIM_PROGRAMS"] = str(suite.programs)
    every_node, late = suite.folder / "every_node.py", suite.folder / "late"
    every_node.write_text(EVERY_NODE)
    script = SCRIPT.format(
        slurm=SLURM, folder=slurm, every_node=every_node, late=late, minutes=MINUTES
    )
    said = suite.folder / "said.txt"
    with said.open("w") as file:
        run = subprocess.Popen(
            [*JOB, f"--time={3 * MINUTES}", "bash", "-c", f'PATH="{BIN}:$PATH"\n{script}'],
            env=suite.environment(),
            cwd=suite.folder,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    request.addfinalizer(run.terminate)
    for node in ("node3", "node4"):
        until((suite.folder / f"{node}.started").exists, f"the program runs on {node}")
    tell(SLURM, "kill", slurm, "node4")
    # As Slurm does by itself some minutes later (SlurmdTimeout).
    tell("scontrol", "update", "NodeName=node4", "State=DOWN", "Reason=it does not answer")
    until(lambda: "(3 of 4)" in said.read_text(), "all sessions but the one on node3 have ended")
    late.touch()
    run.wait()
    text = said.read_text()
    (folder,) = (suite.results / "every-node").iterdir()
    total = json.loads((folder / "verdicts" / "verdict.json").read_text())
    return Ended(
        suite,
        text,
        folder,
        requested_nodes.read(folder / requested_nodes.NAME),
        {row["node"]: row for row in total["nodes"]},
    )


def test_every_node_has_the_right_verdict(ended):
    assert {node: row["status"] for node, row in ended.verdicts.items()} == {
        "node1": "INCOMPLETE",  # a check by its name accepts no node
        "node2": "PERF-FAIL",
        "node3": "INCOMPLETE",
        "node4": "INCOMPLETE",
        "node5": "INCOMPLETE",
    }, ended.text
    assert "\nstatus 12\n" in ended.text
    assert "Verdict on " in ended.text


def test_the_file_says_how_each_node_ended(ended, wording):
    nodes = ended.requested.nodes
    assert tuple(nodes) == NODES
    assert ended.requested.job == ended.folder.name
    assert [one.status for one in nodes.values()] == [0, 1, None, None, None]
    ended_otherwise = [one.how_ended for one in nodes.values() if one.how_ended]
    # Slurm may add to a state that the node does not respond.
    wording(re.sub(r"DOWN\S*", "DOWN", one) for one in ended_otherwise)
    assert not (ended.folder / "node5").exists()


def test_each_node_measured_itself(ended):
    for node in ("node1", "node2"):
        assert f"srun --nodes=1 --ntasks=1 --nodelist={node} " in script_of(ended.folder / node)
        (file,) = ended.folder.glob(f"{node}/*/*/cluster/*/*/stream_local/result.json")
        assert json.loads(file.read_text())["host"]["scheduler_node"] == node
    reasons = ended.verdicts["node2"]["reasons"]
    assert any("device 3 of node " in reason["sentence"] for reason in reasons)


def test_each_session_ran_from_a_copy_which_is_gone(ended):
    for node in ("node1", "node2", "node3"):
        log = (ended.folder / node / "session.log").read_text()
        copy = re.search(r"settings files: .*'(.*/fabricheck-\d+\.[^/]+)/checkout/config/", log)[1]
        assert not Path(copy).exists()
    # The commands of a check are those of the checkout.
    assert "/fabricheck-" not in script_of(ended.folder / "node1")
    assert not (ended.folder / "staged.tar.gz").exists()


def test_a_session_that_was_stopped_ends_in_order_and_leaves_no_step(ended):
    (file,) = ended.folder.glob("node3/reports/run-*.json")
    (case,) = json.loads(file.read_text())["runs"][0]["testcases"]
    assert case["result"] == "abort"
    # Of the node that is gone nobody can tell.
    assert not re.findall(r"^left .* on node[123]$", ended.text, re.MULTILINE)


def test_the_folder_of_a_node_is_a_results_folder(ended):
    listed = subprocess.run(
        [BIN / "fabricheck", "results", "list"],
        env=ended.suite.environment() | {"FABRICHECK_RESULTS": str(ended.folder / "node2")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.returncode == 0, listed.stderr
    assert re.search(r"run-0 .*cluster:allocation +node2 +1 +0 +1 ", listed.stdout)
