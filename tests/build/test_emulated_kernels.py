"""What emulators of AMD GPUs run is complete (ci/emulate-kernels.py, ci/rocjitsu.sh)."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT, ROCJITSU = ROOT / "ci/emulate-kernels.py", ROOT / "ci/rocjitsu.sh"
sys.path.insert(0, str(ROOT / "ci"))

from emulation.cases import CASES, not_run  # noqa: E402
from emulation.machine import Kernel  # noqa: E402
from emulation.values import Wrong, require, unwritten  # noqa: E402


def table_of_machine_code():
    spec = importlib.util.spec_from_file_location("machine_code", ROOT / "ci/machine-code.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.KERNELS


def test_every_kernel_of_the_sources_has_a_case():
    assert list(not_run(ROOT / "src/bench")) == []


def test_every_kernel_that_is_compiled_has_a_case():
    assert {kernel.partition(" ")[2] for kernel in CASES} == set(table_of_machine_code())


def test_a_kernel_that_no_case_runs_is_named(tmp_path):
    (tmp_path / "p2p").mkdir()
    (tmp_path / "p2p/sum.cpp").write_text(
        "__global__ void __launch_bounds__(1024)\n    sum_kernel(const T* a, T* b) {\n"
    )
    sentences = list(not_run(tmp_path))
    assert sentences[0] == "p2p/sum sum_kernel is run by no case"
    assert f"p2p/chase chase_kernel has a case and is not in {tmp_path}" in sentences


def test_the_log_has_every_kernel_of_each_target_right():
    log = json.loads((ROOT / "ci/emulation/log.json").read_text())
    targets = set()
    for build in log["builds"]:
        for target, rows in build["targets"].items():
            targets.add(target)
            assert [row["kernel"] for row in rows] == list(CASES)
            for row in rows:
                assert row["right"], row
                finds = "compare_kernel" in row["kernel"] or "stream_kernel" in row["kernel"]
                assert row["faults_found"] >= 6 or not finds, row
                reads = "loop_kernel" in row["kernel"] or "read_kernel" in row["kernel"]
                assert row["faults_found"] == 1 or not reads, row
    assert targets == {"gfx90a", "gfx942", "gfx950"}
    assert len(log["emulator"]["commit"]) == 40


def ended(*command, **variables):
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, env={**os.environ, **variables}
    )


def test_without_an_emulator_a_sentence(tmp_path):
    run = ended(sys.executable, SCRIPT, "--emulator", tmp_path)
    assert (run.returncode, run.stdout) == (3, "")
    assert run.stderr == (
        f"emulate-kernels: {tmp_path} is no checkout of tinygrad: "
        "it has no test/mockgpu/amd/emu.py\n"
    )


def test_without_code_objects_a_sentence(tmp_path):
    emulator = tmp_path / "test/mockgpu/amd"
    emulator.mkdir(parents=True)
    (emulator / "emu.py").write_text("")
    run = ended(sys.executable, SCRIPT, "--emulator", tmp_path, "--code-objects", tmp_path / "none")
    assert run.returncode == 3
    assert run.stderr.count("\n") == 1 and "none has no code objects" in run.stderr


def test_memory_is_compared_with_its_guard():
    data = unwritten("Q", 2)
    data[0], data[1] = 1, 2
    require("it", data, [1, 2])
    with pytest.raises(Wrong, match="it: element 1 is 0x2, not 0x3"):
        require("it", data, [1, 3])
    data[2] = 0
    with pytest.raises(Wrong, match="it: element behind the end 2 is 0x0"):
        require("it", data, [1, 2])


def test_a_kernel_whose_arguments_changed_is_wrong():
    kernel = Kernel.__new__(Kernel)
    kernel.metadata = {
        ".kernarg_segment_size": 16,
        ".args": [
            {".offset": 0, ".size": 8, ".value_kind": "global_buffer"},
            {".offset": 8, ".size": 4, ".value_kind": "by_value"},
            {".offset": 12, ".size": 4, ".value_kind": "hidden_block_count_x"},
        ],
    }
    segment = kernel.arguments((0x1122, 7), (3, 1), 256)
    assert segment.tobytes().hex() == "22110000000000000700000003000000"
    with pytest.raises(Wrong, match="takes 2 arguments, and 3 are given"):
        kernel.arguments((1, 2, 3), (1, 1), 64)
    with pytest.raises(Wrong, match="an argument of 4 bytes where 8 are given"):
        kernel.arguments((1, 2.0), (1, 1), 64)


def test_without_rocjitsu_a_sentence(tmp_path):
    run = ended(ROCJITSU, tmp_path, tmp_path / "config.json", PATH="/usr/bin:/bin")
    assert run.returncode == 3
    assert run.stderr.count("\n") == 1 and "rocjitsu is not installed" in run.stderr


@pytest.fixture
def stand_in(tmp_path):
    """Runs the script with a rocjitsu that changes a program's options and starts it."""

    def run(change, gpus=2):
        (tmp_path / "rocjitsu").write_text(f'#!/bin/bash\nshift 3\n{change}\nexec "$@"\n')
        (tmp_path / "rocjitsu").chmod(0o755)
        (tmp_path / "config.json").write_text(json.dumps({"vm": {"gpu": {"num_gpus": gpus}}}))
        path = f"{tmp_path}:{os.environ['PATH']}"
        return ended(ROCJITSU, ROOT / "build/host", tmp_path / "config.json", PATH=path)

    return run


@pytest.mark.slow
def test_programs_run_under_rocjitsu_and_find_a_fault(stand_in):
    run = stand_in("")
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("as it must") == 6
    run = stand_in("", gpus=1)
    assert run.returncode == 0 and "p2p is not run" in run.stdout
    assert run.stdout.count("as it must") == 4


@pytest.mark.slow
def test_a_fault_that_a_program_does_not_find_under_rocjitsu_is_said(stand_in):
    run = stand_in('for a; do shift; [[ $a == *inject* || $a == flip* ]] || set -- "$@" "$a"; done')
    assert run.returncode == 1
    assert "stream --inject-fault flip-bit:0:3 ended with 0, not with 5" in run.stderr
