"""A whole session on two H200, as recorded and moved since: found, read anew, and believed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fabricheck.core.models import read_model
from fabricheck.references.calibrated import read
from fabricheck.references.stated import References
from fabricheck.results.document import load
from fabricheck.results.folder import ResultsFolder, documents_of
from fabricheck.rfm.metrics import Metric
from fabricheck.tools import benchmarks

# Large documents, whose validation tracing would double.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "outputs" / "h200" / "session-x2"
REFERENCES = ROOT / "reference_values"
PARTITION = "h200:x2"
CASES = {case.name: case for case in ResultsFolder(FOLDER).latest().cases}
SKIPPED = {
    "pingpong_in_order",
    "pingpong_half_right",
    "pingpong_half_rotated",
    "pingpong_shared_domain",
    "rccl_scaling",
    "best_devices",
}
#: Checks that run another tool, with the number of its launches.
TOOLS = {
    "osu_all_pairs": 4,
    "osu_collectives": 2,
    "osu_device_0": 4,
    "rccl_collectives": 5,
    "rccl_scan": 5,
}


@pytest.fixture
def said(command, monkeypatch):
    """Return a function that calls a command on the session; of all it writes the words."""
    monkeypatch.setenv("FABRICHECK_RESULTS", str(FOLDER))

    def call(*arguments: str, code: int = 0) -> str:
        result = command(*arguments, code=code)
        return result.words

    return call


def document_of(check: str) -> Path:
    path = CASES[check].document_path
    assert path is not None
    return path


def values() -> dict[tuple[str, str], float]:
    """Return what ReFrame recorded, by check and metric."""
    return {
        (name, metric): value
        for name, case in CASES.items()
        for metric, (value, _) in case.values.items()
    }


# It is found where it lies now


def test_every_document_is_found_though_the_session_was_moved():
    folder = ResultsFolder(FOLDER)
    session = folder.latest()
    assert (session.passed, session.skipped, session.failed) == (21, 6, 0)
    assert {case.name for case in session.cases if case.skipped} == SKIPPED
    recorded = json.loads(session.report.read_text())["session_info"]
    stamp = Path(recorded["prefix_output"]).name
    entries = list(documents_of(session))
    assert len(entries) == 21
    for entry in entries:
        assert entry.problem is None
        place = FOLDER / "output" / stamp / "h200" / "x2" / "cuda" / entry.case.name
        assert entry.path == place / "result.json"
    assert folder.unreported_paths() == []


def test_list(said):
    assert "run-0 " in said("results", "list")
    (row,) = json.loads(said("results", "list", "--json"))["sessions"]
    assert (row["partitions"], row["clock"]) == ([PARTITION], ["measured"])
    assert [row[name] for name in ("checks", "passed", "skipped", "failed")] == [27, 21, 6, 0]
    assert row["documents"] == 21


def test_show(said):
    text = said("results", "show")
    assert "27 checks, 21 passed, 0 failed, 6 skipped" in text
    assert f"p2p_kernel @{PARTITION} (pass): p2p 0.1.0 on vm, runtime cuda, 2 devices" in text
    assert "clock measured" in text and "simulated" not in text
    assert "rank 1 on vm: cores 16, NUMA domain 0, device 1 (0000:00:07.0)" in text
    assert "E8 read peer-device 640 MiB 2 375 0.034 % verified" in text
    every = said("results", "show", "--all")
    assert "read 0 to 1 peer 0 -> device 640 MiB 1024 375.07 " in every
    # Of two ranks on one device each is by itself: their shares have no sum.
    for rank, median in ((0, "27.595"), (1, "29.565")):
        assert f"h2d rank {rank}, device 0 pinned N0 -> device 320 MiB - {median}" in every


def test_validate(said):
    text = said("results", "validate")
    assert text.count(": valid (") == text.count("measured, outcome good).") == 21
    assert "topology, no differences from the node model" in text


def test_coverage(said):
    rows = {
        row["experiment"]: row
        for row in json.loads(said("results", "coverage", "--json"))["experiments"]
    }
    assert len(rows) == 17
    measured = {name for name, row in rows.items() if any(one["passed"] for one in row["ran"])}
    assert rows.keys() - measured == {"E4", "E14", "E16", "E17"}
    text = said("results", "coverage")
    here = f"not testable here ({PARTITION}): "
    for sentence in (
        "13 of 17 experiments have results in this session.",
        f"E4 NUMA domain x device matrix {here}all of its cores are in one NUMA domain",
        f"E14 best k devices {here}best_devices: there is no choice where all devices are",
        f"12 series, 1 check (1 passed); {here}zero-copy of managed memory: its pages migrate",
        f"348 series, 7 checks (3 passed, 4 skipped); {here}pingpong_in_order, pingpong_half_right",
        f"{here}with copy engines disabled, as its engines cannot be disabled E8",
        (
            f"{here}allgather, allreduce, reduce, reduce_scatter: left out, as the partition's MPI "
            "does not support"
        ),
        f"by the cuda runtime: 533 series, 3 checks (2 passed, 1 skipped); {here}rccl_scaling: "
        "there is no set between 2 and all of 2 devices",
    ):
        assert sentence in text


# Its values are those of its samples and of the tools


@pytest.mark.parametrize(("check", "launches"), TOOLS.items())
def test_outputs_of_tools_give_the_documents_beside_them_again(check, launches):
    document = load(document_of(check))
    folder = document_of(check).parent
    asked = read_model(folder / "plan.json", benchmarks.Plan)
    facts = load(folder / benchmarks.FACTS)
    assert len(asked.launches) == launches
    assert {one.name for one in asked.launches} | {"facts"} == {
        file.stem for file in folder.glob("*.out")
    }
    found = []
    for one in asked.launches:
        text = (folder / f"{one.name}.out").read_text()
        found += asked.benchmark.read(asked, one, text, facts).series
    assert found and found == document["series"]


@pytest.mark.parametrize(
    ("check", "file", "row", "where", "median"),
    [
        ("osu_all_pairs", "osu_bw-0-1", "\n67108864           386528.77\n",
         {"operation": "bandwidth", "device_set": [0, 1], "bytes": 64 << 20}, 386.52877),
        ("rccl_collectives", "all_reduce-0-1", "  14.63   71.70   71.70       0",
         {"operation": "allreduce", "in_place": True, "unit": "GB/s"}, 71.7),
    ],
)  # fmt: skip
def test_a_row_of_a_tool_is_in_the_document(check, file, row, where, median):
    assert row in (document_of(check).parent / f"{file}.out").read_text()
    found = [
        one["median"]
        for one in load(document_of(check))["series"]
        if all(one[name] == value for name, value in where.items())
    ]
    assert found == [median]


def metrics(check: str) -> dict[str, tuple[dict[str, Any], tuple[str, ...]]]:
    """Return by the stem of a metric's name which series it is made of, told apart by what."""
    if check == "p2p_kernel":
        return {f"{one}_switch18": ({"operation": one, "role": "single"}, ("device_set",))
                for one in ("read", "write", "copy")}  # fmt: skip
    if check == "stream_local":
        return {one: ({"operation": one, "role": "single"}, ("device",))
                for one in ("copy", "scale", "add", "triad")}  # fmt: skip
    return {
        f"{one}_{memory}_near": (
            {"operation": one, "role": role, f"{side}.memory": f"host-{memory}"},
            ("device_set",),
        )
        for one, side, role in (
            ("h2d", "source", "single"),
            ("d2h", "destination", "single"),
            ("both", "source", "sum"),
        )
        for memory in ("pinned", "pageable")
    }


