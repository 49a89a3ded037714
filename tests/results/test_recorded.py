"""Documents that real devices gave are still read, and still say what was seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabricheck.beside import table
from fabricheck.results.document import load
from fabricheck.tools.topology.texts import parse_files

H200 = Path(__file__).resolve().parents[1] / "outputs" / "h200"
#: Files that are no documents: what rounds and checks asked for, values of sessions, and ReFrame's
#: reports.
OTHERS = {table.FILE, "plan.json", "metrics.json", "node-sessions-x2.json", "sessions.json"}
DOCUMENTS = [
    file
    for file in sorted(H200.rglob("*.json"))
    if file.name not in OTHERS and not file.parent.name.startswith("reports")
]

#: How runs ended that did not end well, by the last word of the file's name.
ENDS = {
    "flip": ("wrong-data", True),
    "unwritten": ("wrong-data", True),
    "fault": ("wrong-data", True),
    "trial": ("unsupported", False),
    "crashed": ("software", False),
    "died": ("software", False),
    "hung": ("time-limit", False),
}


def test_there_are_documents():
    assert len(DOCUMENTS) >= 15


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_recorded_document_is_valid(file):
    document = load(file)
    status, complete = ENDS.get(file.stem.rpartition("_")[2], ("good", True))
    assert (document["outcome"]["status"], document["complete"]) == (status, complete)
    assert document["clock"] == "measured"
    assert document["program"]["runtime"] == "cuda"
    # nvidia-smi, as the comparison with the node model asks it, tells no name.
    name = "nvidia device" if document["program"]["name"] == "topology" else "NVIDIA H200"
    assert {device["name"] for device in document["devices"]} == {name}


def medians(file, **where):
    return [
        one["median"]
        for one in load(H200 / file)["series"]
        if all(one[name] == value for name, value in where.items())
    ]


def test_local_copies_were_above_what_nvbandwidth_gave_in_that_session():
    (copy,) = medians("four-devices/stream_scan.json", operation="copy", bytes=512 << 20)
    assert copy / 2 > 2085


@pytest.mark.parametrize(("operation", "nvbandwidth"), [("h2d", 55.51), ("d2h", 55.39)])
def test_copies_of_pinned_memory_were_within_1_percent_of_nvbandwidth_in_that_session(
    operation, nvbandwidth
):
    # Medians of its five rounds: tests/outputs/h200/README.md.
    for number in range(1, 6):
        (ours,) = medians(f"one-device/memcpy_round_{number}.json", operation=operation)
        assert abs(ours / nvbandwidth - 1) < 0.01


@pytest.mark.parametrize(("name", "checks"), [("smoke", 3), ("node", 4), ("full", 10)])
def test_sessions_on_one_device_passed_near_the_values_of_two(name, checks):
    """As docs/evidence/h200.md says."""
    report = json.loads((H200 / "reports-x1" / f"{name}.json").read_text())
    (run,) = report["runs"]
    assert [case["result"] for case in run["testcases"]] == ["pass"] * checks
    off = {
        metric.rpartition(":")[2]: value[0] / value[1]
        for case in run["testcases"]
        for metric, value in case["perfvalues"].items()
        if value[1] and not metric.endswith("_of_single")
    }
    both = off.pop("both_pinned_near_median", None)
    assert both is None or 1.016 < both < 1.021
    assert len(off) >= 12 and all(abs(ratio - 1) < 0.003 for ratio in off.values()), off


def test_checks_of_variants_on_one_device():
    """As docs/evidence/h200.md says."""
    report = json.loads((H200 / "reports-x1/full-later.json").read_text())
    (run,) = report["runs"]
    assert [case["result"] for case in run["testcases"]] == ["pass"] * 12
    variants, blocks = (
        {metric.rpartition(":")[2]: found[0] for metric, found in case["perfvalues"].items()}
        for name in ("stream_variants", "stream_blocks")
        for case in run["testcases"]
        if case["name"] == name
    )
    for kernel, rate in (("copy", 4278), ("triad", 4414)):
        assert round(variants[f"{kernel}_default"]) == round(variants[f"{kernel}_best"]) == rate
    assert round(variants["read_only_default"]) == 4328
    assert round(variants["read_only_best"]) == 4557
    assert round(blocks["copy_one_block"], 1) == 97.5
    assert (blocks["copy_blocks"], blocks["read_only_blocks"]) == (128, 64)


def test_managed_memory_was_measured_in_every_way():
    series = load(H200 / "one-device/managed.json")["series"]
    ways = {(one["movement"], one["operation"]) for one in series}
    assert {movement for movement, _ in ways} == {"page-migration", "prefetch", "zero-copy"}
    assert len(ways) == 8
    assert all(one["verification"]["bytes_checked"] == one["bytes"] for one in series)


def test_the_intervals_were_narrow():
    large = [one for one in load(H200 / "four-devices/p2p_all.json")["series"]
             if one["unit"] == "GB/s"]  # fmt: skip
    assert len(large) > 12 * 4
    assert max(one["relative_half_width"] for one in large) < 0.01


def test_every_pair_of_a_switch_is_the_same():
    engine = medians("four-devices/p2p_all.json", operation="engine", role="single")
    assert len(engine) == 12
    assert max(engine) / min(engine) < 1.002


def test_the_flipped_bit_is_in_the_document():
    (series,) = load(H200 / "four-devices/p2p_fault.json")["series"]
    assert series["verification"]["errors"] == 1
    assert series["verification"]["first_mismatch"]["offset_bytes"] == 4096


def test_what_nvidia_smi_said_is_read():
    folder = H200 / "four-devices"
    said = parse_files([folder / "nvidia-smi-topo-m.txt", folder / "nvidia-smi-query-gpu.csv"])
    assert said.count == 4
    assert said.links == tuple(tuple(0 if a == b else 18 for b in range(4)) for a in range(4))
    assert said.pci == tuple(f"0000:00:{slot:02x}.0" for slot in (6, 7, 8, 9))


def test_the_default_is_the_fastest_variant_of_each_kernel_of_stream():
    """As docs/evidence/h200.md says."""
    series = load(H200 / "one-device/stream_variants.json")["series"]
    for kernel in ("copy", "scale", "add", "triad"):
        rates = {
            (one["elements"], one["loads"]): one["median"]
            for one in series
            if one["operation"] == kernel
        }
        assert len(rates) == 8 and max(rates, key=rates.get) == (1, "plain")
