"""Which values of which sessions are used, and which campaigns these are."""

import json
from pathlib import Path

import pytest

import factories
from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.judge.calibration.gathering import Value, gather, middle, missing
from fabricheck.rfm.acceptance import Bound
from session_builder import HOST, measured, several

COPY = {"copy_worst": 100.0}
GOOD = {"series": [factories.series()]}


def test_values_and_the_width_of_what_decided_them(tmp_path):
    series = [factories.series([98.0, 99, 100, 101, 102, 100, 100]), factories.series([50.0] * 7)]
    folder = measured(tmp_path, 0, COPY | {"copy_median": 75.0}, 0, document={"series": series})
    (run,) = gather([folder], HOST).runs
    worst, median = (run.values["stream_local", name] for name in ("copy_worst", "copy_median"))
    assert (worst.value, worst.unit) == (100.0, "GB/s")
    assert worst.half_width == series[0]["relative_half_width"] > 0
    # The median of two series has no interval of its own.
    assert (median.value, median.half_width) == (75.0, None)


def test_what_compares_a_node_with_itself_is_left_to_its_rule(tmp_path):
    folder = measured(tmp_path, 0, {"copy_worst": 100.0, "copy_pair": 99.0}, 0)
    (path,) = folder.rglob("metrics.json")
    content = json.loads(path.read_text())
    content["metrics"]["copy_pair"] |= {"compared": "99 % of the others", "rule": "its peers"}
    path.write_text(json.dumps(content))
    (run,) = gather([folder], HOST).runs
    assert [metric for _, metric in run.values] == ["copy_worst"]


def test_no_repetition_hides_one_that_cannot_be_true():
    peak = Bound(110.0, "derived", "the peak")
    values = [Value(one, "GB/s", bound=peak) for one in (100.0, 120.0, 100.0)]
    assert middle(values).value == 120.0 and middle(values).impossible
    assert middle(values[::2]).value == 100.0


def test_sessions_are_in_the_order_of_time_and_count_once(tmp_path):
    late, early = measured(tmp_path, 1, COPY, 5), measured(tmp_path, 0, COPY, 0)
    report = early / "reports" / "run-0.json"
    runs = gather([late, early, report], HOST).runs
    assert [run.session.report.name for run in runs] == ["run-0.json", "run-1.json"]
    assert [run.number for run in runs] == [1, 2]


@pytest.mark.parametrize(("minutes", "campaigns"), [(15.9, [1, 1]), (16.1, [1, 2])])
def test_a_pause_makes_another_campaign(tmp_path, minutes, campaigns):
    # A session of 60 s: the pause is that from its end on.
    folders = [measured(tmp_path, 0, COPY, 0), measured(tmp_path, 1, COPY, minutes)]
    assert [run.campaign for run in gather(folders, HOST).runs] == campaigns
    assert [run.campaign for run in gather(folders, HOST, pause=60).runs] == [1, 1]


@pytest.mark.parametrize(
    ("ids", "campaigns"),
    [(("GPU-a", "GPU-b"), [1, 1]), (("GPU-a",), [1, 1]), (("GPU-a", "GPU-c"), [1, 2])],
)
def test_other_devices_make_another_campaign(tmp_path, ids, campaigns):
    folders = [measured(tmp_path, 0, COPY, 0), measured(tmp_path, 1, COPY, 2, ids)]
    assert [run.campaign for run in gather(folders, HOST).runs] == campaigns


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"result": "fail", "fail_reason": "sanity error: wrong data", "fail_phase": "sanity"},
         "failed (fail)"),
        ({"result": "fail", "fail_reason": "too slow", "fail_phase": "performance"},
         "missed its reference"),
        ({"result": "skip"}, "skipped"),
        ({"perfvalues": {}}, "no recorded values"),
    ],
)  # fmt: skip
def test_a_case_without_values_is_named(tmp_path, case, reason, wording):
    (run,) = gather([measured(tmp_path, 0, COPY, 0, **case)], HOST).runs
    assert run.values == {}
    (unused,) = run.unused
    assert (unused.check, unused.reason) == ("stream_local", reason)
    wording(unused.sentence)


def test_a_case_without_its_document_or_with_faults_is_named(tmp_path):
    lost = measured(tmp_path, 0, COPY, 0)
    next(lost.rglob("result.json")).unlink()
    faulty = measured(tmp_path, 1, COPY, 2, document={"faults_injected": ["flip-bit"]})
    reasons = [run.unused[0].reason for run in gather([lost, faulty], HOST).runs]
    assert reasons == ["no valid result document", "faults were injected"]


def test_a_case_that_passed_at_its_second_attempt_only_is_not_used(tmp_path):
    results = measured(tmp_path, 0, COPY, 0)
    report = results / "reports" / "run-0.json"
    content = json.loads(report.read_text())
    failed = {"testcases": [content["runs"][0]["testcases"][0] | {"result": "fail"}]}
    report.write_text(json.dumps(content | {"runs": [failed, *content["runs"]]}))
    (run,) = gather([results], HOST).runs
    assert [one.reason for one in run.unused] == ["failed at an earlier attempt"]


