"""What `site check` finds of modules, Spack, programs and commands, there and missing."""

from __future__ import annotations

import json

import pytest
from site_trees import Tree, environment_of, said, target

from fabricheck.core import checkout
from fabricheck.run import site_check
from fabricheck.site import clusters

import locks  # isort: skip
from fabricheck import __version__

MODULE = """() {
  case "$1 $2" in
    "load gone/1") echo "The following module is unknown: gone/1"; return 1;;
    load*) loaded="$loaded $2";;
    "-t list") echo "Currently Loaded Modulefiles:"; for m in $loaded; do echo "$m(default)"; done;;
  esac
}"""


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_commands_of_scheduler_and_launcher(tree, wording):
    for name in ("sbatch", "squeue", "sacct", "scancel"):
        tree.tool(name)
    tree.environ["FABRICHECK_ACCOUNT"] = "project_1"
    *found, srun, account = said(site_check.launching(target(), tree.machine()))
    assert {status for status, _ in found} == {"ok"}
    assert srun[0] == "missing"
    assert srun[1].startswith("The command srun is not on the PATH, but lumi:gpu starts programs")
    assert account[0] == "ok"
    wording(account[1])
    inside = target(scheduler="local", extras={"mpi_launcher": "mpirun-openmpi"})
    tree.tool("mpirun")
    assert [status for status, _ in said(site_check.launching(inside, tree.machine()))] == [
        "missing",
        "ok",
    ]


def test_jobs_without_an_account(tree):
    sentence = "The jobs of lumi:gpu have no account: export FABRICHECK_ACCOUNT=PROJECT."
    for empty in ({}, {"FABRICHECK_ACCOUNT": " "}):
        tree.environ |= empty
        assert said(site_check.launching(target(), tree.machine()))[-1] == ("missing", sentence)
    stated = target(access=["--account=a"])
    assert said(site_check.launching(stated, tree.machine()))[-1][0] == "ok"


def test_modules_are_loaded_one_after_the_other(tree, wording):
    tree.environ["BASH_FUNC_module%%"] = MODULE
    wanted = {**environment_of("/my/bin"), "modules": ["LUMI/24.03", {"name": "gone/1"}, "rocm"]}
    found = said(site_check.modules(target(), wanted, tree.machine()))
    assert [status for status, _ in found] == ["ok", "missing", "ok"]
    wording(sentence for _, sentence in found)
    # Of one check, after the others.
    wanted["extras"]["rccl_nodes"] = {"modules": ["gone/1"]}
    found = said(site_check.modules(target(), wanted, tree.machine()))
    assert [status for status, _ in found] == ["ok", "missing", "ok", "missing"]


def test_no_module_system(tree):
    wanted = {**environment_of("/my/bin"), "modules": ["rocm"]}
    ((status, says),) = said(site_check.modules(target(), wanted, tree.machine()))
    assert (status, says[:35]) == ("missing", "The command module is missing here,")
    tree.environ["LMOD_PKG"] = str(tree.root / "lmod")
    tree.put("lmod/init/bash", f"module {MODULE}\n")
    assert said(site_check.modules(target(), wanted, tree.machine()))[0][0] == "ok"
    none = target()
    none.system["modules_system"] = "nomod"
    ((status, says),) = said(site_check.modules(none, wanted, tree.machine()))
    assert (status, "no modules_system that could load them" in says) == ("missing", True)


@pytest.fixture
def lumi(tree, tmp_path, monkeypatch):
    """The environment of the site, whose Spack environment is installed with all it needs."""
    monkeypatch.setattr(checkout, "ROOT", tmp_path / "checkout")
    monkeypatch.setattr(checkout, "ORIGIN", tmp_path / "checkout")
    view = clusters.view("lumi")
    view.mkdir(parents=True)
    composed = locks.composed()
    specs = composed["concrete_specs"]
    specs[locks.MPI]["external"]["path"] = "/opt/cray/mpich/8.1.28/ofi/gnu/12.3"
    for name in ("gmake", "numactl"):
        specs[name] = {
            **specs[locks.MPI],
            "name": name,
            "version": "1",
            "external": {"path": "/usr"},
        }
    (view.parent / "spack.lock").write_text(json.dumps(composed))
    paths = {"c": "/usr/bin/gcc-12", "cxx": "/usr/bin/g++-12"}
    gcc = {"spec": "gcc@=12.2.0 languages=c,c++", "extra_attributes": {"compilers": paths}}
    for file, content in {
        "spack.yaml": {"spack": {"include": ["../common/gcc.yaml"]}},
        "../common/gcc.yaml": {"packages": {"gcc": {"externals": [gcc]}}},
    }.items():
        (view.parent / file).parent.mkdir(exist_ok=True)
        (view.parent / file).write_text(json.dumps(content))
    for name in ("gcc-12", "g++-12", "make"):
        tree.tool(name, folder=tree.root / "usr/bin")
    tree.tool("stream", folder=view / "bin")
    tree.tool("spack", "echo 0.23.1")
    (tree.root / "opt/cray/mpich/8.1.28/ofi/gnu/12.3").mkdir(parents=True)
    tree.put("opt/cray/mpich/8.1.28/gtl/lib/libmpi_gtl_hsa.so")
    return environment_of(view / "bin", spack_environment="lumi")


