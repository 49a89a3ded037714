"""LUMI-G: nodes with four AMD MI250X (eight devices)."""

import os

from fabricheck.rfm import clusters

VIEW = clusters.view("lumi")
ACCOUNT = os.environ.get("FABRICHECK_ACCOUNT", "")

site_configuration = {
    "systems": [
        {
            "name": "lumi",
            "descr": "LUMI-G",
            "hostnames": [r"uan\d+", r"nid\d+"],
            "partitions": [
                {
                    "name": "gpu",
                    "descr": "Nodes with four AMD MI250X (eight devices)",
                    **clusters.reached(
                        [
                            "--partition=standard-g",
                            "--gpus-per-node=8",
                            *([f"--account={ACCOUNT}"] if ACCOUNT else []),
                        ]
                    ),
                    "environs": ["rocm"],
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
                    ],
                    "devices": [{"type": "gpu", "arch": "gfx90a", "num_devices": 8}],
                    "extras": {
                        "expected_checks": [
                            *clusters.ONE_PROCESS_CHECKS,
                            *clusters.AMD_CHECKS,
                            *clusters.RANK_CHECKS,
                            "memcpy_numa",
                            "best_devices",
                            "pingpong_in_order",
                            "pingpong_half_right",
                            "pingpong_half_rotated",
                            "pingpong_shared_domain",
                            *clusters.OSU_CHECKS,
                            "osu_device_0_engine_off",
                            *clusters.RCCL_CHECKS,
                        ],
                        "node": "mi250x",
                        "references": "lumi",
                        "array_bytes": 1 << 30,
                        "scan_sizes": "1KiB:8GiB",
                        "scan_block_sizes": [64, 128, 256, 512, 1024],
                        "copy_sizes": "256:8GiB",
                        "pingpong_bytes": 256 << 20,
                        "mpi_bytes": 256 << 20,
                        "noise_limit": 0.1,
                        "host_noise_limit": 0.3,
                    },
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["lumi"],
            "features": [
                "stream",
                "memcpy",
                "managed",
                "p2p",
                "affinity",
                "pingpong",
                "mpi",
                "gpu_aware_mpi",
                "osu",
                "rccl-tests",
            ],
            "env_vars": [["MPICH_GPU_SUPPORT_ENABLED", "1"]],
            "extras": {
                "runtime": "rocm",
                "programs": os.environ.get("FABRICHECK_ROCM_PROGRAMS", str(VIEW / "bin")),
                "osu_folder": str(VIEW / "libexec" / "osu-micro-benchmarks"),
                "rccl_folder": str(VIEW / "bin"),
                "build_command": "spack-env/install lumi",
            },
        }
    ],
}
