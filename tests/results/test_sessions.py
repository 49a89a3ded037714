"""Sessions and the documents that belong to them."""

import json
import os
import shutil
from pathlib import Path

import pytest

import factories
from fabricheck.core.errors import InvalidFile, InvalidInputError, NotFoundError
from fabricheck.results import reading
from fabricheck.results.folder import ResultsFolder, documents_of, find_documents
from session_builder import SessionBuilder

START = factories.SESSION_START


def document_of(folder, name="stream_local", kind="output", file="result.json", **changes):
    return factories.write(
        factories.case_folder(folder, name, kind) / file, factories.document(**changes)
    )


def test_a_session_and_its_document(one_session):
    folder = ResultsFolder.default()
    session = folder.latest()
    assert (session.id, session.passed, session.failed, session.skipped) == ("run-0", 1, 0, 0)
    [entry] = documents_of(session)
    assert entry.problem is None
    assert entry.case.name == "stream_local" and entry.case.where == "local:host"
    assert entry.document["program"]["name"] == "stream"
    assert folder.unreported_paths() == []


def test_latest_is_by_time_and_not_by_number(results_folder):
    SessionBuilder(results_folder, 9, start=START).write()
    SessionBuilder(results_folder, 2, start=START + 1000).write()
    SessionBuilder(results_folder, 10, start=START + 500).write()
    folder = ResultsFolder(results_folder)
    assert [session.id for session in folder.sessions] == ["run-2", "run-10", "run-9"]
    assert folder.latest().id == "run-2"


@pytest.mark.parametrize("name", ["run-3", "3", "00000003"])
def test_names_of_a_session(results_folder, name):
    SessionBuilder(results_folder, 3).write()
    SessionBuilder(results_folder, 4).write()
    assert ResultsFolder(results_folder).session(name).id == "run-3"


@pytest.mark.parametrize("name", ["5", "0000", "nonsense"])
def test_names_of_no_session_or_of_several(results_folder, name):
    SessionBuilder(results_folder, 3).write()
    SessionBuilder(results_folder, 4).write()
    with pytest.raises(NotFoundError, match=f"no session '{name}' .* run-3, run-4"):
        ResultsFolder(results_folder).session(name)


def test_a_failed_check_has_its_document_in_the_stage(results_folder):
    failed = factories.case(result="fail", fail_reason="sanity error: wrong data")
    SessionBuilder(results_folder).add(failed, factories.document()).write()
    folder = ResultsFolder(results_folder)
    [entry] = documents_of(folder.latest())
    assert entry.document is not None and not entry.case.passed
    assert folder.latest().failed == 1


def test_a_killed_run_has_a_partial_document(results_folder):
    killed = factories.case(result="abort")
    SessionBuilder(results_folder).add(killed, factories.killed_document()).write()
    folder = ResultsFolder(results_folder)
    [entry] = documents_of(folder.latest())
    assert entry.document["complete"] is False


def test_a_check_without_a_document_is_a_sentence(results_folder, wording):
    lost = factories.case(result="fail", fail_reason="There is no\nprogram.")
    quiet = factories.case("build", tags=["build"])
    skipped = factories.case("other", result="skip")
    SessionBuilder(results_folder).add(lost).add(quiet).add(skipped).write()
    folder = ResultsFolder(results_folder)
    [entry] = documents_of(folder.latest())
    wording(str(entry.problem))
    assert folder.latest().skipped == 1


def test_a_corrupt_document_is_a_sentence(one_session):
    path = factories.case_folder(one_session, "stream_local") / "result.json"
    path.write_text(path.read_text()[:500])
    folder = ResultsFolder(one_session)
    [entry] = documents_of(folder.latest())
    assert isinstance(entry.problem, InvalidFile) and str(path) in str(entry.problem)


def test_the_last_attempt_counts_and_earlier_failures_are_kept(results_folder):
    first = [factories.case(result="fail"), factories.case("other")]
    SessionBuilder(results_folder).bare(first).rerun().add(factories.case()).write()
    cases = {case.name: case for case in ResultsFolder(results_folder).latest().cases}
    assert cases["stream_local"].passed and cases["stream_local"].failed_attempts == 1
    assert cases["other"].passed and cases["other"].failed_attempts == 0


