"""What measurements between devices share: their options, and one peer of each link class."""

from __future__ import annotations

from fabricheck.node import NodeModel
from fabricheck.node.paths import Pair
from fabricheck.rfm.base import MeasuringCheck


def peers_of_the_first(node: NodeModel) -> dict[str, Pair]:
    """Return by link class the pair of device 0 and the first device that it is so joined to.

    For curves over sizes, which all pairs of a class would repeat.

    These are the direct classes; where device 0 has no direct link, all of its classes.
    """
    found = {
        link_class: min(pair for pair in pairs if pair[0] == 0)
        for link_class, pairs in node.link_classes.items()
        if any(pair[0] == 0 for pair in pairs)
    }
    direct = {link_class: pair for link_class, pair in found.items() if link_class.direct}
    return {link_class.name: pair for link_class, pair in (direct or found).items()}


def pair_arguments(check: MeasuringCheck) -> list[str]:
    """Return what all measurements of all pairs share: array size, bound of a series, noise limit.

    Eight devices have up to 168 series; of those that stay noisy each would take seconds.
    """
    size = check.current_partition.extras.get("peer_bytes") or check.extra("array_bytes")
    noise = check.extra("noise_limit")
    return ["--sizes", str(size), "--series-time", "0.5", "--noise-limit", str(noise)]