def test_all_of_spack_is_there(tree, lumi, wording):
    found = said(site_check.check_spack(lumi, tree.machine()))
    assert {status for status, _ in found} == {"ok"}
    assert [says.split(" ")[0] for _, says in found] == ["Spack", "The", "The", "Cray"]
    # What is installed needs no Spack and no compiler any more.
    (tree.root / "usr/bin/gcc-12").unlink()
    (tree.root / "usr/bin/make").unlink()
    (tree.bin / "spack").unlink()
    assert {status for status, _ in said(site_check.check_spack(lumi, tree.machine()))} == {"ok"}
    assert not list(site_check.check_spack(environment_of("/my/bin"), tree.machine()))
    elsewhere = environment_of("/my/bin", spack_environment="lumi")
    ((status, sentence),) = said(site_check.check_spack(elsewhere, tree.machine()))
    assert status == "ok"
    wording(sentence)


def test_only_cray_mpich_has_a_library_for_devices(tree, lumi):
    host = {**lumi, "extras": lumi["extras"] | {"runtime": "host"}}
    found = said(site_check.check_spack(host, tree.machine()))
    assert not any("Cray MPICH" in says for _, says in found)
    lock = clusters.view("lumi").parent / "spack.lock"
    lock.write_text(lock.read_text().replace("cray-mpich", "mpich"))
    found = said(site_check.check_spack(lumi, tree.machine()))
    assert not any("Cray MPICH" in says for _, says in found)


def test_what_builds_is_there(tree, lumi, wording):
    (clusters.view("lumi") / "bin/stream").unlink()
    found = said(site_check.check_spack(lumi, tree.machine()))
    assert found[1][1].startswith("The Spack environment lumi is not installed")
    assert found[2][0] == "ok"
    wording(found[2][1])


def test_a_lock_of_other_software_than_its_environment_is_told(tree, lumi, wording):
    """Of the repository's spack.yaml, which was changed, not of its copy beside what was built."""
    committed = checkout.ROOT / "spack-env/lumi"
    committed.mkdir(parents=True)
    prefix = "/opt/cray/mpich/8.1.28/ofi/gnu/12.3"
    mpich = {"spec": "cray-mpich@8.1.28 +wrappers", "prefix": prefix}
    for version, statuses in (("8.1.28", {"ok"}), ("8.1.29", {"ok", "missing"})):
        mpich["spec"] = f"cray-mpich@={version} +wrappers"
        content = {"spack": {"packages": {"cray-mpich": {"externals": [mpich]}}}}
        (committed / "spack.yaml").write_text(json.dumps(content))
        found = said(site_check.check_spack(lumi, tree.machine()))
        assert {status for status, _ in found} == statuses
    (sentence,) = [says for status, says in found if status == "missing"]
    wording(sentence)


#: What is needed only until all is built.
TO_BUILD = ("spack", "program", "compiler", "no compiler", "no include", "yaml")


def take_away(tree, name):
    home = clusters.view("lumi").parent
    if name in TO_BUILD:
        (home / "view/bin/stream").unlink()
    if name == "spack":
        (tree.bin / "spack").unlink()
    elif name == "old":
        tree.tool("spack", "echo 0.20.3")
    elif name == "broken":
        tree.tool("spack", "echo no python; exit 1")
    elif name == "lock":
        (home / "spack.lock").unlink()
    elif name == "format":
        (home / "spack.lock").write_text(locks.text(9))
    elif name == "view":
        (home / "view/bin/stream").unlink()
    elif name == "external":
        (tree.root / "opt/cray/mpich/8.1.28/ofi/gnu/12.3").rmdir()
    elif name == "program":
        (tree.root / "usr/bin/make").chmod(0o644)
    elif name == "compiler":
        (tree.root / "usr/bin/g++-12").unlink()
    elif name == "no compiler":
        (home / "../common/gcc.yaml").write_text("packages: {}")
    elif name == "no include":
        (home / "../common/gcc.yaml").unlink()
    elif name == "yaml":
        (home / "spack.yaml").write_text("spack: [")
    else:
        (tree.root / "opt/cray/mpich/8.1.28/gtl/lib/libmpi_gtl_hsa.so").unlink()


