"""One session of every node by --distribute, through a real Slurm of five nodes.

node1 is healthy; node2 is in use when it begins, and has a device whose memory is slow; on node3 a
program hangs; node4 is lost while it measures, and node5 was down before.
"""

from __future__ import annotations

import contextlib
import json
import os
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
    Competitor,
    make_cluster,
    slow_platform,
    started,
    tell,
    until,
    used,
)

from fabricheck.results import requested_nodes

pytestmark = IN_TURN

ROOT = Path(__file__).resolve().parents[2]
FABRICHECK = Path(sys.executable).with_name("fabricheck")
NODES = ("node1", "node2", "node3", "node4", "node5")

#: In the order in which they run: that of their files, in p2p, stream and topology.
CHECKS = ("p2p_kernel", "stream_local", "node_topology")

#: A program that is another one on each node.
PROGRAM = """#!/bin/sh
case $SLURMD_NODENAME.$(basename "$0") in
  node2.stream) FABRICHECK_SIMULATED_NODE={faulty} ;;
  node3.p2p | node4.stream) : > "{folder}/$SLURMD_NODENAME.started"; exec sleep 3600 ;;
esac
exec {programs}/$(basename "$0") "$@"
"""


@dataclass
class Ended:
    """What a session left: its output, its cases by node and check, and what was seen meanwhile."""

    suite: Any
    outcome: Any
    cases: dict[tuple[str, str], dict[str, Any]]
    requested: requested_nodes.RequestedNodes
    job_of_node3: str
    competitor: Competitor

    def result(self, node: str, check: str) -> str:
        return self.cases[node, check]["result"]

    def reason(self, node: str, check: str) -> str:
        return self.cases[node, check]["fail_reason"]


def make_faulty(suite) -> None:
    """Let the second node be slow where its model says that it is not."""
    faulty = slow_platform(suite.folder)
    (suite.programs / "inventory").symlink_to(ROOT / "build" / "sim" / "bin" / "inventory")
    for name in ("p2p", "stream"):
        program = suite.programs / name
        program.write_text(
            PROGRAM.format(
                faulty=faulty, folder=suite.folder, programs=ROOT / "build" / "sim" / "bin"
            )
        )
        program.chmod(0o755)
    suite.variables["FABRICHECK_SIM_PROGRAMS"] = str(suite.programs)


def queued() -> dict[str, list[str]]:
    """Return the jobs of a session that are in the queue, by the node that each asks for."""
    found: dict[str, list[str]] = {}
    for line in tell("squeue", "--noheader", "--format=%i %n %j").splitlines():
        job, node, name = line.split()
        if name.startswith("rfm_"):
            found.setdefault(node, []).append(job)
    return found


def processes_on(node: str, slurm: Path) -> list[str]:
    """Return the processes that a node's jobs started."""
    wanted = {f"SLURMD_NODENAME={node}", f"SLURM_CONF={slurm}/slurm.conf"}
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if wanted <= set(file.read_bytes().decode(errors="replace").split("\0")):
                found.append(file.parent.name)
    return found


def cases_of(suite) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (re.search(r"%\.nid=(\w+)", one["display_name"])[1], one["name"]): one
        for one in suite.report()["runs"][0]["testcases"]
    }


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """Start a Slurm whose last node is down."""
    with started(tmp_path_factory.mktemp("slurm"), nodes=5) as folder:
        tell(SLURM, "kill", folder, "node5")
        with pytest.MonkeyPatch.context() as patch, used(folder, patch):
            tell("scontrol", "update", "NodeName=node5", "State=DOWN", "Reason=fan 3 is broken")
            yield folder


@pytest.fixture(scope="module")
def ended(request, slurm, shared_suite):
    """Run the session, and lose a node meanwhile."""
    suite = shared_suite
    make_cluster(suite, "topology", "p2p", "stream")
    make_faulty(suite)
    # Somebody has the node, and somebody else waits for it: Slurm then calls it not available.
    free = suite.folder / "node2.free"
    for does in (f"while [ ! -e {free} ]; do sleep 0.1; done", "true"):
        tell("sbatch", "-w", "node2", "--exclusive", f"-D{suite.folder}", f"--wrap={does}")
    until(lambda: "node2" in tell("squeue", "--noheader", "--format=%N"), "the node is in use")
    chosen = [part for check in CHECKS for part in ("-n", f"^{check}$")]
    run = suite.start("--system=cluster:queue", "-r", *chosen, "--distribute=all")
    request.addfinalizer(run.kill)
    for node in ("node3", "node4"):
        until((suite.folder / f"{node}.started").exists, f"the program runs on {node}")
    assert processes_on("node4", slurm)
    tell(SLURM, "kill", slurm, "node4")
    assert not processes_on("node4", slurm)
    assert processes_on("node3", slurm)
    # The limit is whole minutes: it is moved here, and Slurm looks at it twice a minute.
    ((hanging,), (lost,)) = (queued()[node] for node in ("node3", "node4"))
    tell("scontrol", "update", f"JobId={hanging}", "EndTime=now")
    competitor = Competitor(suite.folder, "--nodelist=node3")
    until(competitor.is_kept_waiting, "the scheduler has looked at the competitor")
    last = f"output/*/cluster/queue/sim/{CHECKS[-1]}_*"
    until(lambda: list(suite.results.glob(last)), "the last check has passed on another node")
    held = {node: jobs for node, jobs in queued().items() if node in ("node3", "node4")}
    assert held == {"node3": [hanging], "node4": [lost]}
    (waiting,) = queued()["node2"]
    assert tell("squeue", "--noheader", "--format=%r", f"--jobs={waiting}").startswith("ReqNode")
    free.touch()
    outcome = suite.ended(run)
    (file,) = suite.results.glob(f"output/*/{requested_nodes.NAME}")
    return Ended(suite, outcome, cases_of(suite), requested_nodes.read(file), hanging, competitor)


