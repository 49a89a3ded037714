"""`p2p`: its documents of pairs and sets, and how it ends when something is wrong."""

from __future__ import annotations

import subprocess

import pytest

from fabricheck.results.document import load

SHORT = ("--sizes", "64KiB", "--chase-size", "64KiB", "--batch-time", "0.0001", "--warm-up", "0")
QUIET = ("--noise-limit", "10")
QUICK = (*SHORT, *QUIET, "--series-time", "0")
BANDWIDTHS = ("engine", "read", "write", "copy")
LATENCIES = ("latency", "latency-host", "chase")


@pytest.fixture
def p2p(run):
    def p2p(*arguments: str, denied: str = "", **variables):
        return run("p2p", *arguments, FABRICHECK_HOST_NO_PEER_ACCESS=denied, **variables)

    return p2p


def pair(series):
    """Return source and destination device of a series."""
    return series["source"]["device"], series["destination"]["device"]


def test_one_launch_gives_every_operation_for_every_ordered_pair(p2p):
    ran = p2p(*QUICK, devices=3)
    assert ran.code == 0
    document = load(ran.output)
    assert document["complete"]
    assert document["options"]["pairs"] == "all"
    pairs = {(a, b) for a in range(3) for b in range(3) if a != b}
    singles = {}
    for one in document["series"]:
        if one["role"] == "single":
            singles.setdefault(one["operation"], []).append(one)
    for operation in (*BANDWIDTHS, "latency", "latency-host"):
        sets = [tuple(one["device_set"]) for one in singles[operation]]
        assert len(sets) == 6
        assert set(sets) == pairs
    for operation in ("engine", "read", "write", "latency", "latency-host"):
        assert {pair(one) for one in singles[operation]} == pairs
    assert {pair(one) for one in singles["chase"]} == pairs | {(a, a) for a in range(3)}
    shares = [one for one in document["series"] if one["role"] == "share"]
    assert {pair(one) for one in shares} == pairs
    assert len([one for one in document["series"] if one["role"] == "sum"]) == 3
    assert all(one["verification"]["bytes_checked"] for one in document["series"])


def test_what_moves_the_data_and_who_executes(p2p):
    ran = p2p(*QUICK, "--pairs", "0-1", "--operations", ",".join((*BANDWIDTHS, *LATENCIES)))
    assert ran.code == 0
    one = {series["operation"]: series for series in ran.series if series["direction"] != "local"}
    own = {"memory": "device", "numa_domain": None}
    peer = {"memory": "peer", "numa_domain": None}
    for operation, experiment, engine, device, source, destination in (
        ("engine", "E7", "copy-engine", 0, {**own, "device": 0}, {**peer, "device": 1}),
        ("latency", "E7", "copy-engine", 0, {**own, "device": 0}, {**peer, "device": 1}),
        ("latency-host", "E7", "copy-engine", 0, {**own, "device": 0}, {**peer, "device": 1}),
        ("read", "E8", "kernel", 1, {**peer, "device": 0}, {**own, "device": 1}),
        ("write", "E8", "kernel", 0, {**own, "device": 0}, {**peer, "device": 1}),
        ("copy", "E8", "kernel", 0, {**peer, "device": 1}, {**peer, "device": 1}),
        ("chase", "E8", "kernel", 1, {**peer, "device": 0}, {**own, "device": 1}),
    ):
        series = one[operation]
        assert series["experiment"] == experiment
        assert series["engine"] == engine
        assert series["device"] == device
        assert series["source"] == source
        assert series["destination"] == destination
        assert series["direction"] == ("both-ways" if operation == "copy" else "one-way")


def test_bandwidths_and_latencies_have_their_units(p2p):
    ran = p2p(*QUICK, "--pairs", "0-1")
    for series in ran.series:
        latency = series["operation"] in LATENCIES
        assert series["unit"] == ("us" if latency else "GB/s")
        assert series["better"] == ("lower" if latency else "higher")
        counted = "read+write" if series["operation"] == "copy" else "once"
        assert series["bytes_counted"] == counted
        if series["operation"] == "chase":
            assert (series["bytes"], series["bytes_moved"]) == (64 << 10, 8)
        elif latency:
            assert series["bytes"] == series["bytes_moved"] == 16
        if series["operation"] == "latency-host":
            assert series["host_clock"] is None


def test_both_directions_are_shares_and_their_sum(p2p):
    ran = p2p(*QUICK, "--pairs", "0-1,1-0", "--operations", "engine-both,read-both,write-both")
    assert ran.code == 0
    assert len(ran.series) == 9
    for series in ran.series:
        assert series["direction"] == "both-ways"
        assert series["device_set"] == [0, 1]
        double = 2 if series["role"] == "sum" else 1
        assert series["bytes_moved"] == double * (64 << 10)


