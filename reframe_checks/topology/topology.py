"""The topology of a node compared with its node model (experiment E13)."""

import reframe as rfm

from fabricheck.rfm.findings import TopologyCheck


@rfm.simple_test
class node_topology(TopologyCheck):
    """Devices, links, PCI addresses, NUMA domains and cores, NUMA balancing."""

    descr = "Devices, links, NUMA domains and NUMA balancing, compared with the node model (E13)"
    tags = {"E13", "smoke", "node", "full"}
    valid_systems = ["+devices +peers"]
    valid_prog_environs = ["+p2p"]
