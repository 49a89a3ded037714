"""A node with four GPUs and NVLink, whose programs and tools are stand-ins."""

import os

site_configuration = {
    "systems": [
        {
            "name": "node",
            "hostnames": ["node"],
            "partitions": [
                {
                    "name": "gpu",
                    "scheduler": "local",
                    "launcher": "mpiexec",
                    "environs": ["cuda"],
                    "features": ["devices", "several_devices", "peers"],
                    "devices": [{"type": "gpu", "arch": "sm_80", "num_devices": 4}],
                    "extras": {"node": "a100-booster"},
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "cuda",
            "target_systems": ["node"],
            "features": ["osu", "nccl-tests"],
            "extras": {
                "runtime": "cuda",
                "programs": os.environ["FABRICHECK_HOST_PROGRAMS"],
                "build_command": "make build",
                "osu_folder": os.environ["FAKE_OSU"],
                "rccl_folder": os.environ["FAKE_NCCL"],
                "rccl_version": "2.28",
            },
        }
    ],
}
