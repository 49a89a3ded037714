"""What limits need no published value see of a node (docs/evidence/limits.md)."""

from __future__ import annotations

import json
import math
import re
from random import Random

import pytest

import site_checks
from fabricheck.core.checkout import ROOT
from fabricheck.references import rules
from fabricheck.references.stated import References
from fabricheck.rfm import relative
from limits import drawn_sessions, pageable
from peer_percents import percents
from plain_references import in_plain_form

PAGE = ROOT / "docs" / "evidence" / "limits.md"
DEVICE, PAIR = 3, [1, 0]


@pytest.fixture(scope="module")
def session():
    with drawn_sessions.chosen_once():
        yield drawn_sessions.session("lumi:gpu")


@pytest.fixture
def healthy(session):
    """The session as it was simulated; what a test changes is put back."""
    session.reset()
    return session


def slow_down(series, part):
    """Multiply the median and the samples of a series."""
    series["median"] *= part
    series["samples"] = [part * one for one in series["samples"]]


def slow(session, check, part, **fields):
    """Multiply the medians of some series of a check; return what is missed then."""
    chosen = [
        one
        for one in session.documents[check]["series"]
        if all(one[name] == value for name, value in fields.items())
    ]
    assert chosen
    for series in chosen:
        slow_down(series, part)
    return {one.metric.name for one in session.failures() if one.check == check}


def test_a_healthy_node_misses_nothing(healthy):
    assert len(healthy.judged) > 190
    assert healthy.failures() == []


@pytest.mark.parametrize(
    ("check", "fields", "missed"),
    [
        ("stream_local", {"device": DEVICE}, "triad_alike"),
        ("memcpy_near", {"device_set": [DEVICE], "operation": "h2d"}, "h2d_pinned_near_alike"),
        ("p2p_kernel", {"device_set": PAIR, "operation": "write"}, "write_links4_alike"),
        ("p2p_engine", {"device_set": PAIR, "operation": "engine"}, "engine_links4_alike"),
        ("mpi_pairs", {"ranks": PAIR, "role": "single"}, "bandwidth_links4_alike"),
    ],
)
def test_five_percent_in_one_member_is_seen(healthy, check, fields, missed):
    assert missed in slow(healthy, check, 0.95, **fields)


def test_less_than_the_limit_is_not(healthy):
    assert slow(healthy, "stream_local", 0.975, device=DEVICE) == set()


def test_the_memory_of_a_domain_is_seen_where_all_devices_copy(healthy):
    # Its two devices have the same: among the shares no one is behind.
    fields = {"role": "share", "device_set": list(range(8))}
    assert slow(healthy, "stream_concurrent", 0.9, device=2, **fields) == set()
    found = slow(healthy, "stream_concurrent", 0.9, device=3, **fields)
    assert found == {"copy_all_share_alike"}


PAGEABLE = "memcpy_near_pageable"


def test_a_fifth_of_the_pageable_copies_of_two_devices_is_seen(healthy):
    assert slow(healthy, PAGEABLE, 0.8, device_set=[2]) == {"pageable_alike"}
    assert slow(healthy, PAGEABLE, 0.8, device_set=[5]) == {"pageable_alike"}
    (metric,) = (one.metric for one in healthy.judged if one.metric.name == "pageable_alike"
                 and one.check == PAGEABLE)  # fmt: skip
    figure = metric.figure(healthy.documents[PAGEABLE], {"device": range(8),
                           "device_set": [[one] for one in range(8)]})  # fmt: skip
    assert figure.value == pytest.approx(80, abs=0.1)
    assert {one["operation"] for one in figure.decisive} == {"h2d", "d2h", "both"}


def test_one_way_of_pageable_copies_may_be_as_far_behind_as_it_was_on_healthy_nodes(healthy):
    assert slow(healthy, PAGEABLE, 0.7, device=DEVICE, operation="h2d") == set()


