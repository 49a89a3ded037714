"""Energy of a bit: what is derived from counters, and when nothing is."""

import copy

import pytest

from fabricheck.results import energy
from fabricheck.results.document import load
from tests import factories


def counted(device: int = 0, **changes):
    """Build a counter at 500 W that idles at 100 W."""
    return {
        "kind": "device",
        "name": f"0000:0{device}:00.0",
        "devices": [device],
        "works": device == 0,
        "source": "NVML field 83",
        "watts": [498.0, 499.0, 500.0, 500.0, 500.0, 501.0, 502.0],
        "idle_before_w": 90.0,
        "idle_after_w": 110.0,
        "step_s": 0.1,
        "delay_s": 0.05,
        "why": None,
    } | changes


def under_load(clock: float | None, index: int = 0):
    return {
        "index": index,
        "clock_mhz": clock,
        "temperature_c": 40.0,
        "memory_temperature_c": None,
        "power_w": None,
        "throttle": None,
    }


def held(*counters, **changes):
    """Build a series that moved 1 TB in 8 s: 1 W is 1 pJ/bit."""
    member = {
        "started": "2026-11-29T07:00:00.000Z",
        "seconds": 8.0,
        "bytes": 1e12,
        "busy": 0.99,
        "counters": list(counters) or [counted(), counted(1, watts=[60.0] * 7)],
        "idle": [under_load(1980.0)],
        "loaded": [under_load(1980.0)],
        "after": [under_load(1980.0)],
    } | changes
    return factories.series(energy=member)


def test_a_bit_has_the_energy_of_the_devices_at_work():
    per_bit = energy.of_series(held())
    assert per_bit.gross == energy.PerBit(500, 498, 502)
    # Idle power is 100 W, and known to 10 W: 90 W before, 110 W after.
    assert per_bit.net == energy.PerBit(400, 388, 412)
    assert per_bit.gb_per_s == pytest.approx(125)
    assert per_bit.same_clock is True
    assert per_bit.packages is False
    assert per_bit.node is None
    # 500 W for 8 s, and 60 W of the device beside it.
    assert (per_bit.joules, per_bit.idle_joules) == (4000, 480)


def test_joules_of_idle_devices_are_unknown_where_none_is_counted():
    assert energy.of_series(held(counted())).idle_joules is None
    unmoved = counted(1, watts=[], why="the counter did not move")
    assert energy.of_series(held(counted(), unmoved)).idle_joules is None


def test_two_devices_at_work_are_added_and_the_node_stands_beside():
    node = counted(kind="node", name="node", devices=[], works=None, watts=[2000.0] * 7)
    series = held(counted(), counted(1, works=True), node)
    series["device_set"] = [0, 1]
    per_bit = energy.of_series(series)
    assert per_bit.gross.value == 1000
    assert per_bit.net.value == 800
    assert per_bit.node.value == 2000
    assert per_bit.node_net.value == 1900


def test_a_counter_of_a_package_is_counted_once_for_both_dies():
    series = held(counted(kind="package", devices=[0, 1]))
    series["device_set"] = [0, 1]
    per_bit = energy.of_series(series)
    assert per_bit.gross.value == 500
    assert per_bit.packages


@pytest.mark.parametrize(
    "series",
    [
        factories.series(),
        held(counted(watts=[], why="the counter went back")),
        held(counted(1)),  # of the device at work there is none
        held(counted(kind="accelerator", devices=[], works=None)),
    ],
    ids=["not held", "reset", "another device", "unknown device"],
)
def test_no_energy_without_the_counters_of_all_devices_at_work(series):
    assert energy.of_series(series) is None


def test_a_destination_without_a_counter_has_none():
    series = held(counted())
    series["destination"] = factories.place(device=1)
    assert energy.of_series(series) is None


def test_net_needs_idle_power_before_and_after():
    per_bit = energy.of_series(held(counted(idle_after_w=None)))
    assert per_bit.gross.value == 500
    assert per_bit.net is None


@pytest.mark.parametrize(
    ("quiet", "same"), [(1975.0, True), (345.0, False), (None, None), (0.0, None)]
)
def test_whether_idle_power_is_of_the_same_clock(quiet, same):
    series = held(after=[under_load(quiet)])
    assert energy.of_series(series).same_clock is same


def test_it_is_read_and_shown(tmp_path, command):
    held_document = copy.deepcopy(factories.document(series=[held()]))
    factories.write(tmp_path / "run" / "result.json", held_document)
    assert load(tmp_path / "run" / "result.json")["series"][0]["energy"]["seconds"] == 8
    (row,) = command("summary", tmp_path, json=True).json["partitions"][0]["energy"]
    assert row["pj_per_bit"] == 500
    assert (row["net_low"], row["net_high"]) == (388, 412)
    assert (row["joules"], row["idle_devices_joules"]) == (4000, 480)
    shown = command("summary", tmp_path).stdout
    assert "498 to 502" in shown and "busy" not in shown


def test_a_load_that_often_waited_says_so(tmp_path, command):
    document = factories.document(series=[held(busy=0.76)])
    factories.write(tmp_path / "run" / "result.json", document)
    assert "busy 76% of the time" in command("summary", tmp_path).stdout


def on_device(device: int, watts: float, clock: float = 1980.0):
    """Build a held series of one of several devices."""
    series = held(
        counted(device, works=True, watts=[watts] * 7), loaded=[under_load(clock, device)]
    )
    return series | {
        "device": device,
        "device_set": [device],
        "source": factories.place(device=device),
        "destination": factories.place(device=device),
    }


@pytest.mark.parametrize(
    ("clock", "above"),
    [(1980.0, [None, None, None, pytest.approx(600 / 500.5 - 1)]), (1700.0, [None] * 4)],
)
def test_a_device_that_takes_more_at_the_same_clock_is_named(tmp_path, command, clock, above):
    series = [on_device(0, 500), on_device(1, 501), on_device(2, 499), on_device(3, 600, clock)]
    devices = [factories.device(index) for index in range(4)]
    document = factories.document(series=series, devices=devices)
    factories.write(tmp_path / "run" / "result.json", document)
    rows = command("summary", tmp_path, json=True).json["partitions"][0]["energy"]
    assert [row["above_peers"] for row in rows] == above
