"""Every number of reference_values is followed to the records that it comes from."""

from __future__ import annotations

import functools
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fabricheck.node import load

FOLDER = Path(__file__).resolve().parents[2] / "reference_values"


@functools.cache
def content(name: str) -> dict:
    return yaml.safe_load((FOLDER / name).read_text())


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


def origin_of(file: str, check: str, partition: str, metric: str) -> dict:
    """Return where a metric's value is from: by its check and stem where checks differ in it."""
    stated = content(file)["x-provenance"][partition]
    stem = REDUCED.sub("", metric)
    for key in (f"{check}.{metric}", f"{check}.{stem}", metric):
        if key in stated:
            return stated[key]
    return stated[stem]


def follow(file: str, check: str, partition: str, metric: str) -> float:
    """Compute the value of a reference from its provenance, in the unit of the records."""
    origin = origin_of(file, check, partition, metric)
    assert origin["kind"] in ("published", "derived")
    values = [RECORDS[one].get("value_si", RECORDS[one]["value"])
              for one in record_ids(origin, partition)]  # fmt: skip
    return STATISTICS[origin["statistic"]](values) * origin.get("factor", 1.0)


def test_there_are_references_to_follow():
    assert len(CASES) > 50


@pytest.mark.parametrize(("file", "check", "partition", "metric"), CASES)
def test_a_reference_is_what_its_records_say(file, check, partition, metric):
    value, *_, unit = content(file)[check][partition][metric]
    if unit == "%":
        assert value == 100  # the part of itself: a definition, which needs no record
        return
    assert follow(file, check, partition, metric) == pytest.approx(value, rel=1e-3)


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
