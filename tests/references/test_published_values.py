"""What the published data set says of itself: units that were converted, inferred or computed."""

from __future__ import annotations

import pytest

from fabricheck.core import yaml_files
from fabricheck.core.checkout import ROOT
from fabricheck.references.published import FILE, OWN_FOLDER, Record

RECORDS = {one["id"]: one for one in yaml_files.read(OWN_FOLDER / FILE)["records"]}
IN_GIB = [one for one in RECORDS.values() if one.get("unit") == "GiB/s" and "value_si" in one]
EPICURE = [one for name, one in RECORDS.items() if name.startswith("epicure-")]
#: Of the one run whose settings the page prints.
SETTINGS_PRINTED = {f"epicure-lumi-single-{what}" for what in ("full", "h2d", "d2h", "time")}

GIB = 2**30


@pytest.mark.parametrize("record", IN_GIB, ids=lambda one: one["id"])
def test_gib_are_converted_to_within_half_a_percent(record):
    assert record["value_si"] == pytest.approx(record["value"] * GIB / 1e9, rel=0.005)


@pytest.mark.parametrize(
    ("value", "unit", "step"), [(1.35, "TB/s", 10), (25.7, "GB/s", 0.1), (850, "MB/s", 0.001)]
)
def test_a_value_is_known_to_its_last_printed_digit_in_the_unit_of_the_suite(value, unit, step):
    one = RECORDS["paper-stream-local"] | {"value": value, "unit": unit}
    one.pop("value_si", None)
    one.pop("unit_si", None)
    assert Record.model_validate(one).step == pytest.approx(step)


def test_a_unit_is_computed_from_the_time_of_a_run_where_that_is_printed_and_else_inferred():
    means = [one for one in EPICURE if "mean of" in one.get("unit_note", "")]
    rates = [one for one in EPICURE if "unit_note" in one and one not in means]
    for record in rates:
        said = record["unit_note"]
        assert ("inferred" in said) == ("stats" not in record), record["id"]
    inferred = [one["id"] for one in EPICURE if "inferred" in one.get("unit_note", "")]
    assert len(inferred) == 22


@pytest.mark.parametrize(
    "record", [one for one in EPICURE if "stats" in one], ids=lambda one: one["id"]
)
def test_the_time_of_a_run_gives_the_figure_that_is_printed_in_gib(record):
    ways = 1 if record["conditions"]["direction"] in ("H2D", "D2H") else 2
    moved = ways * record["conditions"]["message_size_bytes"] / GIB
    rate = moved / (record["stats"]["mean_ms"] / 1e3)
    # Of 4 B two digits are printed, and the time has four.
    assert rate == pytest.approx(record["value"], rel=1e-3, abs=5e-6)


def test_repeats_are_stated_of_the_run_that_prints_them_alone():
    stated = {one["id"] for one in EPICURE if "reps" in one.get("conditions", {})}
    assert stated == SETTINGS_PRINTED


ENERGIES = [one for name, one in RECORDS.items() if name.startswith("energy-")]
EVIDENCE = (ROOT / "docs/evidence/energy.md").read_text()


@pytest.mark.parametrize("record", ENERGIES, ids=lambda one: one["id"])
def test_a_published_energy_says_what_it_includes_and_is_in_the_evidence(record):
    assert record["conditions"]["includes"]
    about = "about " if record.get("qualifier") == "approx" else ""
    begin = f"| {about}{record['value']} |"
    rows = [line for line in EVIDENCE.splitlines() if line.startswith(begin)]
    assert len(rows) == 1
    address = record["source"]["url"].split()[0]
    assert address in rows[0] or "the same" in rows[0]
