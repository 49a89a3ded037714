"""Every number of reference_values is followed to the records that it comes from."""

from __future__ import annotations

import functools
import re
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fabricheck.calibration import changes, record, rule
from fabricheck.calibration.gathering import gather
from fabricheck.calibration.transfer import independent
from fabricheck.node import load
from repeated_sessions import several

FOLDER = Path(__file__).resolve().parents[2] / "reference_values"


@functools.cache
def content(name: str, folder: Path = FOLDER) -> dict:
    return yaml.safe_load((folder / name).read_text())


@functools.cache
def calibration(name: str, folder: Path = FOLDER) -> record.Record:
    return record.read(folder / name)


RECORDS = {record["id"]: record for record in content("published_values.yaml")["records"]}
#: A metric's stem is its name without how it was reduced.
REDUCED = re.compile(r"_(worst|median|best_block|worst_block)$")
NODES = {"local:sim-mi250x": "mi250x"}
STATISTICS = {"value": lambda values: values[0], "median": statistics.median,
              "mean": statistics.mean, "least": min}  # fmt: skip


def limited() -> Iterator[tuple[str, str, str, str]]:
    """Yield file, check, partition and metric of every reference that requires something."""
    for file in sorted(FOLDER.glob("*.yaml")):
        if file.stem == "published_values" or file.stem.startswith("fidelity"):
            continue
        for check, entry in content(file.name).items():
            if check.startswith("x-"):
                continue
            for partition in entry.keys() - {"$index"}:
                for metric, (value, lower, upper, _) in entry[partition].items():
                    if value != 0 and (lower is not None or upper is not None):
                        yield file.name, check, partition, metric


CASES = sorted(limited())


def record_ids(origin: dict, partition: str) -> list[str]:
    if "class" not in origin:
        return origin.get("records", [])
    classes = load(NODES[partition]).link_classes
    (pairs,) = [pairs for one, pairs in classes.items() if one.name == origin["class"]]
    ordered = [*pairs, *((b, a) for a, b in pairs)]
    (pattern,) = origin["records"]
    return [pattern.format_map({"from": a, "to": b}) for a, b in ordered]


def origin_of(file: str, check: str, partition: str, metric: str, folder: Path = FOLDER) -> dict:
    """Return where a metric's value is from: by its check and stem where checks differ in it.

    A partition that was calibrated says so once.
    """
    stated = content(file, folder)["x-provenance"][partition]
    stem = REDUCED.sub("", metric)
    for key in (f"{check}.{metric}", f"{check}.{stem}", metric):
        if key in stated:
            return stated[key]
    return stated if stated.get("kind") == "calibration" and stem not in stated else stated[stem]


def follow(file: str, check: str, partition: str, metric: str) -> float:
    """Compute the value of a reference from its provenance, in the unit of the records."""
    origin = origin_of(file, check, partition, metric)
    assert origin["kind"] in ("published", "derived")
    values = [RECORDS[one].get("value_si", RECORDS[one]["value"])
              for one in record_ids(origin, partition)]  # fmt: skip
    return STATISTICS[origin["statistic"]](values) * origin.get("factor", 1.0)


def follow_sessions(file: str, check: str, partition: str, metric: str, folder: Path) -> None:
    """Compute an entry from the sessions of its calibration record, statistics included."""
    origin = origin_of(file, check, partition, metric, folder)
    found = calibration(origin["record"], folder)
    assert found.partition == origin.get("measured_on", partition)
    assert found.rule == rule.TEXT
    assert "measured_on" not in origin or independent(check, metric)
    one = found.checks[check][metric]
    occasions = {session.number: session.occasion for session in found.sessions}
    values = list(one.values.values())
    middle = statistics.median(values)
    assert (one.n, one.median, one.min, one.max) == (len(values), middle, min(values), max(values))
    assert one.mad == statistics.median(abs(value - middle) for value in values)
    verdict = rule.judge(values, [occasions[number] for number in one.values], one.unit)
    assert tuple(one.entry) == verdict.entry
    assert tuple(content(file, folder)[check][partition][metric]) == verdict.entry


def test_there_are_references_to_follow():
    assert len(CASES) > 50