MISSING = {
    "spack": "Spack is not on the PATH, but spack-env/install lumi needs it: get Spack 0.23.0",
    "old": "Spack has version 0.20, but the lock of lumi (format 5) needs 0.21 or newer.",
    "broken": "'spack --version' reports no version, but: no python.",
    "lock": "The Spack environment lumi has no lock: there is no",
    "format": "The lock of Spack environment lumi cannot be used: ",
    "view": "The Spack environment lumi is not installed, ",
    "external": "cray-mpich@8.1.28 should be in /opt/cray/mpich/8.1.28/ofi/gnu/12.3, which does",
    "program": "gmake@1 should be /usr/bin/gmake or /usr/bin/make, which is no program",
    "compiler": "the compiler gcc@12.2.0 should be /usr/bin/g++-12, which is no program",
    "no compiler": "No compiler of the lock is in ",
    **dict.fromkeys(("no include", "yaml"), "What the lock takes from the site is unknown: "),
    "gtl": "Cray MPICH has no libmpi_gtl_hsa.so in ",
}


@pytest.mark.parametrize("name", MISSING)
def test_what_spack_lacks_is_one_sentence(tree, lumi, name):
    take_away(tree, name)
    found = [
        says
        for status, says in said(site_check.check_spack(lumi, tree.machine()))
        if status != "ok"
    ]
    assert sum(one.startswith(MISSING[name]) for one in found) == 1
    # Without Spack's programs there are two.
    assert len(found) == (2 if name in TO_BUILD else 1)


FEATURES = ("stream", "mpi", "osu", "rccl-tests")


def own(
    tree,
    tmp_path,
    stream=f"{__version__} (abc, runtime rocm)",
    osu="  -d --accelerator TYPE",
):
    folder = tmp_path / "programs"
    tree.tool("stream", f"echo '{stream}'", folder)
    tree.tool("mpi", "exit 1", folder)
    tree.tool("all_reduce_perf", folder=folder)
    tree.tool("osu_bw", f"echo 'Options:'; echo '{osu}'", folder / "osu/mpi/pt2pt")
    tree.tool("ldd", "echo '  libmpi.so.12 => /opt/mpich/libmpi.so.12 (0x1)'")
    extras = {"osu_folder": str(folder / "osu"), "rccl_folder": str(folder)}
    return environment_of(folder, FEATURES, **extras)


def test_all_programs_are_there(tree, tmp_path):
    found = said(site_check.check_programs(target(), own(tree, tmp_path), tree.machine()))
    assert {status for status, _ in found} == {"ok"}
    beside = str(tmp_path / "programs")
    first = [says.partition(" ")[0].removeprefix(f"{beside}/") for _, says in found]
    assert first == ["The", "stream", "mpi", "OSU", "osu/mpi/pt2pt/osu_bw", "The"]


@pytest.mark.parametrize(
    ("compiled_for", "device", "runs"),
    [
        ("gfx90a", "gfx90a", True),
        ("gfx90a, gfx942", "gfx942", True),
        ("gfx90a:xnack+", "gfx90a", True),
        ("gfx90a, gfx942", "gfx950", False),
        ("gfx9-4-generic", "gfx950", True),  # the compiler knows what it is for
        ("sm_80, sm_90", "sm_90", True),
        ("sm_80, sm_90", "sm_100", True),  # a driver compiles the PTX
        ("sm_90a", "sm_100", False),
        ("sm_90", "sm_80", False),
        ("sm_all-major", "sm_80", True),
    ],
)
def test_programs_have_kernels_for_the_devices_of_the_partition(
    tree, tmp_path, compiled_for, device, runs, wording
):
    runtime, option = ("rocm", "HIP") if device.startswith("gfx") else ("cuda", "CUDA")
    environment = own(tree, tmp_path, f"{__version__} (abc, runtime {runtime} for {compiled_for})")
    command = f"cmake -DFABRICHECK_RUNTIME={runtime} {{architectures}}"
    environment["extras"] |= {"runtime": runtime, "build_command": command}
    where = target(environment, devices=[{"type": "gpu", "arch": device, "num_devices": 8}])
    found = said(site_check.check_programs(where, environment, tree.machine()))
    about = next(one for one in found if "stream has version" in one[1] or "was compiled" in one[1])
    if runs:
        assert about == ("ok", f"stream has version {__version__} (abc) and runtime {runtime}.")
        return
    built = f"-DCMAKE_{option}_ARCHITECTURES={device.removeprefix('sm_')}"
    assert (about[0], built in about[1]) == ("missing", True)
    wording(about[1])


