"""Checks of two nodes on a real Slurm of two nodes, which are this machine, over its loopback.

Measured, but of no network: ranks on one machine send over the kernel's loopback.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from real_slurm import IN_TURN, make_cluster, started, tell, until, used
from text_edit import edit

import factories
from fabricheck.results import requested_nodes
from fabricheck.results.reading import read

pytestmark = IN_TURN

ROOT = Path(__file__).resolve().parents[2]
OUTPUTS = ROOT / "tests" / "outputs"
BIN = Path(sys.executable).parent
ALLOCATION = ("salloc", "--quiet", "--exclusive", "--time=10")
BOTH = (*ALLOCATION, "--nodes=2")
CHOSEN = ("-n", "^mpi_nodes$")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with started(tmp_path_factory.mktemp("slurm"), nodes=2, cores=4) as folder:
        yield folder


@pytest.fixture
def cluster(slurm, suite, monkeypatch):
    """The suite on a cluster of two nodes, which it leaves with an empty queue."""
    with used(slurm, monkeypatch):
        make_cluster(suite, "network")
        yield suite


def script(suite) -> str:
    (file,) = suite.results.glob("output/*/cluster/*/loopback/mpi_nodes/rfm_job.sh")
    return file.read_text()


def verdict(suite) -> tuple[int, str, dict]:
    """Return the exit status, the text and the document of the verdict on the session."""
    done = subprocess.run(
        [BIN / "fabricheck", "verdict"],
        env=suite.environment(),
        cwd=suite.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    total = suite.results / "verdicts" / "run-0" / "verdict.json"
    return done.returncode, done.stdout, json.loads(total.read_text())


def test_one_step_over_both_nodes_of_an_allocation(cluster):
    run = cluster.start("--system=cluster:nodes-allocation", "-r", *CHOSEN, inside=BOTH)
    outcome = cluster.ended(run)
    assert outcome.status == 0, outcome
    assert "\nsrun --nodes=2 --ntasks=2 --ntasks-per-node=1 " in script(cluster)
    (entry,) = read([str(cluster.results)]).entries
    ranks = entry.document["ranks"]
    assert [one["host"] for one in ranks] == ["node1", "node2"]
    assert {one["network"]["nics"][0]["name"] for one in ranks} == {"lo"}
    assert entry.node == "node[1-2]"
    _, _, total = verdict(cluster)
    assert total["nodes"] == []
    assert [row["node"] for row in total["networks"]] == ["node[1-2]"]


def test_a_job_of_two_nodes_from_a_login_node(cluster):
    outcome = cluster("--system=cluster:nodes", "-r", *CHOSEN)
    assert outcome.status == 0, outcome
    for option in ("--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--exclusive"):
        assert f"#SBATCH {option}\n" in script(cluster)
    (case,) = cluster.report()["runs"][0]["testcases"]
    assert sorted(case["job_nodelist"]) == ["node1", "node2"]


def test_an_allocation_of_one_node_skips_it_with_a_sentence(cluster, wording):
    inside = (*ALLOCATION, "--nodes=1")
    run = cluster.start("--system=cluster:nodes-allocation", "-r", *CHOSEN, inside=inside)
    outcome = cluster.ended(run)
    assert outcome.status == 1
    wording(outcome.reasons)


def test_messages_that_do_not_leave_a_node_are_a_setting_and_judge_no_rate(cluster):
    # libfabric sends through shared memory if told to, as both nodes are this machine.
    edit(cluster.config / "sites" / "cluster_site.py", '["FI_PROVIDER", "tcp"]',
         '["FI_PROVIDER", "shm"]')  # fmt: skip
    run = cluster.start("--system=cluster:nodes-allocation", "-r", *CHOSEN, inside=BOTH)
    outcome = cluster.ended(run)
    assert outcome.status == 1
    assert "Messages of rank 0 of node node1 did not leave it" in outcome
    (case,) = cluster.report()["runs"][0]["testcases"]
    assert case["fail_info"]["exc_type"] == "SettingError"
    status, text, total = verdict(cluster)
    (row,) = total["networks"]
    assert (status, row["node"], row["status"]) == (13, "node[1-2]", "INCOMPLETE")
    assert {one["rule"] for one in row["reasons"]} == {"setting"}
    assert "scontrol update" not in text


#: Measures the nodes and their network, and the network again.
JOB = """
for what in --network --network-only; do
  fabricheck every-node $what --minutes 3 -- -c "{checks}" --system=cluster:nodes-allocation \
    -n ^mpi_data$
