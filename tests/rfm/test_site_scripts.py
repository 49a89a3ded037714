"""The job scripts of every site, as a session with --dry-run writes them; warnings are errors.

What is expected is written by hand from the documents that the site files name. ReFrame refuses -r
beside --dry-run, and a metric without a reference fails there as it does in a session that runs.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from fabricheck.site import clusters
from site_dry_runs import ASKED, DryRun

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

#: Of every job: who asks, and one node for itself.
JOB = {
    "--account=project_1",
    "--reservation=acceptance",
    "--qos=debug",
    "--nodes=1",
    "--exclusive",
}


@dataclass
class Site:
    """What the documents say of one partition.

    cores: that of the rank of each device, the first near it that is not kept for the system.
    """

    spack: str
    environment: str
    cores: str
    sbatch: set[str] = field(default_factory=set)
    modules: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    binding: str = "srun --nodes=1 --ntasks={ranks} --cpu-bind=map_cpu:{cores}"
    alone: str = "srun --nodes=1 --ntasks=1 --cpu-bind=none"
    separator: str = ","

    @property
    def devices(self) -> int:
        return len(self.cores.split(","))

    def started(self, ranks: int, cores: str) -> str:
        return self.binding.format(ranks=ranks, cores=cores.replace(",", self.separator))


#: LUMI user guide, "LUMI-G example batch scripts", the example of one rank per GPU.
MI250X_CORES = "49,57,17,25,1,9,33,41"
#: What a login of a Cray with Slingshot has loaded (LMOD_SYSTEM_DEFAULT_MODULES of Frontier, and
#: libfabric, without which users' scripts that purge do not start).
LOGIN = ["craype-x86-trento", "craype-network-ofi", "libfabric", "xpmem"]
GPU_AWARE = {"MPICH_GPU_SUPPORT_ENABLED": "1"}

SITES = {
    "lumi:gpu": Site(
        "lumi",
        "rocm",
        MI250X_CORES,
        {"--partition=standard-g", "--gpus-per-node=8"},
        [
            "CrayEnv",
            "PrgEnv-gnu",
            "cpe/25.03",
            "gcc-native/14.2",
            "craype-accel-amd-gfx90a",
            "rocm/6.3.4",
        ],
        GPU_AWARE,
    ),
    # The Frontier user guide has the same map of cores and GPUs ("Frontier compute nodes").
    "frontier:gpu": Site(
        "frontier",
        "rocm",
        MI250X_CORES,
        {"--partition=batch", "--gpus-per-node=8"},
        [
            *LOGIN,
            "PrgEnv-gnu",
            "cpe/24.11",
            "gcc-native/13.2",
            "craype-accel-amd-gfx90a",
            "rocm/6.2.4",
        ],
        GPU_AWARE,
    ),
    "dardel:gpu": Site(
        "dardel",
        "rocm",
        MI250X_CORES,
        {"--partition=gpu", "--gpus-per-node=8"},
        [
            *LOGIN,
            "PDC/23.12",
            "PrgEnv-gnu",
            "gcc-native/12.3",
            "craype-accel-amd-gfx90a",
            "rocm/5.7.0",
        ],
        GPU_AWARE,
    ),
    # Two sockets of 24 cores, four devices each.
    "jureca:mi250": Site(
        "jureca-mi250",
        "rocm",
        "0,6,12,18,24,30,36,42",
        {"--partition=dc-mi200"},
        ["Architecture/jureca_mi200", "Stages/2022", "GCC/11.2.0"],
        {
            "SLURM_MPI_TYPE": "pspmix",
            "OMPI_MCA_pml": "ucx",
            "UCX_TLS": "rc_x,self,sm,rocm_copy,rocm_ipc",
        },
    ),
    # GPUs 0 to 3 are near the NUMA domains 3, 1, 7 and 5, of 16 cores each.
    "jureca:a100": Site(
        "jureca-a100",
        "cuda",
        "48,16,112,80",
        {"--partition=dc-gpu", "--gres=gpu:4"},
        [
            "Stages/2025",
            "GCC/13.3.0",
            "CUDA/12",
            "OpenMPI/5.0.5",
            "MPI-settings/CUDA",
            "UCX-settings/RC-CUDA",
        ],
        {"SLURM_MPI_TYPE": "pspmix", "OMPI_MCA_pml": "ucx"},
    ),
    # All GPUs are near the first of two domains (EPICURE case study).
    "leonardo:booster": Site(
        "leonardo",
        "cuda",
        "0,1,2,3",
        {"--partition=boost_usr_prod", "--gres=gpu:4"},
        ["gcc/12.2.0", "nvhpc/24.5", "hpcx-mpi/2.19"],
        {"SLURM_MPI_TYPE": "pmix", "OMPI_MCA_pml": "ucx"},
    ),
    # The first of the 24 cores of each package. Flux has no job script: its jobs are steps.
    "tuolumne:gpu": Site(
        "tuolumne",
        "rocm",
        "0,24,48,72",
        modules=["rocm/6.4.1"],
        variables=GPU_AWARE,
        binding="flux run --nodes=1 --ntasks={ranks} --exclusive -o mpibind=off "
        "-o gpu-affinity=off -o 'cpu-affinity=map:{cores}'",
        alone="flux run --nodes=1 --ntasks=1 --exclusive -o mpibind=off -o gpu-affinity=off "
        "-o cpu-affinity=off",
        separator=";",
    ),
    # "mpiexec -n 4 --ppn 4 --cpu-bind list:0-23:24-47:48-71:72-95" in public job scripts.
    "hunter:gpu": Site(
        "hunter",
        "rocm",
        "0,24,48,72",
        modules=["HLRS/APU/2026.1", "PrgEnv-gnu", "gcc-native/14"],
        variables=GPU_AWARE,
        binding="mpiexec -n {ranks} --ppn {ranks} --cpu-bind list:{cores}",
        alone="mpiexec -n 1 --ppn 1 --cpu-bind none",
        separator=":",
    ),
    # A single machine, by its node model.
    "local:gpu h200": Site(
        "local-cuda",
        "cuda",
        "0,16,32,48,64,80,96,112",
        variables={"OMPI_MCA_pml": "ucx", "NCCL_NVLS_ENABLE": "0"},
        binding="mpirun -np {ranks} --map-by pe-list={cores}:ordered:hwtcpus",
        alone="",
    ),
    # Eight MI300X, four near each of two sockets of 32 cores.
    "local:gpu mi300x": Site(
        "local-rocm",
        "rocm",
        "0,8,16,24,32,40,48,56",
        variables={"OMPI_MCA_pml": "ucx"},
        binding="mpirun -np {ranks} --map-by pe-list={cores}:ordered:hwtcpus",
        alone="",
    ),
}
EVERY_SITE = pytest.mark.parametrize("partition", SITES)
AMD = pytest.mark.parametrize(
    "partition", [name for name, site in SITES.items() if site.environment == "rocm"]
)


class Script:
    """A job script, read as what it does."""

    def __init__(self, file: Path) -> None:
        text = file.read_text()
        self.sbatch = set(re.findall(r"^#SBATCH (\S+)$", text, re.MULTILINE))
        self.modules = re.findall(r"^module load (\S+)$", text, re.MULTILINE)
        self.variables = dict(re.findall(r"^export (\w+)=(.*)$", text, re.MULTILINE))
        self.command = text.strip().splitlines()[-1]
        plan = file.with_name("plan.json")
        self.plan = plan.read_text() if plan.exists() else ""


@pytest.fixture(scope="module")
def of_site(site_dry_run):
    """Return a function that gives the dry run of the site of a partition."""

    def of_site(partition: str) -> DryRun:
        where, _, model = partition.partition(" ")
        if not model:
            return site_dry_run(where.partition(":")[0])
        view = clusters.view(SITES[partition].spack)
        own = f"FABRICHECK_{SITES[partition].environment.upper()}"
        tests = clusters.tests_variable(clusters.COLLECTIVE_TESTS[SITES[partition].environment])
        tools = {f"{own}_OSU": f"{view}/libexec/osu-micro-benchmarks", tests: f"{view}/bin"}
        return site_dry_run(
            where, **{"FABRICHECK_NODE": model, f"{own}_PROGRAMS": f"{view}/bin"}, **tools
        )

    return of_site


@pytest.fixture(scope="module")
def script(of_site):
    """Return a function that gives the script of a check on a partition."""

    def script(partition: str, check: str) -> Script:
        folder = of_site(partition).stage(partition.split()[0], check)
        assert folder.parent.name == SITES[partition].environment
        return Script(folder / "rfm_job.sh")

    return script


@pytest.fixture(scope="module")
def told(of_site):
    """Return a function that gives what the checks of a partition told of themselves."""
    return lambda partition: of_site(partition).of(partition.split()[0])


@EVERY_SITE
def test_the_job_of_one_process(script, partition):
    site, found = SITES[partition], script(partition, "stream_local")
    programs = ROOT / "build" / "spack" / site.spack / "view" / "bin"
    assert found.modules == site.modules
    assert site.variables.items() <= found.variables.items()
    # The program's own limit, 30 s before the job's: 120 s.
    start = f"{site.alone} {programs}/stream ".lstrip()
    assert found.command.startswith(start)
    assert found.command.endswith(" --time-limit 120 --output result.json")
    # With AMD's devices half a GiB, four times the cache of their hosts for both arrays of a copy.
    assert f"--sizes {1 << (29 if site.environment == 'rocm' else 30)}" in found.command
    if site.sbatch:
        tasks = {"--ntasks=1", "--ntasks-per-node=1", "--time=0:2:30"}
        assert found.sbatch >= site.sbatch | JOB | tasks
    else:
        assert not found.sbatch


@pytest.mark.parametrize("partition", [name for name, site in SITES.items() if site.sbatch])
def test_no_job_is_requeued(of_site, partition):
    system, name = partition.split(":")
    scripts = list(of_site(partition).results.glob(f"stage/*/{system}/{name}/*/*/rfm_job.sh"))
    assert len(scripts) > 50
    requeued = [one.parent.name for one in scripts if "--no-requeue" not in Script(one).sbatch]
    assert not requeued


@EVERY_SITE
def test_ranks_are_bound_near_their_devices(script, partition):
    site, found = SITES[partition], script(partition, "pingpong_right")
    ranks, devices = site.devices, ",".join(map(str, range(site.devices)))
    started = site.started(ranks, site.cores)
    assert found.command.startswith(f"{started} {ROOT}/build/spack/{site.spack}/view/bin/pingpong ")
    assert f" --map {devices} --bind {site.cores} " in found.command
    if site.sbatch:
        assert found.sbatch >= {f"--ntasks={ranks}", f"--ntasks-per-node={ranks}"}


#: EPICURE's wrong placement on Leonardo, and that over both domains; domain 0 of JURECA.
FAR = {
    ("leonardo:booster", "far"): "16,17,18,19",
    ("leonardo:booster", "spread"): "0,1,16,17",
    ("jureca:a100", "far"): "0,1,2,3",
    ("jureca:a100", "spread"): "48,16,0,1",
}


@pytest.mark.parametrize(("partition", "placement"), FAR)
def test_ranks_in_a_domain_without_devices(script, partition, placement):
    cores = FAR[partition, placement]
    command = script(partition, f"pingpong_{placement}").command
    assert command.startswith(f"{SITES[partition].started(4, cores)} ")
    assert f" --placement {placement} " in command
    assert f" --map 0,1,2,3 --bind {cores} " in command


def test_without_such_a_domain_there_are_no_such_checks(script):
    assert script("lumi:gpu", "pingpong_right")
    for placement in ("far", "spread"):
        with pytest.raises(ValueError, match="not enough values"):
            script("lumi:gpu", f"pingpong_{placement}")


@EVERY_SITE
def test_osu_comes_from_the_view(script, partition):
    site, found = SITES[partition], script(partition, "osu_device_0")
    folder = f"{ROOT}/build/spack/{site.spack}/view/libexec/osu-micro-benchmarks/mpi/pt2pt"
    visible = {"rocm": "HIP_VISIBLE_DEVICES", "cuda": "CUDA_VISIBLE_DEVICES"}[site.environment]
    assert re.search(
        rf"env .*{visible}=0,1 .*{folder}/osu_bw .* -d {site.environment} D D", found.plan
    )
    assert shlex.split(found.command)[1:4] == ["results", "record", "plan.json"]


@EVERY_SITE
def test_collectives_of_the_library(script, partition):
    site, found = SITES[partition], script(partition, "rccl_collectives")
    assert f"{ROOT}/build/spack/{site.spack}/view/bin/all_reduce_perf -b " in found.plan


@pytest.mark.parametrize("partition", ["lumi:gpu", "frontier:gpu", "dardel:gpu"])
def test_checks_of_the_network_have_two_nodes(script, partition):
    """One rank is beside each NIC: devices 1, 3, 5 and 7, on the cores near these."""
    site, found = SITES[partition], script(partition, "mpi_nodes")
    two = {"--nodes=2", "--ntasks=8", "--ntasks-per-node=4", "--exclusive"}
    assert found.sbatch >= site.sbatch | two
    step = "--ntasks-per-node=4 --distribution=block --cpu-bind=map_cpu:57,25,9,41"
    assert found.command.startswith(f"srun --nodes=2 --ntasks=8 {step} ")
    assert " --map 1,3,5,7,1,3,5,7 --bind 57,25,9,41,57,25,9,41 " in found.command
    assert " --places address " in found.command
    osu = script(partition, "osu_nodes")
    pair = "--ntasks=2 --ntasks-per-node=1 --distribution=block --cpu-bind=map_cpu:57"
    assert f"srun --nodes=2 {pair} env HIP_VISIBLE_DEVICES=1 " in osu.plan
    rccl = script(partition, "rccl_nodes")
    # Seven cores a rank, as in LUMI's own check of RCCL: the library has threads for the network.
    masks = (
        "0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,"
        "0xfe,0xfe00,0xfe00000000,0xfe0000000000"
    )
    option = " --network=disable_rdzv_get" if partition == "frontier:gpu" else ""
    ranks = "srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --distribution=block"
    assert f"{ranks} --cpu-bind=mask_cpu:{masks}{option} env NCCL_DEBUG=INFO " in rccl.plan
    assert " NCCL_DEBUG_FILE=all_reduce-2nodes.%h.%p.nccl " in rccl.plan
    assert "--ntasks=16" in rccl.sbatch


#: What RCCL needs for Slingshot: lumi-reframe-tests, checks/microbenchmarks/gpu/rccl_test.py;
#: Frontier user guide, "RCCL". Dardel's documents name nothing.
PLUGINS = {
    "lumi:gpu": (
        ["aws-ofi-nccl/1.18.0-rocm"],
        {
            "NCCL_SOCKET_IFNAME": "hsn0,hsn1,hsn2,hsn3",
            "NCCL_NET_GDR_LEVEL": "3",
            "NCCL_ENABLE_DMABUF_SUPPORT": "1",
        },
    ),
    "frontier:gpu": (["rccl-net-plugin/1.0"], {}),
    "dardel:gpu": ([], {}),
}


@pytest.mark.parametrize("partition", PLUGINS)
def test_rccl_has_the_plugin_of_its_network_alone(script, partition):
    modules, variables = PLUGINS[partition]
    found, other = script(partition, "rccl_nodes"), script(partition, "rccl_collectives")
    assert found.modules == [*other.modules, *modules]
    assert found.variables == {**other.variables, **variables}


def test_a_network_that_a_site_names_is_required_between_nodes_only(suite):
    """On one node the library has no network, and names none."""
    suite.variables |= ASKED
    suite.own_settings("frontier.py", "SPACK,\n", 'SPACK,\n rccl_network="AWS Libfabric",\n')
    suite.topics = ("network", "rccl")
    chosen = ("-n", "^rccl_nodes$", "-n", "rccl_collectives")
    ended = suite("--system=frontier", "--dry-run", *chosen)
    assert ended.status == 0, ended
    required = {
        file.parent.name: json.loads(file.read_text())["network"]
        for file in suite.results.glob("stage/*/frontier/gpu/rocm/*/plan.json")
    }
    assert required == {"rccl_nodes": "AWS Libfabric", "rccl_collectives": None}


#: MI300X and MI300A: all pairs are joined alike. Pages of MI300A stay where they are.
OF_SHARED_MEMORY = ("tuolumne:gpu", "hunter:gpu")
OF_ALIKE_PAIRS = ("local:gpu mi300x", *OF_SHARED_MEMORY)

#: Checks that are of nodes whose first devices are not their best ones.
OF_UNLIKE_PAIRS = {
    "osu_collectives_in_order", "osu_collectives_in_order_engine_off", "mpi_collectives_best",
    "mpi_collectives_best_engine_off",
}  # fmt: skip

#: What makes copies alike on all sites, whatever their version of ROCm.
ALIKE = {"HSA_ENABLE_SDMA_GANG": "0", "ROC_P2P_SDMA_SIZE": "0", "GPU_FORCE_BLIT_COPY_SIZE": "0"}
ONE_ENGINE = {"HSA_ENABLE_SDMA": "1", "HSA_ENABLE_PEER_SDMA": "1"} | ALIKE
NO_ENGINE = {"HSA_ENABLE_SDMA": "0", "HSA_ENABLE_PEER_SDMA": "0"} | ALIKE


@AMD
@pytest.mark.parametrize(
    ("check", "set_to"),
    [
        ("p2p_engine", ONE_ENGINE),
        ("p2p_scan", ONE_ENGINE),
        ("memcpy_near", ONE_ENGINE),
        ("memcpy_scan", ONE_ENGINE),
        ("pingpong_right", ONE_ENGINE),
        ("mpi_pairs", ONE_ENGINE),
        ("mpi_collectives", ONE_ENGINE),
        ("osu_device_0", ONE_ENGINE),
        ("osu_collectives", ONE_ENGINE),
        ("p2p_engine_off", NO_ENGINE),
        ("mpi_pairs_engine_off", NO_ENGINE),
        ("osu_device_0_engine_off", NO_ENGINE),
        ("osu_own_device", NO_ENGINE),
        ("osu_collectives_engine_off", NO_ENGINE),
        ("osu_collectives_in_order", ONE_ENGINE),
        ("osu_collectives_in_order_engine_off", NO_ENGINE),
        ("mpi_own_device", ONE_ENGINE),
        ("mpi_collectives_engine_off", NO_ENGINE),
        ("mpi_collectives_best", ONE_ENGINE),
        ("mpi_collectives_best_engine_off", NO_ENGINE),
        ("managed_zero_copy", {"HSA_XNACK": "0"}),
        ("managed_migration", {"HSA_XNACK": "1"}),
        ("managed_scan_zero_copy", {"HSA_XNACK": "0"}),
        ("managed_scan_migration", {"HSA_XNACK": "1"}),
    ],
)
def test_engines_and_page_migration_on_amd(script, partition, check, set_to):
    if partition in OF_ALIKE_PAIRS and check in OF_UNLIKE_PAIRS:
        pytest.skip("all pairs of devices are alike, so the first ones are the best ones")
    if partition in OF_SHARED_MEMORY and check.endswith("migration"):
        pytest.skip("cores and compute units share one memory, so no page migrates")
    assert set_to.items() <= script(partition, check).variables.items()


@AMD
def test_one_check_copies_as_users_do(script, partition):
    assert not ONE_ENGINE.keys() & script(partition, "p2p_defaults").variables.keys()


@AMD
def test_engines_between_devices_are_switched_off_alone(script, partition):
    found = script(partition, "p2p_peer_engine_off").variables
    assert found["HSA_ENABLE_PEER_SDMA"] == "0"
    assert not (ONE_ENGINE.keys() - {"HSA_ENABLE_PEER_SDMA"}) & found.keys()


#: The sets of the paper's scripts (osu_collectives.sh), and what they are with another link map.
BEST = {
    "lumi:gpu": "0,1,6 0,1,6,7 0,1,2,6,7 0,1,2,3,6,7 0,1,2,3,4,6,7",
    "jureca:mi250": "0,1,4 0,1,4,5 0,1,2,4,5 0,1,2,3,4,5 0,1,2,3,4,5,6",
}
FIRST = "0,1,2 0,1,2,3 0,1,2,3,4 0,1,2,3,4,5 0,1,2,3,4,5,6"


def sets_of(plan: str, program: str) -> list[str]:
    """Return the devices that the launches of a program see, in their order."""
    launches = json.loads(plan)["launches"]
    found = [one["command"] for one in launches if one["program"] == program]
    shown = (re.search(r"HIP_VISIBLE_DEVICES=(\S+)", command) for command in found)
    return list(dict.fromkeys(match[1] for match in shown if match))


@pytest.mark.parametrize("partition", BEST)
def test_collectives_are_on_the_best_devices_and_on_the_first(script, partition):
    best, first, every = BEST[partition].split(), FIRST.split(), ["0,1,2,3,4,5,6,7"]
    for off in ("", "_engine_off"):
        plan = script(partition, f"osu_collectives{off}").plan
        assert sets_of(plan, "osu_reduce") == ["0,1", *best, *every]
        plan = script(partition, f"osu_collectives_in_order{off}").plan
        assert sets_of(plan, "osu_reduce") == [one for one in first if one not in best]
        order = {"lumi:gpu": "0,1,6,7,2,3,4,5", "jureca:mi250": "0,1,4,5,2,3,6,7"}[partition]
        assert f" --map {order} " in script(partition, f"mpi_collectives_best{off}").command
    plan = script(partition, "rccl_in_order").plan
    assert sets_of(plan, "reduce") == [one for one in first if one not in best]
    plan = script(partition, "rccl_threads").plan
    assert sets_of(plan, "reduce") == ["0,1", *first, *every]
    assert " -t 8 -g 1 " in plan and " -g 8 " not in plan


@EVERY_SITE
def test_two_ranks_are_near_each_device_for_messages_within_it(script, partition):
    site, found = SITES[partition], script(partition, "mpi_own_device")
    devices = ",".join(f"{device},{device}" for device in range(site.devices))
    assert f" --map {devices} --bind " in found.command
    pairs = ",".join(f"{rank}-{rank + 1}" for rank in range(0, 2 * site.devices, 2))
    assert f" --pairs {pairs} --operations bandwidth " in found.command


@EVERY_SITE
def test_osu_has_its_own_iterations_and_each_device_alone(script, partition):
    # Its defaults for messages above 8 KiB (osu_util.h): BW_LOOP_LARGE, BW_SKIP_LARGE, the window.
    assert " -m 16777216:1073741824 -i 20 -x 2 -W 64 " in script(partition, "osu_device_0").plan
    assert " -i 100 -x 10 " in script(partition, "osu_collectives").plan
    own = json.loads(script(partition, "osu_own_device").plan)["launches"]
    assert len(own) == 2 * SITES[partition].devices
    assert {tuple(one["devices"]) for one in own} == {
        (device, device) for device in range(SITES[partition].devices)
    }


@AMD
def test_concurrent_stream_of_the_paper(script, partition):
    command = script(partition, "stream_concurrent_large").command
    if partition in OF_ALIKE_PAIRS:  # a package is one device
        assert f" --sizes {8 << 30} --devices each --kernels copy --source host " in command
        return
    assert f" --sizes {8 << 30} --devices each --devices 0,1 --devices 2,3 " in command
    assert " --devices 4,5 --devices 6,7 --kernels copy --source host " in command
    assert " --block-sizes 128 " in command
    sets = " --devices 0,4 --devices 0,2,4,6 --devices 0,1,2,3,4,5,6,7 "
    assert sets in command and " --devices 0 " not in command


@pytest.mark.parametrize(
    ("partition", "pairs"),
    [("lumi:gpu", "0-1,0-6,0-2"), ("jureca:mi250", "0-1,0-4,0-6"), ("leonardo:booster", "0-1")],
)
def test_scans_are_of_each_direct_link_and_of_every_kernel(script, partition, pairs):
    """What is device 0 of the machines' link maps joined to: quad, dual, single; all alike."""
    scan = f" --pairs {pairs} --operations engine,read,write,copy --sizes 256:8GiB "
    assert scan in script(partition, "p2p_scan").command
    every = " --kernels copy,scale,add,triad --sizes 1KiB:8GiB --block-sizes 64,128,256,512,1024 "
    assert every in script(partition, "stream_scan").command


