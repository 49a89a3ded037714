"""Sessions of host-device copies and managed memory with the real programs (E2, E3, E4, E5)."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from fabricheck.node import node_directory
from fabricheck.results.document import load as load_document

pytestmark = pytest.mark.slow

PARTITION = "local:sim-mi250x"
NODE = "of node mi250x \\(simulated\\)"


def session(suite, *checks, overlay=None, system=PARTITION):
    chosen = [part for check in checks for part in ("-n", check)]
    changed = ["-S", f"overlay={node_directory() / 'overlays' / overlay}.yaml"] if overlay else []
    return suite(f"--system={system}", "-r", *chosen, *changed)


def documents(suite, kind="output"):
    return [load_document(file) for file in (suite.results / kind).rglob("result.json")]


def values(outcome):
    return {name: float(value) for name, value in re.findall(r"P: (\w+): ([0-9.]+) ", outcome.text)}


def test_copies_of_a_healthy_node(suite):
    outcome = session(suite, "memcpy_near", "memcpy_numa")
    assert outcome.status == 0, outcome
    assert "Ran 4/4 test case(s)" in outcome
    found = values(outcome)
    # By the node model: 28.3 by engine, 51.2 of a domain's memory.
    for metric, least, most in (
        ("h2d_pinned_near_worst", 28.0, 28.4),
        ("h2d_pinned_far_worst", 28.0, 28.4),
        ("d2h_pinned_far_median", 28.0, 28.4),
        ("both_pinned_far_worst", 50.5, 51.3),
        ("h2d_pageable_near_worst", 25.0, 25.6),
        ("d2h_pageable_far_worst", 25.0, 25.6),
    ):
        assert least < found[metric] < most, metric
    series = [one for document in documents(suite) for one in document["series"]]
    assert {one["experiment"] for one in series} == {"E2", "E4"}
    # Four domains; a device near each of them, or all eight.
    ends = Counter(
        one["source"]["memory"]
        for one in series
        if one["experiment"] == "E4" and one["operation"] == "h2d"
    )
    assert ends == {"host-pinned": 16, "host-pageable": 32}


def curve(documents, *, operation, source, movement=None):
    """Return GB/s by size of the series of one operation."""
    return {
        one["bytes"]: one["median"]
        for document in documents
        for one in document["series"]
        if (one["operation"], one["source"]["memory"]) == (operation, source)
        and one.get("movement") == movement
    }


def test_scans_keep_their_curves(suite):
    outcome = session(suite, "memcpy_scan", "managed_scan")
    assert outcome.status == 0, outcome
    assert "Ran 3/3 test case(s)" in outcome
    found = documents(suite)
    pinned = curve(found, operation="h2d", source="host-pinned")
    assert sorted(pinned) == [256 << step for step in range(26)]
    assert pinned[256] < pinned[1 << 20] < pinned[8 << 30] < 28.4
    # The metric is of the largest size: the paper's peaks (25.5 and 2.8 GB/s).
    for movement, most in (("zero-copy", 25.6), ("page-migration", 2.81)):
        read = curve(found, operation="read", source="managed", movement=movement)
        assert sorted(read) == [4096 << step for step in range(19)]
        assert read[4096] < read[1 << 20] < read[1 << 30] < most
        assert f"P: read: {read[1 << 30]:#.5g} GB/s" in outcome


def test_managed_memory_of_a_healthy_node(suite):
    outcome = session(suite, "managed_zero_copy", "managed_migration")
    assert outcome.status == 0, outcome
    movements = {}
    for document in documents(suite):
        retries = {device["managed_memory"]["xnack"] for device in document["devices"]}
        movements |= {xnack: {one["movement"] for one in document["series"]} for xnack in retries}
    assert movements == {False: {"zero-copy"}, True: {"page-migration", "prefetch"}}
    reads = re.findall(r"P: read_worst: ([0-9.]+) ", outcome.text)
    assert sorted(map(float, reads)) == [
        pytest.approx(2.8, rel=0.05),
        pytest.approx(25.5, rel=0.05),
    ]


@pytest.mark.parametrize(
    ("driver", "lost", "why"),
    [
        ("coherent-devices", {"host_read", "host_write"},
         "host-read on device 7: its pages stayed on the device and were used over the link"),
        ("idle-prefetch", {"prefetch_h2d", "prefetch_d2h"},
         "on device 7 is not measured: hipMemPrefetchAsync moved nothing"),
    ],
)  # fmt: skip
def test_a_node_whose_driver_moves_fewer_pages_is_healthy(suite, driver, lost, why):
    suite.variables["FABRICHECK_SIM_MANAGED"] = driver
    outcome = session(suite, "managed_migration")
    assert outcome.status == 0, outcome
    every = {"read", "write", "host_read", "host_write", "prefetch_h2d", "prefetch_d2h"}
    found = {name.rpartition("_")[0] for name in values(outcome)}
    assert found == every - lost
    assert "managed_migration: no value for" in outcome
    assert why in outcome


def test_a_domain_with_half_its_memory_is_named(suite):
    outcome = session(
        suite, "memcpy_numa$", "stream_concurrent$", overlay="domain-2-half-memory"
    )  # fmt: skip
    assert outcome.status == 1
    assert "2 failure(s)" in outcome
    said = " ".join(outcome.text.split())
    for sentence in (
        rf"Metric h2d_pinned_near_worst: device 6 and NUMA domain 2 {NODE} measured 25\.\d+",
        rf"Metric both_pinned_far_worst: devices? .*[024] and NUMA domain 2 {NODE} measured 25\.",
        rf"Metric copy_four_spread_share: device 6 and NUMA domain 2 {NODE} measured 25\.\d+ GB/s",
    ):
        assert re.search(sentence, said), outcome


def test_the_memory_of_this_machine_is_copied(suite, built):
    suite.variables["FABRICHECK_HOST_PROGRAMS"] = str(built)
    # Other tests use the same memory.
    suite.own_settings("local.py", '"noise_limit": 0.75,', '"noise_limit": 10,')
    # Of two devices alike one does: where caches are large, so are the arrays beyond them.
    check = suite.own_checks() / "memcpy" / "memcpy.py"
    text = check.read_text()
    assert text.count('    devices = "each"') == 1
    check.write_text(text.replace('    devices = "each"', '    devices = "0"'))
    outcome = session(suite, "memcpy_near$", system="local:host")
    assert outcome.status == 0, outcome
    (document,) = documents(suite)
    assert document["clock"] == "measured"
    assert {one["experiment"] for one in document["series"]} == {"E2"}


@pytest.fixture
def built():
    folder = node_directory().parents[1] / "build" / "host" / "bin"
    if not (folder / "memcpy").is_file():
        pytest.fail(f"There is no {folder}/memcpy: build it with 'make build'.")
    return folder
