"""Sessions of host-device copies and managed memory with the real programs (E2, E3, E4, E5)."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from text_edit import edit

from fabricheck.node import node_directory
from fabricheck.results.document import load as load_document

pytestmark = pytest.mark.slow

PARTITION = "local:sim-mi250x"
NODE = "of node mi250x \\(simulated\\)"


def session(suite, *checks, overlay=None, system=PARTITION):
    suite.topics = ("managed", "memcpy", "stream")
    chosen = [part for check in checks for part in ("-n", check)]
    changed = ["-S", f"overlay={node_directory() / 'overlays' / overlay}.yaml"] if overlay else []
    return suite(f"--system={system}", "-r", *chosen, *changed)


def values(suite):
    """Return the values of each check."""
    return {
        case["name"]: {key.rsplit(":", 1)[-1]: one[0] for key, one in case["perfvalues"].items()}
        for case in suite.report()["runs"][0]["testcases"]
    }


@pytest.fixture(scope="module")
def healthy(shared_suite):
    """A session on a healthy node: its values and its documents, by check."""
    checks = ("memcpy_near", "memcpy_numa", "memcpy_scan", "managed")
    outcome = session(shared_suite, *checks)
    assert outcome.status == 0, outcome
    assert "Ran 9/9 test case(s)" in outcome
    documents = {file.parent.name: load_document(file)
                 for file in (shared_suite.results / "output").rglob("result.json")}  # fmt: skip
    return values(shared_suite), documents


def test_copies_of_a_healthy_node(healthy):
    found, documents = healthy
    # By the node model: 28.3 by engine, 51.2 of a domain's memory.
    for check, metric, least, most in (
        ("memcpy_near", "h2d_pinned_near_worst", 28.0, 28.4),
        ("memcpy_numa", "h2d_pinned_far_worst", 28.0, 28.4),
        ("memcpy_numa", "d2h_pinned_far_median", 28.0, 28.4),
        ("memcpy_numa", "both_pinned_far_worst", 50.5, 51.3),
        ("memcpy_near_pageable", "h2d_pageable_near_worst", 25.0, 25.6),
        ("memcpy_numa_pageable", "d2h_pageable_far_worst", 25.0, 25.6),
    ):
        assert least < found[check][metric] < most, metric
    copies = ("memcpy_near", "memcpy_near_pageable", "memcpy_numa", "memcpy_numa_pageable")
    series = [one for check in copies for one in documents[check]["series"]]
    assert {one["experiment"] for one in series} == {"E2", "E4"}
    # Four domains; a device near each of them, or all eight.
    ends = Counter(
        one["source"]["memory"]
        for one in series
        if one["experiment"] == "E4" and one["operation"] == "h2d"
    )
    assert ends == {"host-pinned": 16, "host-pageable": 32}


def curve(document, *, operation, source):
    """Return GB/s by size of the series of one operation."""
    return {
        one["bytes"]: one["median"]
        for one in document["series"]
        if (one["operation"], one["source"]["memory"]) == (operation, source)
    }


def test_scans_keep_their_curves(healthy):
    found, documents = healthy
    pinned = curve(documents["memcpy_scan"], operation="h2d", source="host-pinned")
    assert sorted(pinned) == [256 << step for step in range(26)]
    assert pinned[256] < pinned[1 << 20] < pinned[8 << 30] < 28.4
    # The metric is of the largest size: the paper's peaks (25.5 and 2.8 GB/s).
    for check, most in (("managed_scan_zero_copy", 25.6), ("managed_scan_migration", 2.81)):
        read = curve(documents[check], operation="read", source="managed")
        assert sorted(read) == [4096 << step for step in range(19)]
        assert read[4096] < read[1 << 20] < read[1 << 30] < most
        assert found[check]["read"] == read[1 << 30]


def test_managed_memory_of_a_healthy_node(healthy):
    found, documents = healthy
    for check, retries, movements, read in (
        ("managed_zero_copy", False, {"zero-copy"}, 25.5),
        ("managed_migration", True, {"page-migration", "prefetch"}, 2.8),
    ):
        document = documents[check]
        assert {one["managed_memory"]["xnack"] for one in document["devices"]} == {retries}
        assert {one["movement"] for one in document["series"]} == movements
        assert found[check]["read_worst"] == pytest.approx(read, rel=0.05)


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
    found = {name.rpartition("_")[0] for name in values(suite)["managed_migration"]}
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


@pytest.mark.parametrize(("cache", "regime"), [(1 << 20, "memory"), (480 << 20, "cache")])
def test_the_memory_of_this_machine_is_copied(suite, built, command, cache, regime):
    suite.variables["FABRICHECK_HOST_PROGRAMS"] = str(built)
    # Arrays of 16 MiB are far larger than the one cache, whatever the machine has, and within the
    # other: those of a machine that would take minutes. Other tests use the same memory.
    suite.variables["HWLOC_SYNTHETIC"] = f"numa:1 l3:1(size={cache}) core:1 pu:1"
    suite.own_settings("local.py", "host.array_bytes()", "16 << 20")
    site = suite.config / "sites" / "local.py"
    edit(site, "host.arrays_fit_caches()", str(regime == "cache"))
    edit(suite.config / "sites" / "local.py", '"noise_limit": 0.75,', '"noise_limit": 10,')
    # Of two devices alike one does.
    edit(suite.own_checks() / "memcpy" / "memcpy.py", '    devices = "each"', '    devices = "0"')
    outcome = session(suite, "memcpy_near$", system="local:host")
    assert outcome.status == 0, outcome
    (file,) = (suite.results / "output").rglob("result.json")
    document = load_document(file)
    assert document["clock"] == "measured"
    assert {one["experiment"] for one in document["series"]} == {"E2"}
    assert {one["regime"] for one in document["series"]} == {regime}
    assert len(values(suite)["memcpy_near"]) == 6
    report = max(suite.results.glob("reports/*.json"), key=lambda path: path.stat().st_mtime)
    verdict = command("verdict", report, "--output", suite.folder / "v", code=13, json=True)
    assert ("may be the speed of caches" in verdict.stdout) == (regime == "cache")


@pytest.fixture
def built():
    folder = node_directory().parents[1] / "build" / "host" / "bin"
    if not (folder / "memcpy").is_file():
        pytest.fail(f"There is no {folder}/memcpy: build it with 'make build'.")
    return folder
