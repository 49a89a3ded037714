"""The recipes fit what they build: our CMake files, and the Makefile of rccl-tests.

Spack itself is faked by a recorder, as 0.x has it and as 1.x has it.
"""

import re
import sys
import types
from pathlib import Path

import pytest

import fabricheck

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "spack-env" / "repo" / "packages"
CMAKE = "\n".join(
    path.read_text() for path in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")]
)
CLASSES = {
    "cmake": "CMakePackage",
    "cuda": "CudaPackage",
    "makefile": "MakefilePackage",
    "rocm": "ROCmPackage",
}


class Spec:
    """As much of a concrete spec as the recipe asks for."""

    def __init__(self, *words, flags=(), **values):
        self.words = words
        self.compiler_flags = {"ldflags": list(flags), "ldlibs": []}
        self.variants = {name: types.SimpleNamespace(value=value) for name, value in values.items()}

    def satisfies(self, word):
        return set(word.split()) <= set(self.words)

    def __contains__(self, name):
        return name != "mpi" or "+mpi" in self.words

    def __getitem__(self, name):
        prefix = Prefix(f"/{name}")
        return types.SimpleNamespace(prefix=prefix, mpicxx=f"/{name}/bin/mpicxx")


class Prefix(str):
    """A folder and those in it."""

    bin = property(lambda self: f"{self}/bin")
    lib = property(lambda self: f"{self}/lib")
    include = property(lambda self: f"{self}/include")


class Package:
    """As much of Spack's CMakePackage and MakefilePackage as the recipes use."""

    def __init__(self, spec):
        self.spec = spec

    def define(self, name, value):
        return f"-D{name}={value}"

    def define_from_variant(self, name, variant):
        return f"-D{name}={'ON' if self.spec.satisfies(f'+{variant}') else 'OFF'}"


def load(monkeypatch, name, *, api):
    """(class, directives) of a recipe, where Spack has its build systems as in 0.x or 1.x."""
    calls = []
    spack = types.ModuleType("spack.package")
    for directive in ["version", "license", "variant", "conflicts", "depends_on"]:

        def record(*args, _name=directive, **kwargs):
            calls.append((_name, args, kwargs))

        setattr(spack, directive, record)
    spack.join_path = lambda *parts: "/".join(parts)
    classes = {name: type(name, (), {}) for name in CLASSES.values()}
    classes["CMakePackage"] = classes["MakefilePackage"] = Package
    modules = {"spack": types.ModuleType("spack"), "spack.package": spack, "spack_repo": None}
    if api == 0:
        for base, one in classes.items():
            setattr(spack, base, one)
    else:
        base = "spack_repo.builtin.build_systems"
        for module in ["spack_repo", "spack_repo.builtin", base]:
            modules[module] = types.ModuleType(module)
        for system, one in CLASSES.items():
            modules[f"{base}.{system}"] = types.SimpleNamespace(**{one: classes[one]})
    for path, module in modules.items():
        monkeypatch.setitem(sys.modules, path, module)
    monkeypatch.setenv("SPACK_CXX", "/usr/bin/g++-12")
    names = {"__name__": "recipe"}
    file = RECIPES / name / "package.py"
    exec(compile(file.read_text(), str(file), "exec"), names)
    return names["".join(part.title() for part in name.split("-"))], calls


@pytest.fixture(params=[0, 1], ids=["Spack 0.x", "Spack 1.x"])
def recipe(request, monkeypatch):
    return load(monkeypatch, "fabricheck", api=request.param)


@pytest.fixture(params=[0, 1], ids=["Spack 0.x", "Spack 1.x"])
def rccl_tests(request, monkeypatch):
    return load(monkeypatch, "rccl-tests", api=request.param)


def test_the_build_systems_come_from_where_this_spack_has_them(recipe):
    names = [one.__name__ for one in recipe[0].__mro__]
    assert names[:4] == ["Fabricheck", "Package", "CudaPackage", "ROCmPackage"]


