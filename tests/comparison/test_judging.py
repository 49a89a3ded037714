"""Whether one value differs from another beyond noise."""

import dataclasses
import itertools
import json
import random
import shutil
from math import comb
from pathlib import Path

import pytest
import two_sessions
from hypothesis import given, settings
from hypothesis import strategies as st

import factories
from fabricheck.core import statistics
from fabricheck.judge.calibration import rule
from fabricheck.judge.comparison import judging
from fabricheck.judge.comparison.compare import NodeChecks, compare, pair_up, side
from fabricheck.judge.comparison.judging import (
    FLOORS,
    ONE_IN,
    chance,
    estimate_of,
    estimates,
    identity,
    judge,
)
from fabricheck.references.calibrated import Tolerance
from fabricheck.results import table
from fabricheck.results.entry import Entry
from fabricheck.results.reading import read
from fabricheck.results.rows import Metric
from fabricheck.results.session import read_report
from session_builder import measured

H200 = Path(__file__).parents[1] / "outputs" / "h200"
RECORDED, LATER, REPORTS = H200 / "session-x2", H200 / "later-x2", H200 / "reports-x2"


def check_of(series, **changes):
    """Return the row of a document of some series."""
    document = two_sessions.document(series) | changes
    return table.check_row(None, None, Entry(None, None, document, None))


def row_of(series, clock="measured", runtime="rocm"):
    of = check_of([series])
    of.document["clock"] = clock
    of.document["program"]["runtime"] = runtime
    return next(table.series(of, None))


def value(samples, **changes):
    return estimate_of(row_of(two_sessions.pair(0, 1, samples, **changes)))


def compared(a, b):
    [(one, other)] = pair_up(side(str(a)), side(str(b)))
    return compare(one, other)


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


def test_the_larger_floor_of_both_sides_counts():
    one, other = value(two_sessions.spread(50)), value(two_sessions.spread(45))
    wide = dataclasses.replace(other, floor=0.12)
    assert judge(one, other).judgement == judge(one, wide, floor=0.1).judgement == "worse"
    assert judge(one, wide).in_floor and judge(wide, one).in_floor


def test_a_repetition_without_an_interval_leaves_the_value_without_one():
    enough, few = value(two_sessions.spread(50)), value([50.0])
    both = judging.joined([enough, few])
    assert enough.interval is not None and both.interval is None
    assert judge(both, enough).judgement == "undetermined"


def test_two_modes_are_not_a_change(wording):
    often, seldom = [10.0, 10.01, 10.02] * 7 + [12.0, 12.01], [10.0, 10.01] + [12.0, 12.01] * 10
    verdict = judge(value(often), value(seldom))
    assert verdict.judgement == "undetermined"
    wording(verdict.why)
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
        (factories.host_copy(direction="both-ways"), "pinned at once"),
        (factories.host_copy(memory="host-pageable", regime="cache"), "moved by the host"),
        (factories.host_copy(memory="host-pageable"), "moved by the host"),
        (factories.managed_copy(), "moved by the host"),
        (factories.managed_copy("host-read"), "moved by the host"),
    ],
)
def test_the_floor_follows_from_what_moves(series, kind):
    assert row_of(series).noise == kind
    assert estimate_of(row_of(series)).floor == FLOORS[kind]
    assert estimate_of(row_of(series, "simulated", "sim")).floor == judging.SIMULATED_FLOOR


def test_on_the_host_runtime_all_memory_is_the_hosts():
    assert row_of(factories.series(), runtime="host").noise == "host"


def floor_of(largest, unit):
    """Return the floor that calibration's rule makes of the largest difference on record."""
    floor, worst = rule.FLOORS[unit], rule.WORST_TIMES * largest
    return Tolerance(floor=floor, spread=0, worst=worst).taken


def kind_of_metric(check, name, unit):
    words = name.split("_")
    if check.startswith("managed") or "pageable" in words:
        return "moved by the host"
    if unit == "us":
        return "latency"
    if check.startswith(("stream_concurrent", "pingpong")):
        return "pinned at once"
    if "pinned" in words:
        return "pinned at once" if "both" in words else "pinned"
    return "devices"


def recorded_values(path):
    """Return the metrics of a report of ReFrame, but for counts and those of one sample each."""
    return {
        (case.name, name, unit): value
        for case in read_report(path, path.parent).cases
        if not case.name.startswith(("rccl", "osu"))
        for name, (value, unit) in case.values.items()
        if unit != "count"
    }


def test_floors_follow_from_what_sessions_of_the_same_programs_differ_by():
    reports = [*REPORTS.glob("node-*.json"), RECORDED / "reports" / "run-0.json"]
    largest, pairs = {}, dict.fromkeys(FLOORS, 0)
    for group in (reports, [*REPORTS.glob("later-*.json")]):
        for one, other in itertools.combinations(map(recorded_values, group), 2):
            for key in one.keys() & other.keys():
                kind = kind_of_metric(*key)
                change = max(one[key] / other[key], other[key] / one[key]) - 1
                pairs[kind] += 1
                largest[kind] = max(largest.get(kind, (0, "")), (change, key[2]))
    page = (Path(__file__).parents[2] / "docs" / "result.md").read_text()
    for kind, (change, unit) in largest.items():
        assert FLOORS[kind] == pytest.approx(floor_of(change, unit)), kind
        row = f"| {100 * FLOORS[kind]:.3g} % | {100 * change:.2f} % | {pairs[kind]} |"
        assert row in page
    assert FLOORS.keys() - largest.keys() == {"host"}, "nothing is on record of it"


