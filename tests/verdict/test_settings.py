"""Settings of a node or a job, from the program that meets one to the verdict on the node.

None of them proves anything against the hardware: the node is INCOMPLETE by the rule `setting`,
the sentence names what to change, and no line for scontrol drains it.
"""

from __future__ import annotations

import os
import subprocess
from datetime import datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

import factories
import inventories
import verdict_sessions as made
from fabricheck.cli import app
from fabricheck.judge.verdict.node import result_caveats
from fabricheck.node import load as load_node
from fabricheck.node.system import platform_json
from fabricheck.results import document, settings
from fabricheck.tools.topology.recording import record

ROOT = Path(__file__).resolve().parents[2]
SHORT = ("--batch-time", "0.0001", "--warm-up", "0", "--series-time", "0", "--noise-limit", "10")
COPIES = ("--devices", "0", "--sizes", "4KiB", *SHORT)
BOTH = (*COPIES, "--memory", "pinned", "--operations", "h2d,both")

#: What would change a run, taken out of the environment of the tests.
_VARIABLES = ("FABRICHECK_", "HSA_", "HIP_", "ROCR_", "CUDA_", "AMD_", "ROC_", "SLURM", "MPICH_")


def run(folder: Path, command: list[str | Path], **variables: str):
    """Run a command that writes result.json; return its exit code and the document."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_VARIABLES)}
    output = folder / "result.json"
    done = subprocess.run(
        [*map(str, command), "--output", str(output)],
        env=kept | {"FABRICHECK_HOST_DEVICES": "2"} | variables,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert output.exists(), done.stderr
    return done.returncode, document.load(output)


def host(folder: Path, program: str, *arguments: str, **variables: str):
    """Run a program of the host runtime."""
    return run(folder, [ROOT / "build/host/bin" / program, *arguments], **variables)


@pytest.fixture
def simulated(tmp_path):
    """Run a program on the simulated node, of ranks where hosts are given."""
    node = tmp_path / "node.json"
    node.write_text(platform_json(load_node("mi250x")))

    def simulated(program: str, *arguments: str, hosts: tuple[str, ...] = (), **variables: str):
        programs = ROOT / "build/sim/bin"
        start: list[str | Path] = []
        if hosts:
            (tmp_path / "hosts").write_text("".join(f"{one}\n" for one in hosts))
            start = ["smpirun", "-np", str(len(hosts)), "-hostfile", tmp_path / "hosts",
                     "-platform", programs / "libfabricheck_node.so",
                     "--log=root.thresh:error"]  # fmt: skip
        command = [*start, programs / program, *arguments]
        return run(tmp_path, command, FABRICHECK_SIMULATED_NODE=str(node), **variables)

    return simulated


def judged(folder: Path, found, changes: dict | None = None, where: str = made.WHERE):
    """Judge a node by one document; of a check that failed as `changes` says."""
    code = found["outcome"]["exit_code"]
    system, partition = where.split(":")
    placed = {"system": system, "partition": partition, "perfvalues": {}}
    case = made.good(**placed) | (changes or made.failed("sanity", job_exitcode=code))
    began = datetime.fromisoformat(found["started"]).timestamp() - 1
    results = made.write(folder / "judged", [(case, found)],
                         command="reframe -n stream_local", start=began)  # fmt: skip
    (verdict,) = made.judge(results).values()
    told = CliRunner().invoke(app, ["verdict", str(results), "--output", str(folder / "verdict")])
    return verdict, told.stdout


def incomplete_by_setting(folder: Path, found, *words: str, **more) -> None:
    """Assert what has to be made of a run that a setting prevents."""
    verdict, told = judged(folder, found, **more)
    assert (verdict.status, made.rules(verdict)) == ("INCOMPLETE", {"setting"})
    for word in words:
        assert word in verdict.reasons[0].sentence
    assert "scontrol" not in told and "INCOMPLETE" in told


def test_launches_that_block(tmp_path):
    code, found = host(tmp_path, "memcpy", *BOTH, HIP_LAUNCH_BLOCKING="1")
    assert code == 8
    # At once, and not after the gate's patience of 20 s; nor after what is measured without one.
    assert found["duration_s"] < 10 and not found["series"]
    incomplete_by_setting(tmp_path, found, "HIP_LAUNCH_BLOCKING is 1: ")


def test_what_needs_no_gate_is_measured_where_launches_block(tmp_path):
    alone = (*COPIES, "--memory", "pinned", "--operations", "h2d")
    code, found = host(tmp_path, "memcpy", *alone, HIP_LAUNCH_BLOCKING="1")
    assert code == 0
    assert any("HIP_LAUNCH_BLOCKING is 1" in note for note in found["notes"])
    # By hand it is a note; a check that did not ask for it fails.
    (said,) = settings.disturbing(found, {}, [])
    failed = made.failed("sanity", said, "SettingError", job_exitcode=0)
    incomplete_by_setting(tmp_path, found, "HIP_LAUNCH_BLOCKING is 1 on node", changes=failed)


def test_a_full_queue_of_copies_by_kernels_is_not_filled(tmp_path):
    """The host would wait for the gate until a device gives up, after 20 s."""
    small = {"FABRICHECK_HOST_QUEUE": "32", "HSA_ENABLE_SDMA": "0"}
    long = [*BOTH]
    long[long.index("--batch-time") + 1] = "1"
    code, found = host(tmp_path, "memcpy", *long, **small)
    assert code == 0
    gated = [one["batch"] for one in found["series"] if one["operation"] == "both"]
    assert max(gated) == 16


def test_pages_that_numa_balancing_moved(tmp_path):
    library, file = tmp_path / "moved_pages.so", tmp_path / "numa_balancing"
    source = Path(__file__).with_name("moved_pages.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    moved = {"LD_PRELOAD": str(library), "NUMA_BALANCING_FILE": str(file)}
    where = ("--domains", "0", "--operations", "h2d")
    for memory, balancing, code in (("pageable", 0, 8), ("pinned", 1, 8), ("pageable", 1, 8)):
        file.write_text(f"{balancing}\n")
        ended, found = host(tmp_path, "memcpy", *COPIES, *where, "--memory", memory, **moved)
        assert ended == code
        assert "its pages are on domain" in found["outcome"]["message"]
    assert found["host"]["numa_balancing"] == 1
    switch = "switch it off (sysctl kernel.numa_balancing=0)"
    incomplete_by_setting(tmp_path, found, "numa_balancing is 1", switch)


def test_numa_balancing_is_told_beside_a_pass(tmp_path):
    for value, said in ((1, 1), (0, 0)):
        found = factories.document()
        found["host"] |= {"numa_balancing": value}
        verdict = made.only(tmp_path / str(value), made.good(), found)
        assert verdict.status == "PASS"
        told = [one for one in verdict.caveats if one.startswith("Node node1 has NUMA balanc")]
        assert len(told) == said
    simulated = factories.simulated_document()
    simulated["host"] |= {"numa_balancing": 1}
    said = result_caveats([], [factories.document(), simulated], 0, 0)
    assert not [one for one in said if "NUMA" in one]


def topology_with_balancing(folder, **settings):
    told = inventories.composed(load_node("mi250-two-sockets"), numa_balancing=1)
    programs = inventories.programs(folder / "programs", told)
    return record("mi250-two-sockets", "rocm", programs, folder / "result.json", **settings)


def test_numa_balancing_is_no_fault_of_the_topology(tmp_path):
    found = topology_with_balancing(tmp_path)
    assert found["outcome"]["exit_code"] == 8, found["outcome"]
    incomplete_by_setting(tmp_path, found, "numa_balancing is 1", "kernel.numa_balancing=0")


def test_numa_balancing_that_the_site_makes_a_note_is_a_caveat(tmp_path):
    found = topology_with_balancing(tmp_path, note_numa_balancing=True)
    assert (found["outcome"]["status"], found["differences"]) == ("good", [])
    assert "has NUMA balancing on" in found["notes"][-1]
    times = {name: factories.document()[name] for name in ("started", "finished")}
    topology = made.good("node_topology") | made.kept_on_gpus()
    verdict = made.only(tmp_path / "verdict", topology, found | times)
    assert verdict.status == "PASS"
    assert any("has NUMA balancing on" in one for one in verdict.caveats)


def test_engines_that_the_environment_switches_off(tmp_path, simulated):
    copies = ("--devices", "0", "--memory", "pinned", "--operations", "h2d")
    code, found = simulated("memcpy", *copies, HSA_ENABLE_SDMA="0", HSA_ENABLE_PEER_SDMA="0")
    assert code == 0
    asked = [{"engine": "copy-engine", "source.memory": "host-pinned"}]
    (said,) = settings.disturbing(found, {}, asked)
    assert said.startswith("HSA_ENABLE_SDMA is 0 on node mi250x (simulated), but the check does")
    assert not list(settings.disturbing(found, {"HSA_ENABLE_SDMA": "0"}, asked)), "it is meant"
    assert list(settings.disturbing(found, {"HSA_ENABLE_SDMA": "1"}, asked)), "somebody undid it"
    failed = made.failed("sanity", said, "SettingError", job_exitcode=0)
    incomplete_by_setting(tmp_path, found, "HSA_ENABLE_SDMA is 0", changes=failed)


@pytest.mark.parametrize(
    ("asked", "concerned"),
    [
        ({"engine": "copy-engine", "source.memory": "device", "destination.memory": "peer"}, True),
        ({"engine": "copy-engine", "source.memory": "host-pinned"}, False),
        ({"engine": "kernel", "source.memory": "device", "destination.memory": "peer"}, False),
        ({"engine": "mpi"}, True),
    ],
)
def test_engines_between_peers_concern_who_asks_for_them(simulated, asked, concerned):
    copies = ("--pairs", "0-1", "--operations", "engine", "--sizes", "1MiB")
    code, found = simulated("p2p", *copies, HSA_ENABLE_PEER_SDMA="0")
    assert code == 0
    assert bool(list(settings.disturbing(found, {}, [asked]))) == concerned


def test_an_mpi_that_was_not_told_to_take_buffers_of_devices(tmp_path, simulated):
    ranks = ("device0", "device1", "device2")
    slow = {"FABRICHECK_SIM_MESSAGE_GBS": "0.05", "MPICH_GPU_SUPPORT_ENABLED": "0"}
    code, found = simulated("mpi", "--sizes", "1GiB", hosts=ranks, **slow)
    assert code == 8
    assert found["simulated_s"] < 0.5, "a message of 1 GiB takes 20 s"
    words = ("at 0.050 GB/s", "MPICH_GPU_SUPPORT_ENABLED is 0", "GTL", "UCX_TLS is not set")
    incomplete_by_setting(tmp_path, found, *words)
    # On buffers of the host it has nothing to be told.
    code, found = simulated("mpi", "--sizes", "64KiB", hosts=("domain0", "domain1"), **slow)
    assert code == 0


@pytest.mark.parametrize("rate", ["0.0005", "0.45"])
def test_a_rate_is_known_to_be_too_low_within_seconds(simulated, rate):
    hosts = ("device0", "device1")
    code, found = simulated("mpi", hosts=hosts, FABRICHECK_SIM_MESSAGE_GBS=rate)
    assert code == 8 and found["simulated_s"] < 1


def test_devices_that_a_variable_hides(tmp_path, simulated):
    pairs = ("--pairs", "0-5", "--operations", "engine")
    code, found = simulated("p2p", *pairs, ROCR_VISIBLE_DEVICES="0,1")
    assert code == 8
    incomplete_by_setting(tmp_path, found, "ROCR_VISIBLE_DEVICES is 0,1")
    hosts = ("device0", "device1")
    code, found = simulated("mpi", "--map", "0,1", hosts=hosts, ROCR_VISIBLE_DEVICES="0")
    assert code == 8
    incomplete_by_setting(tmp_path, found, "rank 1: device 1 does not exist: the rank sees 1",
                          "ROCR_VISIBLE_DEVICES is 0")  # fmt: skip


def test_fewer_devices_are_hardware_unless_a_setting_hides_them(tmp_path):
    hidden = [{"name": "ROCR_VISIBLE_DEVICES", "value": "0", "concerns": "devices"}]
    for told, rule, status in ((hidden, "setting", "INCOMPLETE"), ([], "devices", "HW-FAIL")):
        one = made.ended("unsupported", 3, "no device 1", devices=[factories.device(0)], series=[])
        folder = tmp_path / rule
        verdict, lines = judged(folder, one | {"settings": told}, where="h200:x2")
        assert (verdict.status, made.rules(verdict)) == (status, {rule})
        assert ("scontrol" in lines) == (status == "HW-FAIL")
    assert (
        "ROCR_VISIBLE_DEVICES is 0 on node node1: unset it so that every process sees all devices"
        in (settings.hiding_devices(factories.document() | {"settings": hidden}) or "")
    )
