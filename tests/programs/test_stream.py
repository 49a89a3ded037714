"""How `stream` ends: with figures, or with a sentence, its exit code and no false document."""

from __future__ import annotations

import functools
import json
import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fabricheck.results.document import load

#: Short, and never too noisy.
QUICK = ("--sizes", "64KiB", "--batch-time", "0.0001", "--warm-up", "0", "--series-time", "0",
         "--noise-limit", "10")  # fmt: skip
#: Two arrays are prepared, one copy is tried, and six are measured, each after the poison. Launch
#: or copy 15 is the last of them, and three more compare what it left.
SIX_COPIES = ("--sizes", "1MiB", "--batch-time", "0.000001", "--warm-up", "0", "--samples", "6",
              "--max-samples", "6", "--devices", "0", "--kernels", "copy")  # fmt: skip


@pytest.fixture
def stream(run):
    return functools.partial(run, "stream")


def test_a_good_run_leaves_a_valid_document_and_a_table(stream):
    ran = stream(*QUICK, "--devices", "each", "--devices", "all")
    assert ran.code == 0
    document = load(ran.output)
    assert document["complete"]
    assert document["clock"] == "measured"
    assert document["outcome"] == {"exit_code": 0, "status": "good", "message": None}
    roles = [series["role"] for series in document["series"]]
    assert roles.count("single") == 8
    assert roles.count("share") == 8
    assert roles.count("sum") == 4
    assert all(series["verification"]["bytes_checked"] >= 64 << 10 for series in document["series"])
    assert "read+write" in ran.err
    assert ran.out == ""


def test_energy_without_a_counter_is_a_note(stream):
    ran = stream(*QUICK, "--devices", "0", "--kernels", "copy", "--energy-time", "1")
    assert ran.code == 0
    document = load(ran.output)
    assert document["notes"] == ["energy is not measured: no device has a counter of it"]
    assert "energy" not in document["series"][0]
    without = stream(*QUICK, "--devices", "0", "--kernels", "copy", "--energy-time", "0")
    assert without.code == 0 and load(without.output)["notes"] == []


