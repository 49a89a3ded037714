"""Any machine without a site file of its own: its memory, measured, and a simulated node."""

import os

from fabricheck.core import checkout
from fabricheck.rfm import host
from fabricheck.site import clusters

ROOT = checkout.ORIGIN

# The host runtime presents virtual devices that share this machine's memory.
DEVICES = host.whole_number("FABRICHECK_HOST_DEVICES", default=2, least=2)

# What a build without MPI (FABRICHECK_MPI=OFF) lacks.
WITHOUT_MPI = clusters.RANK_PROGRAMS if os.environ.get("FABRICHECK_MPI") == "OFF" else ()

# The MPI of `make build`, wherever the PATH has another one before it.
MPICH = ROOT / ".venv" / "mpich" / "bin"

HOST_PROGRAMS = os.environ.get("FABRICHECK_HOST_PROGRAMS", str(ROOT / "build" / "host" / "bin"))
SIM_PROGRAMS = os.environ.get("FABRICHECK_SIM_PROGRAMS", str(ROOT / "build" / "sim" / "bin"))

# Folders of OSU Micro-Benchmarks (libexec/osu-micro-benchmarks), built with MPICH and with smpicc.
HOST_OSU = os.environ.get("FABRICHECK_HOST_OSU", "")
SIM_OSU = os.environ.get("FABRICHECK_SIM_OSU", "")

HOST_LACKS = [*WITHOUT_MPI, *([] if HOST_OSU else ["osu"])]
SIM_LACKS = [*WITHOUT_MPI, *([] if SIM_OSU else ["osu"])]

site_configuration = {
    "systems": [
        {
            "name": "local",
            "descr": "This machine, without GPUs, and simulated nodes",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "host",
                    "descr": "Memory of this machine, through virtual devices",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["host"],
                    # Measuring checks of one node never overlap.
                    "max_jobs": 1,
                    "features": ["devices", "several_devices", "ranks"],
                    "devices": [{"type": "virtual", "arch": "host", "num_devices": DEVICES}],
                    "extras": {
                        # Programs of one process need no launcher, those of ranks do.
                        "mpi_launcher": "mpiexec",
                        # One array or message, and the sizes and blocks of scans.
                        "array_bytes": host.array_bytes(),
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
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["sim"],
                    "max_jobs": 1,
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
                        "nics",
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
            "features": [one for one in (*clusters.PROGRAMS, "osu") if one not in HOST_LACKS],
            "env_vars": [
                ["FABRICHECK_HOST_DEVICES", str(DEVICES)],
                *([["PATH", f"{MPICH}:$PATH"]] if MPICH.is_dir() else []),
            ],
            "extras": {
                "runtime": "host",
                "programs": HOST_PROGRAMS,
                "osu_folder": HOST_OSU,
                "build_command": "make build",
                **clusters.of_spack(HOST_PROGRAMS, "local"),
            },
        },
        {
            "name": "sim",
            "target_systems": ["local"],
            "features": [
                one for one in (*clusters.PROGRAMS, "gpu_aware_mpi", "osu") if one not in SIM_LACKS
            ],
            "extras": {
                "runtime": "sim",
                "programs": SIM_PROGRAMS,
                "osu_folder": SIM_OSU,
                "build_command": "make build",
                **clusters.of_spack(SIM_PROGRAMS, "local"),
            },
        },
    ],
}
