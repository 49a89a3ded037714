"""The check that builds the programs: what passes, and the sentence of each way to fail."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from stand_ins import script

from fabricheck.core import checkout

sys.path.append(str(Path(__file__).resolve().parents[1] / "software"))
import locks

pytestmark = pytest.mark.slow

SITE = Path(__file__).with_name("build_site.py")

MAKE = """\
case $FAKE_BUILD in
  error) echo "stream.cpp:7:3: error: 'device' was not declared" >&2; echo "2 more" >&2; exit 2;;
  refused) echo "spack-env/install: no spack on the PATH; get commit abc" >&2; exit 3;;
  nothing) exit 0;;
esac
"""

#: By environment the sentence of its failure; without one it passes.
ENDS = {
    "good": None,
    "spack": None,
    "error": "The build of the runtime host by CMake ended with exit code 2: stream.cpp:7:3: "
    "error: 'device' was not declared. The whole output is in",
    "incomplete": "The build of the runtime host succeeded, but there is no stream in",
    "gone": "by CMake ended with exit code 127: ",
    "liar": "ran with runtime cuda; the environment requires host.",
    "old": f"was built from commit {'0' * 40}, but the checkout is at",
    "wrong": "stream ended with exit code 5 (wrong data): device 1 has a wrong word at offset",
    "refused": "The build of the runtime host by Spack ended with exit code 3: spack-env/install: "
    "no spack on the PATH; get commit abc. The whole output is in",
    "elsewhere": "are those of /my/bin, which Spack environment local does not build.",
    "none": None,
    "found": "ended with 0 (good); without devices it must end with 8 and state why.",
}


@pytest.fixture
def builds(suite, tmp_path, monkeypatch):
    """The suite on the machine of builds, whose tools are stand-ins."""
    home = tmp_path / "checkout" / "build" / "spack" / "local"
    programs = suite.programs
    copy = f'{MAKE}mkdir -p "$to" && cp "{programs}/stream" "$to"'
    script(tmp_path / "tools" / "cmake", f'[ "$1" = --build ] || exit 0\nto=build/bin\n{copy}')
    script(tmp_path / "checkout" / "spack-env" / "install", f'to="{home}/view/bin"\n{copy}')
    home.mkdir(parents=True)
    (home / "spack.lock").write_text(locks.text())
    monkeypatch.setattr(checkout, "ROOT", tmp_path / "checkout")
    monkeypatch.setattr(checkout, "ORIGIN", tmp_path / "checkout")
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}:/usr/bin:/bin")
    suite.own_site(SITE)
    suite.variables |= {"FAKE_SPACK_HOME": str(home), "FAKE_COMMIT": checkout.commit()}
    suite.topics = ("build",)
    return suite


def ends(suite):
    """Return how the check of each environment ended, and why."""
    cases = suite.report()["runs"][0]["testcases"]
    return {case["environ"]: (case["result"], case["fail_reason"]) for case in cases}


def require(found):
    for name, (result, reason) in found.items():
        if ENDS[name] is None:
            assert (name, result, reason) == (name, "pass", None)
        else:
            assert result == "fail"
            assert ENDS[name] in " ".join(reason.split())


def test_a_build_passes_by_what_it_made_and_fails_in_a_sentence(builds):
    outcome = builds("-r", "-t", "build", "--system=builds:here")
    assert outcome.status == 1
    assert "Traceback" not in outcome
    found = ends(builds)
    assert len(found) == 10
    require(found)
    # What Spack built is kept with the check, its document, but not as a measurement.
    kept = next(builds.results.glob("output/*/builds/here/spack/build"))
    assert json.loads((kept / "stream.json").read_text())["outcome"]["status"] == "good"
    assert (kept / "software" / "builds.spack.spack.lock").read_text() == locks.text()
    assert not list(builds.results.rglob("result.json"))


def test_a_build_host_without_devices(builds):
    option = "build.without_devices=yes"
    builds("-r", "-n", "build", "--system=builds:without", "-S", option)
    found = ends(builds)
    assert sorted(found) == ["found", "none"]
    require(found)


def test_it_runs_only_if_requested(builds, wording):
    outcome = builds("-r", "--system=builds:here", "-p", "good")
    assert outcome.status == 1
    wording(outcome.lines_with("only if requested"))
    assert "Nothing to run" in outcome


def test_the_build_of_a_simulated_node_has_its_platform_and_no_other_has_one(suite):
    """The programs that it built read the platform from where it is written."""
    suite.topics = ("build",)
    for system, platforms in (("local:sim-mi250x", 1), ("local:host", 0)):
        outcome = suite("--dry-run", "-n", "build", f"--system={system}")
        assert outcome.status == 0, outcome
        written = list(suite.results.rglob("build/node.json"))
        assert len(written) == platforms, written
        shutil.rmtree(suite.results)
