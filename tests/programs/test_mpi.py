"""`mpi` of two and three ranks: documents of pairs and collectives, wrong data, bad input."""

from __future__ import annotations

import re
import subprocess

import pytest

from fabricheck.results.document import load

SHORT = ("--batch-time", "0.0001", "--warm-up", "0", "--series-time", "0")
CALM = (*SHORT, "--noise-limit", "10")
QUICK = (*CALM, "--sizes", "64KiB", "--collective-sizes", "64KiB")
FEW = (*QUICK, "--counts", "1,1009")
PAIRS = ("latency", "bandwidth")
COLLECTIVES = ("bcast", "allgather", "reduce", "allreduce", "reduce_scatter")
ONLY_PAIRS = ("--collectives", "none", "--types", "none")

#: Ranks may be more than cores here, where MPICH's own way through shared memory takes seconds.
SHARED_CORES = {
    f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM": "mpir"
    for name in ("BARRIER", "BCAST", "REDUCE", "ALLREDUCE")
}


@pytest.fixture
def mpi(ranks):
    """Run `mpi` on so many ranks, each with a virtual device of its own."""

    def mpi(*arguments, count=2):
        return ranks("mpi", count, *arguments, devices=count, **SHARED_CORES)

    return mpi


@pytest.fixture(scope="module")
def of_three(tmp_path_factory, ranks_in):
    """A good run of three ranks with everything, for reading only."""
    output = tmp_path_factory.mktemp("three") / "result.json"
    ran = ranks_in("mpi", 3, *FEW, output=output, devices=3, **SHARED_CORES)
    assert ran.code == 0, ran.err
    return ran


def chosen(ran, **wanted):
    """Return the series of a run that have these values."""
    return [one for one in ran.series if all(one[k] == value for k, value in wanted.items())]


@pytest.mark.slow
def test_one_launch_gives_all_pairs_and_collectives(of_three):
    ran = of_three
    document = load(ran.output)
    assert document["complete"]
    assert len(document["ranks"]) == 3
    pairs = [[a, b] for a in range(3) for b in range(3) if a != b]
    for operation in PAIRS:
        assert [one["ranks"] for one in chosen(ran, operation=operation)] == pairs
    for one in chosen(ran, experiment="E9"):
        assert one["role"] == "single"
        assert one["direction"] == "one-way"
        assert one["unit"] == ("us" if one["operation"] == "latency" else "GB/s")
        assert one["bytes"] == (16 if one["operation"] == "latency" else 64 << 10)
        assert one["device_set"] == one["ranks"]
        assert [one[side]["device"] for side in ("source", "destination")] == one["ranks"]
    for operation in COLLECTIVES:
        timed = chosen(ran, operation=operation, experiment="E10")
        assert [one["ranks"] for one in timed] == [[0, 1], [0, 1, 2]]
        assert {(one["unit"], one["datatype"]) for one in timed} == {("us", "float")}
        assert len(timed[0]["samples"]) >= 7
    assert all(one["verification"]["bytes_checked"] for one in document["series"])


def test_the_node_has_the_scheduler_s_name(ranks):
    told = {"SLURMD_NODENAME": "node3"} | SHARED_CORES
    ran = ranks("mpi", 2, *QUICK, *ONLY_PAIRS, devices=2, **told)
    assert load(ran.output)["host"]["scheduler_node"] == "node3"


def test_every_type_and_count_is_verified_on_every_rank(of_three):
    size = {"byte": 1, "int32": 4, "float": 4, "double": 8}
    #: Elements that the results of all ranks have, of a message of n elements.
    whole = {"bcast": lambda n: 3 * n, "allgather": lambda n: 9 * n, "reduce": lambda n: n,
             "allreduce": lambda n: 3 * n, "reduce_scatter": lambda n: n,
             "exchange": lambda n: 6 * n}  # fmt: skip
    found = {}
    for one in chosen(of_three, experiment="E12"):
        if one["ranks"] == [0, 1]:
            continue  # of a collective among fewer ranks
        assert one["ranks"] == [0, 1, 2]
        count = one["bytes"] // size[one["datatype"]]
        checked = one["verification"]["bytes_checked"] // size[one["datatype"]]
        assert checked == whole[one["operation"]](count)
        found.setdefault(one["operation"], set()).add((one["datatype"], count))
    for operation, cases in found.items():
        reduces = "reduce" in operation
        assert cases == {(t, n) for t in size if not (reduces and t == "byte") for n in (1, 1009)}
    assert set(found) == set(whole)


