"""Sessions of checks that local:host is not asked for, by real programs on a virtual device."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from text_edit import edit

from fabricheck.core.checkout import ROOT
from fabricheck.results.document import load


@pytest.fixture
def node(suite):
    suite.topics = ("memcpy", "overlap", "variants")
    suite.own_site(Path(__file__).parent / "overlap_site.py")
    suite.variables |= {
        "RFM_SYSTEM": "node",
        "RFM_REFERENCE_PREFIX": str(ROOT / "reference_values"),
        "OVERLAP_PROGRAMS": str(ROOT / "build" / "host" / "bin"),
        # As many blocks as are asked for have a part of it.
        "OVERLAP_BYTES": str(16 << 20),
        # Half a MiB of cache, whatever the machine has, so that small arrays are past it.
        "HWLOC_SYNTHETIC": "numa:1 l3:1(size=524288) core:2 pu:1",
    }
    return suite


@pytest.mark.full
def test_shares_of_the_kernel_and_the_copies(node, wording):
    # Of smaller copies not enough can be queued for a batch in which both start together.
    node.variables["OVERLAP_BYTES"] = str(64 << 20)
    edit(
        node.own_checks() / "overlap" / "overlap.py", '"--series-time", "1"', '"--series-time", "0"'
    )
    outcome = node("-r", "-n", "overlap_host")
    assert outcome.status == 0, outcome.text
    kept = dict(re.findall(r"P: (\w+): ([0-9.]+) %", outcome.text))
    assert sorted(kept) == [
        "compute_beside_engine", "compute_beside_kernel", "engine_beside_compute",
        "kernel_beside_compute",
    ]  # fmt: skip
    assert all(float(value) > 0 for value in kept.values()), kept
    wording(outcome.lines_with("report only"))
    (file,) = (node.results / "output").rglob("overlap_host/result.json")
    document = load(file)
    assert document["complete"]
    assert not any(one["verification"]["errors"] for one in document["series"])


@pytest.mark.slow
def test_where_plain_memory_lies_is_counted(node):
    outcome = node("-r", "-n", "memcpy_unplaced")
    assert outcome.status == 0, outcome.text
    found = dict(re.findall(r"P: (\w+): ([0-9.]+) ", outcome.text))
    assert sorted(found) == [
        "d2h_pinned_unplaced_worst", "h2d_pinned_unplaced_worst", "pages_elsewhere",
    ]  # fmt: skip
    # All memory of a virtual machine is on its one domain, and a device may be attached to none.
    assert float(found["pages_elsewhere"]) in (0, 1)


@pytest.mark.full
def test_blocks_that_fill_the_memory_are_counted(node):
    samples = '("--max-samples", "15", "--series-time", "0.5")'
    few = '("--max-samples", "7", "--series-time", "0")'
    edit(node.own_checks() / "variants" / "variants.py", samples, few)
    outcome = node("-r", "-n", "stream_blocks")
    assert outcome.status == 0, outcome.text
    found = {
        name: float(value) for name, value in re.findall(r"P: (\w+): ([0-9.]+) ", outcome.text)
    }
    assert sorted(found) == [
        "copy_best", "copy_blocks", "copy_one_block",
        "read_only_best", "read_only_blocks", "read_only_one_block",
    ]  # fmt: skip
    for kernel in ("copy", "read_only"):
        assert found[f"{kernel}_best"] >= found[f"{kernel}_one_block"]
        assert found[f"{kernel}_blocks"] in (1, 2, 4, 8, 16, 32, 64, 128, 256)


@pytest.mark.slow
def test_variants_of_loads_are_refused_by_a_processor(node, wording):
    outcome = node("-r", "-n", "stream_variants")
    assert outcome.status == 1
    wording(outcome.reasons)
