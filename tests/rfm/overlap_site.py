"""A node whose device is a virtual one, in a partition that the checks of GPUs run on."""

import os

from fabricheck.rfm import host

site_configuration = {
    "systems": [
        {
            "name": "node",
            "hostnames": ["node"],
            "partitions": [
                {
                    "name": "gpu",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["host"],
                    "features": ["devices", "peers", "several_domains"],
                    "devices": [{"type": "virtual", "arch": "host", "num_devices": 1}],
                    "extras": {
                        # Far larger than the cache that the tests state.
                        "array_bytes": int(os.environ["OVERLAP_BYTES"]),
                        "scan_block_sizes": [256],
                        # What is tested are sessions, on a machine with other work.
                        "noise_limit": 10,
                        "physical_bounds": {
                            "GB/s": host.memory_bound(),
                            "us": host.latency_bound(),
                        },
                    },
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "host",
            "target_systems": ["node"],
            "features": ["overlap", "memcpy", "stream"],
            "env_vars": [["FABRICHECK_HOST_DEVICES", "1"]],
            "extras": {
                "runtime": "host",
                "programs": os.environ["OVERLAP_PROGRAMS"],
                "build_command": "make build",
            },
        }
    ],
}
