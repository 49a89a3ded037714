"""`pingpong` by MPICH on the host runtime: its documents, its table, and how it ends on faults."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import pytest

from fabricheck.results.document import load

#: Short, and never too noisy.
QUICK = ("--warm-up", "0", "--series-time", "0", "--noise-limit", "10")
SMALL = (*QUICK, "--sizes", "64KiB")
ONE = (*SMALL, "--memory", "pageable", "--operations", "h2d")
OPERATIONS = {"h2d": 1, "d2h": 1, "there-and-back": 2}
MEMORY = ("host-pageable", "host-pinned")


@pytest.fixture
def pingpong(ranks):
    return functools.partial(ranks, "pingpong")


def keys(ran):
    """Return rank, kind of host memory, operation and size of each series, in order."""
    return [
        (*one["ranks"], host_of(one)["memory"], one["operation"], one["bytes"])
        for one in ran.series
    ]


def host_of(series):
    return series["destination" if series["operation"] == "d2h" else "source"]


def domain_of(core: int) -> int:
    """Return the NUMA domain of a core of this machine."""
    folders = Path(f"/sys/devices/system/cpu/cpu{core}").glob("node[0-9]*")
    return next((int(folder.name[4:]) for folder in folders), 0)


def test_every_rank_measures_every_operation_and_kind_of_memory_at_once(pingpong):
    ran = pingpong(2, *SMALL)
    assert ran.code == 0, ran.err
    document = load(ran.output)
    assert document["complete"]
    assert keys(ran) == [
        (rank, memory, operation, 64 << 10)
        for memory in MEMORY
        for operation in OPERATIONS
        for rank in (0, 1)
    ]
    for series in document["series"]:
        (rank,) = series["ranks"]
        place = document["ranks"][rank]
        assert (series["experiment"], series["role"], series["batch"]) == ("E6", "share", 1)
        assert (series["engine"], series["placement"]) == ("copy-engine", "given")
        assert series["device"] == place["device"] == rank
        assert series["device_set"] == [0, 1]
        assert host_of(series)["numa_domain"] == place["memory_domain"]
        messages = OPERATIONS[series["operation"]]
        assert series["bytes_moved"] == messages * series["bytes"]
        assert series["verification"]["bytes_checked"] == messages * series["bytes"]
        # Noise adds some, for as long again.
        assert len(series["samples"]) >= 7
        assert series["host_clock"] is None


def test_all_ranks_take_as_many_samples(pingpong):
    # Never precise enough: up to the most, on both ranks.
    ran = pingpong(2, "--sizes", "4KiB", "--operations", "h2d", "--memory", "pageable",
                   "--warm-up", "0", "--noise-limit", "10", "--precision", "0",
                   "--max-samples", "9", "--series-time", "600")  # fmt: skip
    assert ran.code == 0, ran.err
    assert [len(one["samples"]) for one in ran.series] == [9, 9]


def test_one_rank_is_alone(pingpong):
    ran = pingpong(1, *ONE, "--placement", "half_right")
    assert ran.code == 0, ran.err
    (series,) = ran.series
    assert (series["role"], series["device_set"], series["ranks"]) == ("single", [0], [0])
    assert series["placement"] == "half_right"


def test_it_starts_without_a_launcher(run):
    ran = run("pingpong", *ONE)
    assert ran.code == 0, ran.err
    assert [one["role"] for one in ran.series] == ["single"]


def test_sizes_start_at_a_byte_and_are_verified_to_it(pingpong):
    ran = pingpong(2, *QUICK, "--sizes", "1,4:64,100", "--memory", "pinned")
    assert ran.code == 0, ran.err
    sizes = [1, 4, 8, 16, 32, 64, 100]
    for operation, messages in OPERATIONS.items():
        found = [one for one in ran.series if one["operation"] == operation]
        assert [one["bytes"] for one in found if one["ranks"] == [1]] == sizes
        assert all(one["verification"]["bytes_checked"] == messages * one["bytes"] for one in found)


def test_people_get_a_line_for_each_rank(pingpong):
    ran = pingpong(2, *ONE, "--map", "1,0")
    assert ran.code == 0, ran.err
    found = [line for line in ran.err.splitlines() if line.startswith("E6 ")]
    for rank, (line, one) in enumerate(zip(found, ran.series, strict=True)):
        assert line.startswith(f"E6  h2d  share of rank {rank} ")
        assert f" -> device {1 - rank} " in line
        assert f" {one['median']:.5g} GB/s " in line
        assert " verified" in line


def test_ranks_share_a_device_when_told_so(pingpong):
    ran = pingpong(2, *SMALL, "--map", "0,0")
    assert ran.code == 0, ran.err
    document = load(ran.output)
    assert "ranks 0, 1 share device 0" in document["notes"]
    assert {(one["device"], *one["device_set"]) for one in document["series"]} == {(0, 0)}
    assert {one["role"] for one in document["series"]} == {"share"}


def test_more_ranks_than_devices_share_them_in_turn(pingpong):
    ran = pingpong(3, *ONE)
    assert ran.code == 0, ran.err
    document = load(ran.output)
    assert [(one["device"], one["device_set"]) for one in document["series"]] == [
        (0, [0, 1]), (1, [0, 1]), (0, [0, 1])]  # fmt: skip
    assert document["notes"] == ["ranks 0, 2 share device 0"]


def test_a_rank_goes_to_its_core_and_its_memory_with_it(pingpong):
    cores = sorted(os.sched_getaffinity(0))
    ran = pingpong(2, *ONE, "--bind", f"{cores[-1]},{cores[0]}", "--placement", "right")
    assert ran.code == 0, ran.err
    document = load(ran.output)
    assert [rank["cores"] for rank in document["ranks"]] == [[cores[-1]], [cores[0]]]
    domains = {core: one["index"] for one in document["host"]["numa_domains"]
               for core in one["cores"]}  # fmt: skip
    for series, core in zip(document["series"], (cores[-1], cores[0]), strict=True):
        assert series["source"]["numa_domain"] == domains[core]
        assert series["placement"] == "right"
    assert [rank["cores"] for rank in document["ranks"]] == [[cores[-1]], [cores[0]]]


@pytest.mark.parametrize(
    ("operation", "words", "word"),
    [("h2d", 13, 8), ("d2h", 13, 96), ("there-and-back", 25, 96)],
)
def test_one_wrong_bit_names_rank_operation_and_offset(pingpong, operation, words, word):
    ran = pingpong(2, *QUICK, "--sizes", "100", "--operations", operation, "--memory", "pageable",
                   "--inject-fault", f"rank:1:flip-bit:{word}:3")  # fmt: skip
    said = f"{operation} of 100 B on rank 1: 1 of {words} words are wrong"
    assert f"{said}, the first at byte {word}: expected 0x" in ran.sentence
    assert ran.code == 5
    document = load(ran.output)
    assert document["complete"]
    right, wrong = (one["verification"] for one in document["series"])
    assert (right["errors"], wrong["errors"]) == (0, 1)
    first = wrong["first_mismatch"]
    assert (first["rank"], first["offset_bytes"]) == (1, word)
    assert first["device"] == (1 if operation == "h2d" else None)
    assert int(first["expected"], 16) ^ int(first["found"], 16) == 8
    assert ran.err.count(" 1 WRONG") == 1


@pytest.mark.parametrize("memory", ["pageable", "pinned"])
def test_a_copy_that_never_came_is_found(pingpong, memory):
    ran = pingpong(2, *QUICK, "--sizes", "4", "--memory", memory, "--inject-fault",
                   "rank:0:unwritten")  # fmt: skip
    assert ran.code == 5
    assert [one["verification"]["errors"] for one in ran.series] == [1, 0] * 3


def test_a_last_copy_that_was_not_made_is_found_though_those_before_brought_the_same(pingpong):
    few = (*QUICK, "--samples", "6", "--max-samples", "6", "--sizes", "4KiB",
           "--memory", "pageable", "--operations", "d2h")  # fmt: skip
    # A warm-up and six samples, each a kernel that fills the source, and a copy.
    count = 7 * 2
    ran = pingpong(1, *few, "--inject-fault", f"rank:0:drop:{count - 1}")
    assert ran.code == 5
    assert load(ran.output)["faults_injected"] == [f"rank:0:drop:{count - 1}"]
    assert [one["verification"]["errors"] for one in ran.series] == [512]
    ran = pingpong(1, *few, "--inject-fault", f"rank:0:drop:{count}")
    assert ran.code == 2
    assert f"an injected fault never happened: there were {count} launches" in ran.sentence


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--placement", "wrong"], 2, "--placement: wrong not in {given,right,in_order"),
        (["--memory", "managed"], 2, "'managed' is not a kind of host memory"),
        (["--sizes", "100TiB"], 3, "100 TiB more are needed"),
        (["--inject-fault", "rank:1:pages-on:DOMAIN"], 2, "rank 1: the fault pages-on:"),
        (["--inject-fault", "rank:1:pages-on:x"], 2, "the NUMA domain 'x' is not a whole number"),
        (["--inject-fault", "flip-bit:0:0"], 2, "is not a fault of a rank"),
        (["--inject-fault", "rank:1:flip-bit:4096:0", "--sizes", "4KiB"], 2, "outside an array"),
    ],
)
def test_bad_input_gets_one_sentence_and_its_exit_code(pingpong, arguments, code, said):
    core = max(os.sched_getaffinity(0))
    bound = ["--bind", f"{core},{core}"] if any("DOMAIN" in text for text in arguments) else []
    domain = domain_of(core)
    texts = [text.replace("DOMAIN", str(domain)) for text in arguments]
    ran = pingpong(2, *QUICK, *bound, *texts)
    assert ran.code == code
    assert said in ran.sentence
    assert ran.err.count("pingpong: ") == 1
    if ran.output.exists():  # options were understood
        document = load(ran.output)
        assert not document["complete"] and document["outcome"]["exit_code"] == code


#: Steps: what there is, the plan, then one for each series.
TWO_SERIES = (*QUICK, "--memory", "pageable", "--operations", "h2d", "--sizes", "4,8")


@pytest.mark.slow
def test_a_rank_that_hangs_between_copies_is_named(pingpong):
    ran = pingpong(2, *TWO_SERIES, "--inject-fault", "rank:1:hang:4", "--time-limit", "2")
    assert [one["bytes"] for one in ran.series] == [4, 4]
    outcome = load(ran.output)["outcome"]
    assert outcome["status"] == "time-limit"
    assert outcome["message"].endswith(
        "rank 1 has not come to: h2d of 8 B with host-pageable memory"
    )


@pytest.mark.slow
def test_a_rank_that_fails_ends_all_where_the_launcher_ends_none(
    programs, environment, mpiexec, tmp_path
):
    """Rank 0 ends the run while rank 1 waits in MPI: by itself it would, to the time limit."""
    output = tmp_path / "result.json"
    program = [str(programs / "pingpong"), *TWO_SERIES,
               "--time-limit", "100", "--output", str(output)]  # fmt: skip
    subprocess.run(
        [str(mpiexec), "-disable-auto-cleanup", "-n", "2", *program,
         "--inject-fault", "rank:1:throw:4"],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )  # fmt: skip
    document = load(output)
    assert not document["complete"] and document["outcome"]["exit_code"] == 4
    assert document["outcome"]["message"] == "rank 1: injected failure"
    assert [one["bytes"] for one in document["series"]] == [4, 4]


def test_help_explains_itself(programs):
    done = subprocess.run(
        [str(programs / "pingpong"), "--help"], capture_output=True, text=True, check=True
    )
    for word in ("--map", "--bind", "--placement", "there-and-back", "pageable", "Exit codes",
                 "Example", "GB/s"):  # fmt: skip
        assert word in done.stdout