@pytest.mark.parametrize(
    ("partition", "binding"),
    [
        # lumi-reframe-tests, checks/slurm/affinity_check.py, March 2026.
        (
            "lumi:gpu",
            "--cpus-per-task=7 --gpu-bind=map:4,5,2,3,6,7,0,1 --gres-flags=allow-task-sharing",
        ),
        # Frontier user guide, "Mapping 1 GPU per task", example 1.
        ("frontier:gpu", "--cpus-per-task=7 --gpus-per-task=1 --gpu-bind=closest"),
    ],
)
def test_the_binding_that_a_site_recommends(script, partition, binding):
    command = script(partition, "affinity_site").command
    program = f"{ROOT}/build/spack/{SITES[partition].spack}/view/bin/affinity"
    assert command == (
        f"srun --nodes=1 --ntasks=8 {binding} {program} --time-limit 120 --output result.json"
    )


def test_a_site_that_recommends_none_has_no_such_check(script):
    assert script("dardel:gpu", "affinity")
    with pytest.raises(ValueError, match="not enough values"):
        script("dardel:gpu", "affinity_site")


def test_scans_and_page_migration_have_the_time_that_they_need(told):
    limits = {one.check: one.limit_s for one in told("lumi:gpu")}
    assert limits["memcpy_scan"] > limits["memcpy_near"] == 120
    assert limits["managed_migration"] >= 360


