"""The site of NVIDIA H200: what a session starts on one, two, four and eight devices."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from stand_ins import fake_tools, script

import factories
from fabricheck.node import load as load_node
from fabricheck.results.document import load
from fabricheck.tools.benchmarks import NCCL_TESTS
from reframe_suite import Outcome
from site_dry_runs import H200_TOOLS

pytestmark = pytest.mark.slow

TOOLS = {"osu_device_0", "rccl_collectives"}
#: Of one NUMA domain no placement is wrong.
NO_PLACEMENT = {f"pingpong_{name}" for name in
                ("in_order", "half_right", "half_rotated", "shared_domain")}  # fmt: skip
#: Of devices that are all linked alike the first ones are the best.
NO_OTHER_SETS = {"mpi_collectives_best", "osu_collectives_in_order", "rccl_in_order"}
CORES = {2: "0,16", 4: "0,16,32,48", 8: "0,16,32,48,64,80,96,112"}


@pytest.fixture
def h200(suite):
    """The suite with the programs and tools of an H200, which a dry run does not start."""
    suite.topics = ()
    suite.variables |= H200_TOOLS | {"FABRICHECK_MPI": "ON"}
    return suite


@pytest.fixture
def whole(site_dry_run):
    """The dry run of all partitions with these tools."""
    return site_dry_run("h200", **H200_TOOLS)


def dry_run(suite, devices: int, *choice: str) -> tuple[Outcome, Path]:
    """Make a dry run of one partition."""
    outcome = suite(f"--system=h200:x{devices}", "--dry-run", *choice)
    assert outcome.status == 0, outcome
    return outcome, suite.results


def checks_of(outcome: Outcome, devices: int) -> tuple[set[str], set[str]]:
    """Return the checks that a session of a partition would run, and those that it skips."""
    assert "WARNING" not in outcome.text
    where = f"@h200:x{devices}\\+"
    started = set(re.findall(rf"\[ DRY +\] (\w+) .*{where}", outcome.text))
    skipped = set(re.findall(rf"\[ +SKIP \] .*?\) (\w+) .*{where}", outcome.text))
    return started - skipped, skipped


def stage(results: Path, devices: int, check: str) -> Path:
    (folder,) = results.glob(f"stage/*/h200/x{devices}/cuda/{check}")
    return folder


def line(results: Path, devices: int, check: str) -> str:
    """Return the command that a check starts."""
    return (stage(results, devices, check) / "rfm_job.sh").read_text().splitlines()[-1]


def plan(results: Path, devices: int, check: str) -> list[dict]:
    return json.loads((stage(results, devices, check) / "plan.json").read_text())["launches"]


def test_one_device(whole):
    run, skipped = checks_of(whole.outcome, 1)
    assert (len(run), skipped) == (17, set())
    assert line(whole.results, 1, "node_topology").endswith(
        "/fabricheck node record h200 --devices 1 --runtime cuda --programs /programs "
        f"--results {whole.results} --time-limit 120 --output result.json"
    )


# Sends around a ring are measured between nodes.
OF_ONE_NODE = [one for one in NCCL_TESTS.operations if one != "sendrecv"]


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_several_devices(whole, devices):
    run, skipped = checks_of(whole.outcome, devices)
    results = whole.results
    # Of two devices there are none but all, and one neighbour.
    some = {"best_devices", "rccl_scaling", "p2p_one_to_many"}
    assert len(run) == (48 if devices == 2 else 51) and (some <= run) == (devices > 2)
    assert skipped == NO_PLACEMENT | NO_OTHER_SETS | (some if devices == 2 else set())
    # Programs of one process have no launcher, ranks are on the first core near their device.
    assert line(results, devices, "stream_local").startswith("/programs/stream --devices each ")
    # Through the switch every peer is alike.
    assert "/p2p --pairs 0-1 --operations " in line(results, devices, "p2p_scan")
    assert f" --sizes 4:{32 << 30} " in line(results, devices, "pingpong_single")
    # As it was calibrated.
    assert " --kernels triad " in line(results, devices, "stream_scan")
    bound = f"mpirun -np {devices} --map-by pe-list={CORES[devices]}:ordered:hwtcpus "
    every = ",".join(map(str, range(devices)))
    for check in ("affinity", "pingpong_right", "mpi_pairs", "mpi_collectives", "mpi_data"):
        said = line(results, devices, check)
        assert said.startswith(f"{bound}/programs/")
        assert f" --map {every} --bind {CORES[devices]} " in said
    shared = line(results, devices, "pingpong_shared_device")
    assert shared.startswith("mpirun -np 2 --map-by pe-list=0,1:ordered:hwtcpus /programs/")
    assert " --map 0,0 --bind 0,1 " in shared
    part = "" if devices == 8 else f" --devices {devices}"
    assert f"record h200{part} --runtime cuda" in line(results, devices, "node_topology")
    # NVLink multicast is off wherever NCCL may start.
    job = (stage(results, devices, "rccl_collectives") / "rfm_job.sh").read_text()
    assert "\nexport NCCL_NVLS_ENABLE=0\n" in job
    sets = [tuple(range(count)) for count in range(2, devices)]
    if sets:
        smaller = plan(results, devices, "rccl_scaling")
        assert len(smaller) == len(OF_ONE_NODE) * len(sets)
        assert {tuple(one["devices"]) for one in smaller} == set(sets)
    launches = plan(results, devices, "rccl_collectives")
    assert [one["program"] for one in launches] == OF_ONE_NODE
    assert {tuple(one["devices"]) for one in launches} == {tuple(range(devices))}
    assert launches[-1]["command"].startswith(
        f"env NCCL_DEBUG=VERSION CUDA_VISIBLE_DEVICES={every} CUDA_DEVICE_ORDER=PCI_BUS_ID /nccl/"
    )
    held = line(results, devices, "energy_collectives")
    assert " --collective-sizes 262144,67108864 --energy-time 5 " in held
    # Collectives that crash in this MPI are left out of both tools.
    assert " --without reduce,allreduce,reduce_scatter,allgather " in line(
        results, devices, "mpi_collectives"
    )
    assert {one["program"] for one in plan(results, devices, "osu_collectives")} == {"osu_bcast"}


def test_without_mpi_and_tools(h200, whole):
    h200.variables |= {"FABRICHECK_MPI": "OFF", "FABRICHECK_CUDA_OSU": ""}
    del h200.variables["FABRICHECK_NCCL_TESTS"]
    programs = ("stream", "memcpy", "managed", "p2p", "overlap", "energy")
    run, _ = checks_of(whole.outcome, 2)
    own = {check for check in run if check.startswith(programs)} | {"node_topology"}
    own.remove("energy_collectives")
    outcome, _ = dry_run(h200, 2)
    assert checks_of(outcome, 2) == (own, {"best_devices", "p2p_one_to_many"})


def test_an_mpi_that_does_all_collectives(h200):
    h200.variables["FABRICHECK_CUDA_MPI_WITHOUT"] = ""
    h200.topics = ("mpi", "osu")
    _, results = dry_run(h200, 2, "-n", "mpi_collectives$|osu_collectives$")
    assert "--without" not in line(results, 2, "mpi_collectives")
    assert len({one["program"] for one in plan(results, 2, "osu_collectives")}) == 5


def test_no_host_name_chooses_this_system(h200):
    del h200.variables["FABRICHECK_CUDA_PROGRAMS"]
    h200.variables["RFM_SYSTEM"] = ""
    outcome = h200("--show-config=systems/0/name")
    assert outcome.status == 0, outcome
    assert outcome.text.strip().splitlines()[-1] == '"local"'


def test_more_devices_than_the_model_has(h200, wording):
    h200.topics = ("topology",)
    h200.own_settings("h200.py", '"num_devices": devices', '"num_devices": devices + 1')
    outcome = h200("--system=h200:x8", "--dry-run", "-n", "node_topology")
    assert outcome.status == 1
    wording(outcome.reasons)


def test_a_simulated_node_is_no_part(suite, wording):
    suite.topics = ("p2p", "stream")
    suite.own_settings(
        "local.py", '"arch": "gfx90a", "num_devices": 8', '"arch": "gfx90a", "num_devices": 4'
    )
    outcome = suite("--system=local:sim-mi250x", "--dry-run", "-n", "stream_local|p2p_kernel")
    assert outcome.status == 1
    wording(outcome.reasons)


def test_a_session_of_the_tools_on_two_devices(h200, monkeypatch):
    h200.topics = ("osu", "rccl")
    fake_tools(h200.folder, "mpirun")
    monkeypatch.setenv("PATH", f"{h200.folder / 'launchers'}:", prepend=":")
    model = load_node("h200")
    gpu = {"name": model.device_model, "memory_bytes": model.devices[0].memory_bytes,
           "arch": "sm_90", "last_level_cache_bytes": 60 << 20}  # fmt: skip
    devices = [factories.device(index, pci_address=f"0000:c{index}:00.0", **gpu)
               for index in range(2)]  # fmt: skip
    program = factories.document()["program"] | {"runtime": "cuda"}
    facts = factories.write(
        h200.folder / "facts.json", factories.document(devices=devices, program=program)
    )
    script(h200.programs / "stream", f'cp "{facts}" facts.json')
    h200.variables |= {
        "FABRICHECK_CUDA_PROGRAMS": str(h200.programs),
        "FABRICHECK_CUDA_OSU": str(h200.folder / "osu"),
        "FABRICHECK_NCCL_TESTS": str(h200.folder / "nccl"),
    }
    outcome = h200("--system=h200:x2", "-r", "-n", f"^({'|'.join(sorted(TOOLS))})$")
    assert outcome.status == 0, outcome
    assert "Ran 2/2 test case(s)" in outcome
    (path,) = (h200.results / "output").rglob("rccl_collectives/result.json")
    assert {tuple(one["device_set"]) for one in load(path)["series"]} == {(0, 1)}
