"""What only a real Spack tells: skipped where none is on the PATH."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / "spack-env" / "local"

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(shutil.which("spack") is None, reason="there is no spack on the PATH"),
]


def spack(*arguments, scope):
    ended = subprocess.run(
        ["spack", "-C", scope, *arguments], capture_output=True, text=True, timeout=600
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def scope(tmp_path):
    """A configuration of Spack with our repository."""
    folder = tmp_path / "scope"
    folder.mkdir()
    (folder / "repos.yaml").write_text(f"repos:\n- {ROOT}/spack-env/repo\n")
    return folder


def test_audit_finds_no_fault_in_our_recipes(scope):
    ours = sorted(path.name for path in (ROOT / "spack-env/repo/packages").iterdir())
    text = spack("audit", "packages", *ours, scope=scope)
    assert text.count(": 0 issues found") == 3, text


def test_spack_knows_the_variants(scope):
    text = spack("info", "--no-dependencies", "fabricheck", scope=scope)
    for variant in ["cuda [", "mpi [", "rocm [", "sim [", "cuda_arch [", "amdgpu_target ["]:
        assert variant in text


def test_rccl_tests_are_those_of_our_repository(scope):
    text = spack("info", "--no-dependencies", "rccl-tests", scope=scope)
    for word in ["at commit ae3e6357cb3514d5649b3b5dfaa80cb2d2af3532", "mpi [", "amdgpu_target ["]:
        assert word in text


def is_debian_12():
    release = Path("/etc/os-release")
    return release.exists() and 'VERSION_ID="12"' in release.read_text()


@pytest.mark.skipif(not is_debian_12(), reason="the environment local is of Debian 12")
def test_local_concretizes_to_its_lock(tmp_path):
    commit = (LOCAL / "spack-commit").read_text().split()[0]
    running = subprocess.run(["spack", "--version"], capture_output=True, text=True).stdout
    if running.split()[0] != "0.23.0.dev0" or commit not in running:
        pytest.skip(f"the lock is of Spack commit {commit}; here is {running.strip()}")
    checkout = tmp_path / "checkout"
    for part in ["spack-env", "cmake", "src/bench", "src/runtime"]:
        shutil.copytree(ROOT / part, checkout / part)
    shutil.copy(ROOT / "CMakeLists.txt", checkout)
    ended = subprocess.run(
        [checkout / "spack-env" / "install", "--new-lock", "--no-build", "local"],
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert ended.returncode == 0, ended.stderr
    made = json.loads((checkout / "build/spack/local/third-party.lock").read_text())
    committed = json.loads((LOCAL / "spack.lock").read_text())
    assert made["roots"] == committed["roots"]
    assert made["concrete_specs"].keys() == committed["concrete_specs"].keys()
    whole = json.loads((checkout / "build/spack/local/spack.lock").read_text())
    names = sorted(root["spec"] for root in whole["roots"])
    assert [name.split("@")[0] for name in names] == ["fabricheck"] * 2 + ["osu-micro-benchmarks"]