@AMD
def test_measurements_of_all_pairs_end_in_time_though_every_series_is_noisy(
    told, script, partition
):
    limits = {one.check: one.limit_s for one in told(partition)}
    for check, series in (("p2p_engine", 140), ("p2p_kernel", 168), ("best_devices", 56)):
        (bound,) = re.findall(r"--series-time (\S+)", script(partition, check).command)
        assert 10 + series * float(bound) < limits[check]


def test_the_page_on_running_asks_for_the_time_that_it_estimates():
    page = (ROOT / "docs" / "run.md").read_text()
    estimates = (ROOT / "docs" / "reference" / "sets.md").read_text()
    (node,) = re.findall(
        r"^\| .*`lumi:gpu`.* \| \d+ s \| (\d+) s \| \d+ min \|$", estimates, re.MULTILINE
    )
    asked = re.findall(r"^salloc .*\\\n.*--gpus-per-node=8 --time=(\d+)", page, re.MULTILINE)
    # The method was good to a factor of 1.5 on H200.
    assert [int(minutes) * 60 >= 1.5 * int(node) for minutes in asked] == [True]


def test_a_session_changes_the_time_limit_of_a_check(suite):
    suite.variables |= ASKED
    options = ("--system=jureca:mi250", "--dry-run", "-n", "stream_local")
    ended = suite(*options, "-S", "stream_local.seconds=600")
    assert ended.status == 0, ended
    (job,) = suite.results.glob("stage/*/jureca/mi250/rocm/stream_local/rfm_job.sh")
    assert " --time-limit 600 " in Script(job).command
    assert "#SBATCH --time=0:10:30" in job.read_text()