def test_pairs_work_together_when_asked(p2p):
    ran = p2p(*QUICK, "--together", "0-1,2-3", "--together", "3-2,1-0,2-3", devices=4)
    assert ran.code == 0
    assert load(ran.output)["options"]["pairs"] == ""
    engine = [one for one in ran.series if one["operation"] == "engine"]
    assert [one["role"] for one in engine] == [*["share"] * 2, "sum", *["share"] * 3, "sum"]
    assert engine[2]["device_set"] == [0, 1, 2, 3]
    assert engine[2]["bytes_moved"] == 2 * (64 << 10)
    assert not {one["operation"] for one in ran.series} & set(LATENCIES)


@pytest.mark.parametrize("set_", ["1-0,2-0,3-0", "0-1,0-2,0-3"])
def test_one_device_sends_or_receives_with_all_others_at_once(p2p, set_):
    ran = p2p(*QUICK, "--together", set_, "--operations", "engine,read,write", devices=4)
    assert ran.code == 0
    load(ran.output)
    pairs = [tuple(map(int, pair.split("-"))) for pair in set_.split(",")]
    for operation in ("engine", "read", "write"):
        *shares, total = [one for one in ran.series if one["operation"] == operation]
        assert [pair(one) for one in shares] == pairs
        assert all(one["verification"]["bytes_checked"] == 64 << 10 for one in shares)
        assert (total["role"], total["bytes_moved"]) == ("sum", 3 * (64 << 10))


def test_each_destination_of_a_set_is_compared_for_itself(p2p):
    # Each share has an array of its own, of other data: what one lacks no other makes good.
    ran = p2p(*QUICK, "--together", "1-0,2-0", "--operations", "write",
              "--inject-fault", "flip-bit:8:3", devices=3)  # fmt: skip
    assert ran.code == 5
    *shares, total = ran.series
    assert [one["verification"]["errors"] for one in shares] == [1, 1]
    assert total["verification"]["errors"] == 2


def test_both_directions_of_a_ring_are_six_pairs_at_once(p2p):
    ran = p2p(*QUICK, "--together", "0-1,1-2,2-0", "--operations", "engine-both", devices=3)
    assert ran.code == 0
    assert [one["role"] for one in ran.series] == [*["share"] * 6, "sum"]


def test_one_launch_scans_sizes(p2p):
    ran = p2p("--sizes", "256:4KiB", "--pairs", "1-0", "--operations", "engine,write",
              "--batch-time", "0.0001", "--series-time", "0")  # fmt: skip
    keys = [(one["operation"], one["bytes"]) for one in ran.series]
    sizes = [256, 512, 1024, 2048, 4096]
    assert keys == [(name, size) for name in ("engine", "write") for size in sizes]
    assert {pair(one) for one in ran.series} == {(1, 0)}


def test_people_get_a_line_for_each_series(p2p):
    ran = p2p(*QUICK, "--together", "0-1,2-3", "--operations", "write,latency", devices=4)
    lines = ran.err.splitlines()[2:]
    assert len(lines) == len(ran.series)
    for line, one in zip(lines, ran.series, strict=True):
        assert line.startswith(f"{one['experiment']}  {one['operation']} ")
        assert f" {one['median']:.5g} {one['unit']} " in line
    assert "sum of 0,1,2,3" in ran.err


@pytest.mark.parametrize("operation", [*BANDWIDTHS, "latency", "latency-host"])
def test_a_flipped_bit_is_found_where_the_destination_lies(p2p, operation):
    ran = p2p(*QUICK, "--pairs", "1-0", "--operations", operation,
              "--inject-fault", "flip-bit:8:3")  # fmt: skip
    assert ran.code == 5
    mismatch = ran.series[0]["verification"]["first_mismatch"]
    assert mismatch["device"] == 0
    assert mismatch["offset_bytes"] == 8
    assert int(mismatch["expected"], 16) ^ int(mismatch["found"], 16) == 1 << 3
    size = "16 B" if operation in LATENCIES else "64 KiB"
    assert ran.sentence.startswith(f"p2p: {operation} of {size} on device")
    assert "to device 0: 1 of" in ran.sentence


@pytest.mark.parametrize("operation", ["engine", "engine-both", "read", "latency", "chase"])
def test_a_destination_that_is_never_written_is_found(p2p, operation):
    ran = p2p(*QUICK, "--pairs", "0-1", "--operations", operation, "--inject-fault", "unwritten")
    ran.found_nothing_written()


def test_a_pair_without_peer_access_is_noted_and_the_others_are_measured(p2p):
    ran = p2p(*QUICK, devices=3, denied="0-1")
    assert ran.code == 0
    document = load(ran.output)
    missing = "device 0 cannot reach the memory of device 1 from its kernels"
    noted = [note for note in document["notes"] if note.startswith(missing)]
    # Device 0 would read for 1-0, write for 0-1, copy for 0-1, chase for 1-0.
    for skipped in ("write of 64 KiB from device 0 to 1", "read of 64 KiB from device 1 to 0",
                    "copy of 64 KiB from device 0 to 1", "chase from device 1 to 0"):  # fmt: skip
        assert f"{missing}: {skipped} is not measured" in noted
        assert f"p2p: {missing}: {skipped} is not measured\n" in ran.err
    staged = "copy-engine transfers from device 0 to device 1 are staged through the host"
    assert f"{missing}: {staged}" in noted
    found = {(one["operation"], *one["device_set"]) for one in document["series"]}
    assert ("write", 0, 1) not in found
    assert ("read", 1, 0) not in found
    assert {("engine", 0, 1), ("write", 1, 0), ("read", 0, 1), ("copy", 1, 0)} <= found


