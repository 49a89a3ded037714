"""One peer of each link class, for curves over sizes: all pairs would repeat them."""

from __future__ import annotations

from fabricheck.node import NodeModel
from fabricheck.node.paths import Pair


def peers_of_the_first(node: NodeModel) -> dict[str, Pair]:
    """Return by link class the pair of device 0 and the first device that it is so joined to.

    These are the direct classes; where device 0 has no direct link, all of its classes.
    """
    found = {
        link_class: min(pair for pair in pairs if pair[0] == 0)
        for link_class, pairs in node.link_classes.items()
        if any(pair[0] == 0 for pair in pairs)
    }
    direct = {link_class: pair for link_class, pair in found.items() if link_class.direct}
    return {link_class.name: pair for link_class, pair in (direct or found).items()}
