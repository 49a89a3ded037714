"""The committed locks of the sites: only what is meant is built, and all is as it is pinned."""

import json
import re
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from site_stand_ins import SPACK_ENV, STAND_INS

from fabricheck.core.models import read_model
from fabricheck.site import software

# What Spack builds everywhere; gcc-runtime is a copy of the compiler's libraries.
_OURS = {
    *("osu-micro-benchmarks", "cli11", "nlohmann-json", "hwloc", "ncurses", "gcc-runtime"),
}
# CMake and what it downloads with, where no path of one is published.
_CMAKE = {
    *("cmake", "curl", "openssl", "nghttp2", "zlib", "ca-certificates-mozilla"),
    *("diffutils", "libiconv"),
}
_OPENMPI = {"openmpi", "ucx", "libevent", "pmix", "zlib"}
BUILT = {
    "dardel": _OURS | {"rccl-tests"},
    "dardel-26.03": _OURS | _CMAKE | {"rccl-tests"},
    "lumi": _OURS | {"rccl-tests"},
    "lumi-25.09": _OURS | {"rccl-tests"},
    "frontier": _OURS | _CMAKE | {"rccl-tests"},
    "frontier-26.03": _OURS | _CMAKE | {"rccl-tests"},
    "jureca-mi250": _OURS | _CMAKE | _OPENMPI | {"rccl-tests"},
    "jureca-mi250-ompi5": _OURS | _CMAKE | _OPENMPI | {"rccl-tests"},
    "tuolumne": _OURS | {"rccl-tests"},
    "hunter": _OURS | _CMAKE | {"rccl-tests"},
    "leonardo": _OURS | _CMAKE | {"nccl-tests"},
    "jureca-a100": _OURS | {"nccl-tests"},
    "local-cuda": _OURS | _OPENMPI | {"nccl-tests"},
    "local-rocm": _OURS | _OPENMPI | {"rccl-tests"},
}
#: Those with Cray MPICH, as their names begin.
_CRAY = ("lumi", "frontier", "dardel", "tuolumne", "hunter")
ROCM = {"hip", "hsa-rocr-dev", "llvm-amdgpu", "rccl", "comgr", "rocm-smi-lib"}


class Environment:
    """A committed environment: its text, its lock, and the lock's concrete specs."""

    def __init__(self, name: str) -> None:
        self.name = name
        folder = SPACK_ENV / name
        self.specs: list[str] = yaml.safe_load((folder / "spack.yaml").read_text())["spack"][
            "specs"
        ]
        self.text = (folder / "spack.lock").read_text()
        self.lock: dict[str, Any] = json.loads(self.text)
        self.nodes: dict[str, dict[str, Any]] = self.lock["concrete_specs"]
        self.commit = (folder / "spack-commit").read_text().split("#")[0].strip()
        self.ours = (folder / "fabricheck.specs").read_text()

    def only(self, name: str) -> dict[str, Any]:
        (node,) = [node for node in self.nodes.values() if node["name"] == name]
        return node

    def fortran(self) -> list[str]:
        """The Fortran compilers of the environment and of what it includes."""
        folder = SPACK_ENV / self.name
        environment = yaml.safe_load((folder / "spack.yaml").read_text())["spack"]
        sections = [environment]
        sections += [yaml.safe_load((folder / one).read_text()) for one in environment["include"]]
        compilers = [section.get("packages", {}).get("gcc", {}) for section in sections]
        return re.findall(r"'fortran': '([^']*)'", str(compilers))

    def built(self) -> list[dict[str, Any]]:
        return [node for node in self.nodes.values() if "external" not in node]


@pytest.fixture(params=sorted(STAND_INS))
def environment(request):
    return Environment(request.param)


def lacking(spec: str, node: dict[str, Any]) -> list[str]:
    """The words of a spec that a concrete spec does not fulfil."""
    name, *words = spec.replace('"', "").split()
    # A quoted value has spaces: its further words begin with a dash.
    joined: list[str] = []
    for word in words:
        if word.startswith("-"):
            joined[-1] += " " + word
        else:
            joined.append(word)
    found = [] if name == f"{node['name']}@{node['version']}" else [name]
    parameters = node["parameters"]
    for word in joined:
        if word[0] in "+~":
            good = parameters.get(word[1:]) is (word[0] == "+")
        elif word[0] == "%":
            compiler = node["compiler"]
            good = word[1:] == f"{compiler['name']}@{compiler['version']}"
        else:
            key, value = word.split("=", 1)
            has = parameters.get(key)
            wanted = value.split(" " if key.endswith(("flags", "libs")) else ",")
            good = sorted(has if isinstance(has, list) else [has]) == sorted(wanted)
        if not good:
            found.append(word)
    return found


def test_every_stand_in_is_of_an_environment_with_a_lock():
    """A site that has none is locked on its own machine, and not made again here."""
    assert set(STAND_INS) <= {p.parent.name for p in SPACK_ENV.glob("*/spack.lock")}


def test_each_spec_is_a_root_of_the_lock_as_it_is_pinned(environment):
    roots = [environment.nodes[root["hash"]] for root in environment.lock["roots"]]
    by_name = {node["name"]: node for node in roots}
    assert len(by_name) == len(roots) == len(environment.specs)
    for spec in environment.specs:
        node = by_name[re.split("[@ ]", spec)[0]]
        assert lacking(spec, node) == []


def test_only_what_is_meant_is_built(environment):
    assert {node["name"] for node in environment.built()} <= BUILT[environment.name]