@pytest.mark.parametrize(
    ("check", "population"),
    [
        ("p2p_kernel", {"device_set": [[0, 1], [1, 0]]}),
        ("stream_local", {"device": [0, 1]}),
        ("memcpy_near", {"device_set": [[0], [1]]}),
    ],
)
def test_metrics_made_anew_are_those_of_the_report(check, population):
    document = load(document_of(check))
    found = {
        f"{stem}_{reduce}": Metric(f"{stem}_{reduce}", where, over, reduce)
        .figure(document, population)
        .value
        for stem, (where, over) in metrics(check).items()
        for reduce in ("worst", "median")
    }
    assert found == {metric: value for metric, (value, _) in CASES[check].values.items()}


# Beside the references. This is one of the five sessions that they were made of, so this says that
# they let pass what they came from, and nothing of any other node.


def today(check, metric):
    """Return the check with a metric: in this session memcpy_near had pageable memory, too."""
    return "memcpy_near_pageable" if metric in PAGEABLE else check


#: The metrics of that memory.
PAGEABLE = {
    f"{way}_pageable_near_{reduce}"
    for way in ("h2d", "d2h", "both")
    for reduce in ("worst", "median")
}


def test_every_value_is_within_its_reference():
    found = References(REFERENCES)
    entries = {
        (check, metric): entry
        for check in found.file_of
        for metric, entry in found.entries(check, PARTITION).items()
    }
    missed, required = [], 0
    for (check, metric), value in values().items():
        key = (today(check, metric), metric)
        reference, lower, upper, _ = entries[key]
        required += (lower, upper) != (None, None)
        least = -float("inf") if lower is None else reference * (1 + lower)
        most = float("inf") if upper is None else reference * (1 + upper)
        if not least <= value <= most:
            missed.append((*key, value))
    assert missed == []
    assert required > 40


def test_the_calibration_has_its_values():
    calibrated = read(REFERENCES / "calibrations" / "h200-x2.yaml")
    uuid = ResultsFolder(FOLDER).latest().uuid
    (number,) = [one.number for one in calibrated.sessions if one.uuid == uuid]
    recorded = {
        (check, name): metric.values[number]
        for check, of_check in calibrated.checks.items()
        for name, metric in of_check.items()
        if number in metric.values
    }
    assert recorded == {(today(check, name), name): one for (check, name), one in values().items()}


def test_one_session_is_too_few_to_calibrate(command, tmp_path, wording):
    references = shutil.copytree(REFERENCES, tmp_path / "references")
    before = {file: file.read_bytes() for file in references.rglob("*") if file.is_file()}
    asked = ("limits", "calibrate", str(FOLDER), "--system", PARTITION, "--output", str(references))
    refused = command(*asked, code=4).stderr
    assert all(f"{name} @{PARTITION} was skipped" in refused for name in SKIPPED)
    wording(refused)
    # Its record has the metrics of a check that this session ran under another name.
    (references / "calibrations" / "h200-x2.yaml").unlink()
    before.pop(references / "calibrations" / "h200-x2.yaml")
    reported = command(*asked, "--report-only")
    session = reported.stdout.partition("session 1: ")[2]
    assert session.startswith("2026-11-21T22:52:50Z, campaign 1, devices A (GPU-2e87df46")
    lines = reported.stderr.splitlines()
    # Each metric has such a line as this one.
    wording(each for each in lines if "report only" not in each or "p2p_kernel read" in each)
    assert {file: file.read_bytes() for file in before} == before
