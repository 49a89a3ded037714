"""Where the parts of a node are drawn: its devices in two rows, so that links are short."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from fabricheck.node import NodeModel

#: Devices of a node by row of the drawing, from left to right.
Rows = tuple[tuple[int, ...], ...]

#: Orders to try at most; a node of which there are more is drawn in the order of its numbers.
_MOST_ORDERS = 5000


def rows_of(node: NodeModel) -> Rows:
    """Return the devices by row: those of a NUMA domain and of a package beside each other.

    Of all orders that keep these together it is the first one with the shortest links.
    """
    count = len(node.devices)
    if not node.links:
        return _split(range(count))
    orders = list(itertools.islice(_orders(node), _MOST_ORDERS + 1))
    if len(orders) > _MOST_ORDERS:
        return _split(range(count))
    return min((_split(order) for order in orders), key=lambda rows: _length(node, rows))


def _split(order: Sequence[int]) -> Rows:
    if len(order) <= 2:
        return (tuple(order),)
    half = (len(order) + 1) // 2
    return (tuple(order[:half]), tuple(order[half:]))


def _orders(node: NodeModel) -> Iterator[tuple[int, ...]]:
    domains: dict[int, list[tuple[int, ...]]] = {}
    for package in node.packages:
        domains.setdefault(node.devices[package[0]].domain, []).append(package)
    for order in itertools.permutations(domains):
        packages = [itertools.permutations(domains[domain]) for domain in order]
        for chosen in itertools.product(*packages):
            within = [itertools.permutations(package) for group in chosen for package in group]
            for devices in itertools.product(*within):
                yield tuple(itertools.chain.from_iterable(devices))


def _length(node: NodeModel, rows: Rows) -> float:
    """Return the sum of the squared lengths of the links, in places of a row."""
    at = {device: (x, y) for y, row in enumerate(rows) for x, device in enumerate(row)}
    return sum((at[a][0] - at[b][0]) ** 2 + (at[a][1] - at[b][1]) ** 2 for a, b in node.links)
