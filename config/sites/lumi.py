"""LUMI-G: nodes with four AMD MI250X (eight devices)."""

from fabricheck.rfm import clusters

site_configuration = {
    "systems": [
        {
            "name": "lumi",
            "descr": "LUMI-G",
            "hostnames": [r"uan\d+", r"nid\d+"],
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "gpu",
                    "descr": "Nodes with four AMD MI250X (eight devices)",
                    "environs": ["rocm"],
                    **clusters.reached("standard-g", "--gpus-per-node=8"),
                    **clusters.node("mi250x", references="lumi"),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["lumi"],
            "env_vars": [["MPICH_GPU_SUPPORT_ENABLED", "1"]],
            **clusters.programs("rocm", "lumi"),
        }
    ],
}
