"""Which pairs a scan between devices measures."""

from __future__ import annotations

import dataclasses
from itertools import permutations
from types import SimpleNamespace

import pytest

import site_checks
from fabricheck.core.checkout import ROOT
from fabricheck.node import load
from fabricheck.rfm.pairs import peers_of_the_first
from fabricheck.rfm.ranks import MpiCheck, MpiPairsCheck


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Figure 1 of the paper: from device 0 four links to 1, two to 6, one to 2.
        ("mi250x", {"links4": (0, 1), "links2": (0, 6), "links1": (0, 2)}),
        ("mi250", {"links4": (0, 1), "links2": (0, 4), "links1": (0, 6)}),
        ("h200", {"switch18": (0, 1)}),
        # Its other peers have no link to it.
        ("mi210", {"links1": (0, 1)}),
    ],
)
def test_one_peer_of_each_direct_class(name, expected):
    assert peers_of_the_first(load(name)) == expected


def test_a_part_of_a_node_has_its_own_peers():
    assert peers_of_the_first(load("h200").part(2)) == {"switch18": (0, 1)}


def test_without_direct_links_every_class_counts():
    node = load("mi250x")
    far = {pair: link for pair, link in node.links.items() if pair[0] != 0}
    assert peers_of_the_first(dataclasses.replace(node, links=far)) == {"pcie": (0, 1)}


def test_osu_measures_each_pair_once_and_compares_its_data_once(monkeypatch):
    monkeypatch.setenv("FABRICHECK_SIM_OSU", "/osu")
    folders = [ROOT / "reframe_checks" / "osu"], ROOT / "reference_values"
    with site_checks.set_up("local:sim-mi250x", *folders) as checks:
        launches = {type(one).__name__: one.plan().launches for one in checks}
    for check, programs, pairs in (
        ("osu_device_0", ("osu_bw", "osu_latency"), [(0, other) for other in range(1, 8)]),
        ("osu_all_pairs", ("osu_bw",), permutations(range(8), 2)),
    ):
        found = [(one.program, tuple(one.devices), one.verifies) for one in launches[check]]
        expected = [
            (program, pair, verifies)
            for program in programs
            for pair in pairs
            for verifies in (False, True)
        ]
        assert found == expected
        assert [" -c " in one.command for one in launches[check]] == [one[-1] for one in expected]


@pytest.mark.parametrize(("buffers", "by_class"), [("host", False), ("device", True)])
def test_messages_of_the_host_s_memory_have_no_link_of_devices(buffers, by_class):
    check = SimpleNamespace(node=load("mi250x"), buffers=buffers, rank_devices=range(8))
    groups = MpiPairsCheck.groups(check)
    assert ("links4" in groups) == by_class
    assert (set(groups) == {""}) != by_class


@pytest.mark.parametrize(("buffers", "devices"), [("host", []), ("device", [4, 5])])
def test_ranks_have_devices_where_their_buffers_are_on_devices(buffers, devices):
    check = SimpleNamespace(buffers=buffers, rank_devices=range(4, 8))
    assert list(MpiCheck.devices_of(check, 2)) == devices


def test_devices_are_not_compared_by_messages_that_take_microseconds_within_them(monkeypatch):
    monkeypatch.setenv("FABRICHECK_SIM_OSU", "/osu")
    folders = [ROOT / "reframe_checks" / "osu"], ROOT / "reference_values"
    with site_checks.set_up("local:sim-mi250x", *folders) as checks:
        (own,) = [one for one in checks if type(one).__name__ == "osu_own_device"]
        names = [metric.name for metric in own.judged_metrics()]
    assert [name for name in names if name.endswith("_alike")] == ["bandwidth_64MiB_alike"]
    assert "bandwidth_4MiB_worst" in names
