"""Which series a metric is made of: as the check wrote it, or found by its name and value."""

import json

import pytest
from typer.testing import CliRunner

import factories
from fabricheck.cli import app
from fabricheck.node import load as load_node
from fabricheck.results import made_of
from fabricheck.results.made_of import MadeOf
from fabricheck.results.observed import metrics_of
from fabricheck.results.reading import read
from fabricheck.results.table import link_class
from repeated_sessions import measured

NODE = load_node("mi250x")
COPY = {"copy_worst": 10.0}


def of_copies(*values, **more):
    return [
        factories.series([value] * 9, device=index, device_set=[index], **more)
        for index, value in enumerate(values)
    ]


def found(series, metric, value, unit="GB/s"):
    return made_of.found(factories.document(series=series), NODE, metric, value, unit)


@pytest.mark.parametrize(
    ("metric", "value", "of"),
    [
        ("copy_worst", 10.0, MadeOf(series=(0, 1, 2), reduce="worst")),
        ("copy_best", 12.0, MadeOf(series=(0, 1, 2), reduce="best")),
        ("copy_median", 11.0, MadeOf(series=(0, 1, 2), reduce="median")),
        # Not what its name says: of another size, of some devices, or changed.
        ("copy_worst", 12.0, None),
        ("copy_best_block", 9.0, None),
        # A word that is not known, as of a link class without a node model.
        ("copy_quadruple_worst", 10.0, None),
        ("copy_256MiB_worst", 10.0, MadeOf(series=(0, 1, 2), reduce="worst")),
        ("copy_1MiB_worst", 10.0, None),
        # One value of three.
        ("copy", 10.0, None),
        ("add_worst", 10.0, None),
    ],
)
def test_what_the_name_says_has_to_give_the_value(metric, value, of):
    assert found(of_copies(10.0, 12.0, 11.0), metric, value) == of


def test_series_of_another_size_unit_or_role_are_of_another_metric():
    series = [
        *of_copies(10.0, 12.0),
        *of_copies(9.0, 9.5, bytes=1024),
        *of_copies(5.0, 6.0, role="share"),
    ]
    assert found(series, "copy_worst", 10.0).series == (0, 1)
    assert found(series, "copy_worst", 9.0).series == (2, 3)
    assert found(series, "copy_worst", 5.0).series == (4, 5)
    # Of two sizes nobody can say which it is.
    assert found([*series, *of_copies(10.0, 13.0, bytes=64)], "copy_worst", 10.0) is None


def test_of_pairs_at_the_same_time_each_is_of_the_class_of_its_own_ends():
    ends = {"source": factories.place("device", 0), "destination": factories.place("device", 1)}
    both = {"engine": "mpi", "experiment": "E9", "operation": "bandwidth", "role": "share"}
    share = factories.series([9.0] * 9, device=None, device_set=[0, 1, 2, 4], **both, **ends)
    far = share | {"destination": factories.place("device", 6)}
    assert (link_class(share, NODE), link_class(far, NODE)) == ("links4", "links2")
    document = factories.document(series=[far, share])
    assert list(made_of.named(document, NODE, "bandwidth_together_links4_worst", "GB/s")) == [1]
    assert list(made_of.named(document, NODE, "bandwidth_links4_worst", "GB/s")) == []


def test_one_series_is_the_worst_of_one():
    assert found(of_copies(10.0), "copy", 10.0) == MadeOf(series=(0,), reduce="worst")
    # That it is of one of several is not known.
    assert found(of_copies(10.0), "copy_two_share", 10.0) is None


def test_what_is_counted_is_made_of_no_series():
    assert found(of_copies(1.0), "differences", 1.0, "count") == MadeOf(series=(), reduce=None)


@pytest.fixture
def session(tmp_path):
    return measured(tmp_path, 0, COPY, 0)


def row(session):
    (check,) = read([str(session)]).checks
    (metric,) = metrics_of(check)
    return metric.series, metric.reduce


def test_what_the_check_wrote_is_believed(session):
    (path,) = session.rglob("result.json")
    document = json.loads(path.read_text())
    assert row(session) == ((0,), "worst")
    made_of.write(path.parent, document, {"copy_worst": MadeOf(series=(0,), reduce="median")})
    assert row(session) == ((0,), "median")


def changed(session, change):
    (path,) = session.rglob("result.json")
    document = json.loads(path.read_text())
    made_of.write(path.parent, document, {"copy_worst": MadeOf(series=(0,), reduce="median")})
    file = path.with_name(made_of.NAME)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    return file


def test_what_is_of_another_run_is_not(session):
    changed(session, {"started": "2020-01-01T00:00:00Z"})
    assert row(session) == ((0,), "worst")


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
        ({"metrics": "none"}, "metrics: input should be an object, not 'none'."),
    ],
)
def test_one_that_is_damaged_is_told_and_the_values_are_there(session, change, said):
    file = changed(session, change)
    assert row(session) == ((0,), "worst")
    for command in (["results", "show"], ["claims"], ["results", "validate"], ["export"]):
        ended = CliRunner().invoke(app, [*command, str(session)])
        assert (ended.exit_code, f"{file}: {said}" in " ".join(ended.output.split())) == (4, True)
    compared = CliRunner().invoke(app, ["compare", str(session), str(session)])
    assert f"{file}: {said}" in " ".join(compared.output.split())


def test_one_that_is_cut_is_told(session):
    file = changed(session, {})
    file.write_text(file.read_text()[:-20])
    shown = CliRunner().invoke(app, ["results", "show", str(session)])
    assert shown.exit_code == 4 and f"{file}: it is not valid JSON (" in shown.stderr
    assert "stream_local" in shown.stdout
