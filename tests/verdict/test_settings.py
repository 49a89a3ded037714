"""Settings of a node or a job, from the program that meets one to the verdict on the node.

None of them proves anything against the hardware: the node is INCOMPLETE by the rule `setting`,
the sentence names what to change, and no line for scontrol drains it.
"""

from __future__ import annotations

import json
import os
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

import factories
import inventories
from fabricheck.judge.verdict.caveats import result_caveats
from fabricheck.node import load as load_node
from fabricheck.node.system import platform_json
from fabricheck.results import document, settings
from fabricheck.site import partitions
from fabricheck.tools.topology.recording import record
from session_builder import (
    PARTITION,
    SessionBuilder,
    ended,
    failed,
    judge,
    kept_on_gpus,
    rules,
)

ROOT = Path(__file__).resolve().parents[2]
SHORT = ("--batch-time", "0.0001", "--warm-up", "0", "--series-time", "0", "--noise-limit", "10")
COPIES = ("--devices", "0", "--sizes", "4KiB", *SHORT)
BOTH = (*COPIES, "--memory", "pinned", "--operations", "h2d,both")

#: What would change a run, taken out of the environment of the tests.
_VARIABLES = ("FABRICHECK_", "HSA_", "HIP_", "ROCR_", "CUDA_", "AMD_", "ROC_", "SLURM", "MPICH_")


