"""spack-env/install ends with one sentence and its own code for each thing that may be wrong.

Spack is a stand-in that keeps an environment in spack.lock, as the real one does.
"""

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: The functions of what Spack's Python runs.
CHECK = runpy.run_path(str(ROOT / "spack-env" / "check.py"))

# What spack.yaml asks for becomes `concrete_specs` with the hash NAME-HASH.
SPACK = """#!{python}
import json, os, pathlib, subprocess, sys

arguments, asked = sys.argv[1:], os.environ.get
with open({calls!r}, "a") as stream:
    print(json.dumps(arguments), file=stream)
if arguments[0] == "python":
    modules = dict(os.environ, PYTHONPATH={modules!r})
    sys.exit(subprocess.run([sys.executable, *arguments[1:]], env=modules).returncode)
assert arguments[:2] == ["-e", "."]
command = arguments[2]
if asked("FAIL") == command:
    sys.exit("==> Error: " + asked("SAYS", "no"))
lock = pathlib.Path("spack.lock")
added = pathlib.Path("added")
if command == "add":
    added.write_text((added.read_text() if added.exists() else "") + arguments[3] + chr(10))
elif command == "concretize":
    content = json.loads(lock.read_text()) if lock.exists() else {first!r}
    if asked("CHANGES"):
        content["concrete_specs"] = {{}}
    for spec in added.read_text().split(chr(10))[:-1] if added.exists() else []:
        content["concrete_specs"][spec] = {{"name": "fabricheck", "version": "0.1.0"}}
    lock.write_text(json.dumps(content))
elif command == "install" and not asked("EMPTY"):
    program = pathlib.Path("view/bin/stream")
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh" + chr(10))
    program.chmod(0o755)
elif command == "install":
    pathlib.Path("view").mkdir()
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout with one environment, `site`, that has an external and a compiler."""
    root = tmp_path / "checkout"
    shutil.copytree(ROOT / "spack-env", root / "spack-env", ignore=shutil.ignore_patterns("__*"))
    for folder in (root / "spack-env").iterdir():
        if (folder / "spack.yaml").exists():
            shutil.rmtree(folder)
    for part in ["cmake", "src/bench", "src/runtime"]:
        (root / part).mkdir(parents=True)
        (root / part / "one").touch()
    (root / "CMakeLists.txt").touch()
    site = root / "spack-env" / "site"
    site.mkdir()
    prefix, compiler = tmp_path / "opt" / "mpi", tmp_path / "opt" / "gcc"
    prefix.mkdir(parents=True)
    compiler.touch(mode=0o755)
    paths = {"compilers": {"c": str(compiler)}}
    external = {"spec": "gcc@=12.3 languages=c", "extra_attributes": paths}
    packages = {"gcc": {"externals": [external]}}
    (site / "spack.yaml").write_text(json.dumps({"spack": {"packages": packages, "include": []}}))
    specs = {
        "abc": {"name": "osu", "version": "7.4", "compiler": {"name": "gcc", "version": "12.3"}},
        "def": {"name": "mpi", "version": "1", "external": {"path": str(prefix), "module": None}},
    }
    lock = {"_meta": {"lockfile-version": 5}, "concrete_specs": specs}
    (site / "spack.lock").write_text(json.dumps(lock))
    (site / "spack-commit").write_text("c0ffee  # 0.23\n")
    (site / "fabricheck.specs").write_text("# of the host\nfabricheck@0.1.0 %gcc@12.3\n")
    return root