@pytest.mark.parametrize(("file", "check", "partition", "metric"), CASES)
def test_a_reference_is_what_its_records_say(file, check, partition, metric):
    if origin_of(file, check, partition, metric)["kind"] == "calibration":
        follow_sessions(file, check, partition, metric, FOLDER)
        return
    value, *_, unit = content(file)[check][partition][metric]
    if unit == "%":
        assert value == 100  # the part of itself: a definition, which needs no record
        return
    assert follow(file, check, partition, metric) == pytest.approx(value, rel=1e-3)


@pytest.fixture
def calibrated(tmp_path):
    """A copy of the references with a calibration of local:host."""
    folder = tmp_path / "references"
    shutil.copytree(FOLDER, folder)
    runs = gather(several(tmp_path, [100.0, 100.5, 99.5, 100.0, 100.2, 99.9]), "local:host")
    made = record.build(runs, "local:host")
    changes.write(changes.propose(made, folder), accept_looser=False)
    return folder


CALIBRATED = ("stream.yaml", "stream_local", "local:host", "copy_worst")


def test_a_calibrated_reference_is_what_its_sessions_say(calibrated):
    assert origin_of(*CALIBRATED, calibrated)["kind"] == "calibration"
    follow_sessions(*CALIBRATED, calibrated)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("stream.yaml", "copy_worst: [100.0, -0.02,", "copy_worst: [99.0, -0.02,"),
        ("stream.yaml", "copy_worst: [100.0, -0.02,", "copy_worst: [100.0, -0.05,"),
        ("calibrations/local-host.yaml", "2: 100.5,", "2: 180.5,"),
        ("calibrations/local-host.yaml", "median: 100.0", "median: 101.0"),
        ("calibrations/local-host.yaml", "partition: local:host", "partition: local:other"),
        ("calibrations/local-host.yaml", "floor (2%", "floor (1%"),
    ],
)
def test_a_number_that_was_changed_by_hand_is_found(calibrated, file, old, new):
    text = (calibrated / file).read_text()
    assert old in text
    (calibrated / file).write_text(text.replace(old, new, 1))
    with pytest.raises(AssertionError):
        follow_sessions(*CALIBRATED, calibrated)


def differences(folder: Path) -> Iterator[str]:
    """Name what the reference files have otherwise than the calibration records give it."""
    stated = {check: entry for file in sorted(folder.glob("*.yaml"))
              for check, entry in content(file.name, folder).items()}  # fmt: skip
    for found in map(record.read, sorted(folder.glob("calibrations/*.yaml"))):
        for check, metrics in found.checks.items():
            present = stated[check].get(found.partition, {})
            for metric, one in metrics.items():
                if one.unit != "count" and present.get(metric) != one.entry:
                    yield f"{check} {metric}"


def test_what_a_calibration_gave_is_in_the_reference_files(calibrated):
    """Also what became report only: an entry that was put there by hand rests on nothing."""
    assert list(differences(FOLDER)) == []
    assert list(differences(calibrated)) == []
    file = calibrated / "calibrations" / "local-host.yaml"
    file.write_text(file.read_text().replace("entry: [100.0, -0.02,", "entry: [100.0, -0.03,"))
    assert list(differences(calibrated)) == ["stream_local copy_worst"]


def test_secondary_records_gate_nothing():
    for file, check, partition, metric in CASES:
        for one in record_ids(origin_of(file, check, partition, metric), partition):
            assert not RECORDS[one].get("secondary"), f"{metric} of {file} rests on {one}"


@pytest.mark.parametrize("name", sorted({file for file, *_ in CASES}))
def test_bounds_have_their_reason(name):
    reasons = content(name)["x-bounds"]
    assert reasons
    assert all(len(reason) > 40 for reason in reasons.values())


FILES = sorted(
    file.name
    for file in FOLDER.glob("*.yaml")
    if file.stem != "published_values" and not file.stem.startswith("fidelity")
)


@pytest.mark.parametrize("name", FILES)
def test_every_partition_says_where_its_references_are_from(name):
    checks = {check: entry for check, entry in content(name).items() if not check.startswith("x-")}
    partitions = {one for entry in checks.values() for one in entry} - {"$index"}
    assert partitions == content(name)["x-provenance"].keys()


def test_what_is_report_only_requires_nothing():
    for file, check, partition, metric in CASES:
        stated = content(file)["x-provenance"][partition]
        assert stated.get("kind") != "report only", f"{check}.{metric} of {partition} in {file}"