def test_a_metric_without_a_reference_fails(suite, wording):
    suite.variables |= ASKED
    file = suite.own_references()
    content = yaml.safe_load(file.read_text())
    del content["stream_local"]["jureca-mi250"]["copy_worst"]
    file.write_text(yaml.safe_dump(content))
    # By the name of one of several partitions, whose environments are not those of the others.
    ended = suite("--system=jureca:mi250", "--dry-run", "-n", "stream_local")
    assert ended.status == 1
    wording(ended.reasons)
    for path in file.parent.glob("*.yaml"):
        path.write_text(path.read_text().replace("jureca-mi250:", "other:"))
    ended = suite("--system=jureca:mi250", "--dry-run", "-n", "stream_local")
    assert "No file has its references 'jureca-mi250': there are " in ended


@pytest.mark.parametrize(
    ("environment", "modules", "path"),
    [
        (
            "frontier-26.03",
            ["PrgEnv-gnu", "cpe/26.03", "gcc-native/14.2", "craype-accel-amd-gfx90a", "rocm/7.0.2"],
            # Frontier user guide, "Understanding the compatibility", of a CPE that is no default.
            "$CRAY_LD_LIBRARY_PATH:$LD_LIBRARY_PATH",
        ),
        (
            "lumi-25.09",
            [
                *("CrayEnv", "PrgEnv-gnu", "cpe/25.09", "gcc-native/14"),
                *("craype-accel-amd-gfx90a", "rocm/6.4.4"),
            ],
            # LUMI-SoftwareStack, LMOD/admin.list, of a CPE newer than the default.
            "$CRAY_LD_LIBRARY_PATH:$LD_LIBRARY_PATH",
        ),
        (
            "dardel-26.03",
            ["PDC/26.03", "PrgEnv-gnu", "gcc-native/14", "craype-accel-amd-gfx90a", "rocm/7.2.1"],
            None,
        ),
    ],
)
def test_the_jobs_of_newer_software(suite, environment, modules, path):
    system = environment.partition("-")[0]
    suite.variables |= ASKED | {f"FABRICHECK_{system.upper()}": environment}
    ended = suite(f"--system={system}", "--dry-run", "-n", "stream_local")
    assert ended.status == 0, ended
    (job,) = suite.results.glob(f"stage/*/{system}/gpu/rocm/stream_local/rfm_job.sh")
    found = Script(job)
    # LUMI's CrayEnv has what a login has on the others.
    assert found.modules == [*([] if system == "lumi" else LOGIN), *modules]
    assert found.variables["MPICH_GPU_SUPPORT_ENABLED"] == "1"
    assert found.variables.get("LD_LIBRARY_PATH") == path
    assert f" {ROOT}/build/spack/{environment}/view/bin/stream " in found.command