@pytest.mark.parametrize(
    ("spec", "runtime", "others"),
    [
        (
            Spec("+mpi", "~sim"),
            "host",
            ["-DFABRICHECK_MPI=ON", "-DMPI_CXX_COMPILER=/mpi/bin/mpicxx"],
        ),
        (Spec("~mpi", "~sim"), "host", ["-DFABRICHECK_MPI=OFF"]),
        (Spec("+sim", "+mpi"), "sim", ["-DFABRICHECK_MPI=ON"]),
        (
            Spec("+rocm", "+mpi", "~sim", amdgpu_target=("gfx90a", "gfx942")),
            "rocm",
            [
                "-DCMAKE_HIP_ARCHITECTURES=gfx90a;gfx942",
                "-DCMAKE_HIP_COMPILER=/llvm-amdgpu/bin/clang++",
            ],
        ),
        (
            Spec("+cuda", "+mpi", "~sim", cuda_arch=("80",)),
            "cuda",
            ["-DCMAKE_CUDA_ARCHITECTURES=80"],
        ),
    ],
)
def test_variants_become_options_that_cmake_knows(recipe, spec, runtime, others):
    arguments = recipe[0](spec).cmake_args()
    assert f"-DFABRICHECK_RUNTIME={runtime}" in arguments
    assert {*others, f"-DPython3_EXECUTABLE={sys.executable}"} <= set(arguments)
    assert any("MPI_CXX_COMPILER" in one for one in arguments) == spec.satisfies("+mpi ~sim")
    strings = re.search(r"FABRICHECK_RUNTIME PROPERTY STRINGS ([\w ]+)\)", CMAKE)
    assert runtime in strings[1].split()
    for argument in arguments:
        name = argument[2:].split("=")[0]
        known = name.startswith("CMAKE_HIP_") or re.search(rf"\b{name}\b", CMAKE)
        assert known, f"CMake's files know no {name}"


def test_runtimes_exclude_each_other(recipe):
    pairs = {frozenset((args[0], kwargs["when"])) for name, args, kwargs in recipe[1]
             if name == "conflicts"}  # fmt: skip
    for one, other in [("+rocm", "+cuda"), ("+rocm", "+sim"), ("+cuda", "+sim")]:
        assert frozenset((one, other)) in pairs


def test_the_version_is_fabricheck_s_and_least_versions_are_those_of_cmake(recipe):
    versions = [args[0] for name, args, _ in recipe[1] if name == "version"]
    assert versions == [fabricheck.__version__]
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
    # Of the compiler, of +cuda or +rocm, or what runs Spack, which the recipe names.
    there = {"Threads", "OpenMP", "CUDAToolkit", "hip", "Python3"}
    for name in re.findall(r"find_package\((\w+)", CMAKE):
        assert name in there or searched[name] in needed
    for name in re.findall(r"pkg_check_modules\((\w+)", CMAKE):
        assert name.lower() in needed


ROCM = {"amdgpu_target": ("gfx90a",)}


@pytest.mark.parametrize(
    ("compiler", "option"),
    [
        ("/usr/bin/g++-12", None),
        ("/p/GCCcore/11.2.0/bin/g++", "--gcc-toolchain=/p/GCCcore/11.2.0"),
    ],
)
def test_the_compiler_of_rocm_takes_the_gcc_of_the_environment(
    recipe, rccl_tests, monkeypatch, compiler, option
):
    monkeypatch.setenv("SPACK_CXX", compiler)
    arguments = recipe[0](Spec("+rocm", "%gcc", **ROCM)).cmake_args()
    assert f"-DCMAKE_HIP_FLAGS={option or ''}" in arguments
    targets = rccl_of(rccl_tests, Spec("%gcc", **ROCM)).build_targets
    hipcc = ["/hip/bin/hipcc", *([option] if option else []), "--offload-arch=gfx90a"]
    assert f"HIPCC={' '.join(hipcc)}" in targets
    # Another compiler's folder is no GCC's.
    assert "-DCMAKE_HIP_FLAGS=" in recipe[0](Spec("+rocm", **ROCM)).cmake_args()


