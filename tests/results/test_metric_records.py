"""What a check records of its metrics beside a document, and what becomes of a damaged file."""

import json

import pytest

import factories
from fabricheck.node import load as load_node
from fabricheck.results import metric_records
from fabricheck.results.metric_records import MetricRecord
from fabricheck.results.reading import read
from fabricheck.results.table import link_class, metrics
from session_builder import measured

NODE = load_node("mi250x")
COPY = {"copy_worst": 10.0}


def test_of_pairs_at_the_same_time_each_is_of_the_class_of_its_own_ends():
    ends = {"source": factories.place("device", 0), "destination": factories.place("device", 1)}
    both = {"engine": "mpi", "experiment": "E9", "operation": "bandwidth", "role": "share"}
    share = factories.series([9.0] * 9, device=None, device_set=[0, 1, 2, 4], **both, **ends)
    far = share | {"destination": factories.place("device", 6)}
    assert (link_class(share, NODE), link_class(far, NODE)) == ("links4", "links2")


@pytest.fixture
def session(tmp_path):
    return measured(tmp_path, 0, COPY, 0)


def row(session):
    (check,) = read([str(session)]).checks
    (metric,) = metrics(check)
    return metric.series, metric.reduce


def test_what_the_check_wrote_is_believed(session):
    (path,) = session.rglob("result.json")
    document = json.loads(path.read_text())
    assert row(session) == ((0,), "worst")
    metric_records.write(
        path.parent, document, {"copy_worst": MetricRecord(series=(0,), reduce="median")}
    )
    assert row(session) == ((0,), "median")


def changed(session, change):
    (path,) = session.rglob("result.json")
    document = json.loads(path.read_text())
    metric_records.write(
        path.parent, document, {"copy_worst": MetricRecord(series=(0,), reduce="median")}
    )
    file = path.with_name(metric_records.NAME)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    return file


def test_what_is_of_another_run_is_not(session):
    changed(session, {"started": "2020-01-01T00:00:00Z"})
    assert row(session) == (None, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"form": "fabricheck-metrics-2"},
            "form: input should be 'fabricheck-metrics-1', not 'fabricheck-metrics-2'.",
        ),
        (
            {"metrics": {"copy_worst": {"series": [1], "reduce": "best"}}},
            "metrics.copy_worst: there is no series 1 among the document's 1.",
        ),
        ({"metrics": "none"}, "metrics: it must contain a mapping of keys to values."),
    ],
)
def test_one_that_is_damaged_is_told_and_the_values_are_there(command, session, change, said):
    file = changed(session, change)
    assert row(session) == (None, None)
    for line in (
        ["results", "show"],
        ["papers", "claims"],
        ["results", "validate"],
        ["results", "export"],
    ):
        ended = command(*line, session, code=4)
        assert (ended.exit_code, f"{file}: {said}" in ended.words) == (4, True)
    compared = command("compare", session, session, code=4)
    assert f"{file}: {said}" in compared.words


def test_one_that_is_cut_is_told(command, session):
    file = changed(session, {})
    file.write_text(file.read_text()[:-20])
    shown = command("results", "show", session, code=4)
    assert f"{file}: it is not valid JSON (" in shown.stderr
    assert "stream_local" in shown.stdout
