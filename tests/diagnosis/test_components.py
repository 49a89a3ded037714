"""The resources of each component of a node: what is slow when it is."""

from __future__ import annotations

import pytest

from fabricheck.judge.diagnosis.components import components
from fabricheck.node import load


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
    every = {one.name: one for one in components(load("mi250x"), ())}
    resources = [one_way, other_way]
    assert [*every[name.format("from")].all_of(resources)] == [one_way]
    assert [*every[name.format("to")].all_of(resources)] == [other_way]
