"""`make run` measures the GPUs of a machine that has some and a compiler for them.

The drivers' files, the compilers and all that is started are the test's; each start is recorded.
"""

import re
import shutil
import subprocess
import sys

import pytest

from fabricheck.core.checkout import ROOT

#: Records its call; what it prints is in a file of its name.
TOOL = """#!/bin/bash
echo "{name} $*" >> {calls}
[ ! -f {says} ] || cat {says} || exit
exit {code}
"""

MI250X = "simd_count 440\ngfx_target_version 90010\n"


@pytest.fixture
def machine(tmp_path):
    """Run ci/run.sh in a checkout; takes the drivers' files and the compilers of the machine."""
    checkout, tools, drivers = tmp_path / "checkout", tmp_path / "tools", tmp_path / "drivers"
    for folder in (checkout / "ci", tools, drivers):
        folder.mkdir(parents=True)
    shutil.copy(ROOT / "ci" / "run.sh", checkout / "ci")
    calls = tmp_path / "calls"

    def tool(path, says="", code=0):
        said = tools / f"{path.name}.says"
        if says:
            said.write_text(says)
        path.write_text(TOOL.format(name=path.name, calls=calls, says=said, code=code))
        path.chmod(0o755)

    def run(*arguments, files=(), compilers=(), says=(), bundle="", image="", session=0, sites=""):
        for name, text in dict(files).items():
            (drivers / name).parent.mkdir(parents=True, exist_ok=True)
            (drivers / name).write_text(text)
        for name in (
            "make",
            "cmake",
            "reframe",
            "fabricheck",
            "python",
            "mpirun",
            "ucx_info",
            *says,
        ):
            code = session if name == "reframe" else 0
            tool(tools / name, dict(says).get(name, ""), code)
        for name in compilers:
            tool(tools / name)
        tool(checkout / "ci" / "setup.sh", "apt-get install cmake")
        environment = f'export FABRICHECK_RESULTS="{tmp_path}/results"\n'
        if bundle:
            (checkout / ".venv").mkdir()
            (checkout / ".venv" / "fabricheck-bundle.stamp").touch()
            environment += f'export FABRICHECK_CUDA_PROGRAMS="{bundle}"\n'
        if image:
            environment += f'export FABRICHECK_IMAGE="{image}"\n'
        (checkout / "env.sh").write_text(environment)
        variables = {"PATH": f"{tools}:/usr/bin:/bin", "FABRICHECK_DRIVERS": str(drivers)}
        variables["FABRICHECK_SITES"] = sites
        ended = subprocess.run(
            [checkout / "ci" / "run.sh", *arguments], env=variables, capture_output=True, text=True
        )
        ended.calls = calls.read_text() if calls.exists() else ""
        return ended

    return run


H100 = {"dev/nvidia0": "", "dev/nvidia1": "", "dev/nvidiactl": ""}
KFD = "sys/class/kfd/kfd/topology/nodes"
FOUR_MI250X = {f"{KFD}/{n}/properties": MI250X for n in range(8)} | {
    f"{KFD}/8/properties": "simd_count 0\ngfx_target_version 0\n"
}


def test_gpus_are_built_for_drafted_and_measured(machine):
    ended = machine("node", files=H100, compilers=["nvcc"])
    assert ended.returncode == 0, ended.stderr
    assert "run: GPUs          2 of NVIDIA" in ended.stdout
    assert "none (no Open MPI 5" in ended.stdout and "E11 is left out" in ended.stdout
    assert "-DFABRICHECK_RUNTIME=cuda -DFABRICHECK_MPI=OFF" in ended.calls
    assert "setup.sh gpu" in ended.calls and "fabricheck node draft" in ended.calls
    assert "reframe --nocolor --system=local:gpu --mode=node --max-retries=1 -r" in ended.calls


