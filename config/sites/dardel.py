"""Dardel: nodes with four AMD MI250X (eight devices). Nothing here was tried on the machine.

Sources: [pages] PDC's support pages, "Building for AMD GPUs" of 2025; [course] pdc-intro of August
2026, [stack] PDC-SoftwareStack of June 2026, both at github.com/PDC-support. The software is that
of the paper (SC24-W, arXiv 2410.00801), or today's.
"""

from fabricheck.site import clusters

# By Spack environment, which has the same versions: [pages] CPE 23.12 and ROCm 5.7.0, the paper's;
# [course] PDC/26.03 and ROCm 7.2.1, with the compiler of [stack], cpeGNU-26.03.eb.
MODULES = {
    "dardel": [
        "PDC/23.12",
        "PrgEnv-gnu",
        "gcc-native/12.3",
        "craype-accel-amd-gfx90a",
        "rocm/5.7.0",
    ],
    "dardel-26.03": [
        "PDC/26.03",
        "PrgEnv-gnu",
        "gcc-native/14",
        "craype-accel-amd-gfx90a",
        "rocm/7.2.1",
    ],
}
SPACK = clusters.one_of("FABRICHECK_DARDEL", tuple(MODULES))

site_configuration = {
    "systems": [
        {
            "name": "dardel",
            "descr": "Dardel",
            # GPU nodes in [pages] and [course]: nid002792, nid002860. A login node calls itself
            # uan01 [course], as LUMI's do: it is known by SNIC_RESOURCE, which is assumed. Other
            # machines have such nodes too, and what they call themselves excludes them.
            "hostnames": [
                r"nid002[78]\d\d$",
                r"\S+\.pdc\.kth\.se(\s|$)",
                r"\S+ (.*\s)?dardel(\s|$)",
            ],
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "gpu",
                    "descr": "Nodes with four AMD MI250X (eight devices)",
                    "environs": ["rocm"],
                    # [course] "Partitions": whole nodes. It states 64 cores and keeps none for the
                    # system; the node model leaves the first of each L3 cache free all the same.
                    **clusters.reached("gpu", "--gpus-per-node=8"),
                    **clusters.node("mi250x", references="dardel", fabric="slingshot-11"),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["dardel"],
            "modules": [*clusters.CRAY_LOGIN_MODULES, *MODULES[SPACK]],
            "env_vars": [clusters.CRAY_MPICH_ON_DEVICES],
            # None of them names a plug-in by which RCCL reaches Slingshot.
            **clusters.programs("rocm", SPACK),
        }
    ],
}
