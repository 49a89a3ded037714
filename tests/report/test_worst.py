"""What is worst is found: near a limit, behind its class, noisy, wrong."""

import pytest

import factories
from fabricheck.judge.verdict.judging import judge
from fabricheck.report import findings
from fabricheck.results import reading
from fabricheck.results.run_report import MetricResult
from factories import judged
from session_builder import HOST, SessionBuilder


def found():
    """Return the findings in the only partition."""
    results = reading.read()
    (observed,) = results.observed
    return findings.Partition(observed, findings.partition_verdict(judge(results), observed))


def of(results, *series, **values):
    told = {f"local:host:{name}": value for name, value in values.items()}
    devices = [factories.device(index) for index in range(4)]
    document = factories.document(series=list(series), devices=devices)
    session = SessionBuilder(results, where=HOST, command=None)
    session.check(document=document, perfvalues=told).write()
    return found()


def on(device, value, **changes):
    place = factories.place(device=device)
    ends = {"device": device, "device_set": [device], "source": place, "destination": place}
    return factories.series([value], host_clock=None, **ends | changes)


@pytest.mark.parametrize(
    ("value", "reference", "lower", "upper", "expected"),
    [
        (9.9, 10.0, -0.1, None, (9.0, "at least", 10.0)),
        (8.1, 10.0, -0.1, None, (9.0, "at least", -10.0)),
        (10.8, 10.0, None, 0.2, (12.0, "at most", 10.0)),
        (10.8, 10.0, -0.1, 0.2, (12.0, "at most", 10.0)),
        (0.0, 0.0, 0.0, 0.0, (0.0, "at least", None)),
        (100.0, 100.0, 0.0, None, (100.0, "at least", None)),
        (5.0, 0.0, None, None, None),
        (5.0, None, None, None, None),
    ],
)
def test_the_margin_is_a_part_of_the_nearest_limit(value, reference, lower, upper, expected):
    found = MetricResult(value, reference, lower, upper, "GB/s", "pass").nearest_limit
    assert found == (expected and pytest.approx(expected))


def test_metrics_are_told_from_the_nearest_to_their_limit_on(results_folder):
    found = of(
        results_folder,
        factories.series(),
        far=judged(20.0),
        near_worst=judged(9.1),
        near_median=judged(9.2),
        free=judged(1.0, 0, None, None),
        missed=judged(8.0, result="fail"),
    )
    assert [one.metric for one in found.within] == ["near_worst", "near_median", "far"]
    assert [one.metric for one in findings.by_check(found.within)] == ["near_worst"]
    assert [(one.metric, round(one.margin, 1)) for one in found.missed] == [("missed", -11.1)]


def test_a_device_behind_the_others_is_named_with_how_far(results_folder):
    found = of(results_folder, on(0, 10.0), on(1, 10.0), on(2, 8.0), on(3, 12.0))
    assert [(one.point.place, one.percent, one.median) for one in found.slow] == [
        ("device 2", 20.0, 10.0)
    ]
    assert (found.slow[0].members, found.slow[0].among) == (4, "devices")


def test_two_devices_have_no_class_and_small_sizes_do_not_count(results_folder):
    small = on(3, 1.0, bytes=1 << 20, bytes_moved=2 << 20)
    found = of(results_folder, on(0, 10.0), on(1, 8.0))
    assert found.slow == []
    found = of(results_folder, on(0, 10.0), on(1, 10.0), on(2, 10.0), on(3, 10.0), small)
    assert found.slow == []


def test_noise_is_told(results_folder, wording):
    noisy = factories.series([9.0, 10.0, 20.0, 5.0, 9.0, 10.0], noisy=True, regime="cache")
    session = SessionBuilder(results_folder, where=HOST, command=None)
    session.passed(document=factories.document(series=[noisy])).write()
    (said,) = found().noisy
    wording(said)
    assert f"{100 * noisy['relative_half_width']:.1f} %" in said


def test_noise_of_a_share_whose_sum_is_judged_fails_nothing(results_folder, wording):
    single, share, other, total, latency = factories.pair_series()
    series = [single, factories.noisy(share), other, factories.noisy(total), latency]
    outcome = {"exit_code": 7, "status": "too-noisy", "message": "wide"}
    document = factories.document(series=series, outcome=outcome)
    SessionBuilder(results_folder, where=HOST, command=None).passed(document=document).write()
    (said,) = found().noisy
    wording(said)


def test_a_device_whose_domain_nobody_tells_is_not_called_far(results_folder):
    copies = [
        factories.host_copy(device=device, domain=0, value=value)
        for device, value in enumerate((50.0, 50.0, 40.0, 50.0))
    ]
    devices = [factories.device(index, numa_domain=None) for index in range(4)]
    document = factories.document(series=copies, devices=devices)
    SessionBuilder(results_folder, where=HOST, command=None).passed(document=document).write()
    (slow,) = found().slow
    assert (slow.point.place, slow.among) == (
        "device 2, NUMA domain 0",
        "devices with NUMA domain 0",
    )
