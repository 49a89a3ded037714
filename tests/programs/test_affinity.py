"""affinity on the host runtime: alone, with several ranks, and when a rank fails, dies or hangs."""

import json
import os
import subprocess

import pytest

from fabricheck.results.document import load


def told(ran):
    """Return the ranks of a run that went well."""
    assert ran.code == 0, ran.err
    document = load(ran.output)
    assert document["complete"] and document["outcome"]["status"] == "good"
    assert document["versions"]["mpi"]
    return document["ranks"]


def test_one_process_is_one_rank(run):
    ran = run("affinity")
    (rank,) = told(ran)
    assert rank["cores"] == sorted(os.sched_getaffinity(0))
    assert rank["visible_devices"] == [0, 1] and rank["device"] == 0
    assert ran.out == ""


def test_each_rank_tells_where_it_is(ranks):
    ran = ranks("affinity", 4)
    found = told(ran)
    assert [rank["rank"] for rank in found] == [0, 1, 2, 3]
    assert [rank["device"] for rank in found] == [0, 1, 0, 1]
    document = load(ran.output)
    assert [device["index"] for device in document["devices"]] == [0, 1]
    assert {rank["host"] for rank in found} == {document["host"]["hostname"]}
    # One line for each rank below the head, in order, and no rank speaks for itself. A note comes
    # before it where a container's profile refuses calls.
    lines = [line for line in ran.err.splitlines() if not line.startswith("affinity: ")]
    assert [line.split()[0] for line in lines] == ["rank", "0", "1", "2", "3"]


def test_the_map_gives_each_rank_its_device(ranks):
    ran = ranks("affinity", 3, "--map", "2,0,2", devices=3)
    assert [rank["device"] for rank in told(ran)] == [2, 0, 2]
    assert load(ran.output)["options"]["map"] == "2,0,2"


def test_ranks_bind_themselves_where_the_launcher_does_not(ranks):
    core = max(os.sched_getaffinity(0))
    ran = ranks("affinity", 2, "--bind", f"{core},{core}")
    assert [rank["cores"] for rank in told(ran)] == [[core], [core]]


def test_what_the_launcher_bound_is_told(programs, mpiexec, environment, tmp_path):
    cores = sorted(os.sched_getaffinity(0))
    wanted = [cores[0], cores[-1]]
    output = tmp_path / "result.json"
    parts = []
    for core in wanted:  # taskset in the place of a launcher that binds
        parts += [":", "-n", "1", "taskset", "-c", str(core), str(programs / "affinity")]
        parts += ["--output", str(output)]
    command = [str(mpiexec), *parts[1:]]
    subprocess.run(command, env=environment(), check=True, capture_output=True, timeout=600)
    assert [rank["cores"] for rank in load(output)["ranks"]] == [[core] for core in wanted]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--map", "0"], 2, "rank 1: --map names the devices of 1 rank(s), and there are more"),
        (["--map", "0,7"], 3, "rank 1: device 7 does not exist: the rank sees 2, 0 to 1"),
        (["--bind", "CORE"], 2, "rank 1: --bind names the cores of 1 rank(s), and there are more"),
        (["--bind", "CORE,4096"], 8, "rank 1: core 4096 is not open to this process"),
        (["--map", "0,x"], 2, "the device"),
        (["--inject-fault", "rank:3:die"], 2, "a fault of a rank that does not exist"),
        (["--inject-fault", "rank:1:sleep"], 2, "is not a fault of a rank"),
    ],
)
def test_a_bad_place_is_one_sentence_of_the_first_rank_that_has_it(ranks, arguments, code, said):
    core = str(max(os.sched_getaffinity(0)))
    ran = ranks("affinity", 3, *(text.replace("CORE", core) for text in arguments))
    assert ran.code == code
    assert said in ran.sentence and ran.err.count("affinity: ") == 1
    outcome = load(ran.output)["outcome"]
    assert outcome["exit_code"] == code and said in outcome["message"]


def test_bad_usage_is_said_once(ranks):
    ran = ranks("affinity", 3, "--nonsense")
    assert ran.code == 2 and not ran.output.exists()
    assert ran.err.count("nonsense") == 1


def test_a_document_that_can_not_be_written_ends_all_ranks(ranks, tmp_path):
    ran = ranks("affinity", 2, output=tmp_path / "no" / "such" / "folder.json")
    assert ran.code == 2
    assert "cannot write the result document" in ran.sentence


def test_a_rank_that_throws_ends_the_run_with_its_sentence(ranks):
    ran = ranks("affinity", 3, "--inject-fault", "rank:1:throw")
    assert ran.code == 4
    document = load(ran.output)
    assert document["outcome"]["message"] == "rank 1: injected failure"
    assert not document["complete"] and document["faults_injected"] == ["rank:1:throw"]
    assert len(document["ranks"]) == 3


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_hangs_is_named_at_the_time_limit(ranks, rank):
    fault = f"rank:{rank}:hang"
    ran = ranks("affinity", 2, "--inject-fault", fault, "--time-limit", "2")
    assert ran.code != 0
    outcome = load(ran.output)["outcome"]
    assert outcome["status"] == "time-limit"
    assert outcome["message"] == (
        "not finished within the time limit of 2.0 s; "
        f"rank {rank} has not come to: tell where each rank is"
    )


def test_a_rank_that_dies_leaves_no_good_document(ranks):
    ran = ranks("affinity", 2, "--inject-fault", "rank:1:die", "--time-limit", "20")
    assert ran.code != 0
    # The launcher may kill the others at once; then what there was is left.
    if ran.output.exists():
        assert load(ran.output)["outcome"]["message"].startswith("rank 1 died")
    else:
        partial = json.loads((ran.output.parent / "result.json.partial").read_text())
        assert partial["outcome"]["status"] == "running" and not partial["complete"]
        assert "Killed" in ran.out + ran.err
