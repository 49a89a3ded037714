"""A host of eight NVIDIA H200 with NVSwitch, of which a machine shows one, two, four or eight.

No machine is recognised by its name, so a session names the system: --system=h200:x2.
"""

from fabricheck.site import clusters

# Open MPI 5.0.11 of PyPI, built without CUDA, with UCX 1.22 beside it, crashes in these on device
# buffers (tests/outputs/h200/two-devices-mpi). For an MPI without that fault set the variable to an
# empty value.
MPI_WITHOUT = clusters.mpi_without("cuda", "reduce,allreduce,reduce_scatter,allgather")


def partition(devices):
    """Return the partition of a machine that shows some devices, the first of the host."""
    several = ["several_devices", "ranks", "placements"] if devices > 1 else []
    return {
        "name": f"x{devices}",
        "descr": f"{devices} of eight NVIDIA H200 on NVSwitch",
        "scheduler": "local",
        "launcher": "local",
        "environs": ["cuda"],
        # Measuring checks of one node never overlap.
        "max_jobs": 1,
        "features": ["devices", "peers", "managed_memory", *several],
        "devices": [{"type": "gpu", "arch": "sm_90", "num_devices": devices}],
        "extras": {
            # Programs of one process need no launcher, those of ranks do.
            "mpi_launcher": "mpirun-openmpi",
            "node": "h200",
            # Both arrays of a copy together are past four times the host's 300 MiB of cache.
            "array_bytes": 640 << 20,
            # Of a machine whose memory is not stated: two arrays of each device.
            "concurrent_bytes": 1 << 30,
            "scan_sizes": "1KiB:8GiB",
            "scan_block_sizes": [64, 128, 256, 512, 1024],
            "copy_sizes": "256:1GiB",
            "pingpong_bytes": 320 << 20,
            "mpi_bytes": 256 << 20,
            # Kernels and engines had half widths of 0.002; pageable memory up to 0.15 in series of
            # a second, prefetches 0.22.
            "noise_limit": 0.1,
            "host_noise_limit": 0.3,
        },
    }


site_configuration = {
    "systems": [
        {
            "name": "h200",
            "descr": "A host of eight NVIDIA H200 on NVSwitch, or a part of it",
            # No host has this name.
            "hostnames": ["^$"],
            "partitions": [partition(devices) for devices in (1, 2, 4, 8)],
        }
    ],
    "environments": [
        {
            "name": "cuda",
            "target_systems": ["h200"],
            # Multicast over NVLink stays off: a machine that shows a part of a host may lack it.
            "env_vars": [["NCCL_NVLS_ENABLE", "0"]],
            **clusters.programs_here("cuda", "local-cuda", mpi_without=MPI_WITHOUT),
        }
    ],
}
