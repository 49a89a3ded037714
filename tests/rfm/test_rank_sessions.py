"""Checks of several ranks, run by ReFrame with the real programs, MPICH, and the simulated node."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from text_edit import edit

ROOT = Path(__file__).resolve().parents[2]
SIMULATED = "--system=local:sim-mi250x"
HOST = "--system=local:host"


@pytest.fixture
def with_mpi(suite):
    """Return a suite with the programs that were built, and their MPI."""
    # Their order is that in which checks are found.
    suite.topics = ("mpi", "pingpong", "affinity")
    suite.variables["FABRICHECK_MPI"] = "ON"
    for name in ("host", "sim"):
        programs = ROOT / "build" / name / "bin"
        assert (programs / "mpi").is_file(), f"{programs} has no mpi: build it by make build"
        suite.variables[f"FABRICHECK_{name.upper()}_PROGRAMS"] = str(programs)
    return suite


@pytest.fixture
def with_fault(with_mpi):
    """Return a function that lets a program of the host make a fault, and gives the suite."""

    def make(program: str, fault: str):
        real = Path(with_mpi.variables["FABRICHECK_HOST_PROGRAMS"])
        folder = with_mpi.folder / "faulty"
        folder.mkdir()
        file = folder / program
        file.write_text(f'#!/bin/sh\nexec "{real / program}" "$@" --inject-fault {fault}\n')
        file.chmod(0o755)
        with_mpi.variables["FABRICHECK_HOST_PROGRAMS"] = str(folder)
        return with_mpi

    return make


def run(suite, *arguments, checks):
    chosen = [part for name in checks for part in ("-n", f"^{name}$")]
    return suite(*arguments, *chosen, "-r")


@pytest.mark.slow
def test_ranks_are_placed_before_anything_is_measured(with_mpi):
    ended = run(with_mpi, SIMULATED, checks=("pingpong_half_right", "affinity"))
    assert ended.status == 0, ended
    assert re.findall(r"RUN +\] (\w+)", ended.text)[0] == "affinity"
    assert "rank 0 on mi250x (simulated): cores 49, NUMA domain 3, device 0" in ended
    assert "rank 7 on mi250x (simulated): cores 41, NUMA domain 2, device 7" in ended
    assert "Ran 2/2 test case(s)" in ended


@pytest.mark.slow
def test_a_broken_link_is_named_with_its_pair(with_mpi):
    overlay = ROOT / "config" / "nodes" / "overlays" / "link-0-6-gone.yaml"
    ended = run(with_mpi, SIMULATED, "-S", f"overlay={overlay}", checks=["mpi_pairs"])
    assert ended.status == 1
    said = (
        r"Metric bandwidth_links2_worst: pairs? (0-6|6-0).* measured 3\d\.\d+ GB/s; at least 46\."
    )
    assert re.search(said, ended.text), ended


@pytest.mark.parametrize(
    "checks",
    [
        pytest.param(("affinity", "mpi_pairs"), marks=pytest.mark.slow),
        # Ranks that wait keep cores that other tests need.
        pytest.param(("mpi_collectives", "mpi_data"), marks=pytest.mark.full),
    ],
    ids=" ".join,
)
def test_two_ranks_of_this_machine(with_mpi, checks):
    # Other tests use the same cores.
    with_mpi.own_settings("local.py", '"noise_limit": 0.75,', '"noise_limit": 10,')
    edit(with_mpi.config / "sites" / "local.py", '"mpi_bytes": 16 << 20,', '"mpi_bytes": 1 << 20,')
    ended = run(with_mpi, HOST, checks=checks)
    assert ended.status == 0, ended
    assert "Ran 2/2 test case(s)" in ended
    assert ("rank 1 on" in ended) == ("affinity" in checks)


@pytest.mark.slow
@pytest.mark.full
def test_wrong_data_of_one_rank(with_fault):
    suite = with_fault("mpi", "rank:1:flip-bit:8:3")
    ended = run(suite, HOST, checks=["mpi_data"])
    assert ended.status == 1
    assert "mpi ended with exit code 5 (wrong data)" in ended
    assert re.search(r"1 of \d+ elements are wrong, the first on rank 1 at byte 8", ended.text)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["rank:1:throw", "rank:1:die"])
def test_a_rank_that_fails_or_dies(with_fault, fault):
    ended = run(with_fault("affinity", fault), HOST, checks=["affinity"])
    assert ended.status == 1
    assert re.search(r"affinity ended (with exit code|after signal)", ended.text), ended


@pytest.mark.slow
def test_a_build_without_mpi_says_how_to_build(with_mpi, wording):
    with_mpi.variables["FABRICHECK_HOST_PROGRAMS"] = str(with_mpi.programs)
    ended = run(with_mpi, HOST, checks=["affinity"])
    assert ended.status == 1
    wording(ended.reasons)


@pytest.mark.slow
def test_a_launcher_that_is_not_known_to_bind(with_mpi, wording):
    with_mpi.own_settings(
        "local.py",
        '"features": ["devices", "several_devices", "ranks"]',
        '"features": ["devices", "several_devices", "ranks", "placements"]',
    )
    ended = run(with_mpi, HOST, checks=["affinity"])
    assert ended.status == 1
    wording(ended.reasons)
