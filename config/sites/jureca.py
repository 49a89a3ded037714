"""JURECA-DC: nodes with four NVIDIA A100, and those of its evaluation platform with AMD MI250."""

import os

from fabricheck.rfm import clusters

site_configuration = {
    "systems": [
        {
            "name": "jureca",
            "descr": "JURECA-DC and its evaluation platform",
            "hostnames": [r"jrlogin\d+", r"jrc\d+"],
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "mi250",
                    "descr": "Nodes with four AMD MI250 (eight devices)",
                    "environs": ["rocm"],
                    **clusters.reached("dc-mi200", "--gres=gpu:8"),
                    **clusters.node("mi250", references="jureca-mi250"),
                },
                {
                    "name": "a100",
                    "descr": "Nodes with four NVIDIA A100",
                    "environs": ["cuda"],
                    **clusters.reached("dc-gpu", "--gres=gpu:4"),
                    **clusters.node("a100-booster", references="jureca-a100"),
                },
            ],
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["jureca:mi250"],
            **clusters.programs(
                "rocm", os.environ.get("FABRICHECK_JURECA_MI250") or "jureca-mi250"
            ),
        },
        {
            "name": "cuda",
            "target_systems": ["jureca:a100"],
            **clusters.programs("cuda", "jureca-a100"),
        },
    ],
}