def test_a_floor_is_one_and_a_half_times_what_is_on_record():
    assert floor_of(0.1, "GB/s") == pytest.approx(0.15)
    assert floor_of(0.101, "GB/s") == pytest.approx(0.155)
    assert floor_of(0.001, "GB/s") == pytest.approx(0.02)
    assert floor_of(0.001, "us") == pytest.approx(0.10)


def test_below_a_wide_floor_a_change_is_undetermined():
    def copied(value):
        samples = two_sessions.spread(value)
        series = factories.host_copy(memory="host-pageable", samples=samples, median=value)
        return estimate_of(row_of(series))

    assert judge(copied(10), copied(9)).in_floor
    between = judge(copied(10), copied(7))
    assert between.judgement == "undetermined" and not between.in_floor
    assert between.floor == pytest.approx(0.755, abs=5e-4)
    assert judge(copied(10), copied(5)).judgement == "worse"
    assert judge(copied(10), copied(7), floor=0.1).judgement == "worse"
    assert judge(copied(10), copied(7), floor=0.5).judgement == "unchanged"


def test_on_the_host_runtime_a_change_is_judged_with_a_floor_only(wording):
    series = [two_sessions.pair(0, 1, two_sessions.spread(one)) for one in (50, 20)]
    a, b = (estimate_of(row_of(one, runtime="host")) for one in series)
    assert judge(a, b).judgement == "undetermined"
    wording(judge(a, b).why)
    assert judge(a, b, floor=0.5).judgement == "worse"


@pytest.mark.parametrize("sides", [("full", "node"), ("node", "full")])
def test_two_recorded_sessions_minutes_apart_are_not_worse(sides):
    found = compared(*(LATER / side for side in sides))
    assert not found.is_worse and not found.better and not found.lacks
    assert {one.row.check_row.check for one in found.undetermined} == {
        "memcpy_near",
        "pingpong_right",
    }


@pytest.mark.parametrize(
    ("check", "operation", "memory"),
    [
        ("p2p_engine", "engine", "peer"),
        ("p2p_kernel", "read", "device"),
        ("stream_local", "triad", "device"),
        ("memcpy_near", "h2d", "device"),
    ],
)
def test_five_percent_less_of_one_series_is_found(tmp_path, check, operation, memory):
    shutil.copytree(LATER / "full", tmp_path / "full")
    path = tmp_path / "full" / check / "result.json"
    document = json.loads(path.read_text())
    slowed = next(
        one
        for one in document["series"]
        if (one["operation"], one["destination"]["memory"]) == (operation, memory)
        and one["role"] == "single"
        and one["source"]["memory"] != "host-pageable"
    )
    slowed["host_clock"]["median"] *= 0.95
    for name in ("median", "mad"):
        slowed[name] *= 0.95
    for name in ("samples", "ci95"):
        slowed[name] = [one * 0.95 for one in slowed[name]]
    path.write_text(json.dumps(document))
    found = compared(LATER / "node", tmp_path / "full")
    assert not found.unread
    [one] = found.worse
    assert (one.row.check_row.check, one.row.operation) == (check, operation)
    assert one.row.device == slowed["device"]


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
    found = compared(RECORDED, RECORDED)
    assert not found.is_worse and not found.lacks and not found.unread and not found.differs
    assert not found.better and found.unchanged


samples = st.lists(st.floats(1, 100), min_size=1, max_size=12)
several = st.lists(st.tuples(samples, st.booleans()), min_size=1, max_size=4)


def built(drawn):
    series = [
        (two_sessions.latency if is_latency else two_sessions.pair)(0, 1 + number, values)
        for number, (values, is_latency) in enumerate(drawn)
    ]
    return NodeChecks("", None, (check_of(series),))


def test_of_repetitions_of_a_check_the_first_that_did_not_pass_counts():
    series = [two_sessions.pair(0, 1, [50.0] * 7)]
    wrong = {"exit_code": 5, "status": "wrong-data", "message": "A word is wrong."}
    passed, failed = check_of(series), check_of(series, outcome=wrong)
    before, after = (NodeChecks("", None, rows) for rows in ((passed, passed), (passed, failed)))
    assert [one.worse for one in compare(before, after).outcomes] == [True]


@settings(max_examples=60)
@given(several)
def test_nothing_is_worse_than_itself(drawn):
    found = compare(built(drawn), built(drawn))
    assert not found.is_worse and not found.better and not found.lacks
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
        assert {identity(one.row) for one in getattr(there, judgement)} == {
            identity(one.row) for one in getattr(back, mirrored)
        }


def test_a_metric_has_the_samples_of_its_own_series(tmp_path):
    """Also where a series of another operation has the same median."""
    own, other = (98.0, 100.0, 102.0), (90.0, 100.0, 110.0)
    series = [factories.series(other, operation="scale"), factories.series(own)]
    results = measured(tmp_path, 0, {"copy_worst": 100.0}, 0, document={"series": series})
    (row,) = read([str(results)]).checks
    found = estimates([row])
    (metric,) = (one for row, one in found.values() if isinstance(row, Metric))
    assert metric.samples == own
