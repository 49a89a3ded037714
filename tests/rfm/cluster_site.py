"""A cluster of one node with the two ways to run there, as docs/run.md shows them.

Its node is simulated: what a real site states differently are features, devices and environment.
Ranks are started by srun on the processor of this machine, because a simulated node has smpirun.
"""

import os

from fabricheck.site import clusters

NODE = {
    "environs": ["sim"],
    "features": ["devices", "several_devices", "peers", "sdma", "simulated"],
    "devices": [{"type": "gpu", "arch": "gfx90a", "num_devices": 8}],
    "extras": {
        "node": "mi250x",
        "references": "local:sim-mi250x",
        "array_bytes": 1 << 30,
        "scan_sizes": "1KiB:8GiB",
        "scan_block_sizes": [256],
        "noise_limit": 0.1,
    },
}

RANKS = {
    "environs": ["host"],
    "features": ["devices", "several_devices", "ranks"],
    "devices": [{"type": "virtual", "arch": "host", "num_devices": 2}],
    "extras": {
        "references": "local:host",
        "physical_bounds": {
            "us": {"value": 1e-6, "origin": "derived", "how": "a cycle"},
        },
        # What is tested are sessions, on a machine with other work.
        "noise_limit": 10,
    },
}

#: A build of OSU Micro-Benchmarks, where one is there.
OSU = ["osu"] if os.environ.get("FABRICHECK_HOST_OSU") else []

#: Nodes that are several slurmd of this machine: messages go over its loopback.
NODES = {
    **RANKS,
    "environs": ["loopback"],
    "features": [*RANKS["features"], "several_nodes"],
    "extras": {
        **RANKS["extras"],
        "fabric": "ethernet",
        "mpi_bytes": 1 << 20,
        "physical_bounds": {
            **RANKS["extras"]["physical_bounds"],
            "GB/s": {"value": 1000.0, "origin": "derived", "how": "a machine's memory"},
        },
    },
}

#: Programs that print what was recorded on nodes of one GPU.
RECORDED = os.environ.get("FABRICHECK_RECORDED", "/nowhere")

site_configuration = {
    "systems": [
        {
            "name": "cluster",
            "hostnames": ["login"],
            "partitions": [
                {
                    "name": "queue",
                    "scheduler": "squeue",
                    "launcher": "srun",
                    "access": ["--partition=test", "--gpus-per-node=8"],
                    **NODE,
                },
                {
                    "name": "allocation",
                    "scheduler": "local",
                    "launcher": "srun",
                    **NODE,
                },
                {
                    "name": "flux",
                    **clusters.reached("batch", by="flux"),
                    **NODE,
                },
                {
                    "name": "hosts",
                    # Their ports and keys are in a configuration of the test.
                    **clusters.reached(
                        "node[1-4]", f"-F {os.environ.get('SSH_CONFIG', '/dev/null')}", by="ssh"
                    ),
                    **NODE,
                },
                {
                    "name": "ranks",
                    "scheduler": "squeue",
                    "launcher": "srun",
                    "access": ["--partition=test"],
                    **RANKS,
                },
                {
                    "name": "ranks-allocation",
                    "scheduler": "local",
                    "launcher": "srun",
                    **RANKS,
                },
                {
                    "name": "nodes",
                    "scheduler": "squeue",
                    "launcher": "srun",
                    "access": ["--partition=test"],
                    "sched_options": {"use_nodes_option": True},
                    **NODES,
                },
                {
                    "name": "nodes-allocation",
                    "scheduler": "local",
                    "launcher": "srun",
                    **NODES,
                },
                {
                    "name": "recorded",
                    "scheduler": "squeue",
                    "launcher": "srun",
                    "access": ["--partition=test"],
                    "sched_options": {"use_nodes_option": True},
                    **NODES,
                    "environs": ["recorded"],
                    "devices": [{"type": "gpu", "arch": "sm_90", "num_devices": 1}],
                },
            ],
        }
    ],
    "environments": [
        {
            "name": "host",
            "target_systems": ["cluster"],
            "features": ["affinity", "mpi", "fabric"],
            "env_vars": [["FABRICHECK_HOST_DEVICES", "2"]],
            "extras": {
                "runtime": "host",
                "programs": os.environ["FABRICHECK_HOST_PROGRAMS"],
                "build_command": "make build",
            },
        },
        {
            "name": "loopback",
            "target_systems": ["cluster"],
            "features": [
                "affinity",
                "mpi",
                "fabric",
                *(["osu"] if "FABRICHECK_HOST_OSU" in os.environ else []),
            ],
            "env_vars": [
                ["FABRICHECK_HOST_DEVICES", "2"],
                # Not through shared memory, which no two nodes have.
                ["MPIR_CVAR_NOLOCAL", "1"],
                # Not by UCX: MPICH 5.0.2 exchanges 4 KiB for each rank then, most of it what its
                # memory held before, in lines that may be longer than the 1023 characters of PMI-1.
                # MPI_Init hangs or fails, always or never, as the memory happens to be.
                ["MPIR_CVAR_CH4_NETMOD", "ofi"],
                ["FI_PROVIDER", "tcp"],
            ],
            "extras": {
                "runtime": "host",
                "programs": os.environ["FABRICHECK_HOST_PROGRAMS"],
                "osu_folder": os.environ.get("FABRICHECK_HOST_OSU", ""),
                "build_command": "make build",
            },
        },
        {
            "name": "recorded",
            "target_systems": ["cluster"],
            "features": ["affinity", "mpi", "nccl-tests"],
            "extras": {
                "runtime": "cuda",
                "programs": RECORDED,
                "rccl_folder": RECORDED,
                "rccl_version": "2.28",
                "build_command": "none",
            },
        },
        {
            "name": "sim",
            "target_systems": ["cluster"],
            "features": ["stream", "p2p"],
            "extras": {
                "runtime": "sim",
                "programs": os.environ["FABRICHECK_SIM_PROGRAMS"],
                "build_command": "make build",
            },
        },
    ],
}