done
"""


def test_every_node_measures_the_network_after_the_nodes_and_alone(cluster):
    done = subprocess.run(
        [*BOTH, "bash", "-c", f'PATH="{BIN}:$PATH"\n{JOB.format(checks=ROOT / "reframe_checks")}'],
        env=cluster.environment(),
        cwd=cluster.folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "The network of node[1-2]: one session over all of them\n" in done.stdout, done
    folder, again = sorted((cluster.results / "every-node").iterdir())
    requested = requested_nodes.read(folder / requested_nodes.NAME)
    print(done.stdout, (folder / "network" / "session.log").read_text())
    assert (requested.network.results, requested.network.status) == ("network", 0)
    total = json.loads((folder / "verdicts" / "verdict.json").read_text())
    rows = {row["node"]: row for row in (*total["nodes"], *total["networks"])}
    assert rows.keys() == {"node1", "node2", "node[1-2]"}
    # Checks by name accept no node; the network had its whole set.
    assert {name: row["status"] for name, row in rows.items()} == {
        "node1": "INCOMPLETE",
        "node2": "INCOMPLETE",
        "node[1-2]": "PASS",
    }
    assert rows["node[1-2]"]["set"] == "network"
    report = json.loads(next(folder.glob("network/reports/run-*.json")).read_text())
    cases = {case["name"]: case["job_nodelist"] for case in report["runs"][0]["testcases"]}
    assert cases == {name: ["node1", "node2"] for name in ("mpi_nodes", "fabric_pairs")}
    total = json.loads((again / "verdicts" / "verdict.json").read_text())
    assert total["nodes"] == []
    assert [row["status"] for row in total["networks"]] == ["PASS"]


#: Prints or writes a file by the first process of a step, as a program on all nodes does. What its
#: library says there is in a file of each process instead.
PRINTS = """log=${{NCCL_DEBUG_FILE/\\%h/$SLURMD_NODENAME}}
grep "^$SLURMD_NODENAME:.* NCCL " {file} > "${{log/\\%p/$$}}"
[ "$SLURM_PROCID" -gt 0 ] || grep -v "^node.:.* NCCL " {file}"""
WRITES = '[ "$SLURM_PROCID" -gt 0 ] || cp {file} "${{@: -1}}"'


@pytest.fixture
def recorded(cluster, tmp_path):
    """The cluster with nodes of one GPU, of which it has recorded outputs of NCCL's tests."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    devices = [
        factories.device(index, arch="sm_90", pci_address="0000:00:06.0") for index in (0, 1)
    ]
    program = factories.document()["program"] | {"runtime": "cuda"}
    facts = factories.document(devices=devices, program=program)
    told = {"affinity": WRITES.format(file=factories.write(folder / "facts.json", facts))}
    for name in ("all_reduce_perf", "sendrecv_perf"):
        told[name] = PRINTS.format(file=OUTPUTS / "nccl-tests-two-nodes" / f"{name}.txt")
    for name, text in told.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    cluster.variables["FABRICHECK_RECORDED"] = str(folder)
    return cluster


def test_nccl_between_two_nodes(recorded):
    outcome = recorded("--system=cluster:recorded", "-r", "-n", "^rccl_nodes$")
    assert outcome.status == 0, outcome
    found = dict(re.findall(r"P: (\w+): ([0-9.]+) GB/s", outcome.text))
    assert found == {"allreduce_bus": "1.8600", "sendrecv_bus": "1.2200"}
    (plan,) = recorded.results.glob("output/*/cluster/recorded/recorded/rccl_nodes/plan.json")
    one, other = json.loads(plan.read_text())["launches"]
    logs = {file.name: file.read_text() for file in plan.parent.glob("*.nccl")}
    assert logs.keys() == {"all_reduce-2nodes.nccl", "sendrecv-2nodes.nccl"}
    assert {re.match(r"\w+", line)[0] for line in logs["sendrecv-2nodes.nccl"].splitlines()} == {
        "node1",
        "node2",
    }
    assert one["command"].startswith("srun --nodes=2 --ntasks=2 --ntasks-per-node=1 ")
    assert " NCCL_DEBUG=INFO " in other["command"]
    assert other["command"].endswith(
        f"{recorded.variables['FABRICHECK_RECORDED']}/sendrecv_perf "
        "-b 8388608 -e 1073741824 -f 2 -g 1 -n 50 -w 5 -c 1"
    )


def test_nccl_on_another_network_is_a_setting(recorded, wording):
    edit(recorded.config / "sites" / "cluster_site.py", '"rccl_version": "2.28",',
         '"rccl_network": "AWS Libfabric",')  # fmt: skip
    outcome = recorded("--system=cluster:recorded", "-r", "-n", "^rccl_nodes$")
    assert outcome.status == 1
    wording(outcome.reasons)
    _, _, total = verdict(recorded)
    (row,) = total["networks"]
    assert (row["status"], {one["rule"] for one in row["reasons"]}) == ("INCOMPLETE", {"setting"})


def test_tests_without_mpi_say_so_and_accuse_no_node(recorded):
    """Each rank runs one of its own, on the first device of its node."""
    for name in ("all_reduce_perf", "sendrecv_perf"):
        file = OUTPUTS / "nccl-tests-two-nodes" / f"{name}.txt"
        program = Path(recorded.variables["FABRICHECK_RECORDED"], name)
        program.write_text(f"#!/bin/bash\ncat {file}\n")
    outcome = recorded("--system=cluster:recorded", "-r", "-n", "^rccl_nodes$")
    assert outcome.status == 1
    said = "each of the 2 ranks ran a test of its own: nccl-tests is built without MPI, or with"
    assert said in outcome
    _, _, total = verdict(recorded)
    (row,) = total["networks"]
    assert (row["status"], {one["rule"] for one in row["reasons"]}) == ("INCOMPLETE", {"tool"})
    assert total["nodes"] == []


def test_checks_of_the_network_run_one_at_a_time(cluster):
    """Of two repetitions the second job is submitted when the first has ended."""
    edit(
        cluster.config / "sites" / "cluster_site.py",
        '"name": "nodes",',
        '"name": "nodes",\n"max_jobs": 4,',
    )
    run = cluster.start("--system=cluster:nodes", "-r", *CHOSEN, "--repeat=2")
    most = 0

    def ended() -> bool:
        nonlocal most
        jobs = tell("squeue", "--noheader", "--format=%i").split()
        most = max(most, len(jobs))
        return run.poll() is not None

    until(ended, "the session ends")
    outcome = cluster.ended(run)
    assert outcome.status == 0, outcome
    assert most == 1
    assert re.search(r"Ran 2/2 test case", outcome.text)
