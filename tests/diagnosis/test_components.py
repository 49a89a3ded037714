"""The resources of each component of a node: what is slow when it is."""

from __future__ import annotations

import pytest

import factories
from fabricheck.judge.diagnosis.components import candidates, passes, touching
from fabricheck.judge.diagnosis.search import FURTHER_GAIN
from fabricheck.judge.diagnosis.transfers import Routes, transfers
from fabricheck.node import load
from fabricheck.node.platform import routes


@pytest.mark.parametrize(
    ("name", "one_way", "other_way"),
    [
        ("copies {} device 3", "copy engine of copies device3-device5",
         "copy engine of copies device5-device3"),
        ("copies {} device 3", "copy engine of copies device3-domain1",
         "copy engine of copies domain1-device3"),
        ("messages {} device 3", "copy engine of messages device3-device5",
         "copy engine of messages device5-device3"),
        ("host link {} device 3", "host link from device3", "host link to device3"),
        ("pageable copies {} device 3", "pageable copies from device3",
         "pageable copies to device3"),
    ],
)  # fmt: skip
def test_a_direction_of_a_device_has_what_goes_that_way_alone(name, one_way, other_way):
    node = load("mi250x")
    every = {one.component.label: one.component for one in candidates(node, ())}
    resources = [
        one["name"] for one in routes(node)["links"] if one["name"] in (one_way, other_way)
    ]
    for way, passed in (("from", one_way), ("to", other_way)):
        component = every[name.format(way)]
        assert [one for one in resources if passes(component, one)] == [passed]


def test_a_link_that_the_tools_of_the_node_see_is_supposed_to_be_gone_at_a_cost():
    node = load("mi250x")
    copy = factories.series(
        experiment="E8", operation="read", direction="one-way", device_set=[0, 6],
        source=factories.place("peer", 6),
    )  # fmt: skip
    alike = factories.document(series=[]) | {"differences": []}
    for documents, cost in (({}, 0.0), ({"node_topology": alike}, 20.0)):
        documents["p2p_kernel"] = factories.document(series=[copy])
        passing = transfers(documents, Routes(node))
        every = touching(node, documents, passing, range(len(passing)))
        costs = {one.component.label: one.cost for one in every if one.places is not None}
        assert costs["link 0-6 gone"] == cost


def test_a_link_may_be_slower_for_transfers_of_some_sizes_only_at_a_cost():
    node, sizes = load("mi250x"), (1 << 16, 1 << 20, 1 << 24, 1 << 30)
    # Of one transfer the largest size counts: these differ by their block size.
    reads = [
        factories.series(
            experiment="E8", operation="read", direction="one-way", device_set=[0, 6],
            source=factories.place("peer", 6), bytes=size, block_size=256 * number,
        )
        for number, size in enumerate(sizes, 1)
    ]  # fmt: skip
    passing = transfers({"p2p_kernel": factories.document(series=reads)}, Routes(node))
    found = [
        (one.sizes, [touch.number for touch in one.touched], one.cost)
        for one in touching(node, {}, passing, {1, 2})
        if one.component.label == "link 0-6"
    ]
    assert found == [(None, [0, 1, 2, 3], 0.0), (sizes[1:3], [1, 2], FURTHER_GAIN)]
