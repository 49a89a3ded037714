"""References that no value can miss, or that mean another unit, are refused."""

from __future__ import annotations

import pytest

from fabricheck.core.errors import FabricheckError
from fabricheck.references import entries
from fabricheck.references.stated import References


@pytest.mark.parametrize(
    ("unit", "entry"),
    [
        ("GB/s", (100, -0.05, None, "GB/s")),
        ("GB/s", (100.5, -0.05, 0.1, "GB/s")),
        ("GB/s", (100, 0, None, "GB/s")),
        ("us", (10, None, 0.2, "us")),
        ("us", (10, -0.5, 0.2, "us")),
        ("count", (0, None, 0, "count")),
        ("GB/s", (0, None, None, "GB/s")),
        ("us", (0, None, None, "us")),
    ],
)
def test_a_reference_that_can_be_missed_or_says_that_it_only_reports(unit, entry):
    assert list(entries.faults("m", unit, entry)) == []


@pytest.mark.parametrize(
    ("unit", "entry", "sentence"),
    [
        ("GB/s", (100, -0.05, None, "MB/s"), "is in MB/s, but the metric is in GB/s."),
        ("GB/s", (100, -0.05, None), "has no unit; the metric is in GB/s."),
        ("GB/s", (100, -0.05, None, None), "has no unit; the metric is in GB/s."),
        (
            "GB/s",
            (0, -0.05, None, "GB/s"),
            "has a limit and the value 0; a limit is a fraction of the value.",
        ),
        (
            "us",
            (0, None, 5, "us"),
            "has a limit and the value 0; a limit is a fraction of the value.",
        ),
        ("GB/s", (100, -1, None, "GB/s"), "a lower limit outside -1 (exclusive) to 0."),
        ("GB/s", (100, -95, None, "GB/s"), "a lower limit outside -1 (exclusive) to 0."),
        ("GB/s", (100, 0.05, None, "GB/s"), "a lower limit outside -1 (exclusive) to 0."),
        ("us", (100, None, -0.05, "us"), "has a negative upper limit."),
        ("GB/s", (100, None, 0.1, "GB/s"), "has an upper limit only, but a larger value in GB/s"),
        ("us", (100, -0.1, None, "us"), "has a lower limit only, but a smaller value of us is"),
        ("GB/s", (100, None, None, "GB/s"), "has no limit, so nothing can miss it: write [0, null"),
        ("GB/s", (-5, -0.1, None, "GB/s"), "has a negative value."),
        (
            "GB/s",
            (float("nan"), -0.1, None, "GB/s"),
            "contains something other than a finite number.",
        ),
        ("GB/s", (10**400, -0.1, None, "GB/s"), "contains something other than a finite number."),
        ("GB/s", (100, "-5%", None, "GB/s"), "contains something other than a finite number."),
        ("GB/s", (True, -0.1, None, "GB/s"), "contains something other than a finite number."),
        ("us", (10, None, float("inf"), "us"), "contains something other than a finite number."),
        ("GB/s", (1, -0.5, None), "has no unit; the metric is in GB/s."),
        ("GB/s", (100,), "is not [value, lower, upper, unit]."),
        ("GB/s", [], "is not [value, lower, upper, unit]."),
        ("GB/s", "100", "is not [value, lower, upper, unit]."),
        ("GB/s", 100, "is not [value, lower, upper, unit]."),
    ],
)
def test_a_reference_that_can_not_be_missed(unit, entry, sentence):
    (fault,) = entries.faults("copy_worst", unit, entry)
    assert fault.startswith("The reference of metric copy_worst, ")
    assert sentence in fault


def test_the_sentence_shows_the_entry_as_in_its_file():
    (fault,) = entries.faults("m", "GB/s", (100, None, None, "GB/s"))
    assert "The reference of metric m, [100, null, null, GB/s], has no limit" in fault


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "entry"),
    [
        ("-r", "[1, -0.5, null, MB/s]"),
        ("--dry-run", "[1, -2, null, GB/s]"),
        ("-r", "['$xfail', 'a known fault', [1, -2, null, GB/s]]"),
    ],
)
def test_a_session_fails_on_it_before_it_measures(suite, action, entry):
    # Where warnings are let pass, ReFrame takes a reference in another unit.
    suite.variables["RFM_WARN_AS_ERROR"] = "no"
    file = suite.own_references()
    text = file.read_text()
    old = "    triad_worst: [0, null, null, GB/s]"
    assert old in text
    file.write_text(text.replace(old, f"    triad_worst: {entry}", 1))
    outcome = suite(action, "-n", "stream_local")
    assert outcome.status == 1
    assert "The reference of metric triad_worst, [1, -" in outcome
    assert "Traceback" not in outcome
    assert not suite.log.exists()


@pytest.mark.parametrize(
    ("raw", "entry"),
    [
        ([1, -0.5, None, "GB/s"], (1, -0.5, None, "GB/s")),
        (["$xfail", "why", [1, -0.5, None, "GB/s"]], None),
        ([1, -0.5, None], None),
        ("text", None),
        (None, None),
        ([True, None, None, "GB/s"], None),
    ],
)
def test_reading_an_entry(raw, entry):
    assert entries.entry_of(raw) == entry


@pytest.mark.parametrize(
    ("entry", "requires"),
    [
        ((100, -0.05, None, "GB/s"), True),
        ((10, None, 0.1, "us"), True),
        ((0, 0, 0, "count"), True),
        (entries.report_only("us"), False),
    ],
)
def test_a_limit_on_either_side_requires_something(entry, requires):
    assert entries.requires(entry) == entries.required(list(entry)) == requires


def test_a_mapping_that_states_no_limit_is_named_with_its_place(tmp_path):
    file = tmp_path / "stream.yaml"
    file.write_text("stream_local:\n  local:host:\n    triad_worst: {a: 1}\n")
    with pytest.raises(FabricheckError) as refused:
        References(tmp_path).entries("stream_local", "local:host", None)
    said = "triad_worst of stream_local on local:host is neither [value, lower, upper, unit] nor"
    assert str(refused.value).startswith(f"{file}: {said}")