def test_a_site_may_make_numa_balancing_a_note(suite):
    suite.variables |= ASKED
    suite.topics = ("topology",)
    suite.own_settings("lumi.py", 'references="lumi",', 'references="lumi", numa_balancing="note",')
    for partition, noted in (("lumi:gpu", True), ("frontier:gpu", False)):
        ended = suite(f"--system={partition}", "--dry-run", "-n", "node_topology")
        assert ended.status == 0, ended
        system = partition.partition(":")[0]
        (job,) = suite.results.glob(f"stage/*/{system}/gpu/rocm/node_topology/rfm_job.sh")
        (command,) = [one for one in job.read_text().splitlines() if "node record" in one]
        assert ("--note-numa-balancing" in command) == noted


def test_inside_an_allocation_checks_are_steps(suite):
    suite.variables["SLURM_JOB_ID"] = "7"
    suite.topics = ("affinity", "stream")
    ended = suite("--system=lumi", "--dry-run", "-n", "stream_local", "-n", "affinity_site")
    assert ended.status == 0, ended
    assert "Ran 2/2 test case(s)" in ended
    (file,) = suite.results.glob("stage/*/lumi/gpu/rocm/stream_local/rfm_job.sh")
    found = Script(file)
    assert not found.sbatch
    assert found.command.startswith("srun --nodes=1 --ntasks=1 --cpu-bind=none ")


