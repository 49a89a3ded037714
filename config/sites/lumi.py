"""LUMI-G: nodes with four AMD MI250X (eight devices). Nothing here was tried on the machine.

Sources: [guide] the user guide, docs.lumi-supercomputer.eu; [stack] LUMI-SoftwareStack,
LMOD/SitePackage.lua; [checks] lumi-reframe-tests of March 2026, checks/slurm/affinity_check.py,
checks/microbenchmarks/gpu/rccl_test.py and config/lumi.py; the last two at
github.com/Lumi-supercomputer.
"""

from fabricheck.site import clusters

# By Spack environment, which has the same versions: [stack], CrayPE/CPEpackages_25.03.csv, the
# site's default, and CPEpackages_25.09.csv.
MODULES = {
    "lumi": ["cpe/25.03", "gcc-native/14.2", "craype-accel-amd-gfx90a", "rocm/6.3.4"],
    "lumi-25.09": ["cpe/25.09", "gcc-native/14", "craype-accel-amd-gfx90a", "rocm/6.4.4"],
}
SPACK = clusters.one_of("FABRICHECK_LUMI", tuple(MODULES))

site_configuration = {
    "systems": [
        {
            "name": "lumi",
            "descr": "LUMI-G",
            # Login nodes, with the name of their management network [checks] or without, and those
            # of LUMI-G, 5000 to 7977 [stack]. Others' are called alike: what such a machine calls
            # itself must then be lumi.
            "hostnames": [
                r"((ln|uan)\d+|nid00[5-7]\d{3})(-nmn(\.local)?|\.lumi(\.csc\.fi)?)?"
                r"( (.*\s)?(?i:lumi)(\s.*)?)?$"
            ],
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "gpu",
                    "descr": "Nodes with four AMD MI250X (eight devices)",
                    "environs": ["rocm"],
                    # [guide] LUMI-G example batch scripts; whole nodes.
                    **clusters.reached("standard-g", "--gpus-per-node=8"),
                    **clusters.node(
                        "mi250x",
                        references="lumi",
                        fabric="slingshot-11",
                        # Since January 2026 (Slurm 24.05.8), instead of masks of cores [checks].
                        site_binding=[
                            "--cpus-per-task={cpus}",
                            "--gpu-bind=map:{devices}",
                            "--gres-flags=allow-task-sharing",
                        ],
                    ),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["lumi"],
            "modules": ["CrayEnv", "PrgEnv-gnu", *MODULES[SPACK]],
            "env_vars": [
                clusters.CRAY_MPICH_ON_DEVICES,
                # [stack] LMOD/admin.list asks for it with a newer one than the default.
                *([clusters.CRAY_NOT_DEFAULT] if SPACK != "lumi" else []),
            ],
            **clusters.programs(
                "rocm",
                SPACK,
                # [checks] rccl_test.py, which loads rocm, too; of that there is the one above.
                rccl_nodes={
                    "modules": ["aws-ofi-nccl/1.18.0-rocm"],
                    "variables": {
                        "NCCL_SOCKET_IFNAME": "hsn0,hsn1,hsn2,hsn3",
                        "NCCL_NET_GDR_LEVEL": "3",
                        "NCCL_ENABLE_DMABUF_SUPPORT": "1",
                    },
                },
            ),
        }
    ],
}
