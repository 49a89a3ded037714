"""`make programs` compiles by Clang where it is here with OpenMP, else as CMake chooses."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CMAKE = '#!/bin/sh\necho "${CXX:-of CMake}" >> "$0.log"\n'


def compilers(folder, *arguments, clang, **variables):
    """Return the compilers that CMake is started with, in a folder without a build.

    :param clang: the exit status of Clang, asked for a header of OpenMP.
    """
    tools = folder / "bin"
    tools.mkdir()
    for name, text in (("cmake", CMAKE), ("clang++-15", f"#!/bin/sh\nexit {clang}\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    subprocess.run(
        ["make", "-f", ROOT / "Makefile", "programs", *arguments],
        cwd=folder,
        env={"PATH": f"{tools}:/usr/bin:/bin", **variables},
        check=True,
        capture_output=True,
    )
    return set((tools / "cmake.log").read_text().splitlines())


def test_clang_compiles_where_it_has_openmp(tmp_path):
    assert compilers(tmp_path, clang=0) == {"clang++-15"}


def test_clang_without_openmp_compiles_nothing(tmp_path):
    """Debian's hipcc brings Clang 15, and OpenMP is a package of its own."""
    assert compilers(tmp_path, clang=1) == {"of CMake"}


@pytest.mark.parametrize(("arguments", "variables"), [([], {"CXX": "g++"}), (["CXX=g++"], {})])
def test_a_compiler_that_is_named_compiles(tmp_path, arguments, variables):
    assert compilers(tmp_path, *arguments, clang=0, **variables) == {"g++"}


def test_what_compiled_the_common_part_compiles_the_rest(tmp_path):
    cache = tmp_path / "build" / "cpu" / "CMakeCache.txt"
    cache.parent.mkdir(parents=True)
    cache.write_text("CMAKE_CXX_COMPILER:FILEPATH=/usr/bin/c++\n")
    assert compilers(tmp_path, clang=0) == {"/usr/bin/c++"}