@pytest.fixture
def install(checkout, tmp_path):
    """Run `install` with arguments; version of Spack (None: none, or the one of the run before)
    and its faults by name."""

    def run(*arguments, version="0.23.0.dev0", **faults):
        tools = tmp_path / "tools"
        modules = tmp_path / "modules" / "spack" / "util"
        modules.mkdir(parents=True, exist_ok=True)
        (modules / "__init__.py").touch()
        (modules / "spack_yaml.py").write_text("from json import load\n")
        tools.mkdir(exist_ok=True)
        if version:
            (modules.parent / "__init__.py").write_text(f"spack_version = {version!r}\n")
            first = json.loads((checkout / "spack-env" / "site" / "spack.lock").read_text())
            text = SPACK.format(
                python=sys.executable,
                calls=str(tmp_path / "calls"),
                modules=str(modules.parents[1]),
                first=first,
            )
            (tools / "spack").write_text(text)
            (tools / "spack").chmod(0o755)
        path = f"{tools}:/usr/bin:/bin"
        return subprocess.run(
            [checkout / "spack-env" / "install", *arguments],
            env={"PATH": path, **faults},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def edit(checkout, change):
    """Change the lock of the environment `site`."""
    path = checkout / "spack-env" / "site" / "spack.lock"
    lock = json.loads(path.read_text())
    change(lock)
    path.write_text(json.dumps(lock))


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_was_locked_is_built_with_our_package_on_top(install, checkout, tmp_path):
    before = contents(checkout / "spack-env")
    ended = install("site", "-j", "3")
    assert ended.returncode == 0, ended.stderr
    folder = checkout / "build" / "spack" / "site"
    assert f"site is built; its programs are in {folder}/view/bin" in ended.stdout
    locked = json.loads((folder / "third-party.lock").read_text())
    assert list(locked["concrete_specs"]) == ["abc", "def"]
    built = json.loads((folder / "spack.lock").read_text())
    assert list(built["concrete_specs"]) == ["abc", "def", "fabricheck@0.1.0 %gcc@12.3"]
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    assert calls[-1] == ["-e", ".", "install", "-j", "3"]
    assert contents(checkout / "spack-env") == before
    source = checkout / "build" / "spack" / "source"
    assert (source / "src" / "runtime" / "one").exists()
    # Spack builds again by times: a copy must not be newer than what it is of.
    for path in [source, source / "src", source / "CMakeLists.txt"]:
        assert path.stat().st_mtime_ns == (checkout / "CMakeLists.txt").stat().st_mtime_ns


def test_tools_are_built_on_request_beside_our_package(install, checkout):
    ended = install("--tools", "site")
    assert (ended.returncode, ended.stderr) == (
        2, "spack-env/install: site has no tools.specs: leave --tools out\n"
    )  # fmt: skip
    (checkout / "spack-env/site/tools.specs").write_text("transferbench@1.52 %gcc@12.3\n")
    assert install("--tools", "site").returncode == 0
    built = json.loads((checkout / "build/spack/site/spack.lock").read_text())
    names = [spec.partition(" ")[0] for spec in built["concrete_specs"]]
    assert names == ["abc", "def", "fabricheck@0.1.0", "transferbench@1.52"]


def test_a_new_lock_is_made_without_the_committed_one(install, checkout):
    edit(checkout, lambda lock: lock["_meta"].update({"lockfile-version": 99}))
    ended = install("--new-lock", "--no-build", "site")
    assert ended.returncode == 0, ended.stderr
    folder = checkout / "build" / "spack" / "site"
    assert (folder / "third-party.lock").exists()
    assert not (folder / "view").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name an environment: site"),
        (["elsewhere"], "'elsewhere' is no environment; there are: site"),
        (["repo"], "'repo' is no environment"),
        (["../spack-env/site"], "is no environment"),
        (["--fast", "site"], "'--fast' is no option"),
    ],
)
def test_bad_usage(install, checkout, arguments, sentence):
    ended = install(*arguments)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)
    assert sentence in ended.stderr
    assert not (checkout / "build").exists()


def test_without_a_spack_the_one_to_get_is_named(install):
    ended = install("site", version=None)
    assert ended.returncode == 3
    assert "no spack on the PATH; get commit c0ffee" in ended.stderr


def test_a_spack_that_cannot_use_the_lock_is_said(install):
    ended = install("site", version="0.20.3")
    assert ended.returncode == 3
    assert "Spack 0.20 is too old for the lock (format 5, Spack 0.21 or newer)" in ended.stderr


