"""What a session was compared with is told with what it rests on, also when that has changed."""

import json
from dataclasses import replace

import pytest

import factories
from fabricheck.report import contents, experiments, page
from fabricheck.results import metric_records, reading
from fabricheck.results.metric_records import MetricRecord
from fabricheck.results.session_checks import PartitionChecks
from factories import judged
from session_builder import SessionBuilder

WHERE = "local:sim-mi250x"


def of(results, **metrics):
    values = {f"{WHERE}:{name}": value for name, value in metrics.items()}
    SessionBuilder(results, where=WHERE, command=None).passed(
        "memcpy_near",
        document=factories.simulated_document(),
        environ="sim",
        perfvalues=values,
        tags=["E2"],
    ).write()
    return {one.metric.metric: one for one in experiments.references_of(reading.read().observed[0])}


def test_a_reference_of_today_is_followed_to_its_document(results_folder):
    found = of(
        results_folder,
        h2d_pinned_near_worst=judged(28.0, 28.3, -0.05),
        d2h_pinned_near_worst=judged(28.0, 28.3, -0.1),
    )
    one = found["h2d_pinned_near_worst"]
    assert (one.kind, one.how, one.limits) == (
        "published elsewhere", "paper-h2d-pinned", "at least 26.885 (-5 %)"
    )  # fmt: skip
    assert one.metric.margin == pytest.approx(100 * (28.0 - 26.885) / 26.885)
    ((source, places),) = experiments.sources(one)
    assert (
        "Schieffer" in source.title and places and found["d2h_pinned_near_worst"].kind == "derived"
    )


@pytest.mark.parametrize("metric", ["h2d_pinned_near_worst", "no_longer_there"])
def test_a_reference_that_has_changed_is_told(results_folder, metric):
    one = of(results_folder, **{metric: judged(28.0, 27.0, -0.05)})[metric]
    assert one.kind == experiments.CHANGED and metric in one.how and not one.sources
    assert one.limits == "at least 25.65 (-5 %)"


def test_the_limit_of_a_plain_test_is_stated_in_it(results_folder):
    of(results_folder, rate=judged(2.5, 2.0, -0.1))
    (observed,) = reading.read().observed
    checks = PartitionChecks(checks={"memcpy_near": ["node"]}, plain=["memcpy_near"])
    (one,) = experiments.references_of(replace(observed, recorded=checks))
    assert (one.kind, one.how, one.sources) == ("site", "stated in the test", ())


def test_a_folder_of_references_that_is_not_there_is_told(results_folder, monkeypatch, tmp_path):
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(tmp_path / "none"))
    one = of(results_folder, h2d_pinned_near_worst=judged(28.0, 28.3, -0.05))
    assert "There is no folder" in one["h2d_pinned_near_worst"].how


def test_a_limit_of_a_rule_is_told_with_its_rule(results_folder):
    name, why = "h2d_pinned_near_alike", "members of a node are alike: 3 % behind the others"
    of(results_folder, **{name: judged(100.0, 100.0, -0.03, None, unit="%")})
    (path,) = results_folder.rglob("result.json")
    document = json.loads(path.read_text())
    record = MetricRecord(series=(0,), reduce="peers", rule=why)
    metric_records.write(path.parent, document, {name: record})
    (one,) = experiments.references_of(reading.read().observed[0])
    assert (one.kind, one.how) == ("rule", why)
    text = page.files(contents.page_contents(reading.read()))["index.html"]
    # In the table of experiments, that of references, and where marks are explained.
    assert text.count('href="#mark-rule"') == 3
