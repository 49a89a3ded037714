"""Fabrics: places from addresses and switches, distances, and faults of their files."""

import pytest
import yaml

from fabricheck.core.errors import InvalidFile, NotFoundError
from fabricheck.node import load
from fabricheck.node.fabric import Place, distance, load_fabric, slingshot_place

LEAVES = {
    "format": 1,
    "name": "leaves",
    "title": "Two leaves of one group, one of another",
    "provider": "verbs",
    "places": {
        "kind": "assumed",
        "note": "a drawn fabric",
        "rule": "switches",
        "switches": [
            {"name": "leaf1", "group": "a", "nodes": "n[1-4]"},
            {"name": "leaf2", "group": "a", "nodes": "n[5-8]"},
            {"name": "leaf3", "group": "b", "nodes": "n9"},
        ],
    },
}


def written(folder, **changes):
    path = folder / "leaves.yaml"
    path.write_text(yaml.safe_dump(LEAVES | {"places": LEAVES["places"] | changes}))
    return str(path)


def test_the_address_of_hpes_guide_has_the_place_that_it_states():
    assert slingshot_place("02:00:00:00:07:ea") == Place("0", "31", "42")


@pytest.mark.parametrize(
    "address",
    ["3c:ec:ef:00:00:01", "ff:ff:ff:ff:ff:ff", "02:00:00:00:07", "02:00:00:00:07:xx", ""],
)
def test_an_address_that_no_fabric_manager_gave_has_no_place(address):
    assert slingshot_place(address) is None


def test_distances_by_address():
    of = load_fabric("slingshot-11").place
    near, port, group = "02:00:00:00:07:ea", "02:00:00:00:07:c1", "02:00:00:00:0f:ea"
    assert distance(of("a", near), of("b", port)) == "same-switch"
    assert distance(of("a", near), of("b", "02:00:00:00:00:01")) == "same-group"
    assert distance(of("a", near), of("b", group)) == "other-group"
    assert distance(of("a", near), of("b")) is None


def test_distances_by_switches(tmp_path):
    of = load_fabric(written(tmp_path)).place
    assert distance(of("n1"), of("n4")) == "same-switch"
    assert distance(of("n1"), of("n5")) == "same-group"
    assert distance(of("n1"), of("n9")) == "other-group"
    assert distance(of("n1"), of("n10")) is None


def test_nothing_is_known_of_ethernet():
    fabric = load_fabric("ethernet")
    assert fabric.distances == ()
    assert fabric.place("a", "02:00:00:00:07:ea") is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"switches": []}, "places: switches are needed with the rule switches"),
        (
            {"switches": [{"name": "leaf1", "group": "a", "nodes": "n[1-"}]},
            "places.switches[0].nodes: 'n[1-' is not a list of nodes",
        ),
        (
            {
                "switches": [
                    *LEAVES["places"]["switches"],
                    {"name": "x", "group": "b", "nodes": "n5"},
                ]
            },
            "places.switches[3].nodes: n5 is at two switches (leaf2 and x)",
        ),
        ({"source": "nowhere"}, "places.source: 'nowhere' is not among the sources"),
    ],
)
def test_a_fault_is_one_sentence_with_the_key(tmp_path, changes, said):
    with pytest.raises(InvalidFile) as caught:
        load_fabric(written(tmp_path, **changes))
    assert said in str(caught.value)


def test_an_unknown_fabric_is_named_with_those_there_are():
    with pytest.raises(NotFoundError, match=r"'token-ring' in .*config"):
        load_fabric("token-ring")


def test_each_device_has_its_nearest_nic():
    node = load("mi250x")
    nearest = [node.nearest_nic(device).name for device in range(8)]
    assert nearest == ["cxi0", "cxi0", "cxi1", "cxi1", "cxi2", "cxi2", "cxi3", "cxi3"]
    assert node.nic_devices == (1, 3, 5, 7)