def test_gpus_of_amd_take_rocm_and_an_mpi_that_knows_devices(machine):
    more = "#  a line of hundreds after it\n" * 5000
    says = {
        "mpirun": "mpirun (Open MPI) 5.0.5\n" + more,
        "ucx_info": "#   Transport: rocm_ipc\n" + more,
    }
    ended = machine("smoke", files=FOUR_MI250X, compilers=["hipcc"], says=says)
    assert ended.returncode == 0, ended.stderr
    assert "8 of AMD" in ended.stdout and "mpirun (Open MPI) 5.0.5" in ended.stdout
    assert "-DFABRICHECK_RUNTIME=rocm -DFABRICHECK_MPI=ON\n" in ended.calls


def test_a_bundle_needs_no_compiler(machine):
    ended = machine("node", files=H100, bundle="/bundle/bin")
    assert ended.returncode == 0, ended.stderr
    assert "programs      /bundle/bin" in ended.stdout
    assert "cmake" not in ended.calls and "setup.sh" not in ended.calls
    assert "--system=local:gpu" in ended.calls


@pytest.mark.parametrize("files", [{}, FOUR_MI250X])
def test_a_bundle_without_a_gpu_of_its_own_says_in_one_sentence_what_to_do(machine, files):
    ended = machine("node", files=files, bundle="/bundle/bin")
    assert ended.returncode == 3 and ended.calls == ""
    assert ended.stderr == (
        "run: the bundle's programs are for GPUs of NVIDIA, and its driver shows none: in a "
        "checkout make run measures this machine (docs/any-node.md)\n"
    )


def test_an_image_of_rocm_builds_nothing_and_measures_the_gpus(machine):
    ended = machine("node", files=FOUR_MI250X, image="rocm")
    assert ended.returncode == 0, ended.stderr
    assert "programs      built by the image" in ended.stdout
    assert "cmake" not in ended.calls and "setup.sh" not in ended.calls
    assert "make" not in ended.calls.split()
    assert "--system=local:gpu" in ended.calls


def test_an_image_of_rocm_without_a_gpu_says_how_it_gets_one(machine):
    ended = machine("node", image="rocm")
    assert ended.returncode == 3 and ended.calls == ""
    assert ended.stderr.startswith(
        "run: no GPU of AMD is in this container: start it with --device"
    )


def test_an_image_of_this_cpu_builds_nothing_and_says_that_gpus_are_not_measured(machine):
    ended = machine("smoke", files=H100, compilers=["nvcc"], image="host")
    assert ended.returncode == 0, ended.stderr
    said = "run: 2 of NVIDIA GPUs are not measured: this image has programs of the runtime host"
    assert said in ended.stdout
    assert "make" not in ended.calls.split() and "local:gpu" not in ended.calls
    assert "reframe --nocolor --mode=smoke" in ended.calls


def test_without_a_gpu_or_its_compiler_it_is_as_it_was(machine):
    ended = machine("node")
    assert ended.stdout.splitlines()[0] == (
        "run: no driver shows a GPU here: what is measured without one is a demonstration and "
        "accepts no node"
    )
    assert ended.returncode == 0, ended.stderr
    assert "make --no-print-directory build TARGET=local_programs" in ended.calls
    assert "reframe --nocolor --mode=node --max-retries=1 -r" in ended.calls
    ended = machine("node", files=H100)
    assert ended.stdout.startswith(
        "run: 2 of NVIDIA GPUs are not measured, so no node is accepted: there is no nvcc on the"
    )
    assert "--system" not in ended.calls
    ended = machine("node", "local:sim-mi250x", compilers=["nvcc"])
    assert (
        "reframe --nocolor --system=local:sim-mi250x --mode=node --max-retries=1 -r" in ended.calls
    )


def test_where_site_files_are_named_the_machine_is_measured_as_its_site(machine):
    ended = machine("node", files=H100, compilers=["nvcc"], sites="/home/a/sites")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(
        "run: measures the site that this machine's name has in FABRICHECK_SITES; SYSTEM=local:gpu "
    )
    assert "reframe --nocolor --mode=node --max-retries=1 -r" in ended.calls
    ended = machine("node", "local:gpu", files=H100, compilers=["nvcc"], sites="/home/a/sites")
    assert "--system=local:gpu" in ended.calls


