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


#: Entries that nothing can miss, or that are none, by the unit of their metric.
IMPOSSIBLE = [
    ("GB/s", (100, -0.05, None, "MB/s")),
    ("GB/s", (100, -0.05, None)),
    ("GB/s", (100, -0.05, None, None)),
    ("GB/s", (0, -0.05, None, "GB/s")),
    ("us", (0, None, 5, "us")),
    ("GB/s", (100, -1, None, "GB/s")),
    ("GB/s", (100, -95, None, "GB/s")),
    ("GB/s", (100, 0.05, None, "GB/s")),
    ("us", (100, None, -0.05, "us")),
    ("GB/s", (100, None, 0.1, "GB/s")),
    ("us", (100, -0.1, None, "us")),
    ("GB/s", (100, None, None, "GB/s")),
    ("GB/s", (-5, -0.1, None, "GB/s")),
    ("GB/s", (float("nan"), -0.1, None, "GB/s")),
    ("GB/s", (10**400, -0.1, None, "GB/s")),
    ("GB/s", (100, "-5%", None, "GB/s")),
    ("GB/s", (True, -0.1, None, "GB/s")),
    ("us", (10, None, float("inf"), "us")),
    ("GB/s", (1, -0.5, None)),
    ("GB/s", (100,)),
    ("GB/s", []),
    ("GB/s", "100"),
    ("GB/s", 100),
]


def test_a_reference_that_can_not_be_missed(wording):
    told = []
    for unit, entry in IMPOSSIBLE:
        (fault,) = entries.faults("copy_worst", unit, entry)
        told.append(fault)
    wording(told)


def test_the_sentence_shows_the_entry_as_in_its_file(wording):
    wording(entries.faults("m", "GB/s", (100, None, None, "GB/s")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "entry"),
    [
        ("-r", "[1, -0.5, null, MB/s]"),
        ("--dry-run", "[1, -2, null, GB/s]"),
        ("-r", "['$xfail', 'a known fault', [1, -2, null, GB/s]]"),
    ],
    ids=["another unit", "a limit outside", "a known fault"],
)
def test_a_session_fails_on_it_before_it_measures(suite, action, entry, wording):
    # Where warnings are let pass, ReFrame takes a reference in another unit.
    suite.variables["RFM_WARN_AS_ERROR"] = "no"
    file = suite.own_references()
    text = file.read_text()
    old = "    triad_worst: [0, null, null, GB/s]"
    assert old in text
    file.write_text(text.replace(old, f"    triad_worst: {entry}", 1))
    outcome = suite(action, "-n", "stream_local")
    assert outcome.status == 1
    wording(outcome.reasons)
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
