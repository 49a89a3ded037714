"""Overlays: they change what they say, name what they cannot change, and are in the identity."""

from __future__ import annotations

from functools import partial

import pytest
import yaml

from fabricheck.core.errors import InvalidFile, NotFoundError
from fabricheck.node import LinkClass, load, node_directory
from fabricheck.node.placement import placements
from fabricheck.node.platform import platform
from fabricheck.node.system import system

FOLDER = node_directory() / "overlays"


def overlaid(name: str):
    return load("mi250x", FOLDER / f"{name}.yaml")


def changed(tmp_path, node="mi250x", **parts):
    path = tmp_path / "overlay.yaml"
    path.write_text(yaml.safe_dump({"name": "x", "description": "y", **parts}))
    return load(node, path)


def test_every_committed_overlay_changes_the_node():
    healthy = load("mi250x")
    for path in FOLDER.glob("*.yaml"):
        node = load("mi250x", path)
        assert node.overlay is not None and node.overlay.name
        described = partial(system, count=8) if node.overlay.parts.of_systems else platform
        assert described(node) | {"node": None} != described(healthy) | {"node": None}, path.name


def test_half_width_keeps_the_class():
    assert overlaid("link-0-1-half-width").link_class(0, 1) == LinkClass(4, 1)


def test_a_link_that_is_gone_changes_paths():
    node = overlaid("link-0-6-gone")
    assert node.link_matrix[0][6] == 0
    assert node.hop_matrix[0][6] == 3
    assert node.link_class(0, 6).name == "links1_3hops"
    assert (1, 7) not in node.detour_pairs


def test_rotated_numa_map():
    node = overlaid("numa-map-rotated")
    assert [device.domain for device in node.devices] == [0, 0, 2, 2, 1, 1, 3, 3]
    assert node.domains[0].devices == (0, 1)
    assert placements(node)["right"].cores[0] == 1


def test_remapped_links():
    node = overlaid("cable-map-swapped")
    assert node.link_counts[(0, 4)] == 1
    assert (0, 2) not in node.link_counts
    assert node.packages == load("mi250x").packages


def test_remapping_gives_each_device_the_links_of_the_named_one(tmp_path):
    node = changed(tmp_path, remap_links=[2, 0, 1, 3, 4, 5, 6, 7])
    assert node.link_counts[(0, 4)] == 2  # those of 2-4
    assert node.link_counts[(0, 3)] == 4  # those of 2-3
    assert node.link_counts[(1, 6)] == 2  # those of 0-6


def test_a_count_changes_the_class(tmp_path):
    node = changed(tmp_path, links=[{"pair": [6, 0], "count": 1}])
    assert node.link_class(0, 6).name == "links1"


def test_unconnected_devices(tmp_path):
    pairs = [[0, 1], [0, 2], [0, 6]]
    node = changed(tmp_path, links=[{"pair": pair, "gone": True} for pair in pairs])
    assert node.link_class(0, 5).name == "pcie"
    assert node.widest_path(0, 5) == ()
    assert node.hop_matrix[0][5] == 0
    assert node.peer_peak_gbs(0, 5) == node.device(0).host_link_gbs == 36


def test_a_result_can_carry_the_overlay():
    identity = overlaid("link-0-6-gone").identity
    assert identity["node"] == "mi250x"
    assert identity["overlay"]["name"] == "link 0-6 gone"
    assert identity["overlay"]["content"]["links"] == [{"pair": [0, 6], "gone": True}]
    assert len(identity["overlay"]["sha256"]) == len(identity["sha256"]) == 64
    assert load("mi250x").identity["overlay"] is None


def slow(name, factor=0.5):
    return {"names": [name], "bandwidth_factor": factor}


@pytest.mark.parametrize(
    ("node", "parts", "reason"),
    [
        ("mi250x", {"links": [{"pair": [0, 7], "gone": True}]}, "pair 0-7 has no link in mi250x"),
        ("mi250x", {"links": [{"pair": [0, 9], "count": 1}]}, "pair 0-9 has no link in mi250x"),
        ("mi250x", {"links": [{"pair": [0, 1]}]}, "exactly one of count and gone"),
        ("mi250x", {"links": [{"pair": [0], "gone": True}]}, r"links\[0\].pair: list should have"),
        (
            "mi250x",
            {"resources": [slow("link 0-7")]},
            r"resources\[0\].names: there is no resource 'link 0-7'; similar names: 'link",
        ),
        ("mi250x", {"resources": [slow("memory of device 3")]}, "names: 'memory of device3', "),
        (
            "mi250x",
            {"resources": [slow("link 0-1"), slow("x*")]},
            r"resources\[1\].*'x\*'; similar",
        ),
        ("mi250x", {"resources": [slow("link 0-1", 0)]}, "greater than 0, not 0"),
        ("mi250x", {"resources": [{"names": ["link 0-1"]}]}, "exactly one of bandwidth_factor, d"),
        (
            "mi250x",
            {"resources": [slow("link 0-1") | {"bytes": [2, 1]}]},
            "bytes must be the least an",
        ),
        ("mi250x", {"resources": [slow("link 0-1") | {"first": 1}]}, "first requires delay_us"),
        ("h200", {"resources": [slow("link 0-1")]}, "a simulation needs this key"),
        ("h200", {"links": [{"pair": [0, 1], "count": 9}]}, "h200 are connected by a switch"),
        (
            "h200",
            {"remap_links": [1, 0]},
            "remap_links: the devices of h200 are connected by a switch",
        ),
        ("mi250x", {"remap_links": [1, 0]}, "must name every device of mi250x once"),
        ("mi250x", {}, "it changes nothing"),
    ],
)
def test_an_impossible_change_is_one_sentence(tmp_path, node, parts, reason):
    with pytest.raises(InvalidFile, match=reason) as caught:
        changed(tmp_path, node, **parts)
    file = tmp_path / "overlay.yaml" if "simulation needs" not in reason else "h200.yaml"
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_overlay_is_named(tmp_path):
    with pytest.raises(NotFoundError, match=r"nowhere\.yaml: there is no such file"):
        load("mi250x", tmp_path / "nowhere.yaml")