def test_inside_an_allocation_ranks_without_steps_stay_on_their_node(suite):
    """The allocation may have several nodes, and the session be on any of them."""
    suite.topics = ("affinity",)
    suite.variables["FABRICHECK_MPI"] = "ON"
    for program in ("affinity", "mpi"):
        (suite.programs / program).touch()
    for inside in ({}, {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NODELIST": "n[1-2]"}):
        suite.variables |= inside
        ended = suite("--system=local:host", "--dry-run", "-n", "^affinity$")
        assert ended.status == 0, ended
        *_, file = sorted(suite.results.glob("stage/*/local/host/host/affinity/rfm_job.sh"))
        lines = file.read_text().splitlines()
        assert ("unset SLURM_JOB_NODELIST SLURM_NODELIST" in lines) == bool(inside)
    assert lines.index("unset SLURM_JOB_NODELIST SLURM_NODELIST") < next(
        number for number, line in enumerate(lines) if line.startswith("mpiexec ")
    )


def test_the_installer_runs_without_the_modules_of_the_jobs(suite):
    suite.variables |= ASKED
    ended = suite("--system=lumi", "--dry-run", "-n", "build")
    assert ended.status == 0, ended
    (file,) = suite.results.glob("stage/*/lumi/gpu/rocm/build/rfm_build.sh")
    install = f"{ROOT}/spack-env/install lumi"
    assert file.read_text().splitlines()[-2:] == ["module --force purge", install]
    assert "--no-requeue" in Script(file.with_name("rfm_job.sh")).sbatch


def test_the_site_of_the_page_is_one(suite):
    page = (ROOT / "docs" / "site.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    file = suite.folder / "north.py"
    file.write_text(example)
    suite.own_site(file)
    suite.variables |= ASKED | {"RFM_REFERENCE_PREFIX": str(ROOT / "reference_values")}
    suite.topics = ("affinity", "stream")
    ended = suite("--system=north", "--dry-run", "-n", "stream_local", "-n", "affinity")
    assert ended.status == 0, ended
    assert "Ran 3/3 test case(s)" in ended
    (job,) = suite.results.glob("stage/*/north/gpu/rocm/affinity_site/rfm_job.sh")
    found = Script(job)
    assert found.sbatch >= JOB | {"--partition=gpu", "--gpus-per-node=8"}
    assert found.command.startswith("srun --nodes=1 --ntasks=8 --cpus-per-task=7 --gpus-per-task=1")


def test_the_ranks_scan_messages_from_4_bytes_on(script):
    """A curve from larger messages on has no latency."""
    assert re.search(r" --sizes 4:\d+ ", script("lumi:gpu", "pingpong_scan").command)


@pytest.mark.parametrize(
    ("partition", "most"), [("lumi:gpu", 32 << 30), ("leonardo:booster", 32 << 30)]
)
def test_one_rank_scans_as_far_as_its_device_holds(script, partition, most):
    command = script(partition, "pingpong_single").command
    assert f" --memory pageable --sizes 4:{most} " in command
    assert " --operations there-and-back " in command and " --map 0 " in command
    assert " --ntasks=1 " in command


@pytest.mark.parametrize(
    ("partition", "pairs"),
    [("lumi:gpu", "0-1,0-6,0-2,1-0,6-0,2-0"), ("leonardo:booster", "0-1,1-0")],
)
def test_kernels_of_128_threads_are_of_device_0(script, partition, pairs):
    wanted = f" --pairs {pairs} --operations read,write,copy --sizes 256:8GiB --block-size 128 "
    assert wanted in script(partition, "p2p_block_128").command
    assert " --pairs self --operations engine,latency " in script(partition, "p2p_local").command


def test_a_job_of_pbs_has_whole_hosts_with_all_their_cores(of_site):
    """Public job scripts: select=2:node_type=mi300a:mpiprocs=4:ncpus=96."""
    folder = of_site("hunter:gpu").stage("hunter:gpu", "pingpong_right")
    asked = re.findall(r"^#PBS (.+)$", (folder / "rfm_job.sh").read_text(), re.MULTILINE)
    assert "-l select=1:mpiprocs=4:ncpus=96:node_type=mi300a" in asked
    assert {"-l place=scatter:exclhost", "-A project_1", "-r n"} <= set(asked)


def test_checks_of_the_network_by_flux_and_pbs_have_two_nodes(of_site, script):
    """The node model states no NIC, so one rank is on each node, on any core."""
    command = script("tuolumne:gpu", "mpi_nodes").command
    assert command.startswith("flux run --nodes=2 --ntasks=2 --exclusive ")
    folder = of_site("hunter:gpu").stage("hunter:gpu", "mpi_nodes")
    assert "select=2:mpiprocs=1:ncpus=96" in (folder / "rfm_job.sh").read_text()
    command = script("hunter:gpu", "mpi_nodes").command
    assert command.startswith("mpiexec -n 2 --ppn 1 --cpu-bind none ")
