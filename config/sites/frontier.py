"""Frontier: nodes with four AMD MI250X (eight devices)."""

from fabricheck.rfm import clusters

site_configuration = {
    "systems": [
        {
            "name": "frontier",
            "descr": "Frontier",
            "hostnames": [r"login\d+\.frontier", r"frontier\d+"],
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "gpu",
                    "descr": "Nodes with four AMD MI250X (eight devices)",
                    "environs": ["rocm"],
                    **clusters.reached("batch", "--gpus-per-node=8"),
                    **clusters.node("mi250x", references="frontier"),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["frontier"],
            "env_vars": [["MPICH_GPU_SUPPORT_ENABLED", "1"]],
            **clusters.programs("rocm", "frontier"),
        }
    ],
}
