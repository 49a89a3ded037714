"""Rented nodes of eight AMD MI300X that ssh reaches. Nothing here was tried on one.

A cloud names its hosts as it likes, so a session names the system and the hosts:
fabricheck every-node --hosts 10.0.0.[1-8] -- --system=cloud. Each host has this checkout in the
same folder, with its programs built.
"""

from fabricheck.site import clusters

site_configuration = {
    "systems": [
        {
            "name": "cloud",
            "descr": "Nodes of eight AMD MI300X that ssh reaches",
            # No host has this name.
            "hostnames": ["^$"],
            "partitions": [
                {
                    "name": "mi300x",
                    "descr": "Nodes with eight AMD MI300X",
                    "environs": ["rocm"],
                    **clusters.reached("localhost", by="ssh"),
                    # Clouds join such nodes by Ethernet or InfiniBand, each by its own: state
                    # fabric="infiniband" in a copy of this file.
                    **clusters.node("mi300x", mpi_launcher="mpirun-openmpi"),
                }
            ],
        }
    ],
    "environments": [
        {
            "name": "rocm",
            "target_systems": ["cloud"],
            "env_vars": [clusters.OPEN_MPI_BY_UCX],
            **clusters.programs_here(
                "rocm", "local-rocm", mpi_without=clusters.mpi_without("rocm")
            ),
        }
    ],
}
