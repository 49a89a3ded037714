"""Whether one value differs from another beyond noise."""

import itertools
import json
import random
from math import comb
from pathlib import Path

import pytest
import two_sessions
from hypothesis import given, settings
from hypothesis import strategies as st

import factories
from fabricheck.calibration import record
from fabricheck.comparison import judging
from fabricheck.comparison.compare import compare
from fabricheck.comparison.judging import FLOORS, ONE_IN, chance, judge, value_of
from fabricheck.comparison.sides import Check, Part, find, pair_up
from fabricheck.comparison.values import REFERENCES
from fabricheck.results import statistics
from fabricheck.results.folder import Entry

RECORDED = Path(__file__).parents[1] / "outputs" / "h200" / "session-x2"


def value(samples, clock="measured", **changes):
    return value_of(two_sessions.pair(0, 1, samples, **changes), clock, "rocm")


def part(series):
    document = two_sessions.document(series)
    return Part("", (Check("p2p", None, Entry(None, None, document, None)),))


def test_the_interval_of_each_median_is_of_97_and_a_half_percent():
    for n in range(1, 60):
        k = statistics.interval_rank(n, ONE_IN)
        missed = [2 * sum(comb(n, i) for i in range(rank)) / 2**n for rank in range(1, n // 2 + 1)]
        fits = [rank for rank, part in enumerate(missed, 1) if part <= 0.025]
        assert k == max(fits, default=None)
    assert statistics.interval_rank(judging.FEWEST, ONE_IN) == 1
    assert statistics.interval_rank(judging.FEWEST - 1, ONE_IN) is None
    assert (1 - 1 / ONE_IN) ** 2 >= 0.95


def test_within_noise_and_beyond_it():
    narrow, wide = two_sessions.spread(50), [50 * (1 + n / 20) for n in range(-4, 5)]
    assert judge(value(narrow), value(two_sessions.spread(45))).judgement == "worse"
    assert judge(value(narrow), value(two_sessions.spread(55))).judgement == "better"
    assert judge(value(wide), value([one * 0.9 for one in wide])).why == "within noise"
    assert judge(value(narrow), value(two_sessions.spread(49.1))).in_floor


def test_a_repetition_without_an_interval_leaves_the_value_without_one():
    enough, few = value(two_sessions.spread(50)), value([50.0])
    both = judging.together([enough, few])
    assert enough.interval is not None and both.interval is None
    assert judge(both, enough).judgement == "undetermined"


def test_two_modes_are_not_a_change():
    often, seldom = [10.0, 10.01, 10.02] * 7 + [12.0, 12.01], [10.0, 10.01] + [12.0, 12.01] * 10
    verdict = judge(value(often), value(seldom))
    assert verdict.judgement == "undetermined"
    assert verdict.why == "A has two modes: 21 about 10.01, 2 about 12.005"
    assert judge(value(seldom), value(often)).judgement == "undetermined"
    # Half of the time is no change either: both intervals hold both modes.
    halves = [10.0, 10.01, 12.0, 12.01] * 5
    assert judge(value(halves), value(halves[::-1])).judgement == "unchanged"
    # A median outside of both modes is one.
    assert judge(value(often), value(two_sessions.spread(8))).judgement == "worse"


@pytest.mark.parametrize(
    ("series", "kind"),
    [
        (two_sessions.pair(0, 1, [1.0]), "devices"),
        (two_sessions.latency(0, 1, [1.0]), "latency"),
        (two_sessions.pair(0, 1, [1.0], regime="cache"), "latency"),
        (factories.host_copy(), "pinned"),
        (factories.host_copy(role="share", device_set=[0, 1]), "pinned at once"),
        (factories.host_copy(memory="host-pageable"), "moved by the host"),
        (factories.managed_copy(), "moved by the host"),
        (factories.managed_copy("host-read"), "moved by the host"),
    ],
)
def test_the_floor_follows_from_what_moves(series, kind):
    assert judging.noise_of(series, "rocm") == kind
    assert value_of(series, "measured", "rocm").floor == FLOORS[kind]
    assert value_of(series, "simulated", "sim").floor == judging.SIMULATED_FLOOR


def test_on_the_host_runtime_all_memory_is_the_hosts():
    assert judging.noise_of(factories.series(), "host") == "moved by the host"


def kind_of_metric(check, name, unit):
    if unit == "us":
        return "latency"
    if check == "stream_concurrent":
        return "pinned at once"
    if "pageable" in name.split("_"):
        return "moved by the host"
    return "pinned" if "pinned" in name.split("_") else "devices"


def test_floors_are_what_healthy_sessions_differ_by():
    found = record.read_of(REFERENCES, "h200:x2")
    occasion = {one.number: one.occasion for one in found.sessions}
    largest, pairs = dict.fromkeys(FLOORS, 0.0), dict.fromkeys(FLOORS, 0)
    for check, metrics in found.checks.items():
        # One sample each: never judged by a floor.
        if check.startswith(("rccl", "osu")):
            continue
        for name, metric in metrics.items():
            if metric.unit == "count":
                continue
            kind = kind_of_metric(check, name, metric.unit)
            for one, other in itertools.combinations(metric.values, 2):
                if occasion[one] == occasion[other]:
                    change = abs(metric.values[other] / metric.values[one] - 1)
                    largest[kind] = max(largest[kind], change)
                    pairs[kind] += 1
    for kind, floor in FLOORS.items():
        assert 0 < largest[kind] <= floor < largest[kind] + 0.05, kind
    page = (Path(__file__).parents[2] / "docs" / "compare.md").read_text()
    for kind, text in (("devices", "0.75 %"), ("pinned", "8.8 %"), ("pinned at once", "12.3 %"),
                       ("moved by the host", "21.1 %"), ("latency", "20.2 %")):  # fmt: skip
        assert float(text.split()[0]) / 100 == pytest.approx(largest[kind], abs=0.0006)
        assert f"| {FLOORS[kind]:.0%} | {text} | {pairs[kind]} |".replace("%", " %", 1) in page


def test_how_many_differ_by_chance_is_what_draws_give():
    def disjoint(n, m, order):
        ours, theirs = order[:n], order[n:]
        low, high = (statistics.median_interval(some, 40) for some in (ours, theirs))
        return low[1] < high[0] or high[1] < low[0]

    # Every order of 7 and 7: both must be apart as a whole.
    assert chance(7, 7) == 2 / comb(14, 7)
    draw = random.Random(1)
    for n, m in ((7, 30), (20, 9)):
        times = 20000
        count = sum(disjoint(n, m, [draw.random() for _ in range(n + m)]) for _ in range(times))
        assert count / times == pytest.approx(chance(n, m), abs=4 * (chance(n, m) / times) ** 0.5)
    assert chance(6, 30) == 0


def test_the_recorded_session_is_what_it_was():
    side = find(str(RECORDED))
    [(one, other)] = pair_up(side, side)
    found = compare(one, other)
    assert not found.worse and not found.missing and not found.unread and not found.differs
    assert not found.judged("better") and found.judged("unchanged")
    by_record = [one for one in found.compared if one.a.by_record]
    assert by_record and all(one.verdict.judgement == "unchanged" for one in by_record)


def test_a_metric_on_record_has_the_spread_of_its_sessions(tmp_path):
    worse = tmp_path / "x2"
    (worse / "reports").mkdir(parents=True)
    (worse / "output").symlink_to(RECORDED / "output")
    report = json.loads((RECORDED / "reports" / "run-0.json").read_text())
    for case in report["runs"][0]["testcases"]:
        for name, entry in (case.get("perfvalues") or {}).items():
            if name.endswith((":copy_median", ":h2d_pageable_near_median")):
                entry[0] *= 0.95
    (worse / "reports" / "run-0.json").write_text(json.dumps(report))
    [(one, other)] = pair_up(find(str(RECORDED)), find(str(worse)))
    found = compare(one, other)
    # Kernels on a device are on record to differ by far less, copies of pageable memory by more.
    assert [(one.what.check, one.what.name) for one in found.judged("worse")] == [
        ("stream_local", "copy_median")
    ]


samples = st.lists(st.floats(1, 100), min_size=1, max_size=12)
several = st.lists(st.tuples(samples, st.booleans()), min_size=1, max_size=4)


def built(drawn):
    return part(
        [
            (two_sessions.latency if is_latency else two_sessions.pair)(0, 1 + number, values)
            for number, (values, is_latency) in enumerate(drawn)
        ]
    )


@settings(max_examples=60)
@given(several)
def test_nothing_is_worse_than_itself(drawn):
    found = compare(built(drawn), built(drawn))
    assert not found.worse and not found.judged("better") and not found.missing
    assert len(found.compared) == len(drawn)


@settings(max_examples=60)
@given(several, st.data())
def test_swapping_the_sides_swaps_worse_and_better(drawn, data):
    factor = data.draw(st.floats(0.5, 2))
    other = [
        ([one * factor for one in values] if data.draw(st.booleans()) else values[::-1], kind)
        for values, kind in drawn
    ]
    there, back = compare(built(drawn), built(other)), compare(built(other), built(drawn))
    for judgement, mirrored in (("worse", "better"), ("better", "worse"),
                                ("unchanged", "unchanged"), ("undetermined",) * 2):  # fmt: skip
        assert {one.what for one in there.judged(judgement)} == {
            one.what for one in back.judged(mirrored)
        }