def test_disjoint_pairs_at_once_are_shares_and_their_sum(mpi):
    ran = mpi(*QUICK, *ONLY_PAIRS, "--pairs", "none", "--operations", "bandwidth,bandwidth-both",
              "--together", "3-0,1-2", count=4)  # fmt: skip
    assert ran.code == 0, ran.err
    for operation, ways in (("bandwidth", 1), ("bandwidth-both", 2)):
        series = chosen(ran, operation=operation)
        assert [one["role"] for one in series] == ["share", "share", "sum"]
        assert [one["ranks"] for one in series] == [[3, 0], [1, 2], [3, 0, 1, 2]]
        assert [one["bytes_moved"] // (64 << 10) for one in series] == [ways, ways, 2 * ways]


@pytest.mark.slow
def test_rounds_have_every_pair_of_four_ranks_at_once(mpi):
    ran = mpi(*QUICK, *ONLY_PAIRS, "--operations", "bandwidth", count=4)
    assert ran.code == 0, ran.err
    shares = [tuple(one["ranks"]) for one in chosen(ran, role="share")]
    assert sorted(shares) == [(a, b) for a in range(4) for b in range(4) if a != b]
    assert len(chosen(ran, role="sum")) == 6
    assert ran.err.count(" share of rank ") == 12
    assert ran.err.count(" sum of rank ") == 6


def test_buffers_of_the_host_are_labelled_so(mpi):
    ran = mpi(*FEW, "--buffers", "host", "--operations", "bandwidth", "--collectives", "bcast")
    assert ran.code == 0, ran.err
    assert load(ran.output)["options"]["buffers"] == "host"
    for one in load(ran.output)["series"]:
        for side in ("source", "destination"):
            assert one[side]["memory"] == "host-pageable"
            assert one[side]["device"] is None


def test_people_get_a_line_for_each_series(of_three):
    series = load(of_three.output)["series"]
    lines = of_three.err.splitlines()[-len(series) :]
    for line, one in zip(lines, series, strict=True):
        ranks = ",".join(map(str, one["ranks"]))
        assert re.match(rf"{one['experiment']} +{one['operation']} +rank {ranks} ", line)
        assert f" {one['median']:.5g} {one['unit']} " in line
        assert line.endswith(" verified")


@pytest.mark.parametrize(
    ("options", "start", "elements"),
    [
        (["--operations", "latency", *ONLY_PAIRS, "--pairs", "1-0"],
         "latency of 16 B of byte from rank 1 to rank 0: 1 of 32 elements are wrong", 1),
        (["--operations", "bandwidth", *ONLY_PAIRS, "--pairs", "0-1", "--sizes", "64KiB"],
         "bandwidth of 64 KiB of byte from rank 0 to rank 1: 1 of 65536 elements are wrong", 1),
        (["--pairs", "none", "--types", "none", "--collectives", "allreduce",
          "--collective-sizes", "64KiB"],
         "allreduce of 64 KiB of float among ranks 0 to 1: 1 of 32768 elements are wrong", 4),
        (["--pairs", "none", "--types", "double", "--collectives", "reduce_scatter",
          "--counts", "1009", "--collective-sizes", "16"],
         "reduce_scatter of 7.883 KiB of double among ranks 0 to 1: 1 of 1009 elements", 8),
        (["--pairs", "0-1", "--operations", "latency", "--latency-size", "8", "--types", "int32",
          "--collectives", "none", "--counts", "1009"],
         "exchange of 3.941 KiB of int32 among ranks 0 to 1: 1 of 2018 elements are wrong", 4),
    ],
)  # fmt: skip
def test_a_bit_that_one_rank_flips_is_named(mpi, options, start, elements):
    offset = 8 if elements == 1 else 2000
    ran = mpi(*CALM, *options, "--inject-fault", f"rank:1:flip-bit:{offset}:3")
    assert ran.code == 5, ran.err
    assert ran.sentence.startswith("mpi: " + start)
    at = offset // elements * elements
    assert f"the first on rank 1 at byte {at}: expected " in ran.sentence
    wrong = [one for one in load(ran.output)["series"] if one["verification"]["errors"]]
    mismatch = wrong[0]["verification"]["first_mismatch"]
    assert (mismatch["rank"], mismatch["offset_bytes"], mismatch["device"]) == (1, at, 1)
    assert mismatch["expected"] != mismatch["found"]


def test_a_result_that_is_never_written_is_found_whatever_the_operation(mpi):
    ran = mpi(*FEW, "--inject-fault", "rank:1:unwritten")
    assert ran.code == 5
    document = load(ran.output)
    assert document["complete"]
    for one in document["series"]:
        received = one["operation"] != "reduce" and one["ranks"] != [1, 0]
        if one["operation"] == "reduce_scatter" and one["bytes"] <= 8:
            received = False  # of one element rank 1 gets none
        assert (one["verification"]["errors"] > 0) == (received or one["operation"] == "latency")
    assert "WRONG" in ran.err


def test_a_fault_outside_of_all_that_is_received_is_bad_usage(mpi):
    ran = mpi(*QUICK, *ONLY_PAIRS, "--inject-fault", "rank:1:flip-bit:99999999:0")
    assert ran.code == 2
    assert ran.sentence == (
        "mpi: rank 1: the fault lies outside of everything that the rank receives"
    )


@pytest.mark.slow
def test_a_trial_only_verifies_and_says_what_it_did_not_reach(mpi):
    ran = mpi(*FEW, "--trial")
    assert ran.code == 0, ran.err
    assert {one["experiment"] for one in load(ran.output)["series"]} == {"E12"}
    assert load(ran.output)["skipped"] == []
    # The steps of the body: options, then a job each; exchange and bcast have eight jobs.
    ran = mpi(*FEW, "--trial", "--inject-fault", "rank:1:throw:12")
    assert ran.code == 4
    assert not load(ran.output)["complete"]
    missing = {one["operation"]: one["reason"] for one in load(ran.output)["skipped"]}
    ended, unknown = "the trial ended in it", "the trial did not come to it"
    assert missing == dict.fromkeys(COLLECTIVES, unknown) | {"bcast": ended}
    assert chosen(ran, operation="exchange")


def test_what_an_mpi_does_not_do_is_skipped_and_the_rest_is_measured(mpi):
    ran = mpi(*FEW, "--without", "reductions")
    assert ran.code == 0, ran.err
    left_out = ["allreduce", "reduce", "reduce_scatter"]
    assert [one["operation"] for one in load(ran.output)["skipped"]] == left_out
    assert all(one["reason"] for one in load(ran.output)["skipped"])
    measured = {one["operation"] for one in load(ran.output)["series"]}
    assert measured == {*PAIRS, "exchange", "bcast", "allgather"}


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["--ranks", "3"], 3, "rank 2 of a collective on 3 does not exist"),
        (["--counts", "0"], 2, "the number of elements '0' is not 1 to 2^30"),
        (["--collective-type", "byte"], 2, "the type of collectives is one of int32, float"),
        (["--sizes", "4GiB"], 2, "4 GiB of byte are more elements than MPI counts"),
        (["--buffers", "gpu"], 2, "--buffers"),
        (["--window", "-1"], 2, "--window"),
        (["--pairs", "none", "--collectives", "none"], 2, "nothing is asked for"),
        (["--inject-fault", "flip-bit:0:0"], 2, "'flip-bit:0:0' is not a fault of a rank"),
    ],
)
def test_bad_input_gets_one_sentence_and_its_exit_code(mpi, arguments, code, part):
    ran = mpi(*arguments)
    assert ran.code == code
    assert part in ran.sentence
    assert ran.err.count("mpi: ") == 1
    if ran.output.exists():
        assert not load(ran.output)["complete"]


def test_one_rank_has_nobody_to_talk_to(mpi):
    ran = mpi(count=1)
    assert ran.code == 3
    assert ran.sentence == (
        "mpi: mpi needs two ranks, and the launch has one: start it by mpiexec -n 2"
    )


def test_help_explains_itself(programs):
    done = subprocess.run(
        [str(programs / "mpi"), "--help"], capture_output=True, text=True, check=True
    )
    for word in ("--pairs", "--together", "--trial", "reduce_scatter", "Exit codes", "Example"):
        assert word in done.stdout
