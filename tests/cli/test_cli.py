"""The command line as a user meets it: tables, sentences, exit codes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fabricheck
import factories
from fabricheck.cli import app, results_list
from fabricheck.core.text import ranges
from session_builder import SessionBuilder

GOOD, USAGE, NOTHING, INVALID = 0, 2, 3, 4

HEAD = ["Session", "Date", "Partitions", "Checks", "Passed", "Failed", "Retried", "Clock"]


def write_result(folder, name="stream_local", kind="output", **changes):
    return factories.write(
        factories.case_folder(folder, name, kind) / "result.json", factories.document(**changes)
    )


def scan(**changes):
    """Series of one operation over sizes and blocks; the block decides the value."""
    return [
        factories.series(
            [10.0 * block / 64 + index / 100 for index in range(9)],
            bytes=size,
            bytes_moved=2 * size,
            block_size=block,
            host_clock=None,
            **changes,
        )
        for size in (1 << 20, 1 << 21)
        for block in (64, 256, 128)
    ]


def test_version_and_help(command):
    assert command("--version").stdout == f"fabricheck {fabricheck.__version__}\n"
    text = " ".join(command("--help").stdout.split())
    assert text.index("verdict") < text.index("every-node") < text.index("results Sessions")
    assert command().stdout == command("--help").stdout
    assert "coverage" in command("results", "--help").stdout
    assert "4 an input is unreadable, invalid or incomplete" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bogus"], "There is no command 'bogus'"),
        (["results", "bogus"], "There is no command 'bogus'"),
        (["results"], "Missing command"),
        (["results", "list", "--limti"], "No such option: --limti"),
        (["compare", "a", "b", "--floor", "-1"], "Invalid value for '--floor'"),
        (["results", "coverage", "a", "b"], "unexpected extra argument"),
    ],
)
def test_bad_usage_is_one_sentence(command, arguments, said):
    result = command(*arguments, code=USAGE)
    assert said in result.stderr and len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_no_results_folder(command, tmp_path, monkeypatch, wording):
    monkeypatch.setenv("FABRICHECK_RESULTS", str(tmp_path / "none"))
    for line in ("list", "show", "validate"):
        wording(command("results", line, code=NOTHING).stderr)


def test_no_session(command, results_folder, wording):
    for line in ("list", "show", "validate"):
        wording(command("results", line, code=NOTHING).stderr)


def test_list(command, one_session, monkeypatch):
    later = factories.SESSION_START + 3600
    cases = [factories.case("a", result="fail"), factories.case("b", partition="gpu")]
    SessionBuilder(one_session, 1, start=later).bare(cases).write()
    lines = command("results", "list").stdout.splitlines()
    assert lines[0].split() == HEAD
    assert lines[1].split()[0] == "run-1" and lines[1].split()[-5:] == ["2", "1", "1", "0", "-"]
    assert "local:gpu, local:host" in lines[1]
    assert lines[2].split()[0] == "run-0"
    assert lines[2].split()[-5:] == ["1", "1", "0", "0", "measured"]
    monkeypatch.setattr(results_list, "MOST", 1)
    short = command("results", "list").stdout
    assert "run-0" not in short and "and 1 more: --all" in short
    assert "run-0" in command("results", "list", "--all").stdout
    found = command("results", "list", "--all", json=True).json
    assert [row["session"] for row in found["sessions"]] == ["run-1", "run-0"]
    assert found["sessions"][1]["clock"] == ["measured"]


def test_list_names_an_unreadable_report_and_shows_the_others(command, one_session, wording):
    (one_session / "reports" / "run-7.json").write_text("{")
    result = command("results", "list", code=INVALID)
    assert "run-0" in result.stdout
    wording(result.stderr)


@pytest.mark.parametrize("start", [1e300, -1e300, float("nan"), 10**400, 253402300800])
def test_a_report_of_no_time(command, one_session, start):
    SessionBuilder(one_session, 7, start=start).write()
    for line in ("list", "show"):
        result = command("results", line, code=INVALID)
        assert "run-7.json: " in result.stderr and len(result.stderr.splitlines()) == 1


def test_a_pipe_is_no_document(command, one_session, tmp_path, wording):
    pipe = tmp_path / "pipe" / "result.json"
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    wording(command("results", "validate", pipe, code=INVALID).stdout)
    for path in (pipe, pipe.parent):
        wording(command("results", "show", path, code=INVALID).stderr)
    os.mkfifo(one_session / "reports" / "run-7.json")
    wording(command("results", "list", code=INVALID).stderr)


def test_a_host_of_no_name(command, one_session, wording):
    host = factories.document()["host"] | {"hostname": "node\ud800"}
    path = write_result(one_session, host=host)
    for line in (["show", path], ["validate", path], ["show"]):
        wording(command("results", *line, code=INVALID).output.splitlines()[-1])
    report = one_session / "reports" / "run-0.json"
    report.write_text(report.read_text().replace('"node1"', '"node\\ud800"'))
    wording(command("results", "list", code=INVALID).stderr)


def test_list_has_killed_sessions_and_names_documents_of_none(command, one_session, wording):
    name = "20270103T030405-18"
    document = one_session / f"output/{name}/local/host/host/stream_local/result.json"
    factories.write(document)
    path = write_result(one_session, "other")
    result = command("results", "list")
    _, killed, session, last = result.stdout.splitlines()
    assert killed.split() == [name, "2027-01-03", "03:04:05", "local:host", *"1---", "measured"]
    assert session.startswith("run-0 ") and last.startswith("Sessions without a number of passed")
    wording(result.stderr)
    assert str(path) in result.stderr
    (row, _) = command("results", "list", json=True).json["sessions"]
    assert (row["session"], row["uuid"], row["passed"]) == (name, None, None)


def test_show(command, one_session):
    text = command("results", "show").stdout
    assert "Session run-0 of " in text and "1 check, 1 passed, 0 failed" in text
    assert "stream_local @local:host (pass): stream 0.1.0 on node1, runtime host" in text
    assert "measured, in GB/s (1e9 bytes per second); bytes counted read+write" in text
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "E1 copy device 256 MiB 1 0 10.1 1.5 % verified" in rows
    assert (
        command("results", "show", "latest").stdout
        == command("results", "show", "0").stdout
        == text
    )


def test_show_of_a_file_a_folder_and_json(command, one_session, tmp_path, wording):
    path = factories.case_folder(one_session, "stream_local") / "result.json"
    for name in (path, path.parent, one_session):
        assert " 10.1 " in command("results", "show", name).stdout
    [entry] = command("results", "show", path, json=True).json["checks"]
    assert entry["document"] == factories.document() and entry["case"] is None
    [entry] = command("results", "show", json=True).json["checks"]
    assert entry["case"] == "stream_local" and entry["where"] == "local:host"
    empty = tmp_path / "empty"
    empty.mkdir()
    wording(command("results", "show", empty, code=NOTHING).stderr)
    wording(command("results", "show", "x.json", code=NOTHING).stderr)
    path.write_text("{")
    wording(command("results", "show", path, code=INVALID).stderr)


def test_show_of_a_session_that_measures_nothing_says_what_ran(command, results_folder, wording):
    SessionBuilder(results_folder).add(factories.case("build", tags=["build"])).write()
    done = command("results", "show", code=NOTHING)
    wording([done.stdout.splitlines()[-1], done.stderr])


def test_show_shows_the_metrics_of_a_plain_test(command, results_folder, wording):
    rate = [2.5, 2, -0.1, None, "GB/s", "pass"]
    plain = factories.case("plain", tags=["node"], perfvalues={"local:host:rate": rate})
    late = factories.case("late", tags=["node"], result="fail", fail_reason="sanity error: no end")
    SessionBuilder(results_folder).add(plain).add(late).write()
    # The first line has the local time.
    wording(command("results", "show").stdout.splitlines()[1:])
    [entry] = command("results", "show", json=True).json["checks"]
    assert entry["case"] == "plain" and entry["metrics"]["rate"]["value"] == 2.5


def test_show_shows_the_rest_beside_a_corrupt_document(command, one_session, wording):
    session = SessionBuilder(one_session).add(factories.case()).add(factories.case("broken"))
    session.add(factories.case("lost", result="fail")).write()
    write_result(one_session, "broken").write_text("{")
    result = command("results", "show", code=INVALID)
    assert " 10.1 " in result.stdout
    assert "broken/result.json" in result.stderr
    wording(result.stderr)


def test_show_of_everything_that_is_not_good(command, results_folder):
    failed = factories.case(result="fail", fail_reason="sanity error: 3 words are wrong")
    odd = {"median": 11.055, "ratio": 1.1, "agrees": False}
    document = factories.document(
        outcome={"exit_code": 5, "status": "wrong-data", "message": "a word differs"},
        faults_injected=["flip-bit:0:1"],
        notes=["the machine was busy"],
        options={},
        series=[
            factories.series(verification=factories.mismatched(3), noisy=True, host_clock=odd),
            factories.series(
                verification={"bytes_checked": 0, "errors": 0, "first_mismatch": None},
                regime="cache",
                samples=[10.0],
                block_size=None,
                host_clock=None,
            ),
        ],
    )
    session = SessionBuilder(results_folder).add(factories.case(result="fail")).rerun()
    session.add(failed, document).add(factories.case("gone", result="skip")).write()
    text = command("results", "show").stdout
    for part in (
        "1 failed, 1 retried, 1 skipped",
        "stream_local @local:host (fail at attempt 2)",
        "attempt 1 (fail)",
        "outcome wrong-data: a word differs",
        "check: sanity error: 3 words are wrong",
        "injected faults: flip-bit:0:1",
        "note: the machine was busy",
        "3 WRONG",
        "not verified",
    ):
        assert part in text
    one_line = " ".join(text.split())
    assert "noisy" in one_line and "clocks differ" in one_line and "cache" in one_line


def test_repetitions_are_listed_and_shown_apart(command, results_folder):
    session = SessionBuilder(results_folder)
    for number, end in enumerate(({"result": "fail", "fail_reason": "too slow"}, {})):
        shown = f"stream_local %.repeat_no={number}"
        case = factories.case(unique_name=f"s_{number}", display_name=shown, **end)
        session.add(case, factories.document())
    session.write()
    listed = command("results", "list")
    assert listed.stdout.splitlines()[1].split()[-5:] == ["2", "1", "1", "0", "measured"]
    assert listed.stderr == ""
    shown = command("results", "show").stdout
    assert "2 checks, 1 passed, 1 failed" in shown
    assert "stream_local %.repeat_no=0 @local:host (fail): stream" in shown
    assert "stream_local %.repeat_no=1 @local:host (pass): stream" in shown
    assert shown.count("check: too slow") == 1


def test_a_miss_is_shown_once_and_failed_checks_come_first(command, results_folder):
    miss = "Metric copy_worst: device 0 of node1 measured 7 GB/s; at least 9 GB/s is required."
    reason = f"performance error: failed to meet reference(s):\n\tcopy_worst=7.0 (l=9.0)\n{miss}"
    slow = factories.case(
        name="slow", result="fail", fail_phase="performance", fail_reason=reason,
        outputdir=str(factories.case_folder(results_folder, "slow")),
    )  # fmt: skip
    session = SessionBuilder(results_folder).add(factories.case(), factories.document())
    session.add(slow, factories.document()).write()
    shown = command("results", "show").stdout
    assert shown.count("copy_worst") == 1 and f"  check: {miss}" in shown
    assert shown.index("slow @local") < shown.index("stream_local @local")


def test_a_retry_that_passed_is_not_a_plain_pass(command, results_folder):
    stage = factories.case_folder(results_folder, "first", "stage")
    first = factories.case(result="fail", fail_reason="too\nslow", stagedir=str(stage))
    session = SessionBuilder(results_folder).add(first, factories.document())
    session.rerun().add(factories.case(), factories.document()).write()
    listed = command("results", "list")
    assert listed.stdout.splitlines()[1].split()[-5:] == ["1", "1", "0", "1", "measured"]
    assert "Retried: checks that failed at an earlier attempt" in listed.stdout
    assert listed.stderr == ""
    shown = command("results", "show").stdout
    assert "1 check, 1 passed, 0 failed, 1 retried" in shown
    assert "stream_local @local:host (pass at attempt 2): stream" in shown
    assert "attempt 1 (fail): too slow" in shown
    assert "attempt 1 left" in shown and "first/result.json" in shown.replace("\n", "")
    [entry] = command("results", "show", json=True).json["checks"]
    assert (entry["result"], entry["failed_attempts"]) == ("pass", 1)


def test_of_reruns_only_the_failed_are_named(command, results_folder):
    slow = factories.case(result="fail", fail_reason="too slow")
    session = SessionBuilder(results_folder).add(factories.case()).rerun().add(slow)
    session.rerun().add(factories.case(), factories.document()).write()
    shown = command("results", "show").stdout
    assert "(pass at attempt 3)" in shown
    assert "attempt 2 (fail): too slow" in shown and "attempt 1" not in shown


def test_what_a_check_repeats_of_the_program_is_said_once(command, results_folder):
    reason = "sanity error: stream ended with exit code 6 (the time limit): too late"
    outcome = {"exit_code": 6, "status": "time-limit", "message": "too late"}
    document = factories.document(complete=False, outcome=outcome)
    failed = factories.case(result="fail", fail_reason=reason)
    SessionBuilder(results_folder).add(failed, document).write()
    assert command("results", "show").stdout.count("too late") == 1


def test_show_of_an_interrupted_run(command, tmp_path):
    path = factories.write(tmp_path / "result.json.partial", factories.killed_document())
    text = command("results", "show", path).stdout
    assert "outcome running" in text and "incomplete: the series are only those finished" in text


def test_long_scans_are_summarised(command, tmp_path):
    wrong = factories.mismatched(checked=1 << 10)
    bad = factories.series(bytes=1 << 10, bytes_moved=2 << 10, verification=wrong)
    path = factories.write(
        tmp_path / "result.json",
        factories.document(
            series=[*scan(), bad],
            outcome={"exit_code": 5, "status": "wrong-data", "message": "wrong"},
        ),
    )
    text = command("results", "show", path).stdout
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "E1 copy device 2 MiB 1 0 40 0.075 % verified" in rows
    (alone,) = (row for row in rows if row.startswith("copy"))
    assert alone.split(" -> device ")[1].startswith("1 KiB 256") and "1 WRONG" in alone
    assert "5 more series: --all" in " ".join(rows)
    everything = command("results", "show", path, "--all").stdout
    assert "20.040" in everything and "--all" not in everything
    assert sum(line.startswith("copy") for line in everything.splitlines()) == 7


def test_variants_of_a_kernel_have_rows_of_their_own(command, tmp_path):
    """With --all; else the row of their kind has the best of each place."""
    default = [factories.series(device=index, device_set=[index]) for index in (0, 1)]
    faster = factories.series([12.0] * 9)
    varied = [
        faster
        | {"device": index, "device_set": [index]}
        | {"elements": 4, "loads": "streaming", "grid": 1}
        for index in (0, 1)
    ]
    pairs = [
        factories.series(
            experiment="E8", operation="read", device_set=[0, 1 + index], direction="one-way",
            source=factories.place("peer", 1 + index), grid=1,
        )
        for index in range(4)
    ]  # fmt: skip
    devices = [factories.device(index) for index in range(5)]
    document = factories.document(devices=devices, series=[*default, *varied, *pairs])
    path = factories.write(tmp_path / "result.json", document)
    brief = command("results", "show", path).stdout
    assert "E1 copy device 256 MiB 2 12 0 % verified" in " ".join(brief.split())
    assert "2 more series: --all" in " ".join(brief.split())
    text = command("results", "show", path, "--all").stdout
    first, _, second, _ = (line for line in text.splitlines() if line.startswith("copy"))
    assert "4 elements a" not in first and "4 elements a" in second
    assert "streaming" in text
    rows = [line for line in text.splitlines() if line.startswith("read")]
    assert len(rows) == 4 and all("1 block" in row for row in rows)


def test_the_best_of_a_latency_is_the_lowest(command, tmp_path):
    series = scan(unit="us", better="lower", operation="read", bytes_counted="once")
    path = factories.write(tmp_path / "result.json", factories.document(series=series))
    text = command("results", "show", path).stdout
    assert "in us; bytes counted once" in text
    assert " 10 " in text and " 40 " not in text


def test_sets_of_devices(command, tmp_path, wording):
    members = [0, 1, 2, 5]
    devices = [factories.device(index) for index in range(8)]
    share = factories.series(
        experiment="E5",
        role="share",
        device=2,
        device_set=members,
        source=factories.place("host-pinned", None, 0),
        destination=factories.place("peer", 5),
    )
    both = factories.series(
        experiment="E5", role="sum", device=None, device_set=members, bytes_moved=8 << 28
    )
    path = factories.write(
        tmp_path / "result.json", factories.document(series=[share, both], devices=devices)
    )
    wording(command("results", "show", path).stdout)
    text = " ".join(command("results", "show", path, "--all").stdout.split())
    assert "2 of 0-2,5" in text and "sum 0-2,5" in text
    assert "pinned N0 -> peer 5" in text


@pytest.mark.parametrize(
    ("members", "text"),
    [
        (range(64), "0-63"),
        ([7, 0, 1], "0,1,7"),
        ([0, 2, 4, 6], "0,2,4,6"),
        (range(0, 36, 2), "0,2,..,34 (18)"),
        ([*range(8), 10, 12, 14, 16], "0-7,10,..,16 (12)"),
    ],
)
def test_sets_of_many_devices_are_short(members, text):
    assert ranges(members) == text


def test_a_simulated_result_is_never_called_measured(command, results_folder):
    SessionBuilder(results_folder).add(factories.case(), factories.simulated_document()).write()
    for line in (["results", "list"], ["results", "show"], ["results", "validate"]):
        text = command(*line).stdout
        assert "simulated" in text and "measured" not in text
    e1 = command("results", "coverage", json=True).json["experiments"][0]
    assert e1["ran"][0]["clocks"] == ["simulated"]
    assert "simulated in local:host" in command("results", "coverage").stdout


def test_validate(command, one_session, tmp_path, wording):
    good = command("results", "validate").stdout
    wording(good)
    assert command("results", "validate", one_session).stdout == good
    bad = factories.write(tmp_path / "bad" / "result.json", {"schema": "fabricheck-result"})
    killed = factories.write(
        tmp_path / "killed" / "result.json.partial", factories.killed_document()
    )
    faulty = factories.write(
        tmp_path / "faulty.json", factories.document(faults_injected=["unwritten"])
    )
    result = command("results", "validate", bad, killed, faulty, tmp_path / "x.json", code=INVALID)
    wording(result.stdout)
    command("results", "validate", killed, code=INVALID)
    command("results", "validate", faulty, tmp_path / "x.json", code=NOTHING)
    found = command("results", "validate", bad, json=True, code=INVALID).json
    assert found[0]["exit_code"] == INVALID and found[0]["path"] == str(bad)


def test_validate_finds_nothing(command, results_folder, tmp_path, wording):
    empty = tmp_path / "empty"
    empty.mkdir()
    wording(command("results", "validate", empty, code=NOTHING).stdout)
    SessionBuilder(results_folder).add(factories.case("build", tags=["build"])).write()
    wording(command("results", "validate", code=NOTHING).stderr)


def test_validate_misses_the_document_of_a_check(command, results_folder, wording):
    SessionBuilder(results_folder).add(factories.case()).write()
    wording(command("results", "validate", code=NOTHING).stdout)


def test_names_with_brackets_are_shown_as_they_are(command, results_folder):
    case = factories.case(display_name="check %size=[red]1[/]")
    SessionBuilder(results_folder).add(case, factories.document()).write()
    assert "check %size=[red]1[/] @local:host" in command("results", "show").stdout


def test_an_error_of_the_operating_system_is_a_sentence(command, one_session, monkeypatch, wording):
    def refuse(*_arguments):
        raise PermissionError(13, "Permission denied", "some file")

    monkeypatch.setattr("fabricheck.cli.series_tables.blocks", refuse)
    wording(command("results", "show", code=INVALID).stderr)


def test_a_defect_keeps_its_traceback(command, one_session, monkeypatch):
    def defect(*_arguments):
        raise RuntimeError("a defect")

    monkeypatch.setattr("fabricheck.cli.series_tables.blocks", defect)
    with pytest.raises(RuntimeError, match="a defect"):
        command("results", "show")


@pytest.mark.slow
def test_as_a_process_in_a_pipe(one_session):
    script = "import fabricheck.cli; fabricheck.cli.app()"
    line = [sys.executable, "-c", script, "results", "show", "77"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (NOTHING, "")
    assert len(done.stderr.splitlines()) == 1
    done = subprocess.run([*line[:-1], "0"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (GOOD, "")
    assert "\x1b" not in done.stdout and " 10.1 " in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["summary"], 0), (["results", "show", "--json"], 0), (["--help"], 141), (["bogus"], 2)],
)
def test_who_stops_reading_ends_a_command_quietly(one_session, arguments, code):
    """As `| head -2` does; a result keeps its exit code, other output ends as by a signal."""
    reading, writing = os.pipe()
    os.close(reading)
    line = [Path(sys.executable).with_name("fabricheck"), *arguments]
    with os.fdopen(writing, "wb") as pipe:
        ended = subprocess.run(line, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == code
    assert b"Traceback" not in ended.stderr and b"Broken" not in ended.stderr


def test_a_summary_of_what_cannot_be_read_ends_as_other_commands_do(command, one_session):
    document = next(one_session.glob("output/**/result.json"))
    command("summary", code=0)
    document.write_text("{")
    for line in (["summary"], ["results", "show"], ["summary", str(document)]):
        command(*line, code=4)


@pytest.mark.parametrize("words", [["verdit"], ["show"], ["results", "shw"], ["zzz"]], ids=" ".join)
def test_a_misspelt_command_is_answered_with_its_like(command, words, wording):
    wording(command(*words, code=2).stderr)


def test_names_of_sessions_are_completed(results_folder):
    variables = {"_FABRICHECK_COMPLETE": "complete_bash", "COMP_CWORD": "2"}

    def completed(line):
        ended = CliRunner().invoke(
            app, [], prog_name="fabricheck", env={**variables, "COMP_WORDS": line}
        )
        return ended.stdout.split()

    assert completed("fabricheck verdict ru") == []
    for number in range(2):
        SessionBuilder(results_folder, number).add(factories.case()).write()
    assert sorted(completed("fabricheck verdict ru")) == ["run-0", "run-1"]
    assert completed("fabricheck compare run-1") == ["run-1"]


def test_the_status_has_a_colour_on_a_terminal_in_each_command(
    command, results_folder, monkeypatch
):
    miss = "Metric copy_worst: device 0 of node1 measured 7 GB/s; at least 9 GB/s is required."
    slow = factories.case(
        result="fail", fail_phase="performance", fail_reason=f"performance error: slow\n{miss}",
        outputdir=str(factories.case_folder(results_folder, "stream_local")),
    )  # fmt: skip
    SessionBuilder(results_folder).add(slow, factories.document()).write()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for line in (["verdict"], ["diagnose"], ["summary"], ["results", "show"]):
        shown = command(*line, code=None).stdout
        assert re.search(r"\x1b\[1;3[13]m[^\x1b]*(INCOMPLETE|fail)", shown), line
