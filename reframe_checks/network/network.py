"""Messages between nodes (E17), one rank beside each NIC."""

import reframe as rfm

from fabricheck.core.vocabulary import ENGINES_ON
from fabricheck.rfm.network_benchmarks import OsuNodesCheck, RcclNodesCheck
from fabricheck.rfm.nodes import ONE_AT_A_TIME, MpiNodesCheck


@rfm.simple_test
class mpi_nodes(MpiNodesCheck):
    """Device buffers; host buffers where MPI takes no others."""

    descr = "MPI between two nodes, each NIC apart and all together (E17)"
    tags = {"E17", "network"}
    ci_extras = ONE_AT_A_TIME
    valid_prog_environs = ["+mpi"]
    env_vars = ENGINES_ON


@rfm.simple_test
class mpi_nodes_host(MpiNodesCheck):
    """The same on host buffers, which shows what the way from device to NIC costs."""

    descr = "MPI between two nodes on host buffers (E17)"
    tags = {"E17", "network"}
    ci_extras = ONE_AT_A_TIME
    valid_prog_environs = ["+mpi +gpu_aware_mpi"]
    buffers = "host"


@rfm.simple_test
class mpi_nodes_simulated(MpiNodesCheck):
    """The same between two simulated nodes."""

    descr = "MPI between two simulated nodes, each NIC apart and all together (E17)"
    tags = {"E17", "node", "full"}
    valid_systems = ["+devices +several_nodes +ranks +simulated"]
    valid_prog_environs = ["+mpi"]
    only_if_requested = False


@rfm.simple_test
class osu_nodes(OsuNodesCheck):
    """The sizes of published values: rates at 4 MiB, latency at 8 B."""

    descr = "OSU between two nodes: one pair one way and both ways, all pairs, latency (E17)"
    tags = {"E17", "network"}
    ci_extras = ONE_AT_A_TIME
    env_vars = ENGINES_ON


@rfm.simple_test
class rccl_nodes(RcclNodesCheck):
    """Allreduce and send-receive at 1 GiB."""

    descr = "RCCL or NCCL over two nodes, one process for each device (E17)"
    tags = {"E17", "network"}
    ci_extras = ONE_AT_A_TIME
