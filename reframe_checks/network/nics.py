"""The NICs of a node, without a partner (experiment E16)."""

import reframe as rfm

from fabricheck.rfm.findings import NicCheck, NicLoopbackCheck


@rfm.simple_test
class nic_inventory(NicCheck):
    """Number, state, rate, PCIe, NUMA domain, place, new errors; the fabric's provider."""

    descr = "The NICs of the node, compared with the node model and the fabric (E16)"
    tags = {"E16", "smoke", "node", "full"}
    valid_systems = ["+devices +nics"]
    valid_prog_environs = ["+stream"]


@rfm.simple_test
class nic_loopback(NicLoopbackCheck):
    """Each NIC to itself by the vendor's tool, the others idle."""

    descr = "A vendor's loopback on each NIC (E16)"
    tags = {"E16", "full"}
    valid_systems = ["+devices +nics"]
    valid_prog_environs = ["+loopback"]
