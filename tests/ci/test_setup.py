"""ci/setup.sh: what it installs for whom, and what it does while apt-get cannot run.

Stand-ins for Python, pip, uv, dpkg-query and apt-get; that of MPICH's wheel brings an mpicxx.
"""

import re
import shutil
import subprocess
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from fabricheck import cli

ROOT = Path(__file__).resolve().parents[2]

PYTHON = """#!/bin/sh
echo "$*" >> {calls}
case "$0 $*" in *uv" pip "*) [ ! -e {tools}/no-network ] || exit 2 ;; esac
case "$*" in
  "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  "-m pip check") [ ! -e {tools}/incomplete ] ;;
  "-m pip config list") cat {tools}/pip.conf 2> /dev/null ;;
  *" install "*)
    prefix=.venv lock=/dev/null
    while [ $# -gt 0 ]; do
      case $1 in --prefix) prefix=$2 ;; -r) lock=$2 ;; esac
      shift
    done
    if grep -q ^uv== "$lock"; then cp "$0" .venv/bin/uv; fi
    if grep -q ^mpich== "$lock"; then
      mkdir -p "$prefix/bin"
      for name in mpicxx mpiexec; do echo > "$prefix/bin/$name"; chmod +x "$prefix/bin/$name"; done
    fi ;;
esac
"""
# Fails so many times, as the file `busy` says, and then installs.
APT_GET = """#!/bin/sh
echo "apt-get $*" >> {calls}
left=$(cat {tools}/busy)
if [ "$left" -gt 0 ]; then
  echo $((left - 1)) > {tools}/busy
  echo "E: $(cat {tools}/says)" >&2
  exit 100
fi
"""
HELD = "Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (unattended-upgr)"


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "checkout"
    (root / "ci").mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", root)
    for file in (ROOT / "ci/setup.sh", *(ROOT / "ci").glob("debian-*.txt")):
        shutil.copy(file, root / "ci")
    for lock in ROOT.glob("requirements*.lock"):
        shutil.copy(lock, root)
    return root


