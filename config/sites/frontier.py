"""Frontier: nodes with four AMD MI250X (eight devices). Nothing here was tried on the machine.

Source: the Frontier user guide (github.com/olcf/olcf-user-docs, systems/frontier_user_guide.rst,
July 2026), section by section as named.
"""

from fabricheck.site import clusters

# By Spack environment, which has the same versions: the site's default, and the newest that the
# guide recommends. "Understanding the compatibility": Cray MPICH 8.1.31 of CPE 24.11 goes with ROCm
# 6.2.4, 9.1.0 of CPE 26.03 officially with 7.0. "GPU-aware MPI" wants the accelerator's module. The
# compiler of CPE 26.03 is that of software/software-news.rst, May 2026.
MODULES = {
    "frontier": ["cpe/24.11", "gcc-native/13.2", "craype-accel-amd-gfx90a", "rocm/6.2.4"],
    "frontier-26.03": ["cpe/26.03", "gcc-native/14.2", "craype-accel-amd-gfx90a", "rocm/7.0.2"],
}
SPACK = clusters.one_of("FABRICHECK_FRONTIER", tuple(MODULES))

site_configuration = {
    "systems": [
        {
            "name": "frontier",
            "descr": "Frontier",
            # "Connecting" and "Slurm": login12.frontier, frontier00144. A login node that says no
            # more than login12 is known by LMOD_SYSTEM_NAME, which is assumed.
            "hostnames": [
                r"login\d+\.frontier(\.olcf\.ornl\.gov)?(\s|$)",
                r"frontier\d{5}(\.\S+)?(\s|$)",
                r"\S+ (.*\s)?frontier(\s|$)",
            ],
            "modules_system": "lmod",
            "partitions": [
                {
                    "name": "gpu",
                    "descr": "Nodes with four AMD MI250X (eight devices)",
                    "environs": ["rocm"],
                    # "Common Slurm submission options"; debug is a QOS there: FABRICHECK_QOS.
                    **clusters.reached("batch", "--gpus-per-node=8"),
                    **clusters.node(
                        "mi250x",
                        references="frontier",
                        fabric="slingshot-11",
                        # "Mapping 1 GPU per task", example 1.
                        site_binding=[
                            "--cpus-per-task={cpus}",
                            "--gpus-per-task=1",
                            "--gpu-bind=closest",
                        ],
                    ),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["frontier"],
            "modules": [*clusters.CRAY_LOGIN_MODULES, "PrgEnv-gnu", *MODULES[SPACK]],
            "env_vars": [
                clusters.CRAY_MPICH_ON_DEVICES,
                # "Understanding the compatibility".
                *([clusters.CRAY_NOT_DEFAULT] if SPACK != "frontier" else []),
            ],
            **clusters.programs(
                "rocm",
                SPACK,
                # "RCCL": the plug-in, with the variables that RCCL and libfabric need for it; they
                # may change MPI. Its rendezvous, FI_CXI_RDZV_PROTO=alt_read, needs the option
                # (software/analytics/pytorch_frontier.rst, "Alternative Rendezvous Protocol").
                rccl_nodes={
                    "modules": ["rccl-net-plugin/1.0"],
                    "srun": ["--network=disable_rdzv_get"],
                },
            ),
        }
    ],
}