#: Loads what it is asked to, and lets ldd know.
LOADING = '() { loaded="$loaded $2"; export loaded; }'
LDD = """case "$loaded" in
  *libfabric*) echo "  libfabric.so.1 => /opt/cray/libfabric/lib64/libfabric.so.1 (0x1)";;
  *) echo "  libfabric.so.1 => not found";;
esac
echo "  libmpi.so => /opt/mpich/libmpi.so (0x1)"
"""


def test_a_program_of_ranks_finds_its_libraries_with_the_modules_of_a_job(tree, tmp_path, wording):
    """As after a purge of the modules that a login has: MPI is linked, and libfabric is not."""

    def libraries():
        found = said(site_check.check_programs(target(), wanted, tree.machine()))
        return [one for one in found if " in a job, " in one[1]]

    wanted = own(tree, tmp_path) | {"modules": ["PrgEnv-gnu", "rocm/6.2.4"]}
    tree.environ["BASH_FUNC_module%%"] = LOADING
    tree.tool("ldd", LDD)
    found = libraries()
    assert [status for status, _ in found] == ["missing", "missing"]
    wording(sentence for _, sentence in found)
    wanted["modules"].append("libfabric")
    assert [status for status, _ in libraries()] == ["ok", "ok"]
    # A variable of the site file may have the folder instead.
    wanted["modules"].pop()
    wanted["env_vars"] = [["loaded", "$loaded:/opt/libfabric"]]
    assert [status for status, _ in libraries()] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("library", "status"),
    [
        ("libmpi_gnu_123.so.12", "ok"),
        # What Cray MPICH needs for devices, and what any program has.
        ("libmpi_gtl_hsa.so.0", "missing"),
        ("libc.so.6", "missing"),
    ],
)
def test_tests_of_collectives_need_mpi_where_there_are_several_nodes(
    tree, tmp_path, library, status
):
    environment = own(tree, tmp_path)
    tree.tool("ldd", f"echo '  {library} => /lib/{library} (0x1)'")
    program = tmp_path / "programs" / "all_reduce_perf"
    nodes = target(features=["several_nodes"])
    found = said(site_check.check_programs(nodes, environment, tree.machine()))[-1]
    assert found[0] == status and found[1].startswith(f"{program} ")
    assert ("is built without MPI" in found[1]) == (status == "missing")
    # On one node a single process has all devices.
    others = said(site_check.check_programs(target(), environment, tree.machine()))
    assert not any(says.startswith(f"{program} ") for _, says in others)


OTHERS = {
    f"{__version__} (abc, runtime cuda)": "has runtime cuda, but environment rocm has rocm.",
    "0.0.9 (abc, runtime rocm)": f"has version 0.0.9, but this is {__version__}: build with "
    "'make it'.",
    "stream: libamdhip64.so.6: no such library": "--version reports no version, but: stream: lib",
}


@pytest.mark.parametrize("stream", OTHERS)
def test_a_program_of_another_kind(tree, tmp_path, stream):
    found = said(site_check.check_programs(target(), own(tree, tmp_path, stream), tree.machine()))
    assert found[1][0] == "missing"
    assert OTHERS[stream] in found[1][1]


def test_programs_that_are_not_there(tree, tmp_path, wording):
    environment = own(tree, tmp_path)
    folder = tmp_path / "programs"
    (folder / "mpi").chmod(0o644)
    (folder / "all_reduce_perf").unlink()
    (folder / "osu/mpi/pt2pt/osu_bw").unlink()
    lacks = [
        one[1]
        for one in said(site_check.check_programs(target(), environment, tree.machine()))
        if one[0] != "ok"
    ]
    wording(lacks[0])
    wording(lacks[1])
    wording(lacks[2])
    del environment["extras"]["rccl_folder"]
    last = said(site_check.check_programs(target(), environment, tree.machine()))[-1]
    assert last[0] == "missing"
    assert last[1].startswith("No folder of rccl-tests is stated, so their checks are left out")


def test_osu_without_devices(tree, tmp_path, wording):
    found = said(site_check.check_programs(target(), own(tree, tmp_path, osu="-m"), tree.machine()))
    assert found[3][0] == "missing"
    wording(found[3][1])
    environment = own(tree, tmp_path)
    tree.tool("osu_bw", "exit 1", tmp_path / "programs/osu/mpi/pt2pt")
    # It may start inside a job only.
    assert (
        said(site_check.check_programs(target(), environment, tree.machine()))[3][0] == "not seen"
    )
    assert (
        said(site_check.check_programs(target(), environment, tree.machine(compute=True)))[3][0]
        == "missing"
    )
