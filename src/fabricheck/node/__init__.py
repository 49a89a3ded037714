"""Node models: the hardware of a node, from ``config/nodes``, and what is derived from it."""

from fabricheck.node.cores import format_cores, parse_cores
from fabricheck.node.loading import available, load, node_directory
from fabricheck.node.model import CopyEngine, Device, Domain, Link, Nic, NodeModel, Switch
from fabricheck.node.paths import LinkClass
from fabricheck.node.placement import Placement
from fabricheck.node.schema import Quantity
from fabricheck.node.subsets import best_subsets

__all__ = [
    "CopyEngine",
    "Device",
    "Domain",
    "Link",
    "LinkClass",
    "Nic",
    "NodeModel",
    "Placement",
    "Quantity",
    "Switch",
    "available",
    "best_subsets",
    "format_cores",
    "load",
    "node_directory",
    "parse_cores",
]
