"""A job whose network cannot be measured, from the command to verdict, fleet and page.

Slurm's commands and ReFrame are stand-ins: the nodes are simulated, and each session leaves a
recorded result, but that of the network finds nothing to run.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import factories
from fabricheck.judge.verdict.judging import judge
from fabricheck.report import contents, nodes, page
from fabricheck.results import reading
from fabricheck.run.every_node import driver
from fabricheck.schedulers import slurm
from fabricheck.schedulers.row import Node
from session_builder import SessionBuilder, good_case

NODES = ("node1", "node2", "node3")
NOTHING = "Nothing to run: no test case was selected; system local has 7"
SAID = (
    "The session of the network ended without a run report: "
    f"reframe: run session stopped: {NOTHING}."
)

#: The session of a node copies what it measured; that of the network leaves its log alone.
REFRAME = """#!/bin/sh
case $FABRICHECK_RESULTS in
  */network) echo "reframe: run session stopped: {nothing}"; exit 1 ;;
esac
echo "[==========] Running 1 check(s)"
cp -r {sessions}/"${{FABRICHECK_RESULTS##*/}}"/. "$FABRICHECK_RESULTS"
"""

SRUN = """#!/bin/sh
while case $1 in -*) ;; *) false ;; esac; do shift; done
exec "$@"
"""


@pytest.fixture
def job(command, tmp_path, monkeypatch):
    """The command in an allocation of nodes; returns what it printed and its exit code."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for node in NODES:
        document = factories.simulated_document()
        document["host"] |= {"hostname": node, "scheduler_node": node}
        case = good_case(node=node) | {"system": "local", "partition": "sim"}
        SessionBuilder(tmp_path / "sessions" / node).add(case, document).write()
    scripts = {
        "reframe": REFRAME.format(nothing=NOTHING, sessions=shlex.quote(f"{tmp_path}/sessions")),
        "srun": SRUN,
        "squeue": "#!/bin/sh\n",
    }
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    state = Node(state="ALLOCATED")
    record = {"NodeList": "node[1-3]", "OverSubscribe": "NO", "EndTime": "Unknown"}
    monkeypatch.setattr(slurm, "record", lambda _: record)
    monkeypatch.setattr(slurm, "query_nodes", lambda _: dict.fromkeys(NODES, state))
    monkeypatch.setattr(driver, "_LOOK_S", 0.02)
    variables = {
        "PATH": f"{folder}:/usr/bin:/bin",
        "RFM_CONFIG_FILES": "/a/settings.py",
        "FABRICHECK_RESULTS": str(tmp_path / "results"),
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "node[1-3]",
        "SLURM_STEP_NUM_TASKS": "1",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    def every_node(*options):
        done = command("every-node", "--minutes", "1", *options, code=None)
        return done.words, done.exit_code

    return every_node


def total(folder: Path):
    return json.loads((folder / "verdicts" / "verdict.json").read_text())


def test_the_nodes_keep_their_pass_and_the_network_is_named_with_its_reason(job, tmp_path, wording):
    text, code = job("--network")
    assert code == 13
    assert f"{SAID} Verdict on 7: 3 PASS, network of node[1-3] INCOMPLETE" in text
    assert "PASS, simulated (3): node[1-3]" in text
    again = "Run again: the network of node[1-3], by fabricheck every-node --network-only"
    assert text.count("Run again") == 1 and again in text
    found = total(tmp_path / "results" / "every-node" / "7")
    assert {row["node"]: row["status"] for row in found["nodes"]} == dict.fromkeys(NODES, "PASS")
    assert found["counts"]["PASS"] == 3 and found["counts"]["INCOMPLETE"] == 0
    (network,) = found["networks"]
    assert (network["node"], network["status"]) == ("node[1-3]", "INCOMPLETE")
    (reason,) = network["reasons"]
    assert reason["rule"] == "silent" and reason["sentence"] in text
    wording(reason["sentence"])


def test_the_page_counts_the_nodes_and_names_the_network(job, tmp_path):
    job("--network")
    results = reading.read(["7"])
    found = nodes.overview(results, judge(results))
    assert dict(found.totals) == {
        "3 simulated nodes": [("PASS", 3, "")],
        "1 simulated network": [("INCOMPLETE", 1, "node[1-3]")],
    }
    shown = page.files(contents.page_contents(results))["index.html"]
    assert (
        '<li>network of node[1-3], simulating local:sim <span class="status incomplete">' in shown
    )
    assert NOTHING in shown


def test_the_fleet_misses_the_network_and_no_node(command, job, wording):
    job("--network")
    done = command("fleet", "7", code=11)
    wording(done.output)


def test_the_network_is_repeated_alone(job, tmp_path):
    text, code = job("--network-only")
    assert code == 13
    assert "3 nodes of job 7, all by `reframe -r -t '^network$'`" in text
    assert "Verdict on 7: network of node[1-3] INCOMPLETE" in text
    folder = tmp_path / "results" / "every-node" / "7"
    assert not any((folder / node).exists() for node in NODES)
    assert total(folder)["nodes"] == []


def test_a_node_that_cannot_be_used_is_named_beside_the_network(job, tmp_path, monkeypatch):
    states = dict.fromkeys(NODES, Node(state="ALLOCATED"))
    states["node3"] = Node(state="DOWN")
    monkeypatch.setattr(slurm, "query_nodes", lambda _: states)
    job("--network-only")
    found = total(tmp_path / "results" / "every-node" / "7")
    assert [(row["node"], row["status"]) for row in found["nodes"]] == [("node3", "INCOMPLETE")]
    assert "node3 was DOWN" in found["nodes"][0]["reasons"][0]["sentence"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--no-network",), "leave nothing to measure"),
        (("--nodes", "node1"), "needs two nodes, but job 7 has 1 to measure"),
    ],
)
def test_a_network_of_nothing_is_refused(job, tmp_path, options, sentence):
    text, code = job("--network-only", *options)
    assert code == 2 and sentence in text
    # Its mark alone: a verdict without a name judges no earlier job.
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["marks"]