def test_no_recorded_device_is_so_far_behind_by_all_ways():
    every = [max(ways) for _, ways in pageable.recorded()]
    assert len(every) > 70
    behind = 100 * (1 - math.exp(min(every)))
    assert behind == pytest.approx(9.9, abs=0.05)
    assert behind < rules.allowed_percent("pageable_all_ways")


def test_a_slow_cable_is_seen_both_ways_in_a_class_of_two(healthy):
    metric = next(one for one in healthy.judged if one.metric.name == "write_links2_alike")
    document = healthy.documents["p2p_kernel"]
    for pair in ([0, 6], [6, 0]):
        slow(healthy, "p2p_kernel", 0.95, device_set=pair, operation="write")
    parts = sorted(percents(metric.metric, document, metric.population))
    assert parts == pytest.approx([95, 95, 100 / 0.95, 100 / 0.95])


def test_directions_that_take_turns_are_seen(healthy):
    found = slow(healthy, "p2p_engine", 0.5, operation="engine-both", device_set=[0, 1])
    assert "engine_both_links4_of_single" in found
    # All of a class alike: nothing else sees it.
    for series in healthy.documents["p2p_engine"]["series"]:
        if series["operation"] == "engine-both" and series["device_set"] != [0, 1]:
            slow_down(series, 0.5)
    names = {one.metric.name for one in healthy.failures()}
    assert names and all(name.endswith("_of_single") for name in names)


def test_pairs_at_once_may_share_a_link_and_no_more(healthy):
    found = slow(healthy, "mpi_pairs", 0.7, role="share", ranks=[0, 1])
    assert "bandwidth_together_links4_of_single" in found


def test_a_collective_that_is_stuck_is_seen(healthy):
    found = slow(healthy, "mpi_collectives", 4.0, operation="bcast")
    assert "bcast_8" in found and "bcast_2" not in found


def test_no_drawn_session_of_one_node_misses_a_rule(session):
    rng = Random(1)
    factors = drawn_sessions.factors(rng, session.documents)
    for _ in range(20):
        session.draw(rng, factors)
        assert [one.metric.name for one in session.failures()] == []


def test_the_page_has_every_metric_that_compares_members(session):
    text = PAGE.read_text()
    block = text.split("<!-- drawn sessions -->")[1].split("<!-- end of drawn sessions -->")[0]
    rows = {
        (check, metric, limit)
        for check, metrics, limit in re.findall(
            r"^\| (\w+) \| ([\w, ]+) \| -([\d.]+) %", block, re.M
        )
        for metric in metrics.split(", ")
    }
    judged = [one for one in session.judged if isinstance(one.metric, relative.PeerRatio)]
    here = {(one.check, one.metric.name, f"{100 - one.limits[0]:.3g}") for one in judged}
    assert rows == here


def test_a_collective_is_held_against_the_slowest_link_of_its_devices(session):
    rules = {one.metric.name: one.metric.rule for one in session.judged}
    # Two devices of a package have four links, and among all eight some pairs have one.
    for name, peak in (("bcast_2", 200), ("bcast_8", 50)):
        assert f"its bytes over {peak} GB/s, the peak of its slowest link" in rules[name].why


def test_a_reference_that_a_file_states_comes_before_the_rule(tmp_path):
    content = in_plain_form(References(ROOT / "reference_values"), "stream_local", "lumi")
    content["stream_local"]["lumi"]["triad_alike"] = [100, -0.2, None, "%"]
    (tmp_path / "stream.yaml").write_text(json.dumps(content))
    with site_checks.set_up("lumi:gpu", [ROOT / "reframe_checks" / "stream"], tmp_path) as checks:
        [check] = [one for one in checks if type(one).__name__ == "stream_local"]
    assert list(check.entries["triad_alike"]) == [100, -0.2, None, "%"]
    assert "triad_alike" not in check.rules_used and "copy_alike" in check.rules_used
