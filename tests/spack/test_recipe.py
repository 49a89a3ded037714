"""The recipe of our programs fits their CMake files; Spack itself is faked by a recorder."""

import re
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "spack-env" / "repo" / "packages" / "fabricheck" / "package.py"
CMAKE = "\n".join(
    path.read_text() for path in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")]
)
CLASSES = {"cmake": "CMakePackage", "cuda": "CudaPackage", "rocm": "ROCmPackage"}


class Spec:
    """As much of a concrete spec as the recipe asks for."""

    def __init__(self, *words, **values):
        self.words = words
        self.variants = {name: types.SimpleNamespace(value=value) for name, value in values.items()}

    def satisfies(self, word):
        return word in self.words

    def __getitem__(self, name):
        return types.SimpleNamespace(prefix=types.SimpleNamespace(bin=f"/{name}/bin"))


class Package:
    """As much of Spack's CMakePackage as the recipe uses."""

    def __init__(self, spec):
        self.spec = spec

    def define(self, name, value):
        return f"-D{name}={value}"

    def define_from_variant(self, name, variant):
        return f"-D{name}={'ON' if self.spec.satisfies(f'+{variant}') else 'OFF'}"


def load(monkeypatch, *, api):
    """(class, directives) of the recipe, where Spack has its build systems as in 0.x or 1.x."""
    calls = []
    spack = types.ModuleType("spack.package")
    for name in ["version", "license", "variant", "conflicts", "depends_on"]:

        def record(*args, _name=name, **kwargs):
            calls.append((_name, args, kwargs))

        setattr(spack, name, record)
    spack.join_path = lambda *parts: "/".join(parts)
    classes = {name: type(name, (), {}) for name in CLASSES.values()}
    classes["CMakePackage"] = Package
    modules = {"spack": types.ModuleType("spack"), "spack.package": spack, "spack_repo": None}
    if api == 0:
        for name, one in classes.items():
            setattr(spack, name, one)
    else:
        base = "spack_repo.builtin.build_systems"
        for name in ["spack_repo", "spack_repo.builtin", base]:
            modules[name] = types.ModuleType(name)
        for name, one in CLASSES.items():
            modules[f"{base}.{name}"] = types.SimpleNamespace(**{one: classes[one]})
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    names = {"__name__": "recipe"}
    exec(compile(RECIPE.read_text(), str(RECIPE), "exec"), names)
    return names["Fabricheck"], calls


@pytest.fixture(params=[0, 1], ids=["Spack 0.x", "Spack 1.x"])
def recipe(request, monkeypatch):
    return load(monkeypatch, api=request.param)


def test_the_build_systems_come_from_where_this_spack_has_them(recipe):
    names = [one.__name__ for one in recipe[0].__mro__]
    assert names[:4] == ["Fabricheck", "Package", "CudaPackage", "ROCmPackage"]


@pytest.mark.parametrize(
    ("spec", "runtime", "others"),
    [
        (Spec("+mpi"), "host", ["-DFABRICHECK_MPI=ON"]),
        (Spec("~mpi"), "host", ["-DFABRICHECK_MPI=OFF"]),
        (Spec("+sim", "+mpi"), "sim", ["-DFABRICHECK_MPI=ON"]),
        (
            Spec("+rocm", "+mpi", amdgpu_target=("gfx90a", "gfx942")),
            "rocm",
            [
                "-DCMAKE_HIP_ARCHITECTURES=gfx90a;gfx942",
                "-DCMAKE_HIP_COMPILER=/llvm-amdgpu/bin/clang++",
            ],
        ),
        (Spec("+cuda", "+mpi", cuda_arch=("80",)), "cuda", ["-DCMAKE_CUDA_ARCHITECTURES=80"]),
    ],
)
def test_variants_become_options_that_cmake_knows(recipe, spec, runtime, others):
    arguments = recipe[0](spec).cmake_args()
    assert f"-DFABRICHECK_RUNTIME={runtime}" in arguments
    assert set(others) <= set(arguments)
    strings = re.search(r"FABRICHECK_RUNTIME PROPERTY STRINGS ([\w ]+)\)", CMAKE)
    assert runtime in strings[1].split()
    for argument in arguments:
        name = argument[2:].split("=")[0]
        known = name.startswith("CMAKE_HIP_COMPILER") or re.search(rf"\b{name}\b", CMAKE)
        assert known, f"CMake's files know no {name}"


def test_runtimes_exclude_each_other(recipe):
    pairs = {frozenset((args[0], kwargs["when"])) for name, args, kwargs in recipe[1]
             if name == "conflicts"}  # fmt: skip
    for one, other in [("+rocm", "+cuda"), ("+rocm", "+sim"), ("+cuda", "+sim")]:
        assert frozenset((one, other)) in pairs


def test_version_and_least_versions_are_those_of_cmake(recipe):
    versions = [args[0] for name, args, _ in recipe[1] if name == "version"]
    assert versions == [re.search(r"project\(fabricheck VERSION ([\d.]+)", CMAKE)[1]]
    needed = " ".join(args[0] for name, args, _ in recipe[1] if name == "depends_on")
    for package, pattern in [
        ("cmake", r"cmake_minimum_required\(VERSION ([\d.]+)\)"),
        ("nlohmann-json", r"find_package\(nlohmann_json ([\d.]+)"),
        ("simgrid", r"simgrid>=([\d.]+)"),
    ]:
        assert f"{package}@{re.search(pattern, CMAKE)[1]}:" in needed


def test_what_cmake_searches_is_depended_on(recipe):
    needed = {args[0].split("@")[0] for name, args, _ in recipe[1] if name == "depends_on"}
    searched = {
        "CLI11": "cli11",
        "nlohmann_json": "nlohmann-json",
        "PkgConfig": "pkgconfig",
        "MPI": "mpi",
    }
    compilers = {"Threads", "OpenMP", "CUDAToolkit", "hip"}  # of the compiler, or of +cuda, +rocm
    for name in re.findall(r"find_package\((\w+)", CMAKE):
        assert name in compilers or searched[name] in needed
    for name in re.findall(r"pkg_check_modules\((\w+)", CMAKE):
        assert name.lower() in needed
