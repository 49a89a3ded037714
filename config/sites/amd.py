"""A plain machine with AMD GPUs, without a batch system: --system=amd."""

from fabricheck.site import clusters, variables

# A name cannot tell which GPUs these are: the node model does. The default is mi300x, which many
# makers of servers and clouds offer in one form, eight on a board with the same links. Boards of
# MI250 have two link maps, and MI250X and MI300A are nodes of clusters.
NODE = variables.node_model("FABRICHECK_AMD_NODE", default="mi300x", vendor="amd")


# The list has the checks of each of the nodes that it may be.
def variants():
    """Return the variables that make it a site of each of its nodes."""
    return [{"FABRICHECK_AMD_NODE": name} for name in variables.node_models("amd")]


# Link classes of the same name are different links on another device: one set for each kind of
# device with published values, and one without values for the others.
REFERENCES = {
    "mi250": "amd-mi250",
    "mi250-two-sockets": "amd-mi250",
    "mi250x": "amd-mi250",
    "mi300a": "amd-mi300a",
    "mi300x": "amd-mi300x",
}

site_configuration = {
    "systems": [
        {
            "name": "amd",
            "descr": f"This machine, with the AMD GPUs of the node model {NODE}",
            # No host has this name.
            "hostnames": ["^$"],
            "partitions": [
                {
                    "name": "node",
                    "descr": "The GPUs of this machine",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["rocm"],
                    # Measuring checks of one node never overlap.
                    "max_jobs": 1,
                    **clusters.node(
                        NODE,
                        references=REFERENCES.get(NODE, "amd"),
                        mpi_launcher="mpirun-openmpi",
                    ),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["amd"],
            "env_vars": [clusters.OPEN_MPI_BY_UCX],
            **clusters.programs("rocm", "amd"),
        }
    ],
}