def test_the_document_goes_to_standard_output_without_a_file(programs):
    done = subprocess.run(
        [str(programs / "stream"), *QUICK, "--devices", "0", "--kernels", "copy"],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    assert json.loads(done.stdout)["complete"]


def test_one_launch_scans_sizes_and_blocks(stream):
    ran = stream("--sizes", "1KiB:8KiB", "--block-sizes", "64,1024", "--kernels", "copy,triad",
                 "--devices", "1", "--batch-time", "0.0001", "--series-time", "0")  # fmt: skip
    series = load(ran.output)["series"]
    keys = {(one["bytes"], one["block_size"], one["operation"]) for one in series}
    assert len(keys) == len(series) == 4 * 2 * 2
    assert {one["device"] for one in series} == {1}


def test_arrays_lie_where_the_options_say(stream):
    ran = stream(*QUICK, "--devices", "0", "--source", "host", "--destination", "peer:1",
                 "--kernels", "copy")  # fmt: skip
    (series,) = load(ran.output)["series"]
    assert series["source"]["memory"] == "host-pinned"
    assert series["destination"] == {"memory": "peer", "device": 1, "numa_domain": None}
    assert series["direction"] == "both-ways"


def test_only_the_allow_list_of_the_environment_is_kept(stream):
    ran = stream(*QUICK, "--devices", "0", "--kernels", "copy",
                 HSA_XNACK="0", SECRET_TOKEN="x", CI_JOB_TOKEN="y",
                 FABRICHECK_HOST_DEVICES="2")  # fmt: skip
    kept = load(ran.output)["environment"]
    assert kept["HSA_XNACK"] == "0"
    assert kept["FABRICHECK_HOST_DEVICES"] == "2"
    assert not any("TOKEN" in name for name in kept)


def test_the_number_of_virtual_devices_is_an_option(stream):
    ran = stream(*QUICK, "--kernels", "copy", FABRICHECK_HOST_DEVICES="5")
    assert [device["index"] for device in load(ran.output)["devices"]] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("text", ["0", "x", "-3", "3x", "99999999999999999999", "1025"])
def test_a_number_of_virtual_devices_that_cannot_be_is_refused(stream, text):
    ran = stream(*QUICK, FABRICHECK_HOST_DEVICES=text)
    assert ran.code == 2
    assert f"FABRICHECK_HOST_DEVICES={text} is not a whole number of 1 to 1024" in ran.sentence


def test_all_caches_of_the_last_level_count(stream):
    # Eight of 4 MiB, as on CPUs of several dies: 16 MiB touched may lie in them.
    machine = "numa:1 l3:8(size=4194304) core:1 pu:1"
    one = ["--sizes", "8MiB", "--kernels", "copy", "--devices", "0", "--series-time", "0"]
    ran = stream(*one, HWLOC_SYNTHETIC=machine)
    document = load(ran.output)
    assert document["host"]["last_level_cache_bytes"] == 8 << 22
    assert document["series"][0]["regime"] == "cache"


def test_help_explains_itself(programs):
    done = subprocess.run(
        [str(programs / "stream"), "--help"], capture_output=True, text=True, check=True
    )
    for word in ("--devices", "each", "Exit codes", "read plus written", "Example", "GB/s"):
        assert word in done.stdout


def test_a_flipped_bit_is_found_with_offset_expected_and_found(stream):
    ran = stream(*QUICK, "--devices", "1", "--kernels", "copy", "--inject-fault", "flip-bit:4096:3")
    assert ran.code == 5
    document = load(ran.output)
    assert document["faults_injected"] == ["flip-bit:4096:3"]
    assert document["outcome"]["status"] == "wrong-data"
    mismatch = document["series"][0]["verification"]["first_mismatch"]
    assert mismatch["device"] == 1
    assert mismatch["offset_bytes"] == 4096
    assert int(mismatch["expected"], 16) ^ int(mismatch["found"], 16) == 1 << 3
    for part in ("device 1", "1 of 8192 words", "byte 4096", mismatch["found"]):
        assert part in ran.sentence


def test_a_destination_that_is_never_written_is_found(stream):
    ran = stream(*QUICK, "--devices", "0", "--kernels", "add", "--inject-fault", "unwritten")
    assert ran.code == 5
    assert load(ran.output)["series"][0]["verification"]["errors"] == 8192


def test_a_last_kernel_that_did_not_run_is_found_though_those_before_wrote_the_same(stream):
    ran = stream(*SIX_COPIES, "--inject-fault", "drop:15")
    assert ran.code == 5
    assert load(ran.output)["faults_injected"] == ["drop:15"]
    assert [one["verification"]["errors"] for one in ran.series] == [1 << 17]


@pytest.mark.parametrize("missing", [16, 17, 18])
def test_a_comparison_that_a_copy_or_its_kernel_is_missing_from_verifies_nothing(stream, missing):
    ran = stream(*SIX_COPIES, "--inject-fault", f"drop:{missing}")
    assert ran.code == 4
    assert ran.sentence == "stream: the comparison on device 0 compared 0 of 131072 elements"
    assert load(ran.output)["series"] == []


def test_wrong_data_of_one_series_does_not_cost_the_others(stream):
    # The same byte offset is wrong in every series; all of them are measured and reported.
    ran = stream("--sizes", "1KiB,2KiB", "--devices", "0", "--batch-time", "0.0001",
                 "--inject-fault", "flip-bit:8:0")  # fmt: skip
    assert ran.code == 5
    document = load(ran.output)
    assert document["complete"]
    assert len(document["series"]) == 8


@pytest.mark.parametrize(
    ("fault", "code", "name"),
    [("device-error", 9, "hipErrorECCNotCorrectable"), ("refused", 11, "hipErrorInvalidValue")],
)
def test_only_an_error_that_names_hardware_is_one_of_the_device(stream, fault, code, name, wording):
    ran = stream(*QUICK, "--devices", "0", "--inject-fault", fault)
    outcome = load(ran.output)["outcome"]
    assert (ran.code, outcome["exit_code"], outcome["status"]) == (code, code, fault)
    assert name in outcome["message"]
    wording(outcome["message"])


def test_a_program_that_aborts_leaves_its_partial_document(stream):
    ran = stream(*QUICK, "--devices", "0", "--inject-fault", "abort")
    partial = ran.output.with_name(f"{ran.output.name}.partial")
    assert ran.code == -signal.SIGABRT and not ran.output.exists()
    assert load(partial)["outcome"] == {"exit_code": None, "status": "running", "message": None}


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        (["--devices", "7"], 3, ["device 7 does not exist", "the runtime has 2"]),
        (["--source", "peer:9"], 3, ["peer device 9 does not exist"]),
        (["--devices", "0", "--source", "peer:0"], 2, ["device 0 is not a peer of itself"]),
        (["--devices", "0,0"], 2, ["device set '0,0' names device 0 twice"]),
        (["--devices", "first"], 2, ["'first' is not a whole number"]),
        (["--sizes", "100TiB", "--devices", "0"], 3, ["device 0 has", "100 TiB more are needed"]),
        (["--sizes", "17"], 2, ["17 B is not a multiple of 16 B"]),
        (["--sizes", "big"], 2, ["'big' is not a size"]),
        (["--kernels", "copy,paste"], 2, ["'paste' is not a kernel"]),
        (["--block-sizes", "2048"], 2, ["block size 2048 is not in 1 to 1024"]),
        (["--source", "disk"], 2, ["'disk' is not a placement"]),
        (["--inject-fault", "flip"], 2, ["'flip' is not a fault"]),
        (["--inject-fault", "drop:x"], 2, ["the launch or copy 'x' is not a whole number"]),
        (["--frobnicate"], 2, ["--frobnicate"]),
        (["--samples", "0"], 2, ["--samples"]),
        (["--samples", "9", "--max-samples", "8"], 2, ["--max-samples 8 is below --samples 9"]),
    ],
)
def test_bad_input_gets_one_sentence_and_its_exit_code(stream, arguments, code, parts):
    stream(*arguments).refused(code, parts)


