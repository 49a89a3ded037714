"""`fabric` on nodes that are this machine: rounds, suspects, lost nodes, bad input."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from fabric.phase_two import choose
from fabricheck.judge.fabric.attributing import attribute
from fabricheck.judge.fabric.fit import ALL, samples_of

QUICK = ("--buffers", "host", "--size", "16KiB", "--window", "2", "--repetitions", "1",
         "--round-trips", "2", "--again", "3")  # fmt: skip


@pytest.fixture
def launch(on_nodes):
    """Run `fabric` with so many ranks on each of some nodes; return its document."""

    def launch(*arguments, nodes=("n0", "n1", "n2"), **more):
        return on_nodes("fabric", *QUICK, *arguments, nodes=nodes, **more)

    return launch


def pairs(document, phase=1):
    rounds = [one for one in document["rounds"]["rounds"] if one["phase"] == phase]
    return [tuple(pair) for one in rounds for pair in one["pairs"]]


def test_nodes_meet_in_rounds_and_suspects_are_those_of_the_attribution(launch):
    document = launch(nodes=("n0", "n1", "n2", "n3", "n4"))
    rounds = document["rounds"]
    assert document["complete"] and document["series"] == []
    assert [one["node"] for one in rounds["nodes"]] == ["n0", "n1", "n2", "n3", "n4"]
    assert rounds["planned"] == 5  # of five nodes one rests
    assert sorted(pairs(document)) == [(a, b) for a in range(5) for b in range(a + 1, 5)]
    for one in rounds["rounds"]:
        for column in ("out", "back", "together_out", "together_back", "both", "latency"):
            assert all(value > 0 for rates in one[column] for value in rates)
    chosen = choose(5, rounds["rounds"], *samples_of(rounds))
    suspects = [
        (one["node"], ALL if one["nic"] is None else one["nic"]) for one in rounds["suspects"]
    ]
    assert suspects == list(chosen.suspects)
    assert rounds["low_pairs"] == [list(pair) for pair in chosen.low_pairs]
    again = set(pairs(document, phase=2))
    assert {tuple(pair) for pair in rounds["low_pairs"]} <= again


def test_the_ranks_of_a_node_work_apart_and_together(launch):
    document = launch(nodes=("n0", "n1"), ranks=(2,))
    (one, *_) = document["rounds"]["rounds"]
    assert [len(rates) for rates in (*one["out"], *one["together_back"])] == [2, 2]
    assert [node["ranks"] for node in document["rounds"]["nodes"]] == [[0, 1], [2, 3]]
    # 16 KiB to each rank, compared after the NICs apart and after all at once.
    assert document["rounds"]["bytes_checked"] % (4 * 2 * (16 << 10)) == 0
    assert "an attribution needs 4 nodes" in attribute(document).open[0]


@pytest.mark.parametrize("fault", ["rank:2:hang:5", "rank:2:die:5"])
def test_a_node_that_is_lost_between_rounds_is_named_and_the_rest_measured(launch, fault):
    # A launcher of each node, as on several machines; one for all ends all when a rank dies. Not by
    # UCX, which MPICH 5.0.2 may fail to start between nodes (tests/rfm/cluster_site.py).
    hosts = ("-disable-auto-cleanup", "-launcher", "fork", "-hosts", "a:1,b:1,c:1,d:1")
    document = launch("--round-limit", "1.5", "--inject-fault", fault, code=4,
                      nodes=("n0", "n1", "n2", "n3"), options=hosts,
                      MPIR_CVAR_CH4_NETMOD="ofi", FI_PROVIDER="tcp")  # fmt: skip
    assert not document["complete"]
    (lost,) = document["rounds"]["left_out"]
    assert (lost["node"], lost["round"]) == ("n2", 2 - 1)
    assert lost["reason"].startswith("n2: it did not answer within 1.5 s in round 2 of 3")
    assert document["outcome"]["message"] == lost["reason"]
    rounds = [one["pairs"] for one in document["rounds"]["rounds"] if one["phase"] == 1]
    assert len(rounds) == 3 and len(rounds[0]) == 2
    assert not any(2 in pair for pair in rounds[2])
    assert lost["reason"] in attribute(document).open


#: Runs a program beside one that never gives up the core that both have.
BESIDE_ANOTHER = """#!/bin/bash
timeout 120 bash -c 'while :; do :; done' &
"$@"
status=$?
kill %1
exit "$status"
"""


@pytest.mark.full
def test_a_core_that_others_keep_makes_no_node_silent(programs, environment, mpiexec, tmp_path):
    # As beside the other tests: ranks that gave it up at each look lost the round by its limit.
    beside = tmp_path / "beside"
    beside.write_text(BESIDE_ANOTHER)
    beside.chmod(0o755)
    target = tmp_path / "result.json"
    line = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), str(mpiexec), "-n", "2",
               str(beside), str(programs / "fabric"), "--buffers", "host", "--places", "none",
               "--output", str(target)]  # fmt: skip
    done = subprocess.run(
        line,
        env=environment(2, MPIR_CVAR_NOLOCAL="1", UCX_TLS="tcp,self"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    document = json.loads(target.read_text())
    assert document["complete"], done.stderr
    assert document["rounds"]["failed"] == document["rounds"]["left_out"] == []


def test_wrong_data_ends_the_run_and_names_both_nics(launch, invoke, tmp_path):
    document = launch("--inject-fault", "rank:1:flip-bit:9:2", nodes=("n0", "n1"), code=5)
    (wrong, *_) = document["rounds"]["wrong"]
    assert (wrong["from"], wrong["to"], wrong["errors"], wrong["offset_bytes"]) == (0, 1, 1, 9)
    # Traffic of other tests over the loopback at that moment counts as that of the ranks.
    ends = "from n0:(rank0|lo) to n1:(rank1|lo)"
    assert re.search(f"{ends}: 1 bytes are wrong", document["outcome"]["message"])
    code, out = invoke("network", "fabric", str(tmp_path / "result.json"), "--json")
    assert code == 13
    wrong_data = f"Data {ends} was wrong"
    assert any(re.search(wrong_data, sentence) for sentence in json.loads(out)[0]["open"])


def test_nodes_of_another_model_are_left_out(launch, wording):
    document = launch(ranks=(1, 2, 1))
    (left,) = document["rounds"]["left_out"]
    assert left["node"] == "n1"
    wording(left["reason"])
    assert pairs(document) == [(0, 1)]
    assert [one["node"] for one in document["rounds"]["nodes"]] == ["n0", "n2"]


def test_one_node_is_refused(launch):
    document = launch(nodes=("n0", "n0"), code=3)
    assert document["outcome"]["message"] == "fabric needs two nodes, and the launch has one: n0"


@pytest.fixture
def invoke(command):
    """Run the command line; return its exit code and output."""

    def invoke(*arguments):
        done = command(*arguments, code=None)
        return done.exit_code, done.stdout

    return invoke
