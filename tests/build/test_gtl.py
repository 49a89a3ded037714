"""The GPU transport library (GTL) of Cray MPICH is found and linked: in a tree like Cray's."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow

HEADER = """
#define MPI_VERSION 3
#define MPI_SUBVERSION 1
#ifdef __cplusplus
extern "C" {
#endif
int MPI_Init(int *, char ***);
int MPI_Finalize(void);
#ifdef __cplusplus
}
#endif
"""
MPI = """
#include "mpi.h"
int MPI_Init(int *a, char ***b) { return 0; }
int MPI_Finalize(void) { return 0; }
"""
PROGRAM = """
#include <mpi.h>
int main(int c, char **v) { MPI_Init(&c, &v); return MPI_Finalize(); }
"""
# The part of this project that looks for an MPI, without the programs and the language of devices.
PROJECT = """
cmake_minimum_required(VERSION 3.21)
project(part LANGUAGES CXX)
include({root}/cmake/Mpi.cmake)
add_executable(program program.cpp)
target_link_libraries(program PRIVATE fabricheck_mpi)
"""
# As Cray's CC: no -show, but --cray-print-opts; -lmpi is added to every link.
CC = """#!/bin/sh
case "$*" in
  -showme*|-compile-info|-show) exit 1 ;;
  *--cray-print-opts=cflags*) echo "-I{mpi}/include" ;;
  *--cray-print-opts=libs*) echo "-L{mpi}/lib -lmpi_gnu_123" ;;
  *) exec g++ -I{mpi}/include "$@" -L{mpi}/lib -Wl,-rpath,{mpi}/lib -lmpi_gnu_123 ;;