def test_an_output_folder_that_is_not_there_is_refused_before_measuring(stream, tmp_path):
    target = tmp_path / "missing" / "result.json"
    ran = stream(*QUICK, output=target)
    assert ran.code == 2
    assert str(target) in ran.sentence
    assert "No such file or directory" in ran.sentence


def test_a_full_disk_costs_no_result(stream):
    ran = stream(*QUICK, "--devices", "0", "--kernels", "copy", output=Path("/dev/full"))
    assert ran.code == 4
    assert (
        "cannot write the result document to '/dev/full': No space left on device" in ran.sentence
    )
    assert json.loads(ran.out)["series"]


def test_a_file_size_limit_costs_no_result_and_leaves_no_document(stream):
    # The first, short version fits; the document with its series does not. How long the first one
    # is depends on the machine that it describes.
    whole = stream(*QUICK, "--devices", "0").output.stat().st_size
    one = stream(*QUICK, "--devices", "0", "--kernels", "copy").output.stat().st_size
    limit = (whole + one) // 2

    def limit_file_size() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    ran = stream(*QUICK, "--devices", "0", preexec_fn=limit_file_size)
    assert ran.code == 4
    assert "File too large" in ran.sentence
    assert not ran.output.exists()
    assert len(json.loads(ran.out)["series"]) == 4


def test_the_time_limit_ends_the_run_with_what_was_measured(stream):
    ran = stream("--sizes", "1KiB:64MiB", "--devices", "0", "--time-limit", "0.5",
                 "--precision", "0", "--max-samples", "100000")  # fmt: skip
    assert ran.code == 6
    assert "not finished within the time limit of 0.5 s" in ran.sentence
    document = load(ran.output)
    assert not document["complete"]
    assert document["outcome"]["status"] == "time-limit"
    assert document["state"]["before"]["host"]["others"] is not None
    assert document["state"]["after"] is None


def test_noise_above_the_limit_ends_the_run_with_7(stream, small_cache):
    ran = stream("--sizes", "4MiB", "--devices", "0", "--kernels", "copy", "--noise-limit", "0",
                 "--max-samples", "7", "--precision", "0", **small_cache)  # fmt: skip
    assert ran.code == 7
    assert "copy of 4 MiB on device 0: half the 95 % interval is" in ran.sentence
    document = load(ran.output)
    assert document["complete"]
    assert document["series"][0]["noisy"]


def started(programs: Path, target: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a run that takes seconds, and return when its partial document has a series."""
    long = ["--precision", "0", "--max-samples", "100000", "--warm-up", "0"]
    process = subprocess.Popen(
        [str(programs / "stream"), *arguments, *long, "--output", str(target)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    partial = Path(f"{target}.partial")
    while process.poll() is None:
        if partial.exists() and '"median"' in partial.read_text():
            return process
        time.sleep(0.05)
    pytest.fail(f"{partial} held no series before the run ended")


@pytest.mark.slow
def test_a_killed_run_leaves_no_document_but_what_it_had(programs, tmp_path):
    target = tmp_path / "result.json"
    process = started(programs, target, "--sizes", "1KiB:64MiB", "--series-time", "0.2")
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not target.exists()
    partial = load(Path(f"{target}.partial"))
    assert not partial["complete"]
    assert partial["outcome"]["status"] == "running"
    assert partial["series"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_run_says_so_in_its_document(programs, tmp_path, number):
    target = tmp_path / "result.json"
    process = started(programs, target, "--sizes", "1KiB:64MiB", "--series-time", "0.2")
    process.send_signal(number)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 128 + number
    assert f"interrupted by signal {int(number)}" in err
    document = load(target)
    assert not document["complete"]
    assert document["outcome"]["status"] == "interrupted"
    assert document["series"]
    assert not Path(f"{target}.partial").exists()


def test_a_long_run_shows_its_progress(programs, tmp_path):
    begun = time.monotonic()
    process = started(programs, tmp_path / "result.json", "--sizes", "1MiB:8MiB", "--devices", "0",
                      "--kernels", "copy,triad", "--series-time", "0.5")  # fmt: skip
    # The first seconds, in which it says nothing, pass while it takes no processor.
    process.send_signal(signal.SIGSTOP)
    time.sleep(max(0, begun + 3.2 - time.monotonic()))
    process.send_signal(signal.SIGCONT)
    line = process.stderr.readline()
    process.kill()
    process.communicate()
    cases = [(kernel, size) for size in ("1", "2", "4", "8") for kernel in ("copy", "triad")]
    number, seconds, *case = re.fullmatch(
        r"stream: (\d) of 8 after (\d+) s: (\w+) of (\d) MiB on device 0\n", line
    ).groups()
    assert tuple(case) == cases[int(number) - 1]
    assert int(number) > 1 and int(seconds) >= 3


def test_a_variable_that_is_no_text_is_recorded_with_its_bytes_replaced(run):
    ran = run("stream", *QUICK, FABRICHECK_REMARK=os.fsdecode(b"caf\xe9"))
    assert ran.code == 0, ran.err
    assert load(ran.output)["environment"]["FABRICHECK_REMARK"] == "caf\ufffd"