def test_what_is_missing_is_one_sentence_and_ends_it(machine):
    ended = machine("node", "local:gpu")
    assert ended.returncode == 3
    assert ended.stderr == (
        "run: this machine has no GPU: neither AMD's nor NVIDIA's driver shows one\n"
    )
    ended = machine("node", "local:gpu", files=H100)
    assert ended.returncode == 3 and "run: there is no nvcc on the PATH" in ended.stderr
    assert "reframe" not in ended.calls


#: An MPI that crashes in `crashes` on device buffers; a trial ends at the first crash.
MPIRUN = """#!{python}
import json, sys
order = ["exchange", "bcast", "allgather", "reduce", "allreduce", "reduce_scatter"]
options = dict(zip(sys.argv[4::1], sys.argv[5::1]))
without = options.get("--without", "").split(",")
crash = next((name for name in order if name in {crashes} and name not in without), None)
left = order[order.index(crash):] if crash else []
skipped = [{{"operation": name}} for name in order if name in left or name in without]
open(options["--output"], "w").write(json.dumps({{"skipped": skipped}}))
sys.exit(4 if crash else 0)
"""


@pytest.mark.parametrize(
    ("crashes", "found"),
    [
        ([], ""),
        (["allgather", "reduce_scatter"], "allgather,reduce_scatter"),
        (["exchange"], "all"),
    ],
)
def test_an_mpi_is_asked_what_it_does_with_buffers_of_devices(tmp_path, crashes, found):
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(MPIRUN.format(python=sys.executable, crashes=crashes))
    mpirun.chmod(0o755)
    ended = subprocess.run(
        [sys.executable, ROOT / "ci" / "device_mpi.py", "bin/mpi", "2"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{found}\n", "")


@pytest.mark.parametrize(
    ("session", "shown"), [(0, True), (1, True), (2, False), (4, False), (13, False)]
)
def test_a_session_that_was_refused_shows_no_results_of_an_earlier_one(machine, session, shown):
    ended = machine("node", session=session)
    assert ended.returncode == session
    assert ("fabricheck summary" in ended.calls) == shown
    assert ("fabricheck report" in ended.calls) == shown


def test_what_is_shown_is_the_session_that_ran_by_its_name(machine):
    calls = machine("node").calls
    named = [
        re.search(rf"fabricheck {command} (make-run-\S+)", calls)[1]
        for command in ("report", "summary", "verdict")
    ]
    assert len({*named}) == 1


def test_what_a_session_says_before_its_first_check_is_shown_at_once():
    """A session that waits for another one says so, maybe for minutes."""
    command = [sys.executable, ROOT / "ci" / "progress.py"]
    header = "[ReFrame Setup]\n  version:           4.10.4\n\n"
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as shown:
        shown.stdin.write(f"{header}Another session measures this node.\n")
        shown.stdin.flush()
        assert shown.stdout.readline() == "Another session measures this node.\n"
        shown.stdin.write("[==========] Running 1 check(s)\nother words\n")
        rest, _ = shown.communicate("[       OK ] (1/1) stream /926e9abf @local:gpu+cuda\n")
    assert " ".join(rest.split()) == "passed 1/1 stream local:gpu"


def test_checks_that_run_once_more_are_shown_as_such():
    """The numbers of ReFrame's retries count from 1 again."""
    said = """[     FAIL ] (2/2) p2p_engine /926e9abf @local:gpu+cuda
[==========] Retrying 1 failed check(s) (retry 1/1)
[       OK ] (1/1) p2p_engine /926e9abf @local:gpu+cuda
"""
    command = [sys.executable, ROOT / "ci" / "progress.py"]
    shown = subprocess.run(command, input=said, capture_output=True, text=True, check=True).stdout
    assert [" ".join(line.split()) for line in shown.splitlines()] == [
        "FAILED 2/2 p2p_engine local:gpu",
        "once more: what failed (1)",
        "passed 1/1 p2p_engine local:gpu",
    ]
