"""Leonardo Booster: nodes with four NVIDIA A100 of 64 GB. Nothing here was tried on the machine.

Sources: [guide] CINECA's user guide, docs.hpc.cineca.it/hpc/leonardo.html; [jobs] public job
scripts and outputs of users.
"""

from fabricheck.site import clusters

site_configuration = {
    "systems": [
        {
            "name": "leonardo",
            "descr": "Leonardo Booster",
            # [jobs] lrdn0271.leonardo.local; login01 to 07 of leonardo [guide].
            "hostnames": [
                r"login\d+(-ext)?\.leonardo(\.local|\.cineca\.it)?(\s|$)",
                r"lrdn\d{4}(\.leonardo\S*)?(\s|$)",
            ],
            "modules_system": "envmod",
            "partitions": [
                {
                    "name": "booster",
                    "descr": "Nodes with four NVIDIA A100 (64 GB)",
                    "environs": ["cuda"],
                    # [jobs]; for half an hour there is the QOS boost_qos_dbg: FABRICHECK_QOS.
                    **clusters.reached("boost_usr_prod", "--gres=gpu:4"),
                    **clusters.node("a100-booster", references="leonardo", fabric="infiniband"),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "cuda",
            "target_systems": ["leonardo"],
            # One set of CUDA, NCCL and Open MPI with both (HPC-X), as spack-env/leonardo has it.
            "modules": ["gcc/12.2.0", "nvhpc/24.5", "hpcx-mpi/2.19"],
            "env_vars": [
                # Open MPI is started by Slurm's PMIx, which is assumed.
                ["SLURM_MPI_TYPE", "pmix"],
                clusters.OPEN_MPI_BY_UCX,
            ],
            **clusters.programs("cuda", "leonardo"),
        }
    ],
}