@pytest.mark.parametrize(
    ("version", "number", "sentence"),
    [
        ((0, 23), 6, "Spack 0.23 is too old for the lock (format 6, Spack 1.0 or newer)"),
        ((1, 1), 7, "Spack 1.1 is too old for the lock (format 7, Spack 1.2 or newer)"),
        ((1, 0), 5, "Spack 1.0 is too new for the lock (format 5, before Spack 1.0)"),
        ((1, 2), 6, None),
        ((0, 23), 99, "the lock has the unknown format 99; it was made by commit c0ffee"),
    ],
)
def test_which_spack_can_use_a_lock(version, number, sentence):
    said = CHECK["unusable"]({"_meta": {"lockfile-version": number}}, version, "c0ffee")
    assert said is None if sentence is None else sentence in said


def test_a_compiler_that_is_a_package_of_the_lock(install, checkout, tmp_path):
    def as_spack_1_locks(lock):
        lock["_meta"]["lockfile-version"] = 6
        del lock["concrete_specs"]["abc"]["compiler"]
        external = {"path": str(tmp_path), "module": None}
        lock["concrete_specs"]["ghi"] = {"name": "gcc", "version": "12.3", "external": external}

    edit(checkout, as_spack_1_locks)
    assert install("--no-build", "site", version="1.1.0").returncode == 0
    (tmp_path / "opt" / "gcc").unlink()
    ended = install("--no-build", "site", version="1.1.0")
    assert (ended.returncode, len(ended.stderr.splitlines())) == (3, 1)
    assert f"the compiler gcc@12.3 should be {tmp_path}/opt/gcc, which is no" in ended.stderr


def test_a_broken_lock_is_named(install, checkout):
    install("--new-lock", "--no-build", "site")  # writes the stand-in of Spack, from the whole lock
    lock = checkout / "spack-env" / "site" / "spack.lock"
    lock.write_text("{}")
    ended = install("site", version=None)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (3, 1)
    assert f"{lock} is not a Spack lock, or a broken one: no '_meta' in it" in ended.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"_meta": {"lockfile-version": 5}, "concrete_sp', "Unterminated string starting at"),
        ('{"_meta": {"lockfile-version": 5}}', "no 'concrete_specs' in it"),
        ("[]", "list indices must be"),
        ('{"_meta": {"lockfile-version": 5}, "concrete_specs": []}', "list"),
    ],
)
def test_what_is_no_lock_has_its_reason(tmp_path, text, reason):
    (tmp_path / "spack.lock").write_text(text)
    with pytest.raises(CHECK["BrokenLock"], match=f"/spack.lock is not a Spack lock.*{reason}"):
        CHECK["read"](str(tmp_path / "spack.lock"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spack.lock", "spack-commit", "fabricheck.specs"])
def test_a_file_that_the_environment_lacks(install, checkout, name):
    install("--new-lock", "--no-build", "site")
    site = checkout / "spack-env" / "site"
    (site / name).unlink()
    ended = install("site", version=None)
    assert ended.returncode == 3
    assert ended.stderr.splitlines() == [
        f"spack-env/install: {site} has no {name}: take it again from the repository"
    ]
    # A new lock needs no old one.
    again = install("--new-lock", "--no-build", "site", version=None)
    assert again.returncode == (0 if name == "spack.lock" else 3)


def test_an_external_that_is_not_on_this_machine(install, tmp_path):
    (tmp_path / "opt" / "mpi").rmdir()
    (tmp_path / "opt" / "gcc").chmod(0o644)
    ended = install("site")
    assert ended.returncode == 3
    assert ended.stderr.splitlines() == [
        f"spack-env/install: mpi@1 should be in {tmp_path}/opt/mpi, "
        "which does not exist on this machine",
        f"spack-env/install: the compiler gcc@12.3 should be {tmp_path}/opt/gcc, "
        "which is no program on this machine",
    ]


def on_a_cray_with_rocm(tmp_path):
    """Return the packages of a lock that takes MPI and ROCm from such a machine."""
    specs = {}
    for name in ("cray-mpich", "hip"):
        prefix = tmp_path / "opt" / name
        prefix.mkdir(parents=True)
        external = {"path": str(prefix), "module": None}
        specs[name] = {"name": name, "version": "5.7.0", "external": external}
    return specs


def test_modules_that_are_in_the_way_end_it(install, checkout, tmp_path):
    specs = on_a_cray_with_rocm(tmp_path)
    edit(checkout, lambda lock: lock["concrete_specs"].update(specs))
    ended = install("--no-build", "site", PE_ENV="GNU")
    assert (ended.returncode, len(ended.stderr.splitlines())) == (3, 1)
    assert "modules of the Cray programming environment are loaded (PE_ENV is" in ended.stderr


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("CRAYPE_VERSION", "2.7.30", "are loaded (CRAYPE_VERSION is 2.7.30), beside which mpicc"),
        ("ROCM_PATH", "/opt/rocm-6.0.3", "ROCM_PATH is /opt/rocm-6.0.3, and the lock takes hip@5"),
        ("HIP_PATH", "{opt}/hipper", "/opt/hipper, and the lock takes hip@5.7.0 from "),
        ("ROCM_PATH", "{opt}/hip/", None),
        ("ROCM_PATH", "{opt}/link", None),
        ("HIP_PATH", "{opt}/hip/hip", None),
    ],
)
def test_which_modules_are_in_the_way(tmp_path, variable, value, sentence):
    lock = {"concrete_specs": on_a_cray_with_rocm(tmp_path)}
    (tmp_path / "opt" / "link").symlink_to("hip")
    loaded = {variable: value.format(opt=tmp_path / "opt")}
    said = list(CHECK["in_the_way"](lock, loaded))
    assert len(said) == (1 if sentence else 0)
    assert all(sentence in one and "module --force purge" in one for one in said)


