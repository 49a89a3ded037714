"""Results that were copied, changed by hand, or hold texts that no terminal should get."""

import json
import shutil

import pytest

import factories
from fabricheck.core.errors import InvalidFile
from fabricheck.core.text import printable
from fabricheck.results.entry import read_entry
from fabricheck.results.folder import ResultsFolder, documents_of
from session_builder import SessionBuilder


def test_a_copy_is_read_where_it_lies(one_session, tmp_path):
    """The report names the folders that it was copied from, and these are still there."""
    copy = tmp_path / "copy"
    shutil.copytree(one_session, copy)
    factories.write(
        factories.case_folder(one_session, "stream_local") / "result.json",
        factories.document(notes=["changed since"]),
    )
    folder = ResultsFolder(copy)
    [entry] = documents_of(folder.latest())
    assert entry.path.is_relative_to(copy) and entry.document["notes"] == []
    assert folder.unreported_paths() == []
    assert all(path.is_relative_to(copy) for path in folder.latest().outputs[:1])


def test_results_elsewhere_than_the_reports_are_found(results_folder, tmp_path):
    place = tmp_path / "scratch" / "stream_local"
    SessionBuilder(results_folder).add(factories.case(outputdir=str(place))).write()
    factories.write(place / "result.json")
    folder = ResultsFolder(results_folder)
    assert [entry.path for entry in documents_of(folder.latest())] == [place / "result.json"]


def test_a_document_kept_in_the_stage_too_is_its_sessions(one_session):
    """ReFrame's --keep-stage-files."""
    stage = factories.case_folder(one_session, "stream_local", "stage")
    shutil.copytree(factories.case_folder(one_session, "stream_local"), stage)
    folder = ResultsFolder(one_session)
    assert len(list(documents_of(folder.latest()))) == 1
    assert folder.unreported_paths() == []


def test_results_that_a_link_leads_to(one_session, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(one_session)
    folder = ResultsFolder(link)
    assert [entry.problem for entry in documents_of(folder.latest())] == [None]
    assert folder.unreported_paths() == []


def test_an_older_document_is_told_with_both_versions(one_session, wording):
    path = factories.case_folder(one_session, "stream_local") / "result.json"
    factories.write(path, factories.document(schema_version=0))
    folder = ResultsFolder(one_session)
    [entry] = documents_of(folder.latest())
    assert isinstance(entry.problem, InvalidFile)
    wording(str(entry.problem))


def test_the_clocks_are_of_a_sessions_own_documents(one_session):
    folder = ResultsFolder(one_session)
    path = factories.case_folder(one_session, "stream_local") / "result.json"
    assert folder.clocks(folder.latest()) == ["measured"]
    factories.write(path, factories.document(started="2026-02-02T00:00:00Z"))
    assert folder.clocks(folder.latest()) == []
    path.write_text(path.read_text()[:500])
    assert folder.clocks(folder.latest()) == []


@pytest.mark.parametrize("started", ["yesterday", "9999-12-31T23:59:59-23:59", "", "1"])
def test_a_document_of_no_time_is_one_problem(one_session, started):
    path = factories.case_folder(one_session, "stream_local") / "result.json"
    factories.write(path, factories.document(started=started))
    folder = ResultsFolder(one_session)
    [entry] = documents_of(folder.latest())
    assert entry.document is None and "\n" not in str(entry.problem)
    assert folder.clocks(folder.latest()) == []
    assert all(read_entry(path).document is not None for path in folder.unreported_paths())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07\r", "\\x1b[31mred\\x07\\r"),
        ("\x9b31m \u202eleft", "\\x9b31m \\u202eleft"),
        ("<b>&amp;\ttwo\nlines</b> \u00e4\U0001f600", "<b>&amp;\ttwo\nlines</b> \u00e4\U0001f600"),
    ],
)
def test_only_what_controls_is_escaped(text, shown):
    assert printable(text) == shown


def test_texts_of_a_report_do_not_control_a_terminal(command, results_folder):
    odd = "<script>alert(1)</script>\x1b[2J"
    case = factories.case(result="fail", display_name=odd, fail_reason=f"{odd}\nmore")
    report = SessionBuilder(results_folder).add(case).write_report()
    content = json.loads(report.read_text())
    content["session_info"]["version"] = odd
    report.write_text(json.dumps(content))
    for line in ("list", "show", "validate"):
        result = command("results", line, code=None)
        assert "\x1b" not in result.output and "Traceback" not in result.output
    assert "<script>alert(1)</script>\\x1b[2J @local:host (fail)" in result.stdout


def test_texts_of_a_document_do_not_control_a_terminal(command, one_session):
    outcome = {"exit_code": 4, "status": "software", "message": "bad \x1b[2J\x9b2J <i>"}
    factories.write(
        factories.case_folder(one_session, "stream_local") / "result.json",
        factories.document(outcome=outcome, complete=False, notes=["note \x1b[2J"]),
    )
    result = command("results", "show")
    assert "\x1b" not in result.output and "\x9b" not in result.output
    assert "bad \\x1b[2J\\x9b2J <i>" in result.output


def test_names_of_files_do_not_control_a_terminal(command, tmp_path):
    path = tmp_path / "odd \x1b[2J" / "result.json"
    path.parent.mkdir()
    path.write_text("{")
    for line in ("show", "validate"):
        result = command("results", line, path.parent, code=4)
        assert "\x1b" not in result.output
        assert "odd \\x1b[2J/result.json: is not JSON" in result.output


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("uuid", None),
        ("hostname", 3),
        ("time_start_unix", True),
        ("time_end_unix", float("nan")),
        ("prefix_output", []),
    ],
)
def test_what_a_report_has_in_another_form_is_named(results_folder, place, value):
    report = SessionBuilder(results_folder).add(factories.case()).write_report()
    content = json.loads(report.read_text())
    content["session_info"][place] = value
    report.write_text(json.dumps(content))
    [problem] = ResultsFolder(results_folder).problems
    said = f"{report}: $.session_info.{place}: this differs from the run reports of ReFrame 4.10."
    assert str(problem) == said


@pytest.mark.parametrize(
    "recorded",
    [
        [1.0, 0, None, None, "GB/s"],
        ["1.0", 0, None, None, "GB/s", "pass"],
        [1.0, float("nan"), None, None, "GB/s", "pass"],
        [1.0, True, None, None, "GB/s", "pass"],
        [1.0, 0, None, None, 7, "pass"],
        [10**400, 0, None, None, "GB/s", "pass"],
        {},
    ],
)
def test_a_recorded_value_of_another_form(results_folder, recorded):
    SessionBuilder(results_folder).add(
        factories.case(perfvalues={"local:host:copy": recorded})
    ).write()
    [problem] = ResultsFolder(results_folder).problems
    assert "$.runs[0].testcases[0].perfvalues['local:host:copy']" in str(problem)


def test_a_key_that_stands_twice_is_refused(results_folder, wording):
    """Of two equal keys a parser takes the last."""
    report = SessionBuilder(results_folder).add(factories.case()).write_report()
    text = report.read_text()
    report.write_text(text.replace('"result": "pass"', '"result": "fail",\n"result": "pass"'))
    [problem] = ResultsFolder(results_folder).problems
    wording(str(problem))


def test_a_recorded_value_of_a_later_reframe_may_say_more(results_folder):
    values = {"local:host:copy": [1, 0, None, None, None, "pass", "more"], "a:b:none": [None] * 6}
    SessionBuilder(results_folder).add(factories.case(perfvalues=values)).write()
    [case] = ResultsFolder(results_folder).latest().cases
    assert case.values == {"copy": (1, "")}
