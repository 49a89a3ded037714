"""`overlap`: its documents, and how it ends when something is wrong."""

from __future__ import annotations

import pytest

from fabricheck.results.document import load

# Devices of the host runtime share cores: starts are near each other in batches this long only.
QUICK = ("--size", "64MiB", "--batch-time", "0.1", "--warm-up", "0", "--series-time", "0",
         "--noise-limit", "10", "--samples", "6")  # fmt: skip


@pytest.fixture
def overlap(run):
    def overlap(*arguments: str, **variables):
        return run("overlap", *arguments, **variables)

    return overlap


@pytest.mark.full
def test_each_alone_and_beside_the_other_with_a_fault_that_is_found(overlap):
    # Without a fault, and with copy-engine transfers, a check measures: test_overlap_sessions.py.
    ran = overlap(*QUICK, "--pairs", "1-0", "--devices", "none", "--by", "kernel",
                  "--inject-fault", "flip-bit:8:1")  # fmt: skip
    assert ran.code == 5, ran.err
    document = load(ran.output)
    assert document["complete"]
    series = document["series"]
    assert [one["experiment"] for one in series] == ["E8"] * 4
    assert [one["role"] for one in series] == ["single", "single", "beside", "beside"]
    assert [one["verification"]["errors"] for one in series] == [1, 1, 1, 1]
    # How much each keeps here depends on who else has the cores: it gates nothing.
    assert all(one["median"] > 0 for one in series)
    assert {one["device"] for one in series} == {1}
    (proof,) = (note for note in document["notes"] if "TFLOP/s" in note)
    assert "both started at most" in proof
    for one in series:
        if one["role"] == "single":
            assert (
                one["batch"]
                * (
                    one["median"] * 1e-6
                    if one["unit"] == "us"
                    else one["bytes"] / one["median"] / 1e9
                )
                > 0.05
            )


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--by", "disk"], 2, "'disk' copies nothing: choose from engine, kernel"),
        (["--by", "engine,engine"], 2, "'engine,engine' names engine twice"),
        (["--pairs", "none", "--devices", "none"], 2, "neither --pairs nor --devices names any"),
        (["--pairs", "0-0"], 2, "the pair 0-0 is one device twice"),
        (["--size", "1MiB:4MiB"], 2, "--size is one size, and '1MiB:4MiB' are several"),
        (["--inject-fault", "pages-on:1"], 2, "pages-on"),
        (["--devices", "7"], 3, "device 7"),
        (["--pairs", "0-9"], 3, "device 9 of the pair 0-9"),
    ],
)
def test_bad_requests(overlap, arguments, code, sentence):
    ran = overlap(*QUICK[2:], *arguments)
    assert ran.code == code
    assert sentence in ran.err


def test_without_peer_access_a_kernel_cannot_copy(overlap):
    ran = overlap(*QUICK, "--pairs", "0-1", "--devices", "none", "--by", "kernel",
                  FABRICHECK_HOST_NO_PEER_ACCESS="0-1")  # fmt: skip
    assert ran.code == 3
    assert "which a kernel beside kernel copies from device 0 to device 1 needs" in ran.err


def test_launches_that_wait_are_a_setting(overlap):
    ran = overlap(*QUICK, HIP_LAUNCH_BLOCKING="1")
    assert ran.code == 8
    assert "HIP_LAUNCH_BLOCKING" in ran.err
