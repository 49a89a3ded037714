"""Device code is compiled for the devices that a configuration names, or that this machine has."""

import os
import subprocess

import pytest

from fabricheck.core.checkout import ROOT

#: The part of this project that chooses architectures, without the languages of devices.
PROJECT = """
cmake_minimum_required(VERSION 3.21)
project(part LANGUAGES NONE)
include({root}/cmake/Architectures.cmake)
message(STATUS "chosen: ${{${{architectures}}}}")
"""
KFD = "sys/class/kfd/kfd/topology/nodes"
MI250X, MI355X, CPU = 90010, 90500, 0


@pytest.fixture
def configure(tmp_path):
    """Configure on a machine whose drivers show what is given; returns CMake's code and text."""

    def run(*options, amd=(), nvidia=None, runtime="rocm", **variables):
        source, drivers, tools = tmp_path / "source", tmp_path / "drivers", tmp_path / "tools"
        for folder in (source, tools):
            folder.mkdir(exist_ok=True)
        (source / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT))
        for number, version in enumerate(amd):
            node = drivers / KFD / str(number)
            node.mkdir(parents=True, exist_ok=True)
            (node / "properties").write_text(
                f"cpu_cores_count 0\nsimd_count 440\ngfx_target_version {version}\n"
            )
        smi = tools / "nvidia-smi"
        smi.write_text(f"#!/bin/sh\necho '{nvidia}'\n" if nvidia else "#!/bin/sh\nexit 9\n")
        smi.chmod(0o755)
        ended = subprocess.run(
            [
                *("cmake", "-S", source, "-B", tmp_path / "build"),
                *(f"-DFABRICHECK_RUNTIME={runtime}", *options),
            ],
            env={
                "PATH": f"{tools}:{os.environ['PATH']}",
                "FABRICHECK_DRIVERS": str(drivers),
                **variables,
            },
            capture_output=True,
            text=True,
            timeout=60,
        )
        return ended.returncode, " ".join((ended.stdout + ended.stderr).split())

    return run


@pytest.mark.parametrize(
    ("machine", "chosen"),
    [
        ({"amd": [CPU, MI250X, MI250X]}, "gfx90a"),
        ({"amd": [CPU, MI355X]}, "gfx950"),
        ({"amd": [90402, MI250X]}, "gfx90a;gfx942"),
        ({"runtime": "cuda", "nvidia": "9.0\n9.0"}, "90"),
        ({"runtime": "cuda", "nvidia": "10.0\n9.0\n7.5"}, "75;90;100"),
    ],
)
def test_without_a_name_it_is_that_of_the_devices_of_this_machine(configure, machine, chosen):
    code, text = configure(**machine)
    assert code == 0, text
    assert f"chosen: {chosen} " in text


def test_a_build_follows_the_devices_of_the_machine_and_keeps_them_on_a_host_without(
    configure, tmp_path
):
    assert "chosen: gfx90a " in configure(amd=[MI250X])[1]
    assert "chosen: gfx950 " in configure(amd=[MI355X])[1]
    (tmp_path / "drivers").rename(tmp_path / "elsewhere")
    code, text = configure()
    assert code == 0 and "chosen: gfx950 " in text


def test_a_name_stands_before_the_devices_of_this_machine(configure):
    code, text = configure("-DCMAKE_HIP_ARCHITECTURES=gfx942;gfx950", amd=[MI250X])
    assert code == 0 and "chosen: gfx942;gfx950 " in text


def test_the_variable_of_cmake_stands_before_the_devices_too(configure):
    code, text = configure(runtime="cuda", nvidia="9.0", CUDAARCHS="80;100")
    assert code == 0 and "chosen: 80;100 " in text


@pytest.mark.parametrize(
    ("runtime", "sentence"),
    [
        (
            "rocm",
            "AMD's driver shows no GPU on this machine, so name the architecture of the devices to "
            "compile for: -DCMAKE_HIP_ARCHITECTURES=..., such as gfx90a (MI210, MI250X), gfx942 "
            "(MI300A, MI300X) or gfx950 (MI355X)",
        ),
        (
            "cuda",
            "nvidia-smi shows no GPU on this machine, so name the architecture of the devices to "
            "compile for: -DCMAKE_CUDA_ARCHITECTURES=..., such as 80 (A100), 90 (H100, H200) or "
            "100 (B200)",
        ),
    ],
)
def test_with_neither_it_is_refused_in_a_sentence(configure, runtime, sentence):
    code, text = configure(runtime=runtime, amd=[CPU])
    assert code == 1 and sentence in text
    code, text = configure("-DCMAKE_HIP_ARCHITECTURES=", "-DCMAKE_CUDA_ARCHITECTURES=",
                           runtime=runtime)  # fmt: skip
    assert code == 1 and sentence in text
