"""Two nodes with four AMD MI250X, whose programs and launcher are stand-ins."""

import os

from fabricheck.site import clusters

site_configuration = {
    "systems": [
        {
            "name": "two",
            "hostnames": ["login"],
            "partitions": [
                {
                    "name": "gpu",
                    "scheduler": "local",
                    "launcher": "mpiexec",
                    "environs": ["rocm"],
                    **clusters.node("mi250x", references="any", fabric="slingshot-11"),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["two"],
            "features": ["mpi", "gpu_aware_mpi"],
            "extras": {
                "runtime": "rocm",
                "programs": os.environ["FABRICHECK_ROCM_PROGRAMS"],
                "build_command": "make build",
            },
        },
    ],
}
