"""Overlays whose changes begin at an hour, grow, or come and go."""

import pytest
import yaml

from fabricheck.core.errors import InvalidFile
from fabricheck.node import load
from fabricheck.node.over_time import DeviceChange, When, factors
from fabricheck.node.platform import platform

HOUR = 3600.0


def overlaid(tmp_path, **parts):
    path = tmp_path / "overlay.yaml"
    path.write_text(yaml.safe_dump({"name": "later", "description": "Later.", **parts}))
    return platform(load("mi250x", path))


def test_a_change_begins_grows_or_comes_and_goes():
    assert factors(When(begins_h=2), 0.5)[:3] == [(0, 1), (2 * HOUR, 1), (2 * HOUR, 0.5)]
    grows = factors(When(begins_h=1, grows_h=10), 0.9)
    assert grows[1:3] == [(HOUR, 1), (11 * HOUR, 0.9)]
    flaps = factors(When(begins_h=1, every_h=2, lasts_h=0.5), 0.25)
    assert flaps[:6] == [
        (0, 1), (HOUR, 1), (HOUR, 0.25), (1.5 * HOUR, 0.25), (1.5 * HOUR, 1), (3 * HOUR, 1),
    ]  # fmt: skip


def test_a_counter_counts_while_its_change_is_there():
    change = DeviceChange(device=1, replays=100, when=When(every_h=2, lasts_h=1))
    points = dict(change.described()["points"])
    assert points[HOUR] == pytest.approx(100)
    assert points[2 * HOUR] == pytest.approx(100)
    assert points[3 * HOUR] == pytest.approx(200)
    growing = DeviceChange(device=1, replays=100, when=When(grows_h=10))
    assert dict(growing.described()["points"])[10 * HOUR] == pytest.approx(500)


def test_the_platform_has_what_changes_with_time(tmp_path):
    content = overlaid(
        tmp_path,
        resources=[
            {"names": ["memory of device3"], "bandwidth_factor": 0.95, "when": {"grows_h": 10}}
        ],
        devices=[{"device": 2, "flip": {"at_h": 4, "offset_bytes": 64, "bit": 7}}],
    )
    links = {each["name"]: each for each in content["links"]}
    healthy = {each["name"]: each for each in platform(load("mi250x"))["links"]}
    assert links["memory of device3"]["gbs"] == healthy["memory of device3"]["gbs"]
    assert links["memory of device3"]["over_time"][2] == (10 * HOUR, pytest.approx(0.95))
    assert content["over_time"] == [{"device": 2, "flip": [4 * HOUR, 64, 7]}]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"resources": [{"names": ["memory of device3"], "delay_us": 1, "when": {}}]},
         "when is of a bandwidth_factor"),
        ({"devices": [{"device": 1}]}, "exactly one of corrected"),
        ({"devices": [{"device": 1, "replays": 1, "when": {"every_h": 2}}]}, "go together"),
        ({"devices": [{"device": 1, "replays": 1, "when": {"every_h": 2, "lasts_h": 3}}]},
         "goes before it comes"),
    ],
)  # fmt: skip
def test_what_is_no_change_with_time_is_refused(tmp_path, parts, reason):
    with pytest.raises(InvalidFile, match=reason):
        overlaid(tmp_path, **parts)