def test_what_runs_twice_in_one_run_are_two_cases(results_folder):
    """As --repeat, -P and --distribute have it: one name, a unique name for each."""
    session = SessionBuilder(results_folder)
    for number, result in enumerate(("fail", "pass")):
        case = factories.case(unique_name=f"stream_local_{number}", result=result)
        session.add(case, factories.document())
    session.write()
    folder = ResultsFolder(results_folder)
    session = folder.latest()
    assert (session.passed, session.failed, session.retried) == (1, 1, 0)
    assert [case.outcome for case in session.cases] == ["fail", "pass"]
    assert len({entry.path for entry in documents_of(session)}) == 2
    assert folder.unreported_paths() == []


def test_what_has_one_name_in_one_run_is_not_taken_for_a_retry(results_folder):
    SessionBuilder(results_folder).add(factories.case(result="fail")).add(factories.case()).write()
    session = ResultsFolder(results_folder).latest()
    assert (session.passed, session.failed, session.retried) == (1, 1, 0)


def test_the_document_of_an_attempt_before_belongs_to_its_session(results_folder):
    stage = factories.case_folder(results_folder, "first", "stage")
    first = factories.case(result="fail", stagedir=str(stage))
    session = SessionBuilder(results_folder).add(first, factories.document())
    session.rerun().add(factories.case(), factories.document()).write()
    folder = ResultsFolder(results_folder)
    [case] = folder.latest().cases
    assert (case.outcome, folder.latest().retried) == ("pass at attempt 2", 1)
    assert folder.unreported_paths() == []
    assert len(list(documents_of(folder.latest()))) == 1


@pytest.mark.parametrize(
    ("result", "passed", "failed", "skipped"),
    [
        ("pass", 1, 0, 0),
        ("xfail", 1, 0, 0),
        ("fail", 0, 1, 0),
        ("xpass", 0, 1, 0),
        ("abort", 0, 1, 0),
        ("fail_deps", 0, 1, 0),
        ("skip", 0, 0, 1),
        ("a word of a later ReFrame", 0, 1, 0),
    ],
)
def test_results_of_reframe(results_folder, result, passed, failed, skipped):
    SessionBuilder(results_folder).add(factories.case(result=result)).write()
    session = ResultsFolder(results_folder).latest()
    assert (session.passed, session.failed, session.skipped) == (passed, failed, skipped)


def test_a_document_that_a_later_session_overwrote(results_folder, wording):
    SessionBuilder(results_folder, start=START - 1000).add(factories.case()).write()
    SessionBuilder(results_folder, 1).add(factories.case(), factories.document()).write()
    folder = ResultsFolder(results_folder)
    [entry] = documents_of(folder.session("0"))
    assert entry.document is None
    wording(str(entry.problem))
    assert [folder.clocks(session) for session in folder.sessions] == [["measured"], []]
    assert next(documents_of(folder.session("1"))).document is not None


def test_a_document_of_another_time_is_not_taken(one_session, wording):
    document_of(
        one_session, started="2026-02-02T03:04:05.250Z", finished="2026-02-02T03:04:06.250Z"
    )
    folder = ResultsFolder(one_session)
    [entry] = documents_of(folder.latest())
    wording(str(entry.problem))
    # It is told once, by the session that claims it.
    assert folder.unreported_paths() == []


def test_a_document_in_the_folder_of_its_session_is_of_no_other(results_folder, wording):
    place = results_folder / "output/20260102T030405-17/local/host/host/stream_local"
    SessionBuilder(results_folder).add(factories.case(outputdir=str(place))).write()
    other = "2026-02-02T03:04:05.250Z"
    factories.write(place / "result.json", factories.document(started=other, finished=other))
    folder = ResultsFolder(results_folder)
    [entry] = documents_of(folder.latest())
    wording(str(entry.problem))
    assert folder.unreported_paths() == []


def test_clocks_of_other_hosts_may_differ(one_session):
    late = {"started": "2026-01-02T03:05:30Z", "finished": "2026-01-02T03:05:31Z"}
    folder = ResultsFolder(one_session)
    document_of(one_session, **late)
    assert next(documents_of(folder.latest())).document is None
    document_of(one_session, host=factories.document()["host"] | {"hostname": "node2"}, **late)
    assert next(documents_of(folder.latest())).document is not None


