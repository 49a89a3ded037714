"""E1 to E17 in rows: best, worst, reference and limit of the metric that says most."""

from pathlib import Path

import pytest

import factories
from fabricheck.report import contents, experiments
from fabricheck.results import reading
from factories import judged
from session_builder import HOST, SessionBuilder

OUTPUTS = Path(__file__).parents[1] / "outputs"


def of(*what):
    (observed, *_) = reading.read(what).observed
    rows = experiments.experiment_rows(observed, experiments.references_of(observed))
    assert [row.experiment for row in rows] == [f"E{number}" for number in range(1, 18)]
    return {row.experiment: row for row in rows}


@pytest.fixture(scope="module")
def simulated():
    return of(str(OUTPUTS / "simulated-mi250x"))


def test_a_row_has_the_metric_nearest_to_its_limit_with_its_reference(simulated):
    row = simulated["E8"]
    assert (row.metric, row.unit, row.limit) == ("p2p_kernel write_links2", "GB/s", "at least 72.2")
    assert (row.reference, row.kind, row.outcome) == (76, "derived", experiments.WITHIN)
    assert (row.missed, row.limited) == (0, 12)
    assert row.best.value == pytest.approx(75.21, rel=1e-3)
    assert f"{row.best.value:.3g}" == f"{row.worst.value:.3g}"
    assert simulated["E1"].kind == "published elsewhere"


def test_what_has_no_limit_or_was_not_run_says_so(simulated):
    assert simulated["E11"].outcome == experiments.NOT_RUN and not simulated["E11"].metric
    row = simulated["E10"]
    assert (row.outcome, row.reference, row.limit) == (experiments.NO_LIMIT, None, "")
    assert (simulated["E13"].limit, simulated["E14"].limit) == ("exactly 0", "95 to 100")


def test_a_measured_one_names_the_devices_of_its_best_and_worst():
    row = of(str(OUTPUTS / "h200" / "session-x2"))["E3"]
    assert row.best.value > row.worst.value
    assert (row.best.where, row.worst.where) == (
        "device 0, NUMA domain 0", "device 1, NUMA domain 0",
    )  # fmt: skip


def test_a_metric_that_missed_its_limit_is_shown_before_one_that_is_near_it(results_folder):
    values = {
        "local:host:copy_worst": judged(10.0),
        "local:host:copy_alike": judged(90.0, 100, -0.03, None, "%", "fail"),
        "local:host:triad_alike": judged(80.0, 100, -0.03, None, "%", "fail"),
    }
    document = factories.document(series=[factories.series([10.0] * 7)])
    session = SessionBuilder(results_folder, where=HOST, command=None)
    session.check(document=document, perfvalues=values, tags=["E1"]).write()
    row = of("latest")["E1"]
    assert (row.metric, row.outcome) == ("stream_local triad_alike", experiments.MISSED)
    assert (row.missed, row.limited, row.worst.value) == (2, 3, 80.0)


def test_an_experiment_with_rules_alone_says_how_many(results_folder):
    values = {
        "local:host:copy_worst": judged(10.0, 0, None, None),
        "local:host:copy_alike": judged(99.0, 100, -0.2, None, "%"),
        "local:host:triad_alike": judged(98.0, 100, -0.2, None, "%"),
    }
    document = factories.document(series=[factories.series([10.0] * 7)])
    session = SessionBuilder(results_folder, where=HOST, command=None)
    session.check(document=document, perfvalues=values, tags=["E1"]).write()
    row = of("latest")["E1"]
    assert (row.metric, row.outcome, row.reference) == ("stream_local copy", "within", None)
    assert row.limit == "2 rules"


def test_of_a_latency_the_best_is_the_least(results_folder):
    series = [
        factories.series([value], unit="us", better="lower", device=device, device_set=[device])
        for device, value in enumerate((3.0, 2.0))
    ]
    values = {"local:host:copy_worst": judged(3.0, 2.5, None, 0.1, "us")}
    devices = [factories.device(index) for index in range(2)]
    document = factories.document(series=series, devices=devices)
    session = SessionBuilder(results_folder, where=HOST, command=None)
    session.passed(document=document, perfvalues=values).write()
    observed = reading.read().observed[0]
    (one,) = experiments.references_of(observed)
    best, worst = experiments._extremes(one, list(observed.points))
    assert (best.value, best.where, worst.value) == (2.0, "device 1", 3.0)


def test_documents_without_a_check_count_by_their_series():
    recorded = reading.read([str(OUTPUTS / "h200" / "later-x2")])
    assert not recorded.sessions
    (observed, *_) = recorded.observed
    rows = experiments.experiment_rows(observed, experiments.references_of(observed))
    measured = {point.experiment for point in observed.points}
    unchecked = {row.experiment for row in rows if row.outcome == experiments.NO_CHECK}
    assert unchecked == measured and measured
    covered = contents.page_contents(recorded).covered
    assert covered == len({series.experiment for series in recorded.series})