def test_a_check_repeated_in_a_session_counts_once_with_its_median(tmp_path):
    results = measured(tmp_path, 0, COPY, 0)
    report = results / "reports" / "run-0.json"
    content = json.loads(report.read_text())
    (case,) = content["runs"][0]["testcases"]
    cases = []
    for number, value in enumerate((100.0, 90.0, 98.0)):
        name = f"stream_local %$REPEAT_NO={number}"
        figures = {"local:host:copy_worst": [value, 0, None, None, "GB/s", "pass"]}
        cases.append(case | {"display_name": name, "unique_name": name, "perfvalues": figures})
    report.write_text(json.dumps(content | {"runs": [{"testcases": cases}]}))
    (run,) = gather([results], HOST).runs
    assert run.values["stream_local", "copy_worst"].value == 98.0


def test_metrics_that_some_sessions_lack(tmp_path):
    folders = [
        measured(tmp_path, 0, COPY, 0),
        measured(tmp_path, 1, COPY | {"add_worst": 9.0}, 2),
        measured(tmp_path, 2, COPY, 4, result="skip"),
    ]
    lacking = missing(gather(folders, HOST).runs)
    assert lacking == {
        ("stream_local", "add_worst"): [1, 3],
        ("stream_local", "copy_worst"): [3],
    }


def change_report(results, **changes):
    (report,) = (results / "reports").glob("*.json")
    content = json.loads(report.read_text())
    content["session_info"] |= changes
    report.write_text(json.dumps(content))


@pytest.mark.parametrize("version", ["4.1", "4.3", "5.0"])
def test_another_version_of_the_report(tmp_path, version):
    results = measured(tmp_path, 0, COPY, 0)
    change_report(results, data_version=version)
    with pytest.raises(
        InvalidInputError, match=r"run-0\.json: it has version .* from version 4\.2"
    ):
        gather([results], HOST)


def test_a_simulated_session_is_no_measurement(tmp_path):
    results = measured(tmp_path, 0, COPY, 0, document=factories.simulated_document())
    # The same times as the document that the simulated one replaced.
    change_report(results, time_start_unix=0, time_end_unix=4e9)
    with pytest.raises(InvalidInputError, match="is simulated, but local:host is no simulated"):
        gather([results], HOST)


def test_an_unreadable_report_among_the_sessions(tmp_path):
    results = measured(tmp_path, 0, COPY, 0)
    (results / "reports" / "run-7.json").write_text("{")
    with pytest.raises(InvalidInputError, match=r"run-7\.json: this is not a complete run report"):
        gather([results], HOST)


def test_a_value_that_is_no_number_is_refused(tmp_path, wording):
    results = measured(tmp_path, 0, COPY, 0)
    report = results / "reports" / "run-0.json"
    content = json.loads(report.read_text())
    content["runs"][0]["testcases"][0]["perfvalues"]["local:host:copy_worst"][0] = float("nan")
    report.write_text(json.dumps(content))
    with pytest.raises(InvalidInputError) as error:
        gather([results], HOST)
    wording(str(error.value))


@pytest.mark.parametrize("unit", ["MB/s", ""])
def test_an_unknown_unit(tmp_path, unit):
    with pytest.raises(InvalidInputError, match="metric copy_worst of stream_local is in"):
        gather([measured(tmp_path, 0, COPY, 0, unit=unit, document=GOOD)], HOST)


def test_a_unit_that_changes_between_sessions(tmp_path):
    folders = [measured(tmp_path, 0, COPY, 0), measured(tmp_path, 1, COPY, 2, unit="us")]
    with pytest.raises(InvalidInputError, match="is in us, but in GB/s in an earlier session"):
        gather(folders, HOST)


def test_two_environments_are_two_references(tmp_path):
    results = measured(tmp_path, 0, COPY, 0)
    report = results / "reports" / "run-0.json"
    content = json.loads(report.read_text())
    (case,) = content["runs"][0]["testcases"]
    content["runs"][0]["testcases"].append(case | {"environ": "other"})
    report.write_text(json.dumps(content))
    with pytest.raises(UsageError, match="in environments host and other"):
        gather([results], HOST)


def test_nothing_there(tmp_path, monkeypatch):
    # Where somebody ran a session in the checkout, that folder would be looked at.
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path / "results"))
    with pytest.raises(NotFoundError, match="no results folder"):
        gather([tmp_path / "none"], HOST)
    with pytest.raises(NotFoundError, match="There is no session of h200:x2"):
        gather(several(tmp_path, [1.0, 1.0]), "h200:x2")
    stray = tmp_path / "stray.json"
    stray.write_text("{}")
    with pytest.raises(NotFoundError, match="is not a run report"):
        gather([stray], HOST)


def test_names_of_sessions_are_those_of_all_commands(tmp_path, monkeypatch):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(measured(tmp_path, 0, COPY, 0)))
    for name in ("latest", "run-0", "0"):
        (run,) = gather([Path(name)], HOST).runs
        assert run.values["stream_local", "copy_worst"].value == 100.0
    with pytest.raises(NotFoundError, match="There is no session 'run-9'"):
        gather([Path("run-9")], HOST)