def test_a_killed_session_leaves_documents_of_no_report(results_folder):
    document_of(results_folder, kind="stage")
    document_of(results_folder, "other", "stage", "result.json.partial")
    folder = ResultsFolder(results_folder)
    assert folder.sessions == []
    assert len(folder.unreported_paths()) == 2
    with pytest.raises(NotFoundError, match=r"no session in .*make run"):
        folder.latest()


def test_documents_of_reports_are_not_unreported_after_a_copy(one_session, tmp_path):
    # A copy has new modification times; the times inside the documents decide.
    moved = tmp_path / "moved"
    shutil.copytree(one_session, moved)
    shutil.rmtree(one_session)
    for path in find_documents(moved):
        os.utime(path, (START + 10**6, START + 10**6))
    folder = ResultsFolder(moved)
    [entry] = documents_of(folder.latest())
    assert entry.document is not None and entry.path.is_relative_to(moved)
    assert folder.unreported_paths() == []


@pytest.mark.parametrize("stamp", ["", "20260102T030405-17"], ids=["plain", "timestamps"])
@pytest.mark.parametrize(("result", "kind"), [("pass", "output"), ("fail", "stage")])
def test_results_that_were_moved_are_found(results_folder, tmp_path, stamp, result, kind):
    """With ReFrame's option for timestamps each session has a folder in output and in stage."""
    gone = tmp_path / "gone"
    stamps = [stamp and f"{stamp}{number}" for number in (0, 1)]
    for number, one in enumerate(stamps):
        within = Path(one) / "local" / "host" / "host" / "stream_local"
        places = {f"{name}dir": str(gone / name / within) for name in ("output", "stage")}
        start = START - 1000 * (1 - number)
        report = (
            SessionBuilder(results_folder, number, start=start)
            .add(factories.case(result=result, **places))
            .write_report()
        )
        content = json.loads(report.read_text())
        for name in ("output", "stage"):
            content["session_info"][f"prefix_{name}"] = str(gone / name / one)
        report.write_text(json.dumps(content))
        times = (("02:47:26", "02:47:27"), ("03:04:05", "03:04:15"))[number]
        changes = {
            name: f"2026-01-02T{time}Z"
            for name, time in zip(("started", "finished"), times, strict=True)
        }
        path = results_folder / kind / within / "result.json"
        factories.write(path, factories.document(**changes))
    folder = ResultsFolder(results_folder)
    for session, one in zip(folder.sessions, stamps[::-1], strict=True):
        [entry] = documents_of(session)
        place = results_folder / kind / one / "local" / "host" / "host" / "stream_local"
        assert entry.path == place / "result.json"
        # Without a folder of its own, what the first session left was overwritten by the second.
        assert (entry.document is None) == (not stamp and session.id == "run-0")
    assert folder.unreported_paths() == []


def test_a_corrupt_claimed_document_is_reported_once(one_session):
    path = factories.case_folder(one_session, "stream_local") / "result.json"
    path.write_text("{")
    folder = ResultsFolder(one_session)
    assert folder.unreported_paths() == []
    assert next(documents_of(folder.latest())).problem is not None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"session_info": {}, "runs": 3}', "[" * 100_000],
)
def test_an_unreadable_report_is_not_passed_over(one_session, text):
    report = one_session / "reports" / "run-1.json"
    report.write_text(text)
    later = report.stat().st_mtime + 10
    os.utime(report, (later, later))
    folder = ResultsFolder(one_session)
    assert len(folder.sessions) == len(folder.problems) == 1
    assert "\n" not in str(folder.problems[0]) and "run-1.json" in str(folder.problems[0])
    with pytest.raises(InvalidInputError, match=r"run-1\.json"):
        folder.latest()
    for name in ("1", "run-1"):
        with pytest.raises(InvalidInputError, match=r"run-1\.json"):
            folder.session(name)
    os.utime(report, (0, 0))
    assert ResultsFolder(one_session).latest().id == "run-0"


