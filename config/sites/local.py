"""Any machine without a site file of its own: its memory, its GPUs, and a simulated node."""

import os

from fabricheck.core import checkout
from fabricheck.node import load
from fabricheck.rfm import host
from fabricheck.site import clusters, this_machine

# The host runtime presents virtual devices that share this machine's memory.
DEVICES = host.whole_number("FABRICHECK_HOST_DEVICES", default=2, least=2)

# The MPI of `make build`, wherever the PATH has another one before it.
MPICH = checkout.ORIGIN / ".venv" / "mpich" / "bin"

site_configuration = {
    "systems": [
        {
            "name": "local",
            "descr": "This machine and simulated nodes",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "host",
                    "descr": "Memory of this machine, through virtual devices",
                    "environs": ["host"],
                    **clusters.reached_here(),
                    "features": ["devices", "several_devices", "ranks"],
                    "devices": [{"type": "virtual", "arch": "host", "num_devices": DEVICES}],
                    "extras": {
                        # Programs of one process need no launcher, those of ranks do.
                        "mpi_launcher": "mpiexec",
                        # One array or message, and the sizes and blocks of scans.
                        "array_bytes": host.array_bytes(),
                        "arrays_fit_caches": host.arrays_fit_caches(),
                        # One device alone stands for all: the others are the same memory again.
                        # Who asks for a number of them has each measured.
                        "one_memory": "FABRICHECK_HOST_DEVICES" not in os.environ,
                        "series_seconds": 0.25,
                        "scan_sizes": f"1KiB:{host.scan_bytes()}",
                        "scan_block_sizes": [64, 128, 256, 512, 1024],
                        "copy_sizes": f"256:{host.scan_bytes()}",
                        "pingpong_bytes": 64 << 20,
                        "mpi_bytes": 16 << 20,
                        # Nothing is accepted or refused here by a reference, and other work on a
                        # shared machine widens intervals at times: a run ends only when one is
                        # nearly as wide as its median. It is shown with every value.
                        "noise_limit": 0.75,
                        "physical_bounds": {
                            "GB/s": host.memory_bound(),
                            "us": host.latency_bound(),
                        },
                        "osu": {
                            "sizes": [1 << 20, 16 << 20],
                            "rounds": {"iterations": 20, "warm_up": 2, "window": 16},
                        },
                    },
                },
                {
                    "name": "sim-mi250x",
                    "descr": "A simulated node with four AMD MI250X (eight devices)",
                    "environs": ["sim"],
                    **clusters.reached_here(jobs=len(os.sched_getaffinity(0))),
                    "features": [
                        "devices",
                        "several_devices",
                        "several_domains",
                        "peers",
                        "sdma",
                        "managed_memory",
                        "xnack",
                        "ranks",
                        "placements",
                        "several_nodes",
                        "simulated",
                    ],
                    "devices": [{"type": "gpu", "arch": "gfx90a", "num_devices": 8}],
                    "extras": {
                        "mpi_launcher": "smpirun",
                        "node": "mi250x",
                        "fabric": "simulated",
                        "array_bytes": 1 << 30,
                        "concurrent_bytes": 8 << 30,
                        "scan_kernels": ["copy", "scale", "add", "triad"],
                        "scan_sizes": "1KiB:8GiB",
                        # A simulated kernel takes the same time with any block.
                        "scan_block_sizes": [256],
                        "copy_sizes": "256:8GiB",
                        "pingpong_bytes": 256 << 20,
                        "mpi_bytes": 16 << 20,
                        "noise_limit": 0.1,
                        # Nothing varies in a simulation, and every byte of a message is moved.
                        "osu": {
                            "sizes": [16 << 20, 64 << 20],
                            "rounds": {"iterations": 1, "warm_up": 0, "window": 8},
                            "latency_rounds": {"iterations": 1, "warm_up": 0},
                        },
                    },
                },
            ],
        }
    ],
    "environments": [
        {
            "name": "host",
            "target_systems": ["local"],
            "env_vars": [
                ["FABRICHECK_HOST_DEVICES", str(DEVICES)],
                *([["PATH", f"{MPICH}:$PATH"]] if MPICH.is_dir() else []),
            ],
            **clusters.programs_here("host", "local", build_command="make build"),
        },
        {
            "name": "sim",
            "target_systems": ["local"],
            **clusters.programs_here("sim", "local", build_command="make build"),
        },
    ],
}

# The GPUs of this machine, where a node model describes them.
if NODE := this_machine.node():
    RUNTIME = {"amd": "rocm", "nvidia": "cuda"}[load(NODE).vendor]
    # Multicast over NVLink stays off: a machine that shows a part of a host may lack it.
    NO_MULTICAST = [["NCCL_NVLS_ENABLE", "0"]] if RUNTIME == "cuda" else []
    site_configuration["systems"][0]["partitions"].append(
        {
            "name": "gpu",
            "descr": f"The GPUs of this machine, of the node model {NODE}",
            "environs": [RUNTIME],
            **clusters.reached_here(),
            **clusters.node(
                NODE,
                mpi_launcher="mpirun-openmpi",
                # A missing tool lowers the coverage, never the status.
                accepts=["without-mpi"],
            ),
        }
    )
    site_configuration["environments"].append(
        {
            "name": RUNTIME,
            "target_systems": ["local"],
            # Documents have the node model, for whoever judges them without the variable.
            "env_vars": [clusters.OPEN_MPI_BY_UCX, *NO_MULTICAST, [this_machine.NODE, NODE]],
            **clusters.programs_here(
                RUNTIME, f"local-{RUNTIME}", mpi_without=clusters.mpi_without(RUNTIME)
            ),
        }
    )
