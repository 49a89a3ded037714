"""A plain machine with NVIDIA GPUs, without a batch system: --system=nvidia."""

from fabricheck.site import clusters, variables

# Which GPUs they are, a name cannot tell: the node model does, h200 unless another is named.
NODE = variables.node_model("FABRICHECK_NVIDIA_NODE", default="h200", vendor="nvidia")


# The list of checks has those on each of the nodes that it may be.
def variants():
    """Return the variables that make it a site of each of its nodes."""
    return [{"FABRICHECK_NVIDIA_NODE": name} for name in variables.node_models("nvidia")]


site_configuration = {
    "systems": [
        {
            "name": "nvidia",
            "descr": f"This machine, with the NVIDIA GPUs of the node model {NODE}",
            # No host has this name.
            "hostnames": ["^$"],
            "partitions": [
                {
                    "name": "node",
                    "descr": "The GPUs of this machine",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["cuda"],
                    # Measuring checks of one node never overlap.
                    "max_jobs": 1,
                    **clusters.node(NODE, references="nvidia", mpi_launcher="mpirun-openmpi"),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "cuda",
            "target_systems": ["nvidia"],
            # Multicast over NVLink stays off: a machine that shows a part of a host may lack it.
            "env_vars": [clusters.OPEN_MPI_BY_UCX, ["NCCL_NVLS_ENABLE", "0"]],
            **clusters.programs("cuda", "nvidia"),
        }
    ],
}
