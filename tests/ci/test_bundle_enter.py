"""A bundle's enter.sh: a tiny bundle without programs, entered in a tiny checkout."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def write(path, text):
    """Write a file, and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def seal(bundle):
    """Write the checksums of a bundle as ci/bundle.sh does."""
    files = sorted(one for one in bundle.rglob("*") if one.is_file() and one.name != "SHA256SUMS")
    sums = [
        f"{hashlib.sha256(one.read_bytes()).hexdigest()}  ./{one.relative_to(bundle)}\n"
        for one in files
    ]
    (bundle / "SHA256SUMS").write_text("".join(sums))


@pytest.fixture
def bundle(tmp_path):
    """A bundle with OSU and nccl-tests, and a ReFrame that says where it is."""
    bundle = tmp_path / "bundle"
    write(bundle / "about.txt", f"fabricheck 1234567\npython {VERSION}\n")
    for package in ["reframe", "reframe/frontend"]:
        write(bundle / "site" / package / "__init__.py", "")
    write(bundle / "site/reframe/frontend/cli.py", "def main():\n    print('reframe', __file__)\n")
    write(bundle / "mpi/bin/mpirun", "#!/bin/sh\n")
    write(bundle / "osu/osu-micro-benchmarks/mpi/pt2pt/osu_bw", "")
    write(bundle / "nccl-tests/all_reduce_perf", "")
    for name in ["enter.sh", "prepare.sh"]:
        shutil.copy(ROOT / "ci" / "bundle" / name, bundle)
    seal(bundle)
    return bundle


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose fabricheck says where it is."""
    checkout = tmp_path / "checkout"
    write(checkout / "config/settings.py", "")
    write(checkout / "src/fabricheck/__init__.py", "")
    write(checkout / "src/fabricheck/cli.py", "def app():\n    print('fabricheck', __file__)\n")
    return checkout


@pytest.fixture
def nccl(tmp_path):
    """A folder with a libnccl.so.2."""
    write(tmp_path / "nccl/libnccl.so.2", "")
    return tmp_path / "nccl"


def enter(bundle, checkout, then="true", **variables):
    """Source enter.sh in a shell of its own, then run a command; the system has no NCCL."""
    tools = checkout.parent / "tools"
    write(tools / "ldconfig", "#!/bin/sh\n")
    (tools / "ldconfig").chmod(0o755)
    return subprocess.run(
        ["bash", "-c", f"source {str(bundle / 'enter.sh')!r}; code=$?; {then}; exit $code"],
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": f"{tools}:/usr/bin:/bin", "PYTHON": sys.executable, **variables},
    )


def refused(bundle, checkout, code, **variables):
    """Return the one sentence with which enter.sh ends, the shell going on without env.sh."""
    ended = enter(bundle, checkout, then="echo on ${RFM_CONFIG_FILES:-without}", **variables)
    assert (ended.returncode, ended.stdout.splitlines()[-1:]) == (code, ["on without"])
    (sentence,) = ended.stderr.splitlines()
    return sentence


def test_both_commands_are_of_the_bundle_and_of_the_checkout(bundle, checkout, nccl):
    ended = enter(bundle, checkout, "reframe && fabricheck", FABRICHECK_NCCL_LIBRARY=str(nccl))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        f"enter: making .venv of {bundle}",
        f"reframe {bundle / 'site/reframe/frontend/cli.py'}",
        f"fabricheck {checkout / 'src/fabricheck/cli.py'}",
    ]


def test_fabricheck_lies_beside_the_python_that_runs_reframe(bundle, checkout, nccl):
    write(
        bundle / "site/reframe/frontend/cli.py",
        "import sys\nfrom pathlib import Path\n"
        "def main():\n    print(Path(sys.executable).with_name('fabricheck').is_file())\n",
    )
    seal(bundle)
    ended = enter(bundle, checkout, "reframe", FABRICHECK_NCCL_LIBRARY=str(nccl))
    assert ended.stdout.splitlines()[-1] == "True"


def test_variables_name_the_folders_of_the_bundle(bundle, checkout, nccl):
    then = (
        'echo "$FABRICHECK_CUDA_PROGRAMS:$FABRICHECK_CUDA_OSU:$FABRICHECK_NCCL_TESTS"; '
        'echo "$RFM_CONFIG_FILES:$FABRICHECK_RESULTS"; echo "$LD_LIBRARY_PATH"; type -p mpirun'
    )
    (bundle / "mpi/bin/mpirun").chmod(0o755)
    ended = enter(
        bundle, checkout, then, FABRICHECK_NCCL_LIBRARY=str(nccl), LD_LIBRARY_PATH="/before"
    )
    assert ended.stdout.splitlines()[1:] == [
        f"{bundle}/bin:{bundle}/osu/osu-micro-benchmarks:{bundle}/nccl-tests",
        f"{checkout}/config/settings.py:{checkout}/results",
        f"{bundle}/ucx/libucx/lib:{nccl}:/before",
        f"{bundle}/mpi/bin/mpirun",
    ]


def test_what_the_bundle_lacks_is_not_named(bundle, checkout):
    shutil.rmtree(bundle / "osu")
    shutil.rmtree(bundle / "nccl-tests")
    seal(bundle)
    ended = enter(bundle, checkout, "echo ${FABRICHECK_CUDA_OSU-none}${FABRICHECK_NCCL_TESTS-none}")
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, "nonenone")


def test_what_is_done_is_not_done_again(bundle, checkout, nccl):
    again = f"source {bundle / 'enter.sh'} && reframe"
    ended = enter(bundle, checkout, again, FABRICHECK_NCCL_LIBRARY=str(nccl))
    assert ended.stdout.count("making") == 1
    assert ended.stdout.splitlines()[-1].startswith("reframe ")


def test_entered_without_a_python_named_it_is_not_the_one_made_here(bundle, checkout, nccl):
    tools = checkout.parent / "tools"
    tools.mkdir()
    (tools / "python3").symlink_to(Path(sys.executable).resolve())
    variables = {"FABRICHECK_NCCL_LIBRARY": str(nccl), "PYTHON": ""}
    ended = enter(bundle, checkout, f"source {bundle / 'enter.sh'} && reframe", **variables)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.count("making") == 1


def test_a_bundle_that_moved_is_taken_from_where_it_is(bundle, checkout, nccl):
    enter(bundle, checkout, FABRICHECK_NCCL_LIBRARY=str(nccl))
    moved = bundle.rename(bundle.with_name("moved"))
    then = "reframe && echo $FABRICHECK_CUDA_PROGRAMS"
    ended = enter(moved, checkout, then, FABRICHECK_NCCL_LIBRARY=str(nccl))
    assert ended.stdout.splitlines()[1:] == [
        f"reframe {moved / 'site/reframe/frontend/cli.py'}",
        f"{moved}/bin",
    ]


def test_a_file_that_changed_on_the_way_is_refused(bundle, checkout):
    write(bundle / "nccl-tests/all_reduce_perf", "cut")
    assert "is not as it was written" in refused(bundle, checkout, 3)
    assert not (checkout / ".venv").exists()


def test_a_venv_of_another_origin_is_kept(bundle, checkout):
    write(checkout / ".venv/kept", "")
    assert "exists and is of no bundle" in refused(bundle, checkout, 3)
    assert (checkout / ".venv/kept").exists()


def test_packages_that_do_not_import_are_named(bundle, checkout):
    write(bundle / "site/reframe/frontend/cli.py", "import nothing_such\n")
    seal(bundle)
    sentence = refused(bundle, checkout, 3)
    assert "lack something of reframe.frontend.cli: ModuleNotFoundError" in sentence
    assert "nothing_such" in refused(bundle, checkout, 3), "the second time as the first"


def test_a_python_of_another_version_is_refused(bundle, checkout):
    write(bundle / "about.txt", "python 3.99\n")
    seal(bundle)
    assert f"is Python {VERSION}, and the bundle is for 3.99" in refused(bundle, checkout, 3)


def test_no_python_is_said(bundle, checkout):
    sentence = refused(bundle, checkout, 3, PYTHON="/nowhere/python3")
    said = f"'/nowhere/python3' is not a Python interpreter; name one of version {VERSION}"
    assert said in sentence


def test_outside_a_checkout_nothing_is_made(bundle, checkout):
    elsewhere = checkout.parent / "elsewhere"
    elsewhere.mkdir()
    assert "is not a checkout of fabricheck" in refused(bundle, elsewhere, 2)
    assert not list(elsewhere.iterdir())


def test_a_folder_with_white_space_is_refused(bundle, checkout):
    moved = bundle.rename(bundle.with_name("my bundle"))
    assert f"the folder '{moved}' has white space" in refused(moved, checkout, 3)


def test_without_nccl_its_folder_is_asked_for(bundle, checkout):
    assert "name its folder by FABRICHECK_NCCL_LIBRARY" in refused(bundle, checkout, 3)


def test_a_folder_without_nccl_is_refused(bundle, checkout, tmp_path):
    sentence = refused(bundle, checkout, 2, FABRICHECK_NCCL_LIBRARY=str(tmp_path))
    assert f"names '{tmp_path}', which has no libnccl.so.2" in sentence


def test_nccl_of_the_python_is_found(bundle, checkout, tmp_path):
    write(tmp_path / "packages/nvidia/nccl/lib/libnccl.so.2", "")
    ended = enter(bundle, checkout, "echo $LD_LIBRARY_PATH", PYTHONPATH=str(tmp_path / "packages"))
    assert ended.stdout.splitlines()[-1].endswith(f":{tmp_path}/packages/nvidia/nccl/lib")


def test_nccl_of_the_system_needs_no_folder(bundle, checkout):
    # With thousands of others.
    listed = (
        "#!/bin/sh\necho '	libnccl.so.2 (libc6,x86-64) => /usr/lib/libnccl.so.2'\nseq 50000\n"
    )
    tools = checkout.parent / "system"
    write(tools / "ldconfig", listed)
    (tools / "ldconfig").chmod(0o755)
    ended = enter(bundle, checkout, "echo $LD_LIBRARY_PATH", PATH=f"{tools}:/usr/bin:/bin")
    assert ended.stdout.splitlines()[-1] == f"{bundle}/ucx/libucx/lib"
