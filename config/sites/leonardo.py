"""Leonardo Booster: nodes with four NVIDIA A100 of 64 GB."""

from fabricheck.rfm import clusters

site_configuration = {
    "systems": [
        {
            "name": "leonardo",
            "descr": "Leonardo Booster",
            "hostnames": [r"login\d+\.leonardo", r"lrdn\d+"],
            "modules_system": "envmod",
            "partitions": [
                {
                    "name": "booster",
                    "descr": "Nodes with four NVIDIA A100 (64 GB)",
                    "environs": ["cuda"],
                    **clusters.reached("boost_usr_prod", "--gres=gpu:4"),
                    **clusters.node("a100-booster", references="leonardo"),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "cuda",
            "target_systems": ["leonardo"],
            **clusters.programs("cuda", "leonardo"),
        }
    ],
}