def test_the_session_ends_with_every_case_of_every_node(ended):
    assert ended.outcome.status == 1
    assert ended.cases.keys() == {(node, check) for node in NODES for check in CHECKS}
    assert "5 nodes of cluster:queue, each with one exclusive job at a time" in ended.outcome


def test_the_other_nodes_are_measured_whole(ended):
    assert {ended.result("node1", check) for check in CHECKS} == {"pass"}
    assert [ended.result("node2", check) for check in CHECKS] == ["pass", "fail", "pass"]
    # After the program that hung.
    assert [ended.result("node3", check) for check in CHECKS] == ["fail", "pass", "pass"]
    assert [ended.result("node4", check) for check in CHECKS] == ["pass", "fail", "fail"]
    assert {ended.result("node5", check) for check in CHECKS} == {"fail"}
    measured = [key for key, case in ended.cases.items() if case["result"] == "pass"]
    assert [ended.cases[key]["job_nodelist"] for key in measured] == [
        [node] for node, _ in measured
    ]


def test_reasons_name_the_node_and_what_happened(ended, wording):
    assert "device 3 of node mi250x (simulated) measured" in ended.reason("node2", "stream_local")
    wording([ended.reason("node3", "p2p_kernel"), ended.reason("node4", "stream_local")])
    # A node that is gone is not waited for.
    gone = (
        "DOWN+NOT_RESPONDING (Not responding): the job would have waited for it and was cancelled"
    )
    assert f"node node4 is {gone}" in ended.reason("node4", "node_topology")
    for check in CHECKS:
        said = (
            r"node node5 is DOWN\S* \(fan 3 is broken\): the job would have waited for it and was "
            "cancelled"
        )
        assert re.search(said, ended.reason("node5", check))


def test_the_file_names_every_node_with_its_state_at_the_start(ended):
    requested = ended.requested
    assert (requested.partition, requested.job) == ("cluster:queue", None)
    assert requested.chosen[:2] == ("-n", f"^{CHECKS[0]}$")
    assert tuple(requested.nodes) == NODES
    assert [requested.nodes[node].state for node in NODES[:4]] == [
        "IDLE",
        "ALLOCATED",
        "IDLE",
        "IDLE",
    ]
    assert requested.nodes["node5"].state.startswith("DOWN")
    assert requested.nodes["node5"].because == "fan 3 is broken"


def test_a_node_that_hangs_holds_up_no_other(ended):
    ends = {
        node: max(ended.cases[node, check]["job_completion_time_unix"] for check in CHECKS)
        for node in NODES[:3]
    }
    assert max(ends["node1"], ends["node2"]) < ends["node3"]


def test_a_job_has_its_node_alone(ended):
    assert ended.competitor.started_after(ended.job_of_node3)
    scripts = list(ended.suite.results.glob("output/*/cluster/queue/sim/*/rfm_job.sh"))
    assert len(scripts) == 8
    for script in scripts:
        lines = set(script.read_text().splitlines())
        assert {"#SBATCH --exclusive", "#SBATCH --no-requeue"} <= lines


def test_the_verdict_on_each_node_is_the_right_one(ended):
    told = subprocess.run(
        [FABRICHECK, "verdict", "--json"],
        env={**os.environ, "FABRICHECK_RESULTS": str(ended.suite.results)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert told.returncode == 12, told.stderr
    nodes = {one["node"]: one for one in json.loads(told.stdout)["nodes"]}
    assert {name: one["status"] for name, one in nodes.items()} == {
        "node1": "INCOMPLETE",
        "node2": "PERF-FAIL",
        "node3": "INCOMPLETE",
        "node4": "INCOMPLETE",
        "node5": "INCOMPLETE",
    }
    why = {name: [reason["sentence"] for reason in one["reasons"]] for name, one in nodes.items()}
    # Nothing else speaks against it; checks by name accept no node.
    (sentence,) = why["node1"]
    assert " left out " in sentence
    # What explains the misses comes before them.
    assert "device 3 of node mi250x (simulated) measured" in why["node2"][1]
    for node, said in (
        ("node2", "HBM of device 3 is down by 7.9 %: it explains all 5 missed limits."),
        ("node3", "its job reached its time limit"),
        ("node4", "its node failed"),
        ("node5", "node node5 is DOWN"),
    ):
        assert said in why[node][0]


@pytest.mark.parametrize(
    ("node", "status", "sentence"),
    [
        ("node5", 4, "slurm.sh: the daemon of node5 does not run (log: {slurm}/slurmd.node5.log)"),
        (
            "node6",
            2,
            "slurm.sh: 'node6' is not a node of the Slurm in {slurm}: those are {nodes}; ",
        ),
    ],
)
def test_a_node_that_can_not_be_killed_is_a_sentence(slurm, node, status, sentence):
    told = subprocess.run([SLURM, "kill", slurm, node], capture_output=True, text=True, check=False)
    assert told.returncode == status
    assert told.stderr.startswith(sentence.format(slurm=slurm, nodes=" ".join(NODES)))
