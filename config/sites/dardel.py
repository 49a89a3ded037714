"""Dardel: nodes with four AMD MI250X (eight devices)."""

from fabricheck.rfm import clusters

site_configuration = {
    "systems": [
        {
            "name": "dardel",
            "descr": "Dardel",
            "hostnames": [r"login\d+\.pdc", r"dardel"],
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "gpu",
                    "descr": "Nodes with four AMD MI250X (eight devices)",
                    "environs": ["rocm"],
                    **clusters.reached("gpu", "--gpus-per-node=8"),
                    **clusters.node("mi250x", references="dardel"),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["dardel"],
            "env_vars": [["MPICH_GPU_SUPPORT_ENABLED", "1"]],
            **clusters.programs("rocm", "dardel"),
        }
    ],
}
