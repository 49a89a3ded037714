"""The checks of OSU and nccl-tests through ReFrame, with stand-ins for the tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from stand_ins import fake_tools, script

import factories
from fabricheck.node import load as load_node
from fabricheck.node.platform import platform
from fabricheck.results.document import load
from fabricheck.tools.benchmarks import NCCL_TESTS

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
TOPICS = ("osu", "rccl")
SIZES = {"osu_device_0": ("16MiB", "1GiB"), "osu_all_pairs": ("4MiB", "64MiB")}


@pytest.fixture
def node(suite, monkeypatch):
    """The suite on a node with four GPUs; its program stream tells what a document says."""
    suite.topics = TOPICS
    fake_tools(suite.folder)
    suite.own_site(HERE / "device_site.py")
    path = f"{suite.folder / 'launchers'}:"
    monkeypatch.setenv("PATH", path, prepend=":")
    a100 = load_node("a100-booster")
    gpu = {"name": a100.device_model, "memory_bytes": a100.devices[0].memory_bytes,
           "arch": "sm_80", "last_level_cache_bytes": 40 << 20}  # fmt: skip
    devices = [factories.device(index, pci_address=f"0000:c{index}:00.0", **gpu)
               for index in range(4)]  # fmt: skip
    program = factories.document()["program"] | {"runtime": "cuda"}
    facts = factories.write(
        suite.folder / "facts.json", factories.document(devices=devices, program=program)
    )
    script(suite.programs / "stream", f'cp "{facts}" facts.json')
    references = suite.own_references().parent
    write_references(references)
    suite.variables |= {
        "RFM_SYSTEM": "node",
        "FAKE_OSU": str(suite.folder / "osu"),
        "FAKE_NCCL": str(suite.folder / "nccl"),
    }
    return suite


def write_references(folder: Path) -> None:
    """Let every metric of the node be report only."""
    pairs = {
        check: [f"bandwidth_links4_{size}_{reduce}" for size in sizes
                for reduce in ("worst", "median")]
        for check, sizes in SIZES.items()
    }  # fmt: skip
    pairs["osu_device_0"] += ["latency_links4_worst", "latency_links4_median"]
    pairs["osu_own_device"] = [f"bandwidth_{size}_{reduce}" for size in ("4MiB", "64MiB")
                               for reduce in ("worst", "median")]  # fmt: skip
    collectives = list(NCCL_TESTS.operations.values())
    osu = pairs | {"osu_collectives": [f"{one}_{k}_ranks" for one in collectives
                                       for k in (2, 3, 4)]}  # fmt: skip
    rccl = {
        "rccl_collectives": [f"{one}_4_devices_{value}" for one in collectives
                             for value in ("latency", "busbw")],
        "rccl_scaling": [f"{one}_{k}_devices_{value}" for one in collectives
                         for k in (2, 3) for value in ("latency", "busbw")],
        "rccl_scan": [f"{one}_4_devices_busbw" for one in collectives],
        "rccl_threads": [f"{one}_{k}_devices_{value}" for one in collectives
                         for k in (2, 3, 4) for value in ("latency", "busbw")],
    }  # fmt: skip
    for file, checks in (("osu", osu), ("rccl", rccl)):
        content = {
            check: {"node:gpu": {name: [0, None, None, unit_of(name)] for name in metrics}}
            for check, metrics in checks.items()
        }  # fmt: skip
        (folder / f"{file}.yaml").write_text(yaml.safe_dump(content))


def unit_of(metric: str) -> str:
    return "GB/s" if "bandwidth" in metric or "busbw" in metric else "us"


def document_of(suite, check, kind="output"):
    (path,) = (suite.results / kind).rglob(f"{check}/result.json")
    return load(path)


def values(suite, check):
    cases = suite.report()["runs"][0]["testcases"]
    (case,) = [case for case in cases if case["name"] == check]
    return {key.rsplit(":", 1)[-1]: value[0] for key, value in case["perfvalues"].items()}


@pytest.mark.full
def test_pairs_and_collectives_of_osu(node):
    outcome = node("-r", "-n", "osu_device_0|osu_all_pairs|osu_own_device|osu_collectives$")
    assert outcome.status == 0
    found = values(node, "osu_device_0")
    # From device 0 to 1, 2 and 3: 50.01 to 50.03 GB/s, at small sizes half of it.
    assert found["bandwidth_links4_1GiB_worst"] == pytest.approx(50.01)
    assert found["bandwidth_links4_1GiB_median"] == pytest.approx(50.02)
    assert found["latency_links4_worst"] == pytest.approx(12.1)
    assert values(node, "osu_all_pairs")["bandwidth_links4_4MiB_worst"] == pytest.approx(25.005)
    assert values(node, "osu_collectives")["allgather_4_ranks"] == pytest.approx(15.65, abs=0.01)
    document = document_of(node, "osu_device_0")
    assert (document["program"]["name"], document["program"]["version"]) == ("osu", "7.4")
    assert document["options"]["buffers"] == "device"
    one = next(one for one in document["series"] if one["device_set"] == [0, 2])
    assert (one["engine"], one["ranks"], one["batch"]) == ("mpi", [0, 1], 1280)
    assert one["verification"] == {"bytes_checked": 16 << 20, "errors": 0,
                                   "first_mismatch": None, "by": "tool"}  # fmt: skip
    commands = [launch["command"] for launch in document["options"]["launches"]]
    assert len(commands) == 12
    assert commands[0].startswith(
        "mpiexec -n 2 env -u SLURM_PROCID -u FLUX_TASK_RANK -u PALS_RANKID "
        "CUDA_VISIBLE_DEVICES=0,1 CUDA_DEVICE_ORDER=PCI_BUS_ID /"
    )
    assert commands[0].endswith("osu_bw -m 16777216:1073741824 -i 20 -x 2 -W 64 -d cuda D D")
    assert commands[1].endswith("osu_bw -m 16777216:1073741824 -i 1 -x 0 -W 1 -c -u 0 -d cuda D D")
    assert " -i 1000 -x 100 -d cuda" in next(one for one in commands if "osu_latency" in one)
    # All pairs in one document, and every set of devices once.
    pairs = {tuple(one["device_set"]) for one in document_of(node, "osu_all_pairs")["series"]}
    assert len(pairs) == 12
    sets = {tuple(one["device_set"]) for one in document_of(node, "osu_collectives")["series"]}
    assert sets == {(0, 1), (0, 1, 2), (0, 1, 2, 3)}
    # Between two ranks on each device: from 50.00 on device 0 to 50.33 on device 3.
    assert values(node, "osu_own_device")["bandwidth_64MiB_worst"] == pytest.approx(50.0)
    document = document_of(node, "osu_own_device")
    commands = [launch["command"] for launch in document["options"]["launches"]]
    assert len(commands) == 8
    assert " CUDA_VISIBLE_DEVICES=3 " in commands[-1]
    last = document["series"][-1]
    assert (last["device_set"], last["ranks"]) == ([3], [0, 1])
    assert last["source"] == last["destination"] == factories.place(device=3)


def test_what_is_faster_than_a_device_s_memory_is_refused_between_its_ranks(node, wording):
    node.variables |= {"FAKE_TOOL": "impossible", "FAKE_AT": "2"}
    outcome = node("-r", "-n", "osu_own_device")
    assert outcome.status == 1
    wording(outcome.reasons)


@pytest.mark.parametrize("meant", [False, True])
@pytest.mark.full
def test_links_that_a_variable_takes_from_collectives_are_a_setting_unless_the_site_means_it(
    node, meant, wording
):
    facts = node.folder / "facts.json"
    content = json.loads(facts.read_text()) | {"environment": {"NCCL_P2P_DISABLE": "1"}}
    factories.write(facts, content)
    if meant:
        site = node.folder / "config" / "sites" / "device_site.py"
        text = site.read_text()
        place = '"environs": ["cuda"],'
        assert place in text
        site.write_text(text.replace(place, f'{place} "env_vars": [["NCCL_P2P_DISABLE", "1"]],'))
    outcome = node("-r", "-n", "rccl_collectives$")
    if meant:
        assert (outcome.status, outcome.reasons) == (0, [])
    else:
        assert outcome.status == 1
        wording(outcome.reasons)


def test_where_the_first_devices_are_the_best_they_are_not_measured_twice(node, wording):
    outcome = node("-r", "-n", "rccl_in_order|osu_collectives_in_order$")
    wording(outcome.reasons)
    assert "(0 failure(s), 0 expected failure(s), 2 skipped" in outcome


@pytest.mark.full
def test_collectives_of_nccl(node):
    outcome = node("-r", "-n", "rccl_collectives|rccl_scaling|rccl_scan|rccl_threads")
    assert outcome.status == 0
    found = values(node, "rccl_collectives")
    assert found["allreduce_4_devices_latency"] == pytest.approx(19.52)
    assert found["allreduce_4_devices_busbw"] == pytest.approx(80.58)
    document = document_of(node, "rccl_scan")
    assert document["program"]["name"] == "nccl-tests"
    assert document["program"]["version"] == "2.19.6"
    assert document["versions"]["rccl"] == "2.28.9"
    rows = [one for one in document["series"] if one["operation"] == "allreduce"]
    assert {one["in_place"] for one in rows} == {False, True}
    # 28 sizes from 8 B to 1 GiB in two placements: a time each, and the bandwidths above 0.00.
    assert len([one for one in rows if one["unit"] == "us"]) == 56
    assert all(one["bytes_counted"] == "bus" for one in rows if one["unit"] == "GB/s")
    # With a thread for each device.
    document = document_of(node, "rccl_threads")
    assert {tuple(one["device_set"]) for one in document["series"]} == {
        (0, 1), (0, 1, 2), (0, 1, 2, 3)
    }  # fmt: skip
    commands = [launch["command"] for launch in document["options"]["launches"]]
    assert {command[command.index(" -t ") :][:10] for command in commands} == {
        f" -t {k} -g 1 "[:10] for k in (2, 3, 4)
    }


@pytest.mark.parametrize(
    ("fault", "at", "sentence"),
    # What else can be wrong with what the tools print: tests/tools/test_recording.py.
    [
        (
            "crash",
            "0,2",
            "osu ended with exit code 10 (another program that it ran failed): Node node1: "
            "osu_bw-0-2.out (osu_bw on devices 0 and 2): it was ended by signal 11: mpiexec: a "
            "process ended by signal 11",
        ),
        (
            "wrong",
            "0,3",
            "osu ended with exit code 5 (wrong data): Node node1: osu_bw-0-3-c.out (osu_bw on "
            "devices 0 and 3), line 12: OSU reports 'DATA VALIDATION ERROR: osu_bw exited with "
            "status 1 on message size 1073741824.'.",
        ),
    ],
)
def test_what_is_wrong_is_told(node, fault, at, sentence):
    node.variables |= {"FAKE_TOOL": fault, "FAKE_AT": at}
    outcome = node("-r", "-n", "osu_device_0$")
    assert outcome.status == 1
    assert sentence in outcome
    document = document_of(node, "osu_device_0", "stage")
    assert document["outcome"]["status"] != "good"


def test_a_missing_program_is_named(node):
    missing = node.folder / "osu" / "mpi" / "collective" / "osu_bcast"
    missing.unlink()
    outcome = node("-r", "-n", "osu_collectives$")
    assert outcome.status == 1
    assert f"There is no program {missing} for environment cuda" in outcome


@pytest.mark.full
def test_host_memory_is_measured_where_a_machine_has_an_osu(suite, monkeypatch):
    # Without OSU its folder has no check for this machine.
    suite.topics = ("osu", "stream")
    fake_tools(suite.folder)
    monkeypatch.setenv("PATH", f"{suite.folder / 'launchers'}:", prepend=":")
    facts = factories.write(suite.folder / "facts.json")
    script(suite.programs / "stream", f'cp "{facts}" facts.json')
    listed = suite("-l")
    assert listed.status == 0
    assert "osu_" not in listed.text
    suite.variables["FABRICHECK_HOST_OSU"] = str(suite.folder / "osu")
    outcome = suite("-r", "-n", "osu_.*")
    assert outcome.status == 0
    assert "Ran 2/2 test case(s)" in outcome
    document = document_of(suite, "osu_device_0")
    assert document["options"]["buffers"] == "host"
    assert "the messages are in host memory, and no device takes part" in document["notes"]
    (command, *_) = [launch["command"] for launch in document["options"]["launches"]]
    assert command.startswith(f"mpiexec -n 2 {suite.folder}/osu/mpi/pt2pt/osu_bw -m 1048576:")
    plan = json.loads(
        next((suite.results / "output").rglob("osu_collectives/plan.json")).read_text()
    )
    assert {launch["ranks"] for launch in plan["launches"]} == {2}


def test_osu_on_a_simulated_node(suite, monkeypatch):
    suite.topics = TOPICS
    fake_tools(suite.folder)
    # The program is what follows smpirun's own options.
    skip = 'while [ "${1#*/osu/mpi/}" = "$1" ]; do shift; done'
    script(suite.folder / "launchers" / "smpirun", f'{skip}\nexec "$@"')
    monkeypatch.setenv("PATH", f"{suite.folder / 'launchers'}:", prepend=":")
    devices = [factories.device(index, arch="gfx90a") for index in range(8)]
    identity = platform(load_node("mi250x"))["node"]
    facts = factories.simulated_document(node=identity, devices=devices)
    told = factories.write(suite.folder / "facts.json", facts)
    script(suite.programs / "stream", f'cp "{told}" facts.json')
    suite.variables |= {
        "RFM_SYSTEM": "local:sim-mi250x",
        "FABRICHECK_SIM_PROGRAMS": str(suite.programs),
        "FABRICHECK_SIM_OSU": str(suite.folder / "osu"),
    }
    outcome = suite("-r", "-n", "osu_device_0_engine_off")
    # The stand-in has 50 GB/s everywhere, and four links have 142 by the lab notes.
    assert outcome.status == 1
    assert (
        "Metric bandwidth_links4_16MiB_worst: pair 0-1, devices 0 and 1 of node" in outcome
        and "measured 50 GB/s; at least 135.1" in outcome
    )
    document = document_of(suite, "osu_device_0_engine_off", "stage")
    assert (document["clock"], document["options"]["buffers"]) == ("simulated", "device")
    first = document["options"]["launches"][0]["command"]
    plugin = suite.programs / "libfabricheck_node.so"
    assert first.startswith(f"smpirun -np 2 -platform {plugin} -hostfile smpi-hosts-0-1 --cfg=")
    assert first.endswith("osu_bw -m 16777216:67108864 -i 1 -x 0 -W 8")
    (hosts,) = (suite.results / "stage").rglob("smpi-hosts-0-7")
    assert hosts.read_text() == "device0\ndevice7\n"