def run(folder: Path, line: list[str | Path], **variables: str):
    """Run a command that writes result.json; return its exit code and the document."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_VARIABLES)}
    output = folder / "result.json"
    done = subprocess.run(
        [*map(str, line), "--output", str(output)],
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
        line = [*start, programs / program, *arguments]
        return run(tmp_path, line, FABRICHECK_SIMULATED_NODE=str(node), **variables)

    return simulated


#: A variable, a value that takes something away, a value that does not, and what was measured.
KERNEL, RCCL = {"engine": "kernel"}, {"engine": "rccl"}
MPI = {"engine": "mpi"}
RCCL_BETWEEN_NODES = RCCL | {"experiment": "E17"}
MPI_BETWEEN_NODES = MPI | {"experiment": "E17"}
TAKES_AWAY = [
    ("HSA_CU_MASK", "0:0-15", "", KERNEL, "rocm"),
    ("ROC_GLOBAL_CU_MASK", "0xf", "", KERNEL, "sim"),
    ("HSA_DISABLE_CACHE", "1", "0", KERNEL, "rocm"),
    ("GPU_MAX_HW_QUEUES", "2", "4", KERNEL | {"role": "beside"}, "rocm"),
    ("CUDA_DEVICE_MAX_CONNECTIONS", "1", "32", KERNEL | {"role": "beside"}, "cuda"),
    ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50", "100", KERNEL, "cuda"),
    ("NCCL_P2P_DISABLE", "1", "0", RCCL, "rocm"),
    ("NCCL_P2P_LEVEL", "loc", "NVL", RCCL, "cuda"),
    ("NCCL_NVLS_ENABLE", "0", "1", RCCL, "cuda"),
    ("NCCL_MAX_NCHANNELS", "4", "32", RCCL, "cuda"),
    ("NCCL_MAX_CTAS", "15", "16", RCCL, "cuda"),
    ("NCCL_IB_DISABLE", "1", "0", RCCL_BETWEEN_NODES, "cuda"),
    ("NCCL_NET", "Socket", "AWS Libfabric", RCCL_BETWEEN_NODES, "rocm"),
    ("NCCL_NET_GDR_LEVEL", "0", "PHB", RCCL_BETWEEN_NODES, "rocm"),
    ("UCX_TLS", "rc,sm,cuda_copy", "rc,sm,cuda_copy,cuda_ipc", MPI, "cuda"),
    ("UCX_TLS", "^cuda_ipc", "^ud", MPI, "cuda"),
    ("UCX_TLS", "tcp", "self,sm,rocm", MPI, "rocm"),
    ("UCX_IB_GPU_DIRECT_RDMA", "no", "yes", MPI_BETWEEN_NODES, "cuda"),
    ("MPICH_GPU_SUPPORT_ENABLED", "0", "1", MPI, "rocm"),
    ("MPICH_GPU_IPC_ENABLED", "0", "1", MPI, "rocm"),
    ("MPIR_CVAR_ENABLE_GPU", "0", "1", MPI, "cuda"),
    ("MPICH_OFI_NUM_NICS", "1", "4", MPI_BETWEEN_NODES, "rocm"),
    ("FI_PROVIDER", "tcp;ofi_rxm", "cxi", MPI_BETWEEN_NODES, "rocm"),
    ("FI_HMEM_DISABLE_P2P", "1", "0", RCCL_BETWEEN_NODES, "cuda"),
]


def measured(name: str, value: str, of_series, runtime: str):
    """Build the document of a run with one variable set, by one series."""
    program = factories.document()["program"] | {"runtime": runtime}
    versions = {"runtime": "1", "driver": "1"}
    if name.startswith("MPI"):
        versions["mpi"] = "MPI VERSION : CRAY MPICH version 8.1.31"
    if name.startswith("UCX"):
        versions["mpi"] = "Open MPI v5.0.11"
    return factories.document(
        program=program, versions=versions, environment={name: value},
        series=[factories.series() | of_series],
    )  # fmt: skip


def judged(command, folder: Path, found, changes: dict | None = None, where: str = PARTITION):
    """Judge a node by one document; of a check that failed as `changes` says."""
    code = found["outcome"]["exit_code"]
    system, partition = where.split(":")
    placed = {"system": system, "partition": partition, "perfvalues": {}}
    began = datetime.fromisoformat(found["started"]).timestamp() - 1
    results = (
        SessionBuilder(folder / "judged", command="reframe -n stream_local", start=began)
        .check(document=found, **placed, **changes or failed("sanity", job_exitcode=code))
        .write()
    )
    (verdict,) = judge(results).values()
    told = command("verdict", results, "--output", folder / "verdict", code=None)
    return verdict, told.stdout


def incomplete_by_setting(command, folder: Path, found, *words: str, **more) -> None:
    """Assert what has to be made of a run that a setting prevents."""
    verdict, told = judged(command, folder, found, **more)
    assert (verdict.status, rules(verdict)) == ("INCOMPLETE", {"setting"})
    for word in words:
        assert word in verdict.reasons[0].sentence
    assert "scontrol" not in told and "INCOMPLETE" in told


def test_launches_that_block(command, tmp_path):
    code, found = host(tmp_path, "memcpy", *BOTH, HIP_LAUNCH_BLOCKING="1")
    assert code == 8
    # At once, and not after the gate's patience of 20 s; nor after what is measured without one.
    assert found["duration_s"] < 10 and not found["series"]
    incomplete_by_setting(command, tmp_path, found, "HIP_LAUNCH_BLOCKING is 1: ")


def test_what_needs_no_gate_is_measured_where_launches_block(command, tmp_path):
    alone = (*COPIES, "--memory", "pinned", "--operations", "h2d")
    code, found = host(tmp_path, "memcpy", *alone, HIP_LAUNCH_BLOCKING="1")
    assert code == 0
    assert any("HIP_LAUNCH_BLOCKING is 1" in note for note in found["notes"])
    # By hand it is a note; a check that did not ask for it fails.
    (said,) = settings.disturbing(found, {}, [])
    failing = failed("sanity", said, "SettingError", job_exitcode=0)
    incomplete_by_setting(
        command, tmp_path, found, "HIP_LAUNCH_BLOCKING is 1 on node", changes=failing
    )


def test_a_full_queue_of_copies_by_kernels_is_not_filled(tmp_path):
    """The host would wait for the gate until a device gives up, after 20 s."""
    small = {"FABRICHECK_HOST_QUEUE": "32", "HSA_ENABLE_SDMA": "0"}
    long = [*BOTH]
    long[long.index("--batch-time") + 1] = "1"
    code, found = host(tmp_path, "memcpy", *long, **small)
    assert code == 0
    gated = [one["batch"] for one in found["series"] if one["operation"] == "both"]
    assert max(gated) == 16


def test_pages_that_numa_balancing_moved(command, tmp_path):
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
    incomplete_by_setting(command, tmp_path, found, "numa_balancing is 1", switch)


def test_numa_balancing_is_told_beside_a_pass(tmp_path):
    for value, said in ((1, 1), (0, 0)):
        found = factories.document()
        found["host"] |= {"numa_balancing": value}
        verdict = SessionBuilder(tmp_path / str(value)).passed(document=found).verdict()
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


def test_numa_balancing_is_no_fault_of_the_topology(command, tmp_path):
    found = topology_with_balancing(tmp_path)
    assert found["outcome"]["exit_code"] == 8, found["outcome"]
    incomplete_by_setting(
        command, tmp_path, found, "numa_balancing is 1", "kernel.numa_balancing=0"
    )


def test_numa_balancing_that_the_site_makes_a_note_is_a_caveat(tmp_path):
    found = topology_with_balancing(tmp_path, note_numa_balancing=True)
    assert (found["outcome"]["status"], found["differences"]) == ("good", [])
    assert "has NUMA balancing on" in found["notes"][-1]
    times = {name: factories.document()[name] for name in ("started", "finished")}
    verdict = (
        SessionBuilder(tmp_path / "verdict")
        .check("node_topology", document=found | times, **kept_on_gpus())
        .verdict()
    )
    assert verdict.status == "PASS"
    assert any("has NUMA balancing on" in one for one in verdict.caveats)


def test_engines_that_the_environment_switches_off(command, tmp_path, simulated):
    copies = ("--devices", "0", "--memory", "pinned", "--operations", "h2d")
    code, found = simulated("memcpy", *copies, HSA_ENABLE_SDMA="0", HSA_ENABLE_PEER_SDMA="0")
    assert code == 0
    asked = [{"engine": "copy-engine", "source.memory": "host-pinned"}]
    (said,) = settings.disturbing(found, {}, asked)
    assert said.startswith("HSA_ENABLE_SDMA is 0 on node mi250x (simulated), but the check does")
    assert not list(settings.disturbing(found, {"HSA_ENABLE_SDMA": "0"}, asked)), "it is meant"
    assert list(settings.disturbing(found, {"HSA_ENABLE_SDMA": "1"}, asked)), "somebody undid it"
    failing = failed("sanity", said, "SettingError", job_exitcode=0)
    incomplete_by_setting(command, tmp_path, found, "HSA_ENABLE_SDMA is 0", changes=failing)


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


def test_an_mpi_that_was_not_told_to_take_buffers_of_devices(command, tmp_path, simulated):
    ranks = ("device0", "device1", "device2")
    slow = {"FABRICHECK_SIM_MESSAGE_GBS": "0.05", "MPICH_GPU_SUPPORT_ENABLED": "0"}
    code, found = simulated("mpi", "--sizes", "1GiB", hosts=ranks, **slow)
    assert code == 8
    assert found["simulated_s"] < 0.5, "a message of 1 GiB takes 20 s"
    words = ("at 0.050 GB/s", "MPICH_GPU_SUPPORT_ENABLED is 0", "GTL", "UCX_TLS is not set")
    incomplete_by_setting(command, tmp_path, found, *words)
    # On buffers of the host it has nothing to be told.
    code, found = simulated("mpi", "--sizes", "64KiB", hosts=("domain0", "domain1"), **slow)
    assert code == 0


@pytest.mark.parametrize("rate", ["0.0005", "0.45"])
def test_a_rate_is_known_to_be_too_low_within_seconds(simulated, rate):
    hosts = ("device0", "device1")
    code, found = simulated("mpi", hosts=hosts, FABRICHECK_SIM_MESSAGE_GBS=rate)
    assert code == 8 and found["simulated_s"] < 1


def test_devices_that_a_variable_hides(command, tmp_path, simulated):
    pairs = ("--pairs", "0-5", "--operations", "engine")
    code, found = simulated("p2p", *pairs, ROCR_VISIBLE_DEVICES="0,1")
    assert code == 8
    incomplete_by_setting(command, tmp_path, found, "ROCR_VISIBLE_DEVICES is 0,1")
    hosts = ("device0", "device1")
    code, found = simulated("mpi", "--map", "0,1", hosts=hosts, ROCR_VISIBLE_DEVICES="0")
    assert code == 8
    words = ("rank 1: device 1 does not exist: the rank sees 1", "ROCR_VISIBLE_DEVICES is 0")
    incomplete_by_setting(command, tmp_path, found, *words)


def test_fewer_devices_are_hardware_unless_a_setting_hides_them(command, tmp_path, wording):
    hidden = [{"name": "ROCR_VISIBLE_DEVICES", "value": "0", "concerns": "devices"}]
    for told, rule, status in ((hidden, "setting", "INCOMPLETE"), ([], "devices", "HW-FAIL")):
        one = ended("unsupported", 3, "no device 1", devices=[factories.device(0)], series=[])
        folder = tmp_path / rule
        verdict, lines = judged(command, folder, one | {"settings": told}, where="h200:x2")
        assert (verdict.status, rules(verdict)) == (status, {rule})
        assert ("scontrol" in lines) == (status == "HW-FAIL")
    wording(settings.hiding_devices(factories.document() | {"settings": hidden}))


@pytest.mark.parametrize(("name", "harmful", "harmless", "of_series", "runtime"), TAKES_AWAY)
def test_a_variable_that_takes_something_away(name, harmful, harmless, of_series, runtime):
    found = measured(name, harmful, of_series, runtime)
    (sentence,) = settings.disturbing(found, {}, [])
    assert sentence.startswith(f"{name} is {harmful} on node node1, but neither the check nor the ")
    # The check, or its site, means it so; or the value takes nothing away.
    assert not list(settings.disturbing(found, {name: harmful}, []))
    other = measured(name, harmless, of_series, runtime)
    assert not list(settings.disturbing(other, {}, []))
    # It does not concern a copy by an engine.
    copied = measured(name, harmful, {"engine": "copy-engine"}, runtime)
    assert not list(settings.disturbing(copied, {}, []))


def test_such_a_variable_proves_nothing_against_the_node(command, tmp_path):
    found = measured("NCCL_P2P_DISABLE", "1", RCCL, "cuda")
    (sentence,) = settings.disturbing(found, {}, [])
    failing = failed("sanity", sentence, "SettingError", job_exitcode=0)
    incomplete_by_setting(command, tmp_path, found, "NCCL_P2P_DISABLE is 1", changes=failing)


def test_each_variable_of_the_table_is_tried():
    assert {name for name, _, _ in settings.table()} == {name for name, *_ in TAKES_AWAY}


def test_a_variable_of_another_runtime_or_mpi_takes_nothing_away():
    masked = measured("HSA_CU_MASK", "0:0-15", KERNEL, "cuda")
    assert not list(settings.disturbing(masked, {}, []))
    of_cray = measured("UCX_TLS", "tcp", MPI, "rocm")
    of_cray["versions"]["mpi"] = "MPI VERSION : CRAY MPICH version 8.1.31"
    assert not list(settings.disturbing(of_cray, {}, []))


def variables_caveat(verdict) -> list[str]:
    """Return the caveats on variables."""
    return [caveat for caveat in verdict.settings if caveat.startswith("Set in the job and by no")]


def test_variables_that_no_check_set_are_named_where_a_limit_is_missed(command, tmp_path, wording):
    environment = {
        "NCCL_ALGO": "Ring", "UCX_RNDV_THRESH": "8192\x1b[31m", "AMD_LOG_LEVEL": "4" * 200,
        # Where software is, which one, what a launcher or a scheduler sets, and others.
        "CUDA_HOME": "/opt/cuda", "HIP_PATH": "/opt/rocm", "MPICH_DIR": "/opt/mpich",
        "NCCL_VERSION": "2.28", "OMPI_MCA_orte_hnp_uri": "1.0;tcp://10.0.0.1:4711",
        "OMPI_MCA_PREFIXES": "mca,opal,ompi", "GPU_MAX_HW_QUEUES": "17",
        "CUDA_VISIBLE_DEVICES": "0,1", "SLURM_GPUS": "2", "OMP_NUM_THREADS": "2",
    }  # fmt: skip
    slow = factories.document(environment=environment)
    verdict = SessionBuilder(tmp_path / "missed").missed(document=slow).verdict()
    assert verdict.status == "PERF-FAIL"
    wording(variables_caveat(verdict))
    assert not variables_caveat(SessionBuilder(tmp_path / "passed").passed(document=slow).verdict())
    told = command("verdict", tmp_path / "missed", code=12).stdout
    assert f"Caveat on node1: {verdict.settings[0]}" in told


def test_the_variables_of_a_library_are_named_behind_those_that_modules_set(tmp_path):
    many = {f"FI_X{number}": "1" for number in range(12)} | {"NCCL_P2P_LEVEL": "PHB"}
    slow = factories.document(environment=many)
    (caveat,) = variables_caveat(SessionBuilder(tmp_path).missed(document=slow).verdict())
    assert caveat.endswith("FI_X11=1, NCCL_P2P_LEVEL=PHB.")


def test_at_most_thirty_variables_are_named(tmp_path):
    slow = factories.document(environment={f"NCCL_X{number}": "1" for number in range(34)})
    (caveat,) = variables_caveat(SessionBuilder(tmp_path).missed(document=slow).verdict())
    assert caveat.endswith("NCCL_X28=1, NCCL_X29=1 and 4 more.")


@pytest.mark.parametrize(
    ("name", "is_named"),
    [
        ("HSA_TOOLS_LIB", True),
        ("FI_PROVIDER_PATH", True),
        ("UCX_MODULE_DIR", True),
        ("CUDA_INJECTION64_PATH", True),
        ("CUDA_TOOLKIT_ROOT_DIR", False),
        ("HIP_DEVICE_LIB_PATH", False),
        ("NCCL_INCLUDE_DIR", False),
    ],
)
def test_what_a_library_loads_is_named_and_where_software_is_is_not(tmp_path, name, is_named):
    slow = factories.document(environment={name: "/opt/tools"})
    named = variables_caveat(SessionBuilder(tmp_path).missed(document=slow).verdict())
    assert [caveat.endswith(f": {name}=/opt/tools.") for caveat in named] == [True] * is_named


@pytest.mark.parametrize("not_intended", [None, []])
def test_variables_are_not_named_where_the_check_set_them_or_nothing_is_known(
    tmp_path, not_intended
):
    slow = factories.document(environment={"NCCL_NVLS_ENABLE": "0"})
    results = SessionBuilder(tmp_path).missed(document=slow).write()
    (file,) = results.rglob("metrics.json")
    content = json.loads(file.read_text()) | {"not_intended": not_intended}
    if not_intended is None:
        del content["not_intended"]
    file.write_text(json.dumps(content))
    (verdict,) = judge(results).values()
    assert verdict.status == "PERF-FAIL" and not variables_caveat(verdict)


def with_cores(cores: int, **changes):
    """Build the document of a run that may use some of the 16 cores of its host."""
    state = factories.state([factories.device_state(0), factories.device_state(1)])
    found = factories.document(state=state, **changes)
    found["host"] |= {"cores_allowed": list(range(cores))}
    return found


FEWER = "Node node1 has 16 cores (hardware threads), of which a program could use 4: "


def test_a_run_with_fewer_cores_than_the_node_says_so(tmp_path):
    verdict = SessionBuilder(tmp_path / "fewer").passed(document=with_cores(4)).verdict()
    assert verdict.status == "PASS"
    assert [one for one in verdict.settings if one.startswith(FEWER)]
    all_of_them = SessionBuilder(tmp_path / "all").passed(document=with_cores(16)).verdict()
    assert not all_of_them.settings


def test_fewer_cores_explain_what_the_host_moves_and_nothing_else(tmp_path):
    """A pageable copy needs cores; a kernel on a device does not."""
    program = factories.document()["program"] | {"runtime": "cuda"}
    pageable = factories.series() | {"source": factories.place("host-pageable", None, 0)}
    for series, rule, status in ((pageable, "setting", "INCOMPLETE"),
                                 (factories.series(), "reference", "PERF-FAIL")):  # fmt: skip
        slow = with_cores(4, program=program, series=[series])
        verdict = SessionBuilder(tmp_path / rule).missed(document=slow).verdict()
        assert (verdict.status, rules(verdict)) == (status, {rule})
    for cores in (8, 16):  # half of them are enough
        slow = with_cores(cores, program=program, series=[pageable])
        verdict = SessionBuilder(tmp_path / str(cores)).missed(document=slow).verdict()
        assert verdict.status == "PERF-FAIL"


def test_cores_that_a_partition_states_are_not_missed(tmp_path, monkeypatch):
    stated = {"name": "gpu", "environs": [], "processor": {"num_cpus": 4}}
    monkeypatch.setattr(partitions, "known", lambda where: stated)
    verdict = SessionBuilder(tmp_path).passed(document=with_cores(4)).verdict()
    assert not verdict.settings


def test_cores_that_the_site_keeps_for_the_system_are_not_missed():
    usable = load_node("mi250x").usable_cores
    assert len(usable) == 56
    found = with_cores(16)
    found["state"]["before"]["host"]["cores"] = 64
    found["host"]["cores_allowed"] = list(usable)
    assert settings.fewer_cores(found) == settings.FewerCores("node1", 56, 64)
    assert settings.fewer_cores(found, usable) is None
    found["host"]["cores_allowed"] = list(usable[:4])
    assert settings.fewer_cores(found, usable) == settings.FewerCores("node1", 4, 64)


def test_ranks_have_cores_of_their_own_on_purpose():
    assert settings.fewer_cores(with_cores(1, ranks=[{}])) is None


def test_the_quota_of_a_container_explains_what_the_host_moves(tmp_path, wording):
    """A container with a quota shows all cores, and stops a program that uses them."""
    program = factories.document()["program"] | {"runtime": "cuda"}
    pageable = factories.series() | {"source": factories.place("host-pageable", None, 0)}
    slow = with_cores(16, program=program, series=[pageable])
    slow["host"]["cpu_quota"] = 4.0
    verdict = SessionBuilder(tmp_path).missed(document=slow).verdict()
    assert (verdict.status, rules(verdict)) == ("INCOMPLETE", {"setting"})
    wording(verdict.reasons[0].sentence)


@pytest.mark.parametrize(
    ("quota", "ranks", "found"),
    [
        (None, None, None),
        (16.0, None, None),
        (1.5, None, settings.FewerCores("node1", 1.5, 16, by_quota=True)),
        (1.5, [{}], settings.FewerCores("node1", 1.5, 16, by_quota=True)),
    ],
)
def test_a_quota_is_less_than_all_cores_for_ranks_too(quota, ranks, found):
    document = with_cores(16, **({} if ranks is None else {"ranks": ranks}))
    document["host"]["cpu_quota"] = quota
    assert settings.fewer_cores(document) == found


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ({"hostname": "3f2a9c0de1b2"}, "of a container"),
        ({"hostname": "3f2a9c0de1b2", "container": "docker", "own_name": True}, "of a container"),
        ({"hostname": "3f2a9c0de1b2", "container": None, "own_name": False}, None),
        ({"hostname": "accept-x7k2p", "container": "kubernetes", "own_name": True}, "of a pod"),
        ({"hostname": "nid001", "container": "kubernetes", "own_name": False}, None),
        ({"hostname": "nid001", "container": "podman", "own_name": True}, None),
        (
            {"hostname": "accept-x7k2p", "scheduler_node": "nid001", "container": "kubernetes",
             "own_name": True},
            None,
        ),
    ],
)  # fmt: skip
def test_the_name_of_a_container_or_a_pod_is_no_name_of_a_node(tmp_path, host, named):
    document = factories.document()
    document["host"] |= {"scheduler_node": None, **host}
    found = SessionBuilder(tmp_path).passed(document=document).verdict()
    names = [caveat for caveat in found.caveats if " has the name " in caveat]
    assert len(names) == (0 if named is None else 1)
    assert all(f" has the name {named}" in name for name in names)


def test_the_key_of_a_job_stays_out_of_a_document(tmp_path):
    variables = {
        "OMPI_MCA_orte_precondition_transports": "ab12-cd34", "OMPI_MCA_pml": "ucx",
        "MPIR_CVAR_ENABLE_GPU": "0",
    }  # fmt: skip
    alone = (*COPIES, "--memory", "pinned", "--operations", "h2d")
    code, found = host(tmp_path, "memcpy", *alone, **variables)
    assert code == 0
    shown = {name: value for name, value in found["environment"].items() if "MP" in name}
    assert {"OMPI_MCA_pml": "ucx", "MPIR_CVAR_ENABLE_GPU": "0"}.items() <= shown.items()
    assert "OMPI_MCA_orte_precondition_transports" not in shown


@pytest.mark.parametrize(
    ("name", "clock", "told"),
    [
        ("n2", "measured", True),
        ("NODE1.example.org", "measured", False),
        ("n2", "simulated", False),
        (None, "measured", False),
    ],
)
def test_a_variable_that_names_a_machine_otherwise_than_it_names_itself_is_told(
    tmp_path, name, clock, told
):
    content = factories.document(clock=clock)
    content["host"] |= {"hostname": "node1.cluster", "scheduler_node": name or "node1"}
    if name is not None:
        content["environment"]["FABRICHECK_NODE_NAME"] = name
    case = factories.case() | {"scheduler": "local", "job_nodelist": ["node1"]}
    (found,) = SessionBuilder(tmp_path).add(case, content).verdicts().values()
    assert any("calls itself node1.cluster" in caveat for caveat in found.caveats) == told