def test_modules_are_in_nobodys_way_where_nothing_is_cray_or_rocm():
    lock = {"concrete_specs": {"abc": {"name": "osu", "version": "7.4"}}}
    loaded = {"PE_ENV": "GNU", "ROCM_PATH": "/opt/rocm-6.0.3"}
    assert list(CHECK["in_the_way"](lock, loaded)) == []


def test_packages_of_the_system_are_named_before_anything_is_done(install, checkout, tmp_path):
    install("--no-build", "site")
    shutil.rmtree(checkout / "build")
    (checkout / "spack-env" / "site" / "debian-packages").write_text("mpich\ng++\ncmake\n")
    query = tmp_path / "tools" / "dpkg-query"
    query.write_text("#!/bin/sh\n[ $4 = mpich ] || { echo install ok installed; exit; }\nexit 1\n")
    query.chmod(0o755)
    ended = install("site", version=None)
    assert (ended.returncode, ended.stderr) == (
        3,
        "spack-env/install: packages of this system are missing; run as root: "
        "apt-get install mpich\n",
    )
    assert not (checkout / "build").exists()
    query.write_text("#!/bin/sh\necho install ok installed\n")
    assert install("site", version=None).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "code", "sentence"),
    [
        ({"FAIL": "concretize"}, 4, "concretizing our package in site failed; all it said is in"),
        ({"FAIL": "add"}, 4, "adding 'fabricheck@0.1.0 %gcc@12.3' to site failed"),
        ({"FAIL": "install"}, 4, "building site failed"),
        ({"EMPTY": "yes"}, 4, "/view has no programs after the build"),
        ({"CHANGES": "yes"}, 5, "Spack would change what is locked: mpi@1/def, osu@7.4/abc"),
        (
            {"FAIL": "install", "SAYS": "[Errno 28] No space left on device"},
            6,
            "building site failed for lack of space on the disk",
        ),
    ],
)
def test_failures_of_spack_have_codes_of_their_own(install, faults, code, sentence):
    ended = install("site", **faults)
    assert ended.returncode == code
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_folder_that_cannot_be_written(install, checkout):
    (checkout / "build").write_text("no folder\n")
    ended = install("site")
    assert ended.returncode == 6
    assert os.fspath(checkout / "build" / "spack" / "site") in ended.stderr
