"""Which pairs a scan between devices measures."""

from __future__ import annotations

import dataclasses

import pytest

from fabricheck.node import load
from fabricheck.rfm.pairs import peers_of_the_first


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Figure 1 of the paper: from device 0 four links to 1, two to 6, one to 2.
        ("mi250x", {"quad": (0, 1), "dual": (0, 6), "single": (0, 2)}),
        ("mi250", {"quad": (0, 1), "dual": (0, 4), "single": (0, 6)}),
        ("h200", {"switch18": (0, 1)}),
        # Its other peers have no link to it.
        ("mi210", {"single": (0, 1)}),
    ],
)
def test_one_peer_of_each_direct_class(name, expected):
    assert peers_of_the_first(load(name)) == expected


def test_a_part_of_a_node_has_its_own_peers():
    assert peers_of_the_first(load("h200").part(2)) == {"switch18": (0, 1)}


def test_without_direct_links_every_class_counts():
    node = load("mi250x")
    far = {pair: link for pair, link in node.links.items() if pair[0] != 0}
    assert peers_of_the_first(dataclasses.replace(node, links=far)) == {"unconnected": (0, 1)}
