"""Messages between nodes (E17), one rank beside each NIC."""

import reframe as rfm

from fabricheck.core.vocabulary import ENGINES_ON
from fabricheck.rfm.metrics import Figure, Metric
from fabricheck.rfm.network_benchmarks import OsuNodesCheck, RcclNodesCheck
from fabricheck.rfm.nodes import ONE_AT_A_TIME, FabricCheck, MpiNodesCheck


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


#: The number of NICs, nodes and switches that the attribution names.
NAMED = Metric("named", over=(), unit="count")


@rfm.simple_test
class fabric_pairs(FabricCheck):
    """Rounds in which every node meets others; the attribution names what is slow with all."""

    descr = "Every NIC of all nodes of an allocation, in rounds, and what is at fault (E17)"
    tags = {"E17", "network"}
    ci_extras = ONE_AT_A_TIME
    valid_prog_environs = ["+fabric"]
    env_vars = ENGINES_ON

    #: A sentence for each NIC, node and switch that the attribution names.
    at_fault = ()

    def expected_metrics(self):
        """Return the metrics of the rounds, and the number of what is at fault."""
        return [*super().expected_metrics(), NAMED]

    def figure(self, document, metric):
        """Return a metric's value; `NAMED` counts what the attribution names."""
        if metric != NAMED:
            return super().figure(document, metric)
        # What judges is loaded where it is needed: sessions start without it.
        from fabricheck.judge.fabric.attributing import attribute

        attribution = attribute(document)
        self.at_fault = [fault.sentence for fault in (*attribution.named, *attribution.switches)]
        return Figure(metric, float(len(self.at_fault)), (), ())

    def _failures(self):
        return [*super()._failures(), *self.at_fault]
