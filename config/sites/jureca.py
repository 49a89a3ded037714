"""JURECA-DC: nodes with four NVIDIA A100, and two with four AMD MI250 of its evaluation platform.

Nothing here was tried on the machine. Sources: [page] JSC's page on its MI250 nodes (node model
mi250); [eb] easybuilders/JSC at github.com, OpenMPI-settings and UCX-settings; [jobs] public job
scripts for the Slurm partitions dc-mi200 and dc-gpu.
"""

from fabricheck.site import clusters

# The versions of [page], or the newer pair UCX 1.14 and Open MPI 5: jureca-mi250-ompi5.
MI250 = clusters.one_of("FABRICHECK_JURECA_MI250", ("jureca-mi250", "jureca-mi250-ompi5"))

# Slurm is psslurm of ParaStation there, and starts Open MPI by its PMIx [jobs].
PMIX = ["SLURM_MPI_TYPE", "pspmix"]

site_configuration = {
    "systems": [
        {
            "name": "jureca",
            "descr": "JURECA-DC and its evaluation platform",
            # [jobs] jrlogin03, and jrc0001 for a compute node, which is assumed; SYSTEMNAME is
            # jurecadc [eb].
            "hostnames": [
                r"(jrlogin|jrc)\d+(\.jureca\S*)?(\s|$)",
                r"\S+ (.*\s)?jureca(dc)?(\s|$)",
            ],
            "modules_system": "lmod",
            "partitions": clusters.of_this_job(
                {
                    "name": "mi250",
                    "descr": "Nodes with four AMD MI250 (eight devices)",
                    "environs": ["rocm"],
                    # The node comes with its devices [jobs].
                    **clusters.reached("dc-mi200"),
                    **clusters.node("mi250", references="jureca-mi250"),
                },
                {
                    "name": "a100",
                    "descr": "Nodes with four NVIDIA A100",
                    "environs": ["cuda"],
                    **clusters.reached("dc-gpu", "--gres=gpu:4"),
                    **clusters.node("a100-jureca", references="jureca-a100", fabric="infiniband"),
                },
            ),
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["jureca"],
            # The software of these nodes is a tree of its own [jobs]; ROCm is /opt/rocm [page].
            "modules": ["Architecture/jureca_mi200", "Stages/2022", "GCC/11.2.0"],
            "env_vars": [
                PMIX,
                clusters.OPEN_MPI_BY_UCX,
                # [page], technical details.
                ["UCX_TLS", "rc_x,self,sm,rocm_copy,rocm_ipc"],
            ],
            **clusters.programs("rocm", MI250),
        },
        {
            "name": "cuda",
            "target_systems": ["jureca"],
            # Open MPI and UCX are JSC's; the last two let them take buffers of devices [jobs].
            "modules": [
                "Stages/2025",
                "GCC/13.3.0",
                "CUDA/12",
                "OpenMPI/5.0.5",
                "MPI-settings/CUDA",
                "UCX-settings/RC-CUDA",
            ],
            "env_vars": [PMIX, clusters.OPEN_MPI_BY_UCX],
            **clusters.programs("cuda", "jureca-a100"),
        },
    ],
}
