"""Parts of a node: a machine that shows the first devices of a larger host."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fabricheck.core.errors import InvalidFile, UsageError
from fabricheck.node import load, node_directory
from fabricheck.node.placement import placements

H200 = load("h200")


def changed(folder: Path, name: str, **sections: object) -> Path:
    """Write a node model with some of its sections replaced."""
    content = yaml.safe_load((node_directory() / f"{name}.yaml").read_text()) | sections
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_first_devices_and_their_cores(count):
    part = H200.part(count)
    assert [device.index for device in part.devices] == list(range(count))
    (domain,) = part.domains
    assert domain.cores == tuple(range(16 * count))
    assert domain.devices == tuple(range(count))
    assert part.packages == tuple((device,) for device in range(count))
    assert placements(part)["right"].cores == tuple(range(0, 16 * count, 16))
    assert placements(part)["shared_device"].cores == (0, 1)
    assert set(placements(part)) == {"right", "shared_device"}
    assert (part.name, part.part_of) == (f"h200 ({count} of 8 devices)", 8)
    assert (part.sha256, part.file) == (H200.sha256, "h200.yaml")
    assert part.identity["node"] == part.name


def test_what_follows_of_pairs_and_sets():
    one, two, four = (H200.part(count) for count in (1, 2, 4))
    assert (one.link_classes, one.growing_subsets) == ({}, ())
    assert {link.name: pairs for link, pairs in two.link_classes.items()} == {"switch18": ((0, 1),)}
    assert two.peer_peak_gbs(1, 0) == H200.peer_peak_gbs(1, 0)
    assert dict(two.device_sets()) == {"one": (0,), "two_spread": (0, 1)}
    assert four.growing_subsets == ((0, 1), (0, 1, 2), (0, 1, 2, 3))
    with pytest.raises(UsageError, match=r"h200 \(2 of 8 devices\) has no device 2; its devices"):
        two.device(2)


def test_all_devices_are_the_node_itself():
    assert H200.part(8) is H200 and H200.part_of is None
    assert load("mi250x").part(8).part_of is None


def test_a_part_of_a_part():
    assert H200.part(4).part(2) == H200.part(2)


@pytest.mark.parametrize(
    ("name", "count", "sentence"),
    [
        ("h200", 9, "h200 has 8 devices, and 9 were requested."),
        ("h200", 0, "h200 has 8 devices, and 0 were requested."),
        ("mi250x", 9, "mi250x has 8 devices, and 9 were requested."),
        (
            "mi250x",
            2,
            "mi250x has 8 devices, and 2 were requested: mi250x.yaml does not state what a "
            "machine with some of them shows (key parts).",
        ),
    ],
)
def test_what_is_no_part(name, count, sentence):
    with pytest.raises(UsageError) as raised:
        load(name).part(count)
    assert str(raised.value) == sentence


def test_domains_that_nothing_is_left_of(tmp_path):
    cores = {"kind": "assumed", "note": "two halves", "memory_peak_gbs":
             {"value": None, "kind": "unknown", "note": "not told"}}  # fmt: skip
    near = {device: f"{8 * device}-{8 * device + 7}" for device in range(8)}
    near[3] = "0-7,24-31"  # cores that are near to a device that remains, remain
    halves = [
        {
            "index": 0,
            "cores": "0-31,64",
            "reserved": "8",
            "devices": {i: near[i] for i in range(4)},
        },
        {"index": 1, "cores": "32-63", "devices": {i: near[i] for i in range(4, 8)}},
    ]
    node = load(str(changed(tmp_path, "h200", domains={**cores, "list": halves})))
    assert [domain.index for domain in node.part(5).domains] == [0, 1]
    (domain,) = node.part(2).domains
    # Core 64 is near no device, and so stays; core 8 is kept for the system.
    assert domain.cores == (*range(16), 64)
    assert domain.reserved == (8,)
    assert placements(node.part(2))["right"].cores == (0, 9)


def test_only_a_switch_makes_devices_alike(tmp_path):
    parts = {"kind": "assumed", "note": "any two"}
    with pytest.raises(
        InvalidFile, match="parts requires a switch: on other nodes it matters which"
    ):
        load(str(changed(tmp_path, "mi250x", parts=parts)))
