"""`soak` on the simulated node: hours of load are counted by its clock, and move a slice."""

import json

import pytest
import yaml

from fabricheck.node import load
from fabricheck.node.system import platform_json

HOURS = ("--size", "1GiB", "--load-time", "36000", "--pass-time", "3600", "--pairs", "0-6,6-0")


def test_ten_hours_are_counted(run):
    ran = run("soak", *HOURS)
    assert ran.code == 0, ran.err
    document = ran.document
    passes = document["soak"]["passes"]
    assert len(passes) == 10
    assert passes[-1][1] == pytest.approx(36000, rel=0.02)
    # Each device: its memory, to and from the host; and the pair.
    operations = [each["operation"] for each in document["series"]]
    assert operations == [*8 * ["copy"], *8 * ["h2d", "d2h"], "engine", "engine"]
    seconds = {
        each["batch"] * each["bytes_moved"] / each["median"] / 1e9 for each in document["series"]
    }
    assert min(seconds) > 3400
    assert max(seconds) < 3700


def later(tmp_path, **parts):
    """Return the file of a node whose overlay changes with time."""
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(yaml.safe_dump({"name": "later", "description": "Later.", **parts}))
    node = tmp_path / "node.json"
    node.write_text(platform_json(load("mi250x", overlay)))
    return node


def test_what_changes_with_time_follows_the_clock_of_the_soak(run, tmp_path):
    node = later(
        tmp_path,
        resources=[
            {"names": ["memory of device3"], "bandwidth_factor": 0.5, "when": {"begins_h": 5.5}}
        ],
        devices=[
            {"device": 1, "replays": 100, "when": {"begins_h": 5}},
            {"device": 2, "flip": {"at_h": 4.5, "offset_bytes": 64, "bit": 7}},
        ],
    )
    hour = ("--size", "1GiB", "--load-time", "3600", "--pass-time", "360", "--pairs", "none")
    ran = run("soak", *hour, node=node, FABRICHECK_SIMULATED_CLOCK=str(5 * 3600))
    assert ran.code == 0, ran.err
    document = ran.document
    samples = next(
        each["samples"]
        for each in document["series"]
        if each["operation"] == "copy" and each["device"] == 3
    )
    # Half of the hour as ever, half of it at about half the rate.
    assert min(samples[:4]) > 1.4 * max(samples[-3:])
    state = document["state"]
    (after,) = [each for each in state["after"]["devices"] if each["index"] == 1]
    assert 95 <= after["pcie"]["replays"] <= 110
    # Reading the state of a simulated node takes no time of its clock.
    assert state["before"]["seconds"] == state["after"]["seconds"] == 0
    # The bit flipped before this round.
    assert document["soak"]["wrong"] == []
    ran = run("soak", *hour, node=node, FABRICHECK_SIMULATED_CLOCK=str(4 * 3600))
    assert ran.code == 5
    (wrong,) = json.loads(ran.output.read_text())["soak"]["wrong"]
    assert (wrong["device"], wrong["offset_bytes"], wrong["bits"]) == (2, 64, [7])
    assert 1800 <= wrong["at_s"] <= 2600


@pytest.mark.slow
def test_a_wrong_bit_is_found_where_it_lies_whichever_slot_is_written(run, tmp_path):
    hour = ("--size", "1GiB", "--load-time", "3600", "--pass-time", "360", "--pairs", "none")
    slots = []
    for at_h in (0.43, 0.53):
        flip = {"device": 2, "flip": {"at_h": at_h, "offset_bytes": 8192, "bit": 3}}
        ran = run("soak", *hour, node=later(tmp_path, devices=[flip]))
        (wrong,) = ran.document["soak"]["wrong"]
        # The copies write one of two slots in turn, and come back to this place every other pass.
        assert (wrong["offset_bytes"], wrong["bits"]) == (8192, [3])
        slots.append(wrong["pass"] % 2)
    assert slots[0] == slots[1]


def test_throttled_time_is_counted_from_the_first_pass_to_the_last(run, tmp_path):
    node = later(tmp_path, devices=[{"device": 5, "throttled": "thermal"}])
    hour = ("--size", "1GiB", "--load-time", "3600", "--pass-time", "360", "--pairs", "none")
    ran = run("soak", *hour, node=node)
    load = ran.document["soak"]
    (throttled,) = load["throttled"]
    assert throttled["index"] == 5
    assert throttled["throttled_s"]["thermal"] == pytest.approx(load["passes"][-1][1], rel=1e-3)
    # Over the whole program it was longer: the load was calibrated before.
    (after,) = ran.document["state"]["after"]["devices"]
    assert after["throttled_s"]["thermal"] > 10 + throttled["throttled_s"]["thermal"]
