"""Which transfers a changed node model moves another way, or at another rate."""

from __future__ import annotations

import pytest
from planted import Node

from fabricheck.judge.diagnosis.transfers import Routes
from fabricheck.judge.diagnosis.ways import Way, chosen_series


@pytest.fixture(scope="module")
def node():
    return Node("mi250x")


def ways_over(node: Node, routes: Routes, link: str) -> set[Way]:
    """Return the ways of the healthy session that pass a link."""
    ways = {way for chosen in chosen_series(node.session.documents) for way in chosen.ways.values()}
    return {way for way in ways if any(link in flow for flow in routes.flows(way))}


def test_a_slower_link_is_another_route_for_what_passes_it_alone(node):
    healthy, slowed = Routes(node.node), Routes(node.node)
    assert all(healthy.agree(slowed, way) for way in ways_over(node, healthy, "link 0-1"))
    slowed.gbs = {**slowed.gbs, "link 0-1": slowed.gbs["link 0-1"] / 2}
    over = ways_over(node, healthy, "link 0-1")
    beside = ways_over(node, healthy, "link 2-3") - over
    assert over and beside
    assert not any(healthy.agree(slowed, way) for way in over)
    assert all(healthy.agree(slowed, way) for way in beside)