def test_a_pair_asked_for_by_name_without_peer_access_ends_the_run(p2p):
    ran = p2p(*QUICK, "--pairs", "0-1", "--operations", "engine,write", denied="0-1")
    assert ran.code == 3
    assert ran.sentence == (
        "p2p: device 0 cannot reach the memory of device 1 from its kernels, which "
        "write of 64 KiB from device 0 to 1 needs"
    )
    document = load(ran.output)
    assert document["outcome"]["status"] == "unsupported"
    assert not document["series"]


def test_engine_copies_need_no_peer_access(p2p):
    ran = p2p(*QUICK, "--pairs", "0-1", "--operations", "engine,latency", denied="0-1")
    assert ran.code == 0
    assert len(ran.series) == 2
    assert any("staged through the host" in note for note in load(ran.output)["notes"])


def test_no_peer_access_at_all_is_no_empty_result(p2p):
    ran = p2p(*QUICK, "--operations", "read", denied="0-1,1-0")
    assert ran.code == 3
    assert "nothing can be measured: no device reaches the memory of another" in ran.sentence


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        (["--pairs", "0-7"], 3, ["device 7 of the pair 0-7 does not exist", "has 2, 0 to 1"]),
        (["--together", "2-0"], 3, ["device 2 of the pair 2-0 does not exist"]),
        (["--pairs", "0-0"], 2, ["-both is between two devices, and the pair 0-0 is one"]),
        (["--together", "0-0"], 2, ["pair 0-0 is one device twice"]),
        (["--pairs", "0"], 2, ["'0' is not a pair"]),
        (["--pairs", "0-1,0-1"], 2, ["names the pair 0-1 twice"]),
        (["--pairs", "a-b"], 2, ["'a' is not a whole number"]),
        (["--operations", "engine,dma"], 2, ["'dma' is not an operation", "chase"]),
        (["--together", "0-1,0-1"], 2, ["names the pair 0-1 twice"]),
        (["--together", "0-1", "--operations", "latency"], 2, ["latencies are of --pairs"]),
        (["--chase-size", "1000"], 2, ["1000 is not a power of two"]),
        (["--sizes", "24"], 2, ["24 B is not a multiple of 16 B"]),
        (["--sizes", "100TiB"], 3, ["device 0 has", "100 TiB more are needed"]),
        (["--block-size", "2000"], 2, ["--block-size"]),
        (["--inject-fault", "flip-bit:x:1"], 2, ["'x' is not a whole number"]),
    ],
)
def test_bad_input_gets_one_sentence_and_its_exit_code(p2p, arguments, code, parts):
    p2p(*arguments).refused(code, parts)


def test_a_fault_outside_the_array_is_bad_usage(p2p):
    ran = p2p(*QUICK, "--operations", "latency", "--inject-fault", "flip-bit:16:0")
    assert ran.code == 2
    assert ran.sentence == (
        "p2p: latency from device 0 to 1: the fault at byte 16 lies outside an array of 16 B"
    )


def test_one_device_has_no_peer(p2p):
    ran = p2p(devices=1)
    assert ran.code == 3
    assert ran.sentence == "p2p: p2p needs two devices, and the runtime has one"


def test_noise_above_the_limit_ends_the_run_with_7(p2p, small_cache):
    # Latencies of 16 B are never too noisy to end a run; arrays past the caches are.
    ran = p2p(*SHORT, "--series-time", "0", "--operations", "latency", "--noise-limit", "0")
    assert ran.code == 0
    ran = p2p("--pairs", "0-1", "--operations", "read", "--noise-limit", "0", "--max-samples", "7",
              "--precision", "0", "--sizes", "4MiB", **small_cache)  # fmt: skip
    assert ran.code == 7
    assert "on device 1 from device 0 to device 1: half the 95 % interval is" in ran.sentence


def test_of_pairs_at_once_the_noise_of_the_sum_ends_the_run(p2p, small_cache):
    limits = ("--noise-limit", "0", "--max-samples", "7", "--precision", "0", "--sizes", "4MiB")
    ran = p2p("--together", "0-1,1-0", "--operations", "read", *limits, **small_cache)
    assert ran.code == 7
    assert "read of 4 MiB on devices 0, 1 at once: half the 95 % interval is" in ran.sentence
    assert [(one["role"], one["noisy"]) for one in load(ran.output)["series"]] == [
        ("share", True),
        ("share", True),
        ("sum", True),
    ]


def test_help_explains_itself(programs):
    done = subprocess.run(
        [str(programs / "p2p"), "--help"], capture_output=True, text=True, check=True
    )
    for word in ("--pairs", "--together", "engine-both", "chase", "Exit codes", "Example", "GB/s"):
        assert word in done.stdout
