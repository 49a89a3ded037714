"""What a session leaves first, whatever becomes of it, and what a verdict makes of it."""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest

from fabricheck.judge.verdict import evidence, judging
from fabricheck.results import reading
from fabricheck.results.folder import ResultsFolder

pytestmark = pytest.mark.slow

ONE_CHECK = ("-r", "-n", "^stream_local$")

WITHOUT_MPI = "FABRICHECK_MPI=OFF left out checks of ranks on local:host."


def status(suite, name="latest"):
    """Return the exit code of a verdict in the results folder of a suite, and its reasons."""
    name = str(suite.results) if name == "latest" else name
    verdicts = judging.judge(reading.read([name]))
    reasons = [reason.sentence for verdict in verdicts for reason in verdict.reasons]
    return evidence.session_verdict("it", verdicts).exit_code, " ".join(reasons)


@pytest.fixture
def passed(suite):
    """A suite whose only session passed; of one check, and without MPI, it accepts no node."""
    assert suite(*ONE_CHECK).status == 0
    assert status(suite) == (13, WITHOUT_MPI)
    return suite


@pytest.mark.parametrize(
    ("arguments", "variables", "why"),
    [
        (("--mode=smok", "-r"), {}, "before its first check"),
        (("--system=nowhere", "-r"), {}, "before its first check"),
        (("-r", "-n", "nothing"), {}, "before its first check"),
        (ONE_CHECK, {"FABRICHECK_SESSION": "run-3"}, "before its first check"),
    ],
)
def test_an_earlier_pass_does_not_stand_for_a_session_that_left_nothing(
    passed, arguments, variables, why
):
    for name, value in variables.items():
        passed.variables[name] = value
    passed(*arguments, fault="exit-5")
    code, reasons = status(passed)
    assert code == 13 and why in reasons


@pytest.mark.parametrize("places", [
    {"--report-file": "else.json"},
    {"--report-file": "else-{sessionid}"},
    {"--prefix": "else"},
    {"--prefix": "else", "--report-file": "else.json"},
    {"RFM_PREFIX": "else", "RFM_REPORT_FILE": "else.json"},
])  # fmt: skip
def test_a_session_that_writes_elsewhere_is_judged_by_what_it_wrote(passed, places):
    options = []
    for name, place in places.items():
        if name.startswith("--"):
            options.append(f"{name}={passed.folder}/{place}")
        else:
            passed.variables[name] = f"{passed.folder}/{place}"
    passed(*ONE_CHECK, *options, fault="exit-5")
    assert status(passed)[0] == 12


def test_a_session_whose_report_elsewhere_is_gone_is_incomplete(passed):
    report = passed.folder / "else.json"
    passed(*ONE_CHECK, f"--prefix={passed.folder}/else", f"--report-file={report}", fault="exit-5")
    report.unlink()
    code, reasons = status(passed)
    assert code == 13 and "/else.json, as RFM_PREFIX" in reasons


def test_a_run_report_is_one_wherever_it_lies(command, passed, tmp_path):
    passed(*ONE_CHECK, fault="exit-5")
    latest = max(passed.results.glob("reports/*.json"), key=lambda path: path.stat().st_mtime)
    copy = tmp_path / "sent" / "by mail.json"
    copy.parent.mkdir()
    shutil.copy(latest, copy)
    command("verdict", copy, "--output", tmp_path / "v", code=12)


def test_an_overlay_that_does_not_exist_is_refused_before_anything_runs(passed, wording):
    outcome = passed(
        "--system=local:sim-mi250x", *ONE_CHECK, "-S", f"overlay={passed.folder}/nope.yaml"
    )
    assert outcome.status == 1 and "[ RUN" not in outcome
    wording(outcome.lines_with("ERROR"))
    code, reasons = status(passed)
    assert code == 13 and "before its first check" in reasons


def test_a_clock_that_went_back_hides_no_failure(passed):
    """By the clock the session that passed is of a day later."""
    for path in (*passed.results.glob("reports/*"), *passed.results.glob("output/**/result.json")):
        content = json.loads(path.read_text())
        info = content.get("session_info", {})
        for name in info.keys() & {"time_start_unix", "time_end_unix"}:
            info[name] += 86400
        path.write_text(json.dumps(content))
    passed(*ONE_CHECK, fault="exit-5")
    assert status(passed)[0] == 12


@pytest.mark.parametrize("option", ["-l", "-L", "--list-tags", "--dry-run", "--describe",
                                    "--show-config"])  # fmt: skip
def test_what_only_shows_leaves_no_mark(suite, option):
    suite(option)
    assert not (suite.results / "marks").exists()


def test_a_session_is_judged_by_the_name_that_it_was_given(suite, monkeypatch):
    suite.variables["FABRICHECK_SESSION"] = "acceptance-7"
    outcome = suite.shell(*ONE_CHECK)
    assert outcome.text.splitlines()[-1] == "now: fabricheck verdict acceptance-7"
    suite.variables["FABRICHECK_SESSION"] = "acceptance-8"
    suite(*ONE_CHECK, fault="exit-5")
    monkeypatch.setenv("FABRICHECK_RESULTS", str(suite.results))
    assert [status(suite, f"acceptance-{number}")[0] for number in (7, 8)] == [13, 12]


def test_the_mark_says_what_was_started(passed):
    [mark] = ResultsFolder(passed.results).marks
    assert mark.command.startswith("reframe --nocolor -c ")
    assert mark.command.endswith("-r -n '^stream_local$'")
    assert (passed.results / "output" / mark.outputs).is_dir() and not mark.elsewhere


@pytest.mark.parametrize("variable", ["strict_check=no", "stream_local.strict_check=0"])
def test_no_variable_lets_a_check_pass_that_missed_its_limits(suite, variable, wording):
    outcome = suite(*ONE_CHECK, "-S", variable)
    assert outcome.status == 1
    wording(outcome.lines_with("ERROR"))


def test_a_damaged_database_fails_no_session(suite, wording):
    suite.results.mkdir()
    database = suite.results / "results.db"
    database.write_bytes(b"no database" * 100)
    outcome = suite(*ONE_CHECK)
    assert outcome.status == 0
    wording(outcome.lines_with("ReFrame's database"))
    assert status(suite) == (13, WITHOUT_MPI)
    database.unlink()
    suite(*ONE_CHECK)
    with sqlite3.connect(database) as found:
        assert found.execute("SELECT count(*) FROM sessions").fetchone() == (1,)
