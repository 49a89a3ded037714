"""A soak that was recorded on two H200: what is judged of it, and the effect of its readings."""

import json
import statistics
from pathlib import Path

import pytest

from fabricheck.judge.drift import judging
from fabricheck.report.soak import note
from fabricheck.results import soaks

RECORDED = Path(__file__).parents[1] / "outputs" / "h200-soak"

#: Passes at the start of a load, in which devices are not yet warm.
FIRST_PASSES = 4


def judged(name):
    (soak,) = [soak for soak in soaks.read(RECORDED) if soak.name == name]
    return judging.judge(soak)


def test_minutes_in_three_parts_show_no_drift_and_time_at_the_power_cap():
    soak = judged("soak")
    assert (soak.rounds, len(soak.soak.rounds)) == (10, 12)
    assert soak.hours == pytest.approx(0.217, abs=0.001)
    rules = {(finding.rule, finding.status) for finding in soak.findings}
    assert rules == {("usage", "INCOMPLETE"), ("unfinished", "INCOMPLETE"), ("throttled", None)}
    assert soak.counters == ()
    load_s = sum(each.load_s for each in soak.soak.rounds)
    capped = [finding for finding in soak.findings if finding.rule == "throttled"]
    # A driver counts in steps: no device was capped for longer than it was loaded.
    assert [finding.member for finding in capped] == ["power", "power"]
    assert all(0.95 * load_s < finding.value < 1.005 * load_s for finding in capped)
    assert soak.cpu_cores == pytest.approx(1.2, abs=0.02)
    worst = soak.worst_change
    assert (worst.member, worst.floor) == ("h2d 1", 0.28)
    assert worst.change == pytest.approx(-0.086, abs=0.001)


def test_a_flipped_bit_is_named_by_its_byte_in_both_rounds():
    wrong = [finding for finding in judged("flip").findings if finding.rule == "wrong-data"]
    assert [(finding.offset_bytes, finding.bits) for finding in wrong] == 2 * [(58089017344, (7,))]
    assert {note(finding) for finding in wrong} == {"byte 58089017344, bits 7"}
    assert {finding.devices for finding in wrong} == {(1,)}
    assert 58089017344 % (1 << 20) == 4096


def medians(document):
    """Yield of each kind of work how much its median is more than without passes with a reading."""
    load = document["soak"]
    read = {
        number
        for number, (begin, end) in enumerate(load["passes"])
        if any(begin - 0.05 <= reading["at_s"] <= end + 0.05 for reading in load["readings"])
    }
    for series in document["series"]:
        samples = [*enumerate(series["samples"])][FIRST_PASSES:]
        others = [value for number, value in samples if number not in read]
        whole = statistics.median(value for _, value in samples)
        yield series["operation"], whole / statistics.median(others) - 1


def test_readings_under_load_change_medians_by_less_than_two_in_a_thousand():
    changes = {}
    for path in sorted(RECORDED.glob("documents/*.json")):
        document = json.loads(path.read_text())
        assert len(document["soak"]["readings"]) >= 5
        for operation, change in medians(document):
            changes.setdefault(operation, []).append(change)
    effects = {operation: statistics.mean(each) for operation, each in changes.items()}
    assert set(effects) == {"copy", "compute", "h2d", "d2h", "engine"}
    assert max(map(abs, effects.values())) < 0.002
