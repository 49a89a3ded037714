"""The member `state` of documents: the node before the body of a program, and after it."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import time

import pytest

from fabricheck.results.document import load

QUICK = ("--devices", "0", "--sizes", "64KiB", "--kernels", "copy", "--batch-time", "0.0001",
         "--noise-limit", "10")  # fmt: skip
SHORT = (*QUICK, "--warm-up", "0", "--series-time", "0")
#: A second, for processes to show what they take.
LONG = (*QUICK, "--warm-up", "1")


@pytest.fixture
def greedy():
    """Start a process that takes all of a core, and return its number."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    time.sleep(0.2)
    yield process.pid
    process.kill()
    process.wait()


def test_a_run_has_a_snapshot_before_and_after_in_less_than_a_tenth_of_a_second(run):
    seconds = []
    for _ in range(5):  # a loaded machine may hold up any of them
        ran = run("stream", *SHORT)
        assert ran.code == 0, ran.err
        state = load(ran.output)["state"]
        seconds.append((state["before"]["seconds"], state["after"]["seconds"]))
    assert min(before for before, _ in seconds) < 0.1
    assert min(after for _, after in seconds) < 0.1
    written = json.loads(ran.output.read_text())["state"]["after"]["host"]
    assert "others" in written and "cores" not in written
    before, after = state["before"], state["after"]
    assert before["at"] < after["at"]
    assert before["host"]["others"]["seconds"] >= 0.04
    host = after["host"]
    assert host["cores"] == os.sysconf("SC_NPROCESSORS_ONLN")
    assert host["huge_page_bytes"] in (None, 2 << 20, 1 << 30, 32 << 20, 512 << 20)
    said = {entry["item"] for entry in state["absent"]}
    assert all(host[item] is not None or f"host.{item}" in said for item in host)
    assert all(f"host.{item}" in state["sources"] for item in host if host[item] is not None)
    # Virtual devices have no PCI address, and no driver.
    assert before["devices"] == after["devices"] == []
    assert before["opening_seconds"] is after["opening_seconds"] is None


@pytest.mark.slow
def test_a_process_that_keeps_a_core_busy_is_named(run, greedy):
    for _ in range(5):  # on a loaded machine others may have taken more
        state = load(run("stream", *LONG).output)["state"]
        others = state["after"]["host"]["others"]
        processes = {process["pid"]: process for process in others["processes"]}
        # Before it, in so short a time, the system may not have let the process run.
        assert min(state["before"]["host"]["others"]["busy_cores"], others["busy_cores"]) >= 0.2
        if greedy in processes and processes[greedy]["cores"] >= 0.2:
            break
    found = processes[greedy]
    assert found["user"] == pwd.getpwuid(os.getuid()).pw_name
    assert found["command"].startswith("python")
    assert 0.2 <= found["cores"] <= 1.1


@pytest.mark.slow
def test_the_ranks_of_a_launch_are_no_others(programs, mpiexec, environment, tmp_path):
    # A name of its own: other programs of that name may run here.
    name = f"m{os.getpid()}"
    shutil.copy(programs / "mpi", tmp_path / name)
    target = tmp_path / "result.json"
    subprocess.run(
        [str(mpiexec), "-n", "2", str(tmp_path / name), "--batch-time", "0.0001",
         "--warm-up", "0.6", "--series-time", "0", "--noise-limit", "10", "--sizes", "64KiB",
         "--types", "none", "--collectives", "none", "--output", str(target)],
        env=environment(2), stdin=subprocess.DEVNULL, capture_output=True, timeout=600, check=True,
    )  # fmt: skip
    state = load(target)["state"]
    assert state["after"]["host"]["others"]["seconds"] > 0.5
    for moment in ("before", "after"):
        others = state[moment]["host"]["others"]
        commands = {one["command"] for one in others["processes"]}
        assert name not in commands


def test_a_run_whose_data_is_wrong_has_one_after_it(run):
    ran = run("stream", *SHORT, "--inject-fault", "flip-bit:8:3")
    assert ran.code == 5
    assert load(ran.output)["state"]["after"] is not None
