"""References of a session: missing, broken, or missed by what was measured."""

from __future__ import annotations

import platform

import pytest
from text_edit import edit

pytestmark = pytest.mark.slow

DEVICE = f"device 1 (0000:c1:00.0) of node {platform.node()}"


def test_a_metric_without_a_reference(suite, wording):
    file = suite.own_references()
    edit(file, "    triad_median: [0, null, null, GB/s]\n", "")
    outcome = suite("--dry-run")
    assert outcome.status == 1
    wording(outcome.reasons)
    assert "1 failure(s)" in outcome


@pytest.mark.parametrize(
    ("old", "new"),
    [("stream_scan:\n", "stream_skan:\n"), ("stream_scan:\n", "stream_scan:\n  x: 1\n")],
    ids=["another class", "an entry that is no reference"],
)
def test_a_reference_file_that_does_not_fit_the_check(suite, old, new):
    edit(suite.own_references(), old, new)
    outcome = suite("--dry-run")
    assert outcome.status == 1
    assert "stream_scan" in outcome


def test_an_entry_that_is_none_is_one_sentence(suite, wording):
    edit(
        suite.own_references(),
        "    triad_worst: [0, null, null, GB/s]",
        "    triad_worst: [$xfail]",
    )
    outcome = suite("--dry-run", "-n", "stream_local")
    assert outcome.status == 1
    wording(outcome.reasons)


def test_a_partition_without_an_entry(suite, wording):
    edit(suite.own_references(), "  local:host:\n    copy_worst", "  other:host:\n    copy_worst")
    # ReFrame's own rule can be switched off from the command line.
    outcome = suite("--dry-run", "-S", "require_reference=no")
    assert outcome.status == 1
    wording(outcome.reasons)


def test_a_broken_reference_file_is_named(suite, wording):
    file = suite.own_references()
    file.write_text("stream_local: [\n")
    outcome = suite("-r", "-n", "stream_local")
    assert outcome.status == 1
    # In parentheses is what the reader of YAML says.
    wording(one.partition(" (")[0] for one in outcome.reasons)


def test_a_check_without_a_reference_file_is_named(suite, wording):
    file = suite.own_references()
    file.unlink()
    outcome = suite("-r", "-n", "stream_local")
    assert outcome.status == 1
    wording(outcome.reasons)


def test_an_expected_failure_that_misses_its_reference_does_not_fail(suite):
    edit(
        suite.own_references(),
        "    triad_worst: [0, null, null, GB/s]",
        "    triad_worst: [$xfail, known, [100, -0.05, null, GB/s]]",
    )
    outcome = suite("-r", "-n", "stream_local")
    assert outcome.status == 0
    (case,) = suite.report()["runs"][0]["testcases"]
    assert case["perfvalues"]["local:host:triad_worst"][-1] == "xfail"


def test_a_missed_reference_says_where_and_keeps_the_values(suite, wording):
    edit(
        suite.own_references(),
        "    triad_worst: [0, null, null, GB/s]",
        "    triad_worst: [100, -0.05, null, GB/s]",
    )
    outcome = suite("-r", "-n", "stream_local")
    assert outcome.status == 1
    (reason,) = outcome.reasons
    wording(reason.replace(DEVICE, "DEVICE"))
    (case,) = suite.report()["runs"][0]["testcases"]
    assert case["result"] == "fail"
    assert case["perfvalues"]["local:host:triad_worst"][0] == 6.8744
    assert case["perfvalues"]["local:host:copy_worst"][0] == 9.8744
    assert case["fail_reason"] == reason
    (perflog,) = (suite.results / "perflogs").rglob("stream_local.log")
    assert "6.8744" in perflog.read_text()
    stored = suite("--describe-stored-testcases=now-1d:now")
    assert '"local:host:triad_worst"' in stored
    assert "6.8744" in stored


def test_a_value_above_an_upper_limit_is_missed_too(suite, wording):
    edit(
        suite.own_references(),
        "    triad_worst: [0, null, null, GB/s]",
        "    triad_worst: [1, -0.5, 0.05, GB/s]",
    )
    outcome = suite("-r", "-n", "stream_local")
    assert outcome.status == 1
    (reason,) = outcome.reasons
    wording(reason.replace(DEVICE, "DEVICE"))
