"""Pairs of devices that transfer at once: the links that they share, and the rate left to each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise

from fabricheck.node.model import NodeModel
from fabricheck.node.paths import Pair

#: A link by its ends, in the direction of the data; the end at a switch is ``None``.
Hop = tuple[int | None, int | None]


def hops(node: NodeModel, pair: Sequence[int]) -> list[Hop]:
    """Return the links that the data of a pair uses."""
    source, destination = pair
    if node.switch is not None:
        return [(source, None), (None, destination)]
    return list(pairwise(node.widest_path(source, destination)))


def busiest(node: NodeModel, pair: Sequence[int], at_work: Iterable[Sequence[int]]) -> int:
    """Return the number of pairs at work on the busiest link of a pair's path."""
    uses = Counter(hop for pair in at_work for hop in hops(node, pair))
    return max(uses[hop] for hop in hops(node, pair)) or 1


def left_to_the_slowest(node: NodeModel, alone: Mapping[Pair, float]) -> tuple[float, Pair]:
    """Return the rate that links leave the slowest pair, and the pair whose own rate decides it.

    The devices at the ends of a link reach a rate alone; the link leaves each pair on it that rate
    divided by the number of pairs. A switch leaves a pair its own rate alone, divided by the number
    of pairs of its device.

    :param alone: the rate of each pair alone, of all that transfer at the same time.
    """
    hops_of = {pair: hops(node, pair) for pair in alone}
    uses = Counter(chain.from_iterable(hops_of.values()))
    return min(
        (alone[over] / uses[hop], over)
        for pair in hops_of
        for hop in hops_of[pair]
        for over in [_ends(hop, pair)]
    )


def _ends(hop: Hop, pair: Pair) -> Pair:
    source, destination = hop
    return pair if source is None or destination is None else (source, destination)
