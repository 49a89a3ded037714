"""The limits of metrics without a reference: what every healthy node reaches of its peaks."""

from __future__ import annotations

from fabricheck.node import NodeModel
from fabricheck.references import rules
from fabricheck.references.rules import Rule
from fabricheck.rfm.metrics import Metric
from fabricheck.rfm.relative import OfSingle

#: STREAM copy on a device's own memory, far beyond the caches.
_MEMORY = {
    "engine": "kernel",
    "operation": "copy",
    "role": "single",
    "regime": "memory",
    "source.memory": "device",
    "destination.memory": "device",
}

#: A kernel that reads from a peer or writes to it, one way.
_PEER = {"engine": "kernel", "role": "single", "bytes_counted": "once"}

#: A copy between a device and pinned memory, one way.
_HOST = {"engine": "copy-engine", "role": "single", "experiment": "E2"}


def any_node(metric: Metric, node: NodeModel | None) -> Rule | None:
    """Return what limits a metric on a machine that no file knows; None where nothing does.

    Its own rule comes first, then the floor where one is known, and the node's peak too. Both
    directions at once with the host are limited by the host's memory and by who else uses it: four
    healthy H100 of a virtual machine had 58 to 63 % of the two alone, by nvbandwidth 64 %.

    :param node: the healthy node model.
    """
    where = metric.where
    ends = {where.get("source.memory"), where.get("destination.memory")}
    if isinstance(metric, OfSingle) and "host-pinned" in ends:
        return None
    if metric.rule or node is None or metric.reduce != "worst" or metric.unit != "GB/s":
        return metric.rule
    if _MEMORY.items() <= where.items():
        peak = node.device(0).memory_peak_gbs
        return None if peak is None else rules.memory_floor(node.architecture, peak)
    if _PEER.items() <= where.items() and ends == {"device", "peer"}:
        pairs = [members for ((*members,),) in metric.among or ()]
        if pairs and all(node.link_class(*pair).direct for pair in pairs):
            return rules.direct_link_floor(min(node.peer_peak_gbs(*pair) for pair in pairs))
    # Where host and device share their memory, a copy crosses no link.
    if (
        _HOST.items() <= where.items()
        and ends == {"device", "host-pinned"}
        and not node.shares_memory
    ):
        return rules.host_link_floor(node.device(0).host_link_gbs)
    return None
