"""One session of every node by --distribute, through a real Slurm of five nodes.

node1 is healthy, node2 has a device whose memory is slow, on node3 a program hangs, node4 is lost
while it measures, and node5 was down before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from real_slurm import (
    SLURM,
    Competitor,
    make_cluster,
    slow_platform,
    started,
    tell,
    until,
    used,
)

from fabricheck import nodes_asked

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
NODES = ("node1", "node2", "node3", "node4", "node5")

#: In the order in which they run: their names.
CHECKS = ("node_topology", "p2p_kernel", "stream_local")

#: A program that is another one on each node.
PROGRAM = """#!/bin/sh
case $SLURMD_NODENAME.$(basename "$0") in
  node2.stream) FABRICHECK_NODE={faulty} ;;
  node[34].p2p) : > "{folder}/$SLURMD_NODENAME.started"; exec sleep 3600 ;;
esac
exec {programs}/$(basename "$0") "$@"
"""


@dataclass
class Ended:
    """What a session left: its output, its cases by node and check, and what was seen meanwhile."""

    suite: Any
    outcome: Any
    cases: dict[tuple[str, str], dict[str, Any]]
    asked: nodes_asked.AskedNodes
    held: list[str]
    job_of_node3: str
    competitor: Competitor

    def result(self, node: str, check: str) -> str:
        return self.cases[node, check]["result"]

    def reason(self, node: str, check: str) -> str:
        return self.cases[node, check]["fail_reason"]


def make_faulty(suite) -> None:
    """Let the second node be slow where its model says that it is not."""
    faulty = slow_platform(suite.folder)
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
def ended(slurm, shared_suite):
    """Run the session, and lose a node meanwhile."""
    suite = shared_suite
    make_cluster(suite)
    make_faulty(suite)
    chosen = [part for check in CHECKS for part in ("-n", f"^{check}$")]
    run = suite.start("--system=cluster:queue", "-r", *chosen, "--distribute=all")
    for node in ("node3", "node4"):
        until((suite.folder / f"{node}.started").exists, f"the program runs on {node}")
    tell(SLURM, "kill", slurm, "node4")
    # The limit is whole minutes: it is moved here, and Slurm looks at it twice a minute.
    ((hanging,), (lost,)) = (queued()[node] for node in ("node3", "node4"))
    tell("scontrol", "update", f"JobId={hanging}", "EndTime=now")
    competitor = Competitor(suite.folder, "--nodelist=node3")
    until(competitor.is_kept_waiting, "the scheduler has looked at the competitor")
    until(lambda: queued().keys() <= {"node3", "node4"}, "the other nodes are done")
    held = [job for jobs in queued().values() for job in jobs]
    assert set(held) <= {hanging, lost}
    outcome = suite.ended(run)
    (file,) = suite.results.glob(f"output/*/{nodes_asked.NAME}")
    return Ended(suite, outcome, cases_of(suite), nodes_asked.read(file), held, hanging, competitor)


def test_the_session_ends_with_every_case_of_every_node(ended):
    assert ended.outcome.status == 1
    assert ended.cases.keys() == {(node, check) for node in NODES for check in CHECKS}
    assert "5 nodes of cluster:queue, each alone and with one job at a time" in ended.outcome


def test_the_other_nodes_are_measured_whole(ended):
    assert {ended.result("node1", check) for check in CHECKS} == {"pass"}
    assert [ended.result("node2", check) for check in CHECKS] == ["pass", "pass", "fail"]
    # After the program that hung.
    assert [ended.result("node3", check) for check in CHECKS] == ["pass", "fail", "pass"]
    assert [ended.result("node4", check) for check in CHECKS] == ["pass", "fail", "fail"]
    assert {ended.result("node5", check) for check in CHECKS} == {"fail"}
    measured = [key for key, case in ended.cases.items() if case["result"] == "pass"]
    assert [ended.cases[key]["job_nodelist"] for key in measured] == [
        [node] for node, _ in measured
    ]


def test_reasons_name_the_node_and_what_happened(ended):
    assert "device 3 of node mi250x (simulated) measured" in ended.reason("node2", "stream_local")
    assert (
        "p2p on node node3 was ended from outside: its job reached its time limit."
        in ended.reason("node3", "p2p_kernel")
    )
    assert "p2p on node node4 was ended from outside: its node failed." in ended.reason(
        "node4", "p2p_kernel"
    )
    # The node is gone: Slurm does not start the next one, and it is not waited for.
    for node, check in [("node4", "stream_local"), *(("node5", check) for check in CHECKS)]:
        assert f"ReqNodeNotAvail, UnavailableNodes:{node}" in ended.reason(node, check)


def test_the_file_names_every_node_with_its_state_at_the_start(ended):
    asked = ended.asked
    assert (asked.partition, asked.job) == ("cluster:queue", None)
    assert asked.chosen[:2] == ("-n", f"^{CHECKS[0]}$")
    assert tuple(asked.nodes) == NODES
    assert {asked.nodes[node].state for node in NODES[:4]} == {"IDLE"}
    assert asked.nodes["node5"].state.startswith("DOWN")
    assert asked.nodes["node5"].because == "fan 3 is broken"


def test_a_node_that_hangs_or_dies_has_one_job_and_holds_up_no_other(ended):
    assert len(ended.held) == 2
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