def test_all_is_built_by_the_one_compiler_for_the_sites_cpu_and_system(environment):
    compilers = {tuple(node["compiler"].values()) for node in environment.built()}
    assert len(compilers) == 1
    name, version = compilers.pop()
    assert environment.ours.strip().endswith(f"%{name}@{version}")
    systems = {node["arch"]["platform_os"] for node in environment.nodes.values()}
    assert systems == {STAND_INS[environment.name].operating_system}
    targets = {json.dumps(node["arch"]["target"]) for node in environment.nodes.values()}
    assert len(targets) == 1


def test_each_external_has_a_prefix_and_none_is_of_the_machine_that_made_the_lock(environment):
    for node in environment.nodes.values():
        if "external" in node:
            assert PurePosixPath(node["external"]["path"]).is_absolute(), node["name"]
    # Where a person's or a container's files are; a site's own paths begin otherwise.
    assert re.findall(r'"/(?:home|root|tmp|work|mnt)\b[^"]*', environment.text) == []


def test_its_externals_are_those_of_spack_yaml(environment):
    folder = SPACK_ENV / environment.name
    assert software.disagreement(folder, read_model(folder / "spack.lock", software.Lock)) is None


def test_the_libc_is_that_of_the_sites_system(environment):
    machine = STAND_INS[environment.name]
    libc = environment.only("glibc")
    assert (libc["version"], libc["external"]["path"]) == (machine.glibc, machine.glibc_prefix)


def test_there_is_one_rocm(environment):
    versions = {n["version"] for n in environment.nodes.values() if n["name"] in ROCM}
    assert len(versions) == (1 if "+rocm" in environment.ours else 0)


def test_the_lock_names_the_spack_that_made_it(environment):
    assert environment.lock["spack"]["commit"] == environment.commit
    # The oldest form that Spack 0.23 and the releases of 1.x read.
    assert environment.lock["_meta"]["lockfile-version"] == 5


def test_our_package_is_for_the_same_devices_as_osu_and_the_tests_of_collectives(environment):
    osu = next(spec for spec in environment.specs if spec.startswith("osu-micro-benchmarks"))
    devices = re.search(r"\+(?:rocm amdgpu_target|cuda cuda_arch)=\S+", osu)
    assert devices is not None
    assert devices.group() in environment.ours
    tests = next(spec for spec in environment.specs if re.match("[nr]ccl-tests", spec))
    assert devices.group().split()[1] in tests


def test_rccl_tests_are_of_our_own_recipe_and_link_the_rccl_of_the_site(environment):
    if "+rocm" not in environment.ours:
        pytest.skip("there is no RCCL without ROCm")
    tests = environment.only("rccl-tests")
    assert tests["namespace"] == "fabricheck"
    linked = {one["name"] for one in tests["dependencies"]}
    assert {"rccl", "hip", "gcc-runtime"} <= linked
    flags = tests["parameters"]
    if environment.name.startswith(_CRAY):
        # Ranks of several nodes find each other by MPI. Where it is set to device buffers, Cray
        # MPICH ends a program that is linked without its library for them.
        osu = environment.only("osu-micro-benchmarks")["parameters"]
        assert "cray-mpich" in linked and "-lmpi_gtl_hsa" in flags["ldlibs"]
        assert (flags["ldflags"], flags["ldlibs"]) == (osu["ldflags"], osu["ldlibs"])
    else:
        # One process has all devices: no MPI that a launcher would have to start.
        assert "cray-mpich" not in linked and "openmpi" not in linked


def test_a_fortran_compiler_is_asked_for_only_where_something_needs_it(environment):
    needs = environment.name in ("jureca-mi250", "jureca-mi250-ompi5", "local-cuda", "local-rocm")
    assert needs == ("openmpi" in {node["name"] for node in environment.built()})
    assert needs == bool(environment.fortran())


def test_dardel_has_the_set_of_the_publication():
    dardel = Environment("dardel")
    versions = {
        name: dardel.only(name)["version"]
        for name in ("hip", "rccl", "cray-mpich", "osu-micro-benchmarks")
    }
    assert versions == {
        "hip": "5.7.0",
        "rccl": "5.7.0",  # ROCm's version; RCCL calls itself 2.17.1
        "cray-mpich": "8.1.28",
        "osu-micro-benchmarks": "7.4",
    }
    assert dardel.only("osu-micro-benchmarks")["parameters"]["amdgpu_target"] == ["gfx90a"]


@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("jureca-mi250", {"openmpi": "4.1.2", "ucx": "1.12.1", "hip": "5.2.0"}),
        ("jureca-mi250-ompi5", {"openmpi": "5.0.5", "ucx": "1.14.1", "hip": "5.2.0"}),
    ],
)
def test_the_pairs_of_open_mpi_and_ucx_differ_and_rocm_does_not(name, versions):
    environment = Environment(name)
    assert {n: environment.only(n)["version"] for n in versions} == versions
    ucx = environment.only("ucx")["parameters"]
    # What the shared file says and what JURECA's adds, both.
    assert [ucx[v] for v in ("rocm", "thread_multiple", "cma", "verbs", "rc")] == [True] * 5


@pytest.mark.parametrize("name", [name for name in BUILT if name.startswith(_CRAY)])
def test_osu_is_linked_with_the_gpu_layer_of_the_same_cray_mpich(name):
    environment = Environment(name)
    version = environment.only("cray-mpich")["version"]
    flags = environment.only("osu-micro-benchmarks")["parameters"]
    folder = f"/opt/cray/pe/mpich/{version}/gtl/lib"
    assert flags["ldflags"] == [f"-L{folder}", f"-Wl,-rpath,{folder}"]
    assert flags["ldlibs"] == ["-lmpi_gtl_hsa"]
