"""The diagnosis names what was planted and what it cannot tell apart, and nothing healthy."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import factories
from diagnosis import planted, sessions
from diagnosis.planted import Fault
from fabricheck.judge.diagnosis.diagnose import Miss, Session, diagnose
from fabricheck.judge.diagnosis.transfers import transfers
from fabricheck.node import load
from fabricheck.results.series import place_of
from fabricheck.rfm import relative

# Tracing would double the time of the search.
pytestmark = pytest.mark.slow

#: Drawn noise differs by it.
SEED = 7


@pytest.fixture(scope="module", autouse=True)
def once():
    with sessions.chosen_once():
        yield


@pytest.fixture(scope="module")
def mi250x():
    return planted.Node("mi250x")


@pytest.fixture(scope="module")
def h200():
    return planted.Node("h200")


def component(node, name):
    every = (one for kind in node.kinds.values() for one in kind)
    return next(one for one in every if one.component.label == name)


def names(found):
    return [labels(one) for one in found.degraded]


def labels(one):
    return {each.label for each in (one.component, *one.equals)}


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("HBM of device 3", 0.94),
        ("link 0-6", 0.5),
        ("link 0-6, one direction", 0.9),
        ("host link to device 5", 0.8),
        ("DDR of NUMA domain 1", 0.5),
        ("copy engines of device 3", 0.6),
        ("messages of device 2", 0.3),
        ("rank on device 7", 0.7),
        ("latency of copies 1-4", 0.5),
        ("device 4", 0.85),
    ],
)
def test_a_single_fault_is_named_with_its_size(mi250x, name, left):
    session = mi250x.sample(random.Random(SEED), [Fault(component(mi250x, name), left)])
    found = diagnose(session, mi250x.node)
    assert len(found.degraded) == 1 and name in names(found)[0]
    (one,) = found.degraded
    # The best sets of devices are computed of all pairs: not all of it is explained.
    assert found.explained == one.explains >= 0.9 * found.misses == 0.9 * len(session.misses)
    loss = 100 * (1 / left - 1 if name.startswith("latency") else 1 - left)
    assert one.loss_percent == pytest.approx(loss, rel=0.2, abs=2)
    assert one.supporting and name[1:] in found.sentence
    # All of them, each of a check: how many are shown is what shows them to say.
    named = {measured.split()[0] for measured in (*one.supporting, *one.contradicting)}
    assert named <= session.documents.keys()
    assert all(metric.startswith("best_devices") for metric in found.unexplained)


def test_two_faults_are_both_named(mi250x):
    faults = [Fault(component(mi250x, "HBM of device 2"), 0.8),
              Fault(component(mi250x, "link 4-6"), 0.6)]  # fmt: skip
    found = diagnose(mi250x.sample(random.Random(SEED), faults), mi250x.node)
    assert {one.component.label for one in found.degraded} == {"HBM of device 2", "link 4-6"}
    assert all(one.explains < found.misses for one in found.degraded)


def test_two_devices_with_slow_pageable_copies_are_both_named(mi250x):
    """Only what all ways share shows it: one way alone may be farther behind on a healthy node."""
    faults = [Fault(component(mi250x, f"pageable copies of device {one}"), 0.8) for one in (2, 5)]
    found = diagnose(mi250x.sample(random.Random(SEED), faults), mi250x.node)
    assert {one.component for one in found.degraded} == {one.component for one in faults}


@pytest.mark.full
def test_a_link_that_is_slow_at_some_sizes_is_named_with_them():
    """Messages of 16 MiB over it and over detours are slow, copies and kernels of 1 GiB are not."""
    resources = [{"names": ["link 0-6", "link 6-0"], "bandwidth_factor": 0.1,
                  "bytes": [1 << 20, 16 << 20]}]  # fmt: skip
    checks = ("mpi_pairs", "mpi_collectives", "p2p_engine", "p2p_kernel")
    session = planted.judged(sessions.simulated("mi250x", checks, resources=resources))
    (one,) = diagnose(session, load("mi250x")).degraded
    assert labels(one) == {"link 0-6"}
    assert (one.sizes, one.loss) == ((1 << 20, 16 << 20), "89 % only at 1 MiB to 16 MiB")


@pytest.mark.parametrize("checks", [("mpi_pairs",), ("mpi_pairs", "p2p_engine", "p2p_kernel")])
def test_a_link_that_is_slow_at_all_measured_sizes_is_named_without(mi250x, checks):
    faults = [Fault(component(mi250x, "link 0-6"), 0.1)]
    session = only(mi250x.sample(random.Random(SEED), faults), *checks)
    (one,) = diagnose(session, mi250x.node).degraded
    assert "link 0-6" in labels(one) and one.sizes is None


def test_a_node_whose_model_states_peaks_alone_is_diagnosed(h200):
    faults = [Fault(component(h200, "links from device 3 to the switch"), 0.7)]
    found = diagnose(h200.sample(random.Random(SEED), faults), h200.node)
    assert names(found) == [{"links from device 3 to the switch"}]


@pytest.mark.parametrize("model", ["mi250x", "h200"])
def test_a_healthy_node_has_no_diagnosis(model, request):
    node = request.getfixturevalue(model)
    session = node.sample(random.Random(SEED), [])
    assert not session.misses and diagnose(session, node.node) is None


def test_few_checks_leave_equals_and_a_check_that_would_tell_them_apart(mi250x):
    """Local copies alone do not tell the memory of a device from its compute units."""
    whole = mi250x.sample(random.Random(SEED), [Fault(component(mi250x, "HBM of device 3"), 0.8)])
    few = only(whole, "stream_local")
    (one,) = diagnose(few, mi250x.node).degraded
    told = labels(one)
    assert {"HBM of device 3", "compute units of device 3", "device 3"} <= told
    assert "p2p_kernel" in one.next
    (more,) = diagnose(only(whole, "stream_local", "p2p_kernel"), mi250x.node).degraded
    assert labels(more) == {"HBM of device 3"}


def only(session, *checks):
    return Session(
        {check: session.documents[check] for check in checks},
        [one for one in session.metrics if one.check_row.check in checks],
        [one for one in session.misses if one.check in checks],
    )


def test_what_nothing_explains_is_said(mi250x):
    healthy = mi250x.sample(random.Random(SEED), [])
    wrong = Miss("stream_local", "no_such_metric")
    found = diagnose(replace(healthy, misses=[wrong]), mi250x.node)
    assert found.degraded == [] and found.unexplained == ["stream_local no_such_metric"]


def test_without_a_node_model_devices_and_pairs_are_named(mi250x):
    faults = [Fault(component(mi250x, "HBM of device 3"), 0.8)]
    whole = mi250x.sample(random.Random(SEED), faults)
    found = diagnose(only(whole, "stream_local"), None)
    assert names(found) == [{"device 3"}]
    assert "There is no node model" in found.lacking[0]


def test_wrong_data_is_lacking(mi250x):
    session = mi250x.sample(random.Random(SEED), [Fault(component(mi250x, "link 0-1"), 0.5)])
    series = session.documents["p2p_kernel"]["series"][0]
    kept, series["verification"] = series["verification"], series["verification"] | {"errors": 3}
    try:
        found = diagnose(session, mi250x.node)
    finally:
        series["verification"] = kept
    assert names(found) == [{"link 0-1"}]
    assert any("Wrong data in p2p_kernel" in one for one in found.lacking)


def test_differences_from_the_model_are_explained_without_a_measurement(mi250x):
    told = factories.difference("Pair 0-6: 2 links in mi250x, no direct link.", 0, 6, found=0)
    document = mi250x.session.documents["stream_local"] | {"series": [], "differences": [told]}
    misses = [Miss("node_topology", "differences", sentence=told["sentence"], place=place_of(told))]
    found = diagnose(Session({"node_topology": document}, [], misses), mi250x.node)
    assert names(found) == [{"link 0-6 gone"}]


def test_a_link_that_the_tools_see_is_not_gone(mi250x):
    """The tools of the node say that nothing differs: what is slow there is still there."""
    session = mi250x.sample(random.Random(SEED), [Fault(component(mi250x, "link 0-6"), 0.3)])
    document = mi250x.session.documents["stream_local"] | {"series": [], "differences": []}
    told = Session(
        {**session.documents, "node_topology": document}, session.metrics, session.misses
    )
    assert names(diagnose(told, mi250x.node)) == [{"link 0-6"}]


def test_two_slow_devices_of_four_are_not_taken_for_all_of_them():
    """Of two slow ones the likeliest single explanation is that all of them are."""
    node = planted.Node("a100-booster")
    faults = [
        Fault(component(node, f"compute units of device {number}"), left)
        for number, left in ((1, 0.08), (2, 0.114))
    ]
    found = planted.diagnosis(node, node.sample(random.Random(SEED), faults))
    assert {one.component for one in found.degraded} == {one.component for one in faults}


def test_a_measurement_has_the_spread_of_the_limit_that_judges_it(mi250x):
    """What healthy members differ by is one fact for limits and for the diagnosis."""
    kinds = {id(one.series): one.kind for one in mi250x.passes.values()}
    compared = [one for one in mi250x.session.judged if isinstance(one.metric, relative.PeerRatio)]
    told = {
        (relative.kind_of_metric(one.metric.compared, mi250x.node), kinds[id(series)])
        for one in compared
        for series in one.metric.figure(mi250x.session.documents[one.check], one.population).series
        if id(series) in kinds
    }
    assert {"kernel_over_several_links", "host_link"} <= {kind for kind, _ in told}
    assert all(limit == own for limit, own in told)


def test_few_blocks_are_no_evidence_of_a_path():
    pair = {
        "experiment": "E8", "operation": "write", "direction": "one-way", "device_set": [0, 1],
        "destination": factories.place("peer", 1),
    }  # fmt: skip
    few = factories.series([10.0] * 7, **pair, elements=4, grid=1)
    for series, count in (([few], 0), ([few, factories.series([150.0] * 7, **pair)], 1)):
        found = transfers({"p2p_blocks": factories.document(series=series)}, None)
        assert [one.series.get("grid") for one in found.values()] == [None] * count


def test_kernels_of_several_block_sizes_tell_nothing_of_the_memory(h200):
    """As measured on an H200, where writes by blocks of 64 threads had a third of the rate."""
    fault = Fault(component(h200, "host link of device 1"), 0.6)
    session = h200.sample(random.Random(SEED), [fault])
    session.documents = dict(session.documents) | {
        "stream_variants": factories.document(
            series=[
                factories.series([rate] * 7, operation="write-only", block_size=threads)
                for threads, rate in ((64, 1697.0), (128, 3408.0), (256, 4717.0), (512, 4708.0))
            ]
        )
    }
    assert names(diagnose(session, h200.node)) == [{"host link of device 1"}]


def test_a_diagnosis_that_other_measurements_contradict_is_unsure():
    # Copies of two devices are slow, and of four devices both look like all.
    node = planted.Node("a100-booster")
    slow = [Fault(component(node, "host link of device 1"), 0.53),
            Fault(component(node, "copy engines of device 3"), 0.63)]  # fmt: skip
    found = diagnose(node.sample(random.Random(SEED), slow), node.node)
    assert names(found) == [{"copy engines of all devices"}]
    assert found.unsure and found.doubts == ["contradicted"]
    assert found.sentence.startswith(
        "Unsure, since other measurements contradict it; "
        "perhaps copy engines of all devices are down"
    )


def test_a_diagnosis_of_few_of_the_missed_limits_is_unsure(mi250x):
    session = mi250x.sample(random.Random(SEED), [Fault(component(mi250x, "HBM of device 3"), 0.9)])
    sure = diagnose(session, mi250x.node)
    assert not sure.unsure and sure.doubts == []
    # As many again that no series decided, and two more.
    session.misses += [Miss("rccl", f"metric {number}") for number in range(sure.misses + 2)]
    found = diagnose(session, mi250x.node)
    assert found.doubts == ["unexplained"] and "perhaps HBM of device 3" in found.sentence


def test_two_host_links_that_are_slow_at_some_sizes_only_are_no_sure_diagnosis():
    # The link of two devices is one: only ranks at the same time show it, at their own size.
    turns = [{"names": ["host link to device4", "host link to device5"], "take_turns": True}]
    checks = ("memcpy_near", "memcpy_numa", "pingpong_right")
    session = planted.judged(sessions.simulated("mi250x", checks, resources=turns))
    found = diagnose(session, load("mi250x"))
    assert [one.component.kind for one in found.degraded] == ["host_link", "host_link"]
    assert found.unsure and found.doubts == ["many"]


@pytest.mark.full
def test_a_peak_is_no_level_that_all_devices_stay_behind(mi250x):
    """Floors are a part of a peak, which no healthy node reaches."""
    session = mi250x.sample(random.Random(SEED), [Fault(component(mi250x, "HBM of device 3"), 0.9)])
    expected = names(diagnose(session, mi250x.node))
    worst = [metric for metric in session.metrics if metric.reduce == "worst" and metric.value]
    for is_peak in (True, False):
        session.metrics = [
            replace(
                metric, reference=1.4 * metric.value, least=1.35 * metric.value, most=None,
                record=metric.record.model_copy(update={"is_peak": is_peak}),
            )
            for metric in worst
        ]  # fmt: skip
        assert (names(diagnose(session, mi250x.node)) == expected) is is_peak
