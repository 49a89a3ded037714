"""Sessions of nodes that faults are drawn in: they are judged as those of real nodes are."""

from __future__ import annotations

from random import Random

import pytest

from diagnosis import sessions

# Tracing would double the time of simulated sessions.
pytestmark = pytest.mark.slow

#: By model checks that only some nodes have.
OWN = {
    "mi250x": {"managed_zero_copy", "memcpy_numa", "pingpong_half_rotated"},
    "mi250": {"managed_zero_copy", "memcpy_numa", "pingpong_half_rotated"},
    "a100-booster": {"memcpy_numa", "pingpong_far", "pingpong_spread"},
    "h200": set(),
}

#: Checks that all of them have.
SHARED = {
    "best_devices", "memcpy_near", "memcpy_near_pageable", "mpi_collectives", "mpi_pairs",
    "p2p_engine", "p2p_kernel", "pingpong_right", "stream_concurrent", "stream_local",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def once():
    with sessions.chosen_once():
        yield


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(model, marks=[] if model in ("mi250x", "h200") else pytest.mark.full)
        for model in sessions.MODELS
    ],
)
def every(request):
    return request.param, sessions.healthy(request.param)


@pytest.fixture
def session(every):
    every[1].reset()
    return every[1]


def index_of(session, check, **fields):
    """Return the place of the one series with these fields."""
    series = session.documents[check]["series"]
    [found] = [
        number
        for number, one in enumerate(series)
        if all(one[name] == value for name, value in fields.items())
    ]
    return check, found


def missed(session):
    return {(one.check, one.metric.name) for one in session.failures()}


def test_a_model_has_the_checks_of_its_partition(every):
    model, session = every
    assert SHARED | OWN[model] <= session.documents.keys()
    others = set().union(*OWN.values()) - OWN[model]
    assert not others & session.documents.keys()
    assert {one.check for one in session.judged} == session.documents.keys()
    assert all(one["node"]["name"] == model for one in session.documents.values())


def test_a_healthy_node_misses_nothing(session):
    assert session.failures() == []


def test_every_metric_has_a_limit_that_a_slower_value_misses(session):
    session.apply(
        {
            (check, number): 0.01
            for check, document in session.documents.items()
            for number in range(len(document["series"]))
        }
    )
    # What compares a node with itself has percent: there all are as slow.
    absolute = {(one.check, one.metric.name) for one in session.judged if one.metric.unit != "%"}
    assert absolute and absolute <= missed(session)


def test_a_slow_memory_is_seen(session):
    series = index_of(session, "stream_local", device=3, operation="triad")
    session.apply({series: 0.8})
    assert missed(session) >= {("stream_local", "triad_worst"), ("stream_local", "triad_alike")}


def test_a_slow_start_of_copies_is_a_longer_time(session):
    # Of the last pair that is measured.
    series = session.documents["p2p_engine"]["series"]
    place = max(number for number, one in enumerate(series) if one["unit"] == "us")
    before = series[place]["median"]
    session.apply({("p2p_engine", place): 0.5})
    assert series[place]["median"] == pytest.approx(2 * before)
    assert any(check == "p2p_engine" for check, _ in missed(session))


def test_a_draw_knows_nothing_of_a_fault(session):
    rng = Random(1)
    healthy = sessions.factors(rng, session.documents)
    session.apply({index_of(session, "stream_local", device=3, operation="triad"): 0.5})
    session.draw(rng, healthy)
    assert session.failures() == []


def test_a_session_is_not_changed_by_another_one():
    first, second = sessions.healthy("h200"), sessions.healthy("h200")
    first.apply({index_of(first, "stream_local", device=3, operation="triad"): 0.5})
    assert first.failures() and not second.failures()


def test_what_a_model_does_not_state_is_assumed():
    platform = sessions.platform_of(sessions.load("h200"))
    links = {one["name"]: one["gbs"] for one in platform["links"]}
    assert links["pageable copies to device1"] == pytest.approx(0.4 * 63.015)
    assert links["page migration of device1"] == pytest.approx(0.1 * 63.015)
    assert links["copy engine of copies device0-device1"] == pytest.approx(0.9 * 450)
    assert links["copy engine of copies device0-domain0"] == pytest.approx(0.9 * 63.015)


def test_a_simulated_fault_changes_what_passes_it():
    memory = {"names": ["memory of device2"], "bandwidth_factor": 0.8}
    found = sessions.simulated("a100-booster", ["stream_local"], resources=[memory])
    assert ("stream_local", "triad_alike") in missed(found)
    gone = sessions.simulated(
        "a100-booster", ["p2p_engine"], links=[{"pair": [0, 1], "gone": True}]
    )
    # The transfers go through another device, which has as much bandwidth and one more hop.
    assert ("p2p_engine", "latency_links4_worst") in missed(gone)
