"""What a session or a look is told in a container that hides something, by bubblewrap."""

import os
import shutil
import subprocess

import pytest

from proof import containers
from proof.containers import CONTAINERS, Machine, Told

CHECKS = ("affinity", "stream_local")
ALL = {each.name: each for each in CONTAINERS}


def makes_containers():
    """Whether bubblewrap is there, and this user may make a container by it."""
    if shutil.which("bwrap") is None:
        return False
    ended = subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"], capture_output=True)
    return ended.returncode == 0


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not makes_containers(), reason="no container can be made by bubblewrap"),
]


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    return Machine(tmp_path_factory.mktemp("machine"), CHECKS)


def rules(told: Told) -> set[str]:
    return {reason.partition(": ")[0] for reason in told.reasons}


@pytest.mark.full
def test_a_user_without_a_name_measures(machine):
    told = machine.ask(ALL["user"])
    assert rules(told) <= {"left-out-checks", "other-programs"}, told


@pytest.mark.full
def test_neither_a_home_nor_a_folder_for_temporary_files_is_needed(machine):
    told = machine.ask(ALL["folders"])
    assert rules(told) <= {"left-out-checks", "other-programs"}, told


def test_results_that_cannot_be_written_are_one_sentence(machine):
    told = machine.ask(ALL["results"])
    assert (told.code, told.status) == (4, "no session")
    assert told.reasons[0].startswith("ERROR: The results folder ")
    assert told.reasons[0].endswith(" is not writable.")


@pytest.mark.full
def test_the_name_of_a_container_is_no_name_of_a_node(machine):
    told = machine.ask(ALL["name"])
    assert any("3f2a9c0de1b2 has the name of a container" in each for each in told.caveats), told


@pytest.mark.full
def test_the_name_of_a_pod_is_no_name_of_a_node(machine):
    told = machine.ask(ALL["pod"])
    assert any("accept-x7k2p has the name of a pod" in each for each in told.caveats), told


@pytest.mark.full
def test_memory_that_no_file_tells_is_no_lack_of_devices(machine):
    told = machine.ask(ALL["proc"])
    assert rules(told) <= {"left-out-checks", "other-programs"}, told


@pytest.mark.full
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core cannot be fewer")
def test_fewer_cores_are_told(machine):
    told = machine.ask(ALL["cores"])
    assert any("a program could use 1: " in each for each in told.caveats), told


def test_a_look_tells_which_devices_the_container_may_not_open(machine, wording):
    assert not machine.ask(ALL["node"]).reasons
    told = machine.ask(ALL["two"])
    assert (told.code, told.status) == (0, "PASS")
    (note,) = [each for each in told.caveats if "may not open" in each]
    wording(note)


def test_a_look_without_the_kernels_log_says_so(machine, wording):
    told = machine.ask(ALL["log"])
    assert told.code == 0
    wording(each for each in told.caveats if "kernel's log" in each)


def test_the_page_has_a_row_for_each_container():
    page = containers.PAGE.read_text()
    for container in CONTAINERS:
        assert f"| {container.hides} |" in page
    # No container makes a fault of the hardware.
    assert "| 12 |" not in page