def test_of_two_unreadable_reports_the_later_one_is_named(one_session):
    written = (one_session / "reports" / "run-0.json").stat().st_mtime
    # The one with the smaller number was written later.
    for number, after_s in ((1, 20), (2, 10)):
        report = one_session / "reports" / f"run-{number}.json"
        report.write_text("{")
        os.utime(report, (written + after_s, written + after_s))
    with pytest.raises(InvalidInputError, match=r"run-1\.json"):
        reading.read([str(one_session)])


def test_a_report_that_is_a_folder(results_folder):
    (results_folder / "reports" / "run-0.json").mkdir(parents=True)
    folder = ResultsFolder(results_folder)
    assert "cannot be read" in str(folder.problems[0])


def test_a_report_that_is_gone(results_folder, wording):
    (results_folder / "reports").mkdir(parents=True)
    (results_folder / "reports" / "run-0.json").symlink_to("nowhere")
    folder = ResultsFolder(results_folder)
    wording(str(folder.problems[0]))


def test_no_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("FABRICHECK_RESULTS", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError, match="no results folder results: run `make run`"):
        ResultsFolder.default()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "passed", "failed", "retried"),
    [(["--repeat=2"], 2, 2, 0), (["--max-retries=1"], 1, 1, 1)],
)
def test_a_report_of_the_installed_reframe(tmp_path, options, passed, failed, retried):
    """The report is ReFrame's own here, of one check that passes and one that fails."""
    import subprocess
    import sys

    factories.write(tmp_path / "good.json")
    (tmp_path / "settings.py").write_text(
        "site_configuration = {'systems': [{'name': 'local', 'hostnames': ['.*'], 'partitions': "
        "[{'name': 'host', 'scheduler': 'local', 'launcher': 'local', 'environs': ['host']}]}],"
        "'environments': [{'name': 'host'}]}\n"
    )
    (tmp_path / "checks.py").write_text(
        "import reframe as rfm\n"
        "import reframe.utility.sanity as sn\n"
        "class Base(rfm.RunOnlyRegressionTest):\n"
        "    valid_systems = valid_prog_environs = ['*']\n"
        f"    executable = 'sed'\n"
        "    executable_opts = ['-n', 'p']\n"
        f"    prerun_cmds = ['now=$(date -u +%FT%TZ)', 'sed -e \"s/2026-01-02T03:04:..Z/$now/\" "
        f'-e "s/2026-01-02T03:04:..+00:00/$now/" -e "s/node1/$(hostname)/" '
        f"{tmp_path}/good.json > result.json']\n"
        "    keep_files = ['result.json']\n"
        "    tags = {'E1'}\n"
        "@rfm.simple_test\n"
        "class Good(Base):\n"
        "    sanity_patterns = sn.assert_true(True)\n"
        "@rfm.simple_test\n"
        "class Bad(Base):\n"
        "    sanity_patterns = sn.assert_true(False)\n"
    )
    results = tmp_path / "results"
    command = [sys.executable, str(Path(sys.executable).with_name("reframe"))]
    command += ["-C", "settings.py", "-c", "checks.py", "-r", "--prefix", str(results)]
    command += ["--report-file", str(results / "reports" / "run-{sessionid}.json"), *options]
    (results / "reports").mkdir(parents=True)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    folder = ResultsFolder(results)
    session = folder.latest()
    assert json.loads(session.report.read_text())["session_info"]["data_version"] == "4.2"
    assert (session.passed, session.failed, session.retried) == (passed, failed, retried)
    entries = list(documents_of(session))
    assert len({entry.case.name for entry in entries}) == len(entries) == passed + failed
    for entry in entries:
        assert entry.problem is None
        assert entry.path.is_relative_to(results / ("output" if entry.case.passed else "stage"))
    assert folder.unreported_paths() == []


def test_of_a_check_that_passed_the_document_in_the_output_counts(results_folder):
    """Its stage keeps that of a run before where ReFrame was told to keep the stages."""
    SessionBuilder(results_folder).passed("stream_local", node=None).write()
    older = factories.document(series=[])
    factories.write(
        factories.case_folder(results_folder, "stream_local", "stage") / "result.json", older
    )
    [entry] = documents_of(ResultsFolder(results_folder).latest())
    assert len(entry.document["series"]) == 1