@pytest.fixture
def setup(checkout, tmp_path):
    """Run setup.sh; `busy`: how often apt-get fails and says `says`; None: nothing is missing."""
    tools, calls = tmp_path / "tools", tmp_path / "calls"
    tools.mkdir()

    def tool(name, text):
        (tools / name).write_text(text.format(tools=tools, calls=calls))
        (tools / name).chmod(0o755)

    tool("python3", PYTHON)
    tool("apt-get", APT_GET)
    tool("id", "#!/bin/sh\necho 0\n")
    tool("sleep", "#!/bin/sh\n")

    def run(*arguments, busy=None, says=HELD):
        status = "install ok installed" if busy is None else "unknown"
        tool("dpkg-query", f"#!/bin/sh\necho '{status}'\n")
        (tools / "busy").write_text(f"{busy or 0}\n")
        (tools / "says").write_text(says)
        calls.write_text("")
        ended = subprocess.run(
            [checkout / "ci" / "setup.sh", *arguments],
            env={"PATH": f"{tools}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
        )
        ended.calls = calls.read_text().splitlines()
        return ended

    return run


def found(checkout, *folders):
    """The mpicxx and mpiexec of a shell that has sourced env.sh."""
    path = ":".join([*map(str, folders), "/usr/bin", "/bin"])
    script = f"PATH={path}; source env.sh; type -P mpicxx mpiexec"
    ended = subprocess.run(
        ["bash", "-c", script], cwd=checkout, env={}, capture_output=True, text=True
    )
    return [Path(line) for line in ended.stdout.splitlines()]


@pytest.fixture
def site_mpi(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    for name in ("mpicxx", "mpiexec"):
        (folder / name).touch(mode=0o755)
    return folder


@pytest.mark.parametrize("kind", ["run", "build", "test"])
def test_the_mpi_of_a_site_is_found_first(setup, checkout, site_mpi, kind):
    assert setup(kind).returncode == 0
    assert found(checkout, site_mpi) == [site_mpi / "mpicxx", site_mpi / "mpiexec"]


def test_locks_are_installed_as_they_are(setup, checkout, tmp_path):
    """Without a search for dependencies, which finds newer versions; so nothing may be missing."""
    installs = [call for call in setup("test").calls if " install " in call]
    assert len(installs) == 4 and all(" --no-deps " in call for call in installs)
    shutil.rmtree(checkout / ".venv")
    (tmp_path / "tools" / "incomplete").touch()
    ended = setup()
    assert ended.returncode == 3
    assert "setup: requirements.lock lacks something: .venv/bin/pip check" in ended.stderr


def installers(ended):
    """Each lock that was installed, and by what."""
    return [
        ("pip" if call.startswith("-m pip ") else "uv", lock)
        for call in ended.calls
        for lock in re.findall(r"-r requirements(\S*)\.lock", call)
    ]


def test_what_uv_installs_it_has_by_its_own_lock(setup):
    by = installers(setup("test"))
    assert by == [("pip", "-uv"), ("uv", "-test"), ("uv", "-docs"), ("uv", "-mpi")]


@pytest.mark.parametrize(
    "line", ["global.index-url='https://mirror.example'", ":env:.no-index='1'"]
)
def test_where_pip_is_told_of_an_index_uv_installs_nothing(setup, tmp_path, line):
    (tmp_path / "tools" / "pip.conf").write_text(f"{line}\n")
    assert installers(setup("build")) == [("pip", ""), ("pip", "-mpi")]


def test_what_uv_does_not_reach_pip_installs(setup, tmp_path):
    (tmp_path / "tools" / "no-network").touch()
    ended = setup("run")
    assert ended.returncode == 0
    assert installers(ended) == [("pip", "-uv"), ("uv", ""), ("pip", "")]
    assert ended.stderr == "setup: uv failed, and pip is tried\n" * 2


def test_a_cuda_compiler_is_there_for_who_compiles_for_it_and_only_for_them(setup):
    def of_cuda(kind):
        return [call for call in setup(kind).calls if "requirements-cuda.lock" in call]

    assert of_cuda("test") == []
    assert len(of_cuda("full")) == 1 and of_cuda("full") == []


def test_what_tests_need_of_debian_is_there_before_their_programs_are_compiled(setup, checkout):
    def installed(*arguments):
        return [word for call in setup(*arguments, busy=0).calls for word in call.split()]

    assert "doctest-dev" not in installed("packages")
    assert "doctest-dev" in installed("packages", "test")
    assert not (checkout / ".venv").exists()


def test_mpich_is_there_for_those_who_build_and_only_for_them(setup, checkout):
    own = checkout / ".venv" / "mpich" / "bin"
    assert setup().returncode == 0
    assert not any("mpi" in call for call in setup().calls)
    assert not own.exists()
    assert setup("build").returncode == 0
    if shutil.which("mpicxx", path="/usr/bin:/bin") is None:
        assert found(checkout) == [own / "mpicxx", own / "mpiexec"]
    assert not [call for call in setup("build").calls if " install " in call]


@pytest.mark.parametrize(("lock", "extra"), [("mpi", "mpi"), ("uv", "setup")])
def test_the_one_package_of_a_lock_is_that_of_the_extra(lock, extra):
    (pinned,) = [
        line.split()[0] for line in (ROOT / f"requirements-{lock}.lock").read_text().splitlines()
        if "==" in line
    ]  # fmt: skip
    assert f'{extra} = ["{pinned}"]' in (ROOT / "pyproject.toml").read_text()


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements):
    return {re.split(r"[^\w.-]", one)[0].replace(".", "-").lower() for one in requirements}


@pytest.mark.parametrize(
    ("lock", "extras"),
    [
        ("requirements.lock", ["run", "results", "report"]),
        ("requirements-test.lock", ["run", "results", "report", "test"]),
        ("requirements-cuda.lock", ["cuda-compile"]),
    ],
)
def test_a_lock_pins_what_its_extras_name(lock, extras):
    pinned = re.findall(r"^([\w-]+)==", (ROOT / lock).read_text(), re.MULTILINE)
    of_extras = [PROJECT["optional-dependencies"][name] for name in extras]
    own = PROJECT["dependencies"] if "run" in extras else []
    wanted = names([*own, *chain(*of_extras)])
    assert wanted - set(pinned) == set()


def pinned_versions(lock):
    text = (ROOT / f"requirements-{lock}.lock").read_text()
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def test_the_lock_of_the_site_pins_its_extra_and_agrees_with_that_of_the_tests():
    one, other = (
        dict(
            re.findall(r"^([\w.-]+)==(\S+)", (ROOT / f"requirements-{name}.lock").read_text(), re.M)
        )
        for name in ("docs", "test")
    )
    assert names(PROJECT["optional-dependencies"]["docs"]) <= one.keys()
    assert {name: one[name] for name in one.keys() & other.keys()} == {
        name: other[name] for name in one.keys() & other.keys()
    }


def test_the_extra_of_each_package_that_a_command_misses_has_it():
    brought = {name: names(of) for name, of in PROJECT["optional-dependencies"].items()}
    distributions = {"vl_convert": "vl-convert-python", "reframe": "reframe-hpc"}
    for package, extra in cli.EXTRAS.items():
        assert distributions.get(package, package) in brought[extra]


@pytest.mark.parametrize("busy", [1, 3])
def test_a_package_manager_that_is_busy_is_waited_for(setup, busy, wording):
    ended = setup(busy=busy)
    assert ended.returncode == 0, ended.stderr
    (told,) = [line for line in ended.stdout.splitlines() if HELD in line]
    wording(told)
    assert sum(call.startswith("apt-get update") for call in ended.calls) == busy + 1
    assert sum(call.startswith("apt-get install") for call in ended.calls) == 1


@pytest.mark.parametrize(
    ("busy", "says", "least"),
    [(10**6, HELD, 80), (10**6, "Unable to locate package libcli11-dev", 1)],
)
def test_apt_that_fails_otherwise_or_waits_for_ever_is_one_sentence(setup, busy, says, least):
    ended = setup(busy=busy, says=says)
    assert ended.returncode == 3
    assert ended.stderr == f"E: {says}\nsetup: this command failed: apt-get update\n"
    assert least <= sum(call.startswith("apt-get") for call in ended.calls) <= 100


def test_where_tmp_cannot_be_written_temporary_files_are_among_the_results(
    setup, checkout, tmp_path
):
    setup("run")
    ended = subprocess.run(
        ["bash", "-c", "source ./env.sh && echo $TMPDIR"],
        cwd=checkout,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": "/nowhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == str(checkout / "results/tmp")
    assert (checkout / "results/tmp").is_dir()


def test_another_kind_is_refused(setup):
    ended = setup("tset")
    said = "setup: 'tset' is not packages, build, test, full, gpu or needs\n"
    assert (ended.returncode, ended.stderr) == (2, said)


def test_for_gpus_no_simgrid_and_no_mpich_is_installed(setup, checkout):
    """An unprivileged user of a machine with GPUs needs neither."""
    assert setup("gpu", busy=0).returncode == 0
    assert not (checkout / ".venv" / "mpich" / "bin").exists()
    installed = [call for call in setup("gpu", busy=0).calls if " install " in call]
    assert "libhwloc-dev" in installed[0] and "simgrid" not in installed[0]
    assert "libsimgrid-dev" in next(
        call for call in setup("run", busy=0).calls if " install " in call
    )
    assert setup("needs").stdout.startswith("apt-get install cmake ")


def test_a_compiler_from_elsewhere_is_taken_where_nothing_can_be_installed(setup, tmp_path):
    """As on a node without a network whose cmake and ninja are of a module or of pip."""
    for name in ("cmake", "ninja"):
        (tmp_path / "tools" / name).touch(mode=0o755)
    ended = setup("gpu", busy=9, says="E: no network")
    assert ended.returncode == 0, ended.stderr
    assert "going on with the cmake and ninja that are on the PATH. this command" in ended.stdout
    ended = setup("build", busy=9, says="E: no network")
    assert ended.returncode == 3 and "this command failed: apt-get update" in ended.stderr