def rccl_of(recipe, spec):
    """rccl-tests of a spec, with the one version that its recipe has."""
    ((_, (version,), kwargs),) = [one for one in recipe[1] if one[0] == "version"]
    package = recipe[0](spec)
    package.version, package.versions = version, {version: kwargs}
    return package


def test_rccl_tests_take_rccl_and_mpi_of_the_spec(rccl_tests):
    without = rccl_of(rccl_tests, Spec("~mpi", **ROCM)).build_targets
    assert {
        "ROCM_PATH=/hip",
        "NCCL_HOME=/rccl",
        "CUSTOM_RCCL_LIB=/rccl/lib",
        # As the parser reads it: rccl-tests: Version develop:ae3e635
        "GIT_BRANCH=develop",
        "GIT_REV=ae3e635",
        "GIT_DIFF=",
    } <= set(without)
    assert not any("MPI" in one for one in without)
    targets = rccl_of(rccl_tests, Spec("+mpi", **ROCM)).build_targets
    assert {*without, "MPI=1", "MPI_HOME=/mpi"} == set(targets)


def test_rccl_tests_find_their_libraries_and_are_linked_with_the_flags_of_the_spec(rccl_tests):
    set_to = {}
    environment = types.SimpleNamespace(append_flags=set_to.__setitem__)
    spec = Spec("+mpi", flags=["-L/gtl", "-lmpi_gtl_hsa"], **ROCM)
    rccl_of(rccl_tests, spec).setup_build_environment(environment)
    folders = [f"-Wl,-rpath,/{one}/lib" for one in ("rccl", "hip", "mpi", "gcc-runtime")]
    assert set_to == {"HIPCC_LINK_FLAGS_APPEND": " ".join([*folders, "-L/gtl", "-lmpi_gtl_hsa"])}


@pytest.fixture(params=[0, 1], ids=["Spack 0.x", "Spack 1.x"])
def load_tool(request, monkeypatch):
    return lambda name: load(monkeypatch, name, api=request.param)[0]


@pytest.mark.parametrize(
    ("compiler", "option"),
    [("/usr/bin/g++-12", ""), ("/p/GCC/11.2.0/bin/g++", "--gcc-toolchain=/p/GCC/11.2.0 ")],
)
def test_transferbench_is_compiled_for_the_devices_and_finds_its_libraries(
    load_tool, monkeypatch, compiler, option
):
    package = load_tool("transferbench")
    monkeypatch.setenv("SPACK_CXX", compiler)
    spec = Spec("%gcc", amdgpu_target=("gfx90a", "gfx942"))
    target, hipcc, compile_flags, libraries = package(spec).build_targets
    assert target == "../TransferBench"
    devices = "--offload-arch=gfx90a --offload-arch=gfx942"
    assert hipcc == f"HIPCC=/hip/bin/hipcc {option}{devices}"
    # What one gives replaces the variables of its Makefile: -O3, and the folder of its headers.
    assert compile_flags.startswith("CXXFLAGS=-O3 -Iinclude -I/hip/include -I/numactl/include")
    assert libraries.endswith("-lnuma -lhsa-runtime64 -lpthread")
    assert "-L/hsa-rocr-dev/lib -Wl,-rpath,/hsa-rocr-dev/lib" in libraries


def test_babelstream_is_the_hip_form_for_the_devices(load_tool):
    arguments = load_tool("babelstream")(Spec("%gcc", **ROCM)).cmake_args()
    assert arguments == [
        "-DMODEL=hip",
        "-DCMAKE_CXX_COMPILER=/hip/bin/hipcc",
        "-DRELEASE_FLAGS=-O3",
        "-DCXX_EXTRA_FLAGS=--offload-arch=gfx90a",
    ]
