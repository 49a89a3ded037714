"""What `aftermath` adds to the document of a program that ended badly."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from fabricheck.results import state
from fabricheck.results.document import load

QUICK = ("--devices", "0", "--sizes", "64KiB", "--kernels", "copy", "--batch-time", "0.0001",
         "--warm-up", "0", "--series-time", "0", "--noise-limit", "10")  # fmt: skip

#: What ROCr writes before it aborts the process.
ECC = "HW Exception by GPU node-4 (Agent handle: 0x55d8) reason :ECC\n"
HANG = "HW Exception by GPU node-4 (Agent handle: 0x55d8) reason :GPU Hang\n"


@pytest.fixture
def aftermath(programs, tmp_path):
    """Run `aftermath` with the document of a test, and return how it ended."""

    def aftermath(
        code: int, *options: str, errors: str | None = ""
    ) -> subprocess.CompletedProcess[str]:
        if errors is not None:
            (tmp_path / "errors").write_text(errors)
        return subprocess.run(
            [str(programs / "aftermath"), "--exit-code", str(code), "--document",
             str(tmp_path / "result.json"), "--errors", str(tmp_path / "errors"), *options],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    return aftermath


@pytest.fixture
def bus(tmp_path):
    """Make a /sys whose PCI bus has some accelerators, by address the vendor."""

    def bus(name: str, functions: Mapping[str, str]) -> Path:
        for address, vendor in functions.items():
            folder = tmp_path / name / "bus/pci/devices" / address
            folder.mkdir(parents=True)
            for file, text in {"vendor": vendor, "device": "0x7408", "class": "0x038000"}.items():
                (folder / file).write_text(f"{text}\n")
        return tmp_path / name

    return bus


@pytest.fixture
def aborted(run, tmp_path):
    """Return the partial document of a program that aborted."""
    assert run("stream", *QUICK, "--inject-fault", "abort").code == -6
    return tmp_path / "result.json.partial"


def now_us() -> int:
    return int(time.clock_gettime(time.CLOCK_MONOTONIC_RAW) * 1e6)


def test_the_document_of_an_aborted_program_is_completed(aborted, aftermath):
    assert load(aborted)["state"]["after"] is None
    assert aftermath(134).returncode == 0
    found = load(aborted)
    assert found["outcome"] == {"exit_code": None, "status": "running", "message": None}
    assert found["aftermath"]["exit_code"] == 134
    assert found["aftermath"]["runtime_log"] == []
    assert found["state"]["before"]["at"] < found["state"]["after"]["at"]
    assert found["state"]["after"]["host"]["cores"] == found["state"]["before"]["host"]["cores"]


@pytest.mark.parametrize(("words", "hardware"), [(ECC, True), (HANG, False)])
def test_the_last_words_of_a_runtime_name_hardware_or_not(aborted, aftermath, words, hardware):
    aftermath(134, errors=f"stream: a table\n{words}")
    found = load(aborted)
    assert [one["text"] for one in found["aftermath"]["runtime_log"]] == [words.rstrip()]
    assert [each.kind == "hardware" for each in state.logged(found)] == [hardware]


def test_the_log_of_the_kernel_is_read_from_the_start_of_the_program_on(
    aborted, aftermath, tmp_path
):
    log = tmp_path / "kmsg"
    xid = "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus."
    log.write_text(
        f"4,1,{now_us() - 3_600_000_000},-;{xid}\n4,2,{now_us()},-;{xid}\n"
        f"4,3,{now_us()},-;NVRM: Xid (PCI:0000:41:00): 31, MMU Fault\n"
    )
    aftermath(134, "--kernel-log", str(log))
    found = load(aborted)
    assert [one["kind"] for one in found["aftermath"]["kernel_log"]] == ["hardware", "unclear"]
    first, second = state.logged(found)
    assert (first.kind, first.row, first.device, first.text) == (
        "hardware", "xid-79", "0000:41:00.0", xid,
    )  # fmt: skip
    assert (second.kind, second.row) == ("unclear", "xid-restart-app")


def test_what_cannot_be_read_has_its_reason(aborted, aftermath, tmp_path):
    nothing = str(tmp_path / "nothing")
    aftermath(134, "--kernel-log", nothing, "--sys", nothing, errors=None)
    found = load(aborted)["aftermath"]
    assert found["kernel_log"] is found["pci_functions"] is found["runtime_log"] is None
    assert {one["item"]: one["why"] for one in found["absent"]} == {
        "runtime_log": "the program's standard error cannot be read",
        "pci_functions": f"{nothing} has no PCI devices",
        "kernel_log": f"{nothing}: No such file or directory",
    }


def test_an_accelerator_that_is_gone_is_named(aborted, aftermath, bus):
    content = json.loads(aborted.read_text())
    both = bus("before", {"0000:c1:00.0": "0x1002", "0000:c6:00.0": "0x1002"})
    aftermath(134, "--sys", str(both))
    content["state"]["before"]["host"]["pci_functions"] = load(aborted)["aftermath"][
        "pci_functions"
    ]
    aborted.write_text(json.dumps(content))
    after = bus("after", {"0000:c6:00.0": "0x1002"})
    aftermath(134, "--sys", str(after), "--patience", "0")
    found = load(aborted)
    assert [one["address"] for one in state.lost_functions(found)] == ["0000:c1:00.0"]


@pytest.mark.parametrize("fault", ["device-error", "refused"])
def test_a_program_that_ended_with_an_error_keeps_its_own_state(run, aftermath, fault):
    ran = run("stream", *QUICK, "--inject-fault", fault)
    before = load(ran.output)
    assert aftermath(ran.code).returncode == 0
    found = load(ran.output)
    assert found["outcome"] == before["outcome"] and found["state"] == before["state"]
    assert found["aftermath"]["exit_code"] == ran.code


def test_the_time_limit_is_followed_by_a_snapshot(run, aftermath):
    ran = run("stream", "--sizes", "1KiB:64MiB", "--devices", "0", "--time-limit", "0.5",
              "--precision", "0", "--max-samples", "100000")  # fmt: skip
    assert ran.code == 6 and load(ran.output)["state"]["after"] is None
    aftermath(6)
    assert load(ran.output)["state"]["after"] is not None


@pytest.mark.parametrize("fault", [(), ("--inject-fault", "flip-bit:8:3")])
def test_a_program_that_came_to_its_end_has_no_aftermath(run, aftermath, fault):
    ran = run("stream", *QUICK, *fault)
    before = ran.output.read_bytes()
    assert aftermath(ran.code).returncode == 0
    assert ran.output.read_bytes() == before
    aftermath(134)  # it aborted after it had written its document
    assert load(ran.output)["aftermath"]["exit_code"] == 134


def test_without_a_document_there_is_nothing_to_complete(aftermath, tmp_path):
    assert aftermath(127).returncode == 0
    (tmp_path / "result.json").write_text("{")
    ended = aftermath(134)
    assert ended.returncode == 4 and ended.stderr.startswith("aftermath: ")
    assert (tmp_path / "result.json").read_text() == "{"