esac
"""


# As mpicxx of MPICH, which is in the same tree.
MPICXX = """#!/bin/sh
echo "g++ -I{mpi}/include -L{mpi}/lib -lmpi_gnu_123"
"""


@dataclass(frozen=True)
class CrayTree:
    """Folders that look like those of Cray MPICH."""

    release: Path
    mpi: Path
    gtl: Path
    compiler: Path


def library(path, source=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", "-x", "c", "-"]
    command += [f"-I{path.parents[1]}/include"]
    subprocess.run([*command, "-o", path], input=source, text=True, check=True)


@pytest.fixture
def cray(tmp_path):
    release = tmp_path / "pe" / "mpich" / "8.1.28"
    mpi = release / "ofi" / "gnu" / "12.3"
    (mpi / "include").mkdir(parents=True)
    (mpi / "include" / "mpi.h").write_text(HEADER)
    library(mpi / "lib" / "libmpi_gnu_123.so", MPI)
    (mpi / "lib" / "libmpi.so").symlink_to("libmpi_gnu_123.so")
    gtl = release / "gtl" / "lib"
    for kind in ["hsa", "cuda"]:
        library(gtl / f"libmpi_gtl_{kind}.so")
    compiler = tmp_path / "CC"
    compiler.write_text(CC.format(mpi=mpi))
    compiler.chmod(0o755)
    return CrayTree(release, mpi, gtl, compiler)


def configure(tmp_path, *options, variables=None, runtime="rocm"):
    source = tmp_path / "source"
    source.mkdir(exist_ok=True)
    (source / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT))
    (source / "program.cpp").write_text(PROGRAM)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not re.match("CRAY|PE_|MPI|CXX|LDFLAGS", name)
    }
    return subprocess.run(
        [
            *("cmake", "-S", source, "-B", tmp_path / "build", f"-DFABRICHECK_RUNTIME={runtime}"),
            *("-DCMAKE_HIP_ARCHITECTURES=gfx90a:xnack+", "-DCMAKE_CUDA_ARCHITECTURES=80-real"),
            *options,
        ],
        env={**kept, **(variables or {})},
        capture_output=True,
        text=True,
        timeout=120,
    )


def needed(tmp_path):
    """The libraries that the program needs, and where it looks for them, after a build."""
    build = tmp_path / "build"
    made = subprocess.run(["cmake", "--build", build], capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stdout + made.stderr
    text = subprocess.run(
        ["readelf", "-d", build / "program"], capture_output=True, text=True, check=True
    ).stdout
    return re.findall(r"NEEDED.*\[(.*)\]", text), re.findall(r"(?:RUN|R)PATH\)?.*\[(.*)\]", text)


@pytest.mark.parametrize(
    ("route", "runtime", "name"),
    [
        ("MPI_HOME", "rocm", "libmpi_gtl_hsa.so"),
        ("MPI_HOME with mpicxx", "rocm", "libmpi_gtl_hsa.so"),
        ("MPI_CXX_COMPILER", "rocm", "libmpi_gtl_hsa.so"),
        ("MPI_HOME", "cuda", "libmpi_gtl_cuda.so"),
    ],
)
@pytest.mark.full
def test_both_routes_link_the_library_of_the_mpi_release(
    tmp_path, cray, route, runtime, name, wording
):
    if route.endswith("with mpicxx"):
        route = "MPI_HOME"
        (cray.mpi / "bin").mkdir()
        (cray.mpi / "bin" / "mpicxx").write_text(MPICXX.format(mpi=cray.mpi))
        (cray.mpi / "bin" / "mpicxx").chmod(0o755)
    value = cray.mpi if route == "MPI_HOME" else cray.compiler
    ended = configure(tmp_path, f"-D{route}={value}", runtime=runtime)
    assert ended.returncode == 0, ended.stderr
    (told,) = [line for line in ended.stdout.splitlines() if "GPU transport library" in line]
    assert told.endswith(f"{cray.gtl}/{name}")
    wording(told)
    libraries, paths = needed(tmp_path)
    assert name in libraries
    assert str(cray.gtl) in paths[0]
    # A program of the other devices must not get this one.
    assert sum("gtl" in one for one in libraries) == 1


def test_cc_as_the_compiler_itself_uses_the_folder_of_the_module(tmp_path, cray):
    ended = configure(
        tmp_path,
        f"-DCMAKE_CXX_COMPILER={cray.compiler}",
        variables={"CRAY_MPICH_DIR": str(cray.mpi)},
    )
    assert ended.returncode == 0, ended.stderr
    assert "libmpi_gtl_hsa.so" in needed(tmp_path)[0]


@pytest.mark.parametrize("variable", ["PE_MPICH_GTL_DIR_amd_gfx90a", "CRAY_MPICH_ROOTDIR", None])
@pytest.mark.full
def test_elsewhere_it_is_found_by_the_modules_or_the_option(tmp_path, cray, variable):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "gtl").mkdir(parents=True)
    cray.gtl.rename(elsewhere / "gtl" / "lib")
    values = {
        "PE_MPICH_GTL_DIR_amd_gfx90a": {variable: f"-L{elsewhere}/gtl/lib"},
        "CRAY_MPICH_ROOTDIR": {variable: str(elsewhere)},
        None: {},
    }[variable]
    option = [] if variable else [f"-DFABRICHECK_GTL_DIR={elsewhere}/gtl/lib"]
    ended = configure(tmp_path, f"-DMPI_HOME={cray.mpi}", *option, variables=values)
    assert ended.returncode == 0, ended.stderr
    assert f"{elsewhere}/gtl/lib/libmpi_gtl_hsa.so" in ended.stdout


def test_without_the_library_one_sentence_says_so_and_off_links_without(tmp_path, cray):
    (cray.gtl / "libmpi_gtl_hsa.so").unlink()
    ended = configure(tmp_path, f"-DMPI_HOME={cray.mpi}")
    assert ended.returncode != 0
    sentence = " ".join(ended.stderr.split())
    assert f"its GPU transport library libmpi_gtl_hsa.so is not in {cray.gtl}" in sentence
    assert "-DFABRICHECK_GTL_DIR=" in sentence
    ended = configure(tmp_path, f"-DMPI_HOME={cray.mpi}", "-DFABRICHECK_GTL_DIR=OFF")
    assert ended.returncode == 0, ended.stderr
    assert not [one for one in needed(tmp_path)[0] if "gtl" in one]


def test_a_folder_without_an_mpi_is_not_replaced_by_the_mpi_of_the_path(tmp_path):
    ended = configure(tmp_path, f"-DMPI_HOME={tmp_path}", runtime="host")
    assert ended.returncode != 0
    sentence = " ".join(ended.stderr.split())
    assert f"MPI_HOME is '{tmp_path}', where there is neither bin/mpicxx" in sentence


@pytest.mark.full
def test_another_mpi_gets_none_though_the_modules_are_loaded(tmp_path, cray):
    plain = tmp_path / "opt" / "mpich-4.2"
    plain.parent.mkdir()
    cray.mpi.rename(plain)
    (plain / "lib" / "libmpi.so").unlink()
    (plain / "lib" / "libmpi_gnu_123.so").rename(plain / "lib" / "libmpi.so")
    ended = configure(
        tmp_path,
        f"-DMPI_HOME={plain}",
        variables={"CRAY_MPICH_ROOTDIR": str(cray.release), "CRAY_MPICH_DIR": str(cray.mpi)},
    )
    assert ended.returncode == 0, ended.stderr
    assert not [one for one in needed(tmp_path)[0] if "gtl" in one]
