"""`fabricheck verdict` as a user calls it: what it prints, writes, and ends with."""

import json
from datetime import datetime

import pytest

import factories
from full_disk import files_of_at_most
from session_builder import PARTITION, SessionBuilder, failed, good_case, judged, missed

GOOD, USAGE, NOTHING, INVALID, FAILED, OPEN = 0, 2, 3, 4, 12, 13


@pytest.fixture
def results(tmp_path, monkeypatch):
    folder = tmp_path / "results"
    monkeypatch.setenv("FABRICHECK_RESULTS", str(folder))
    return folder


def test_nodes_that_passed_are_one_line_and_the_others_are_told(command, results, wording):
    session = SessionBuilder(results).missed(node="node12")
    for number in range(1, 11):
        session.passed(node=f"node{number}")
    session.write()
    said = command("verdict", "--nodes", "node[1-10,12,14]", code=FAILED).stdout
    assert said.startswith("Verdict on run-0: 1 PERF-FAIL, 1 INCOMPLETE, 10 PASS\n")
    at = f"{datetime.fromtimestamp(factories.SESSION_START):%Y-%m-%d %H:%M:%S}"
    assert said.splitlines()[1] == f"Began {at}"
    rows = [line.split()[:6] for line in said.splitlines()[2:6]]
    assert rows[0] == ["Node", "Status", "Of", "Set", "Checks", "Time"]
    assert rows[1] == ["node12", "PERF-FAIL", "measured", "smoke", "0/1", "10"]
    assert "\nPASS (10): node[1-10]\n" in said and "\nPERF-FAIL (1): node12\n" in said
    assert "stream_local: Metric copy_worst" in " ".join(said.split())
    assert "\nRun again: node14\n" in said
    (line,) = [line for line in said.splitlines() if "scontrol" in line]
    wording(line)
    assert said.endswith(f"Verdict: {results}/verdicts/run-0/verdict.json\n")
    assert len(list((results / "verdicts" / "run-0").iterdir())) == 13


@pytest.mark.parametrize(
    ("changes", "code"),
    [({}, GOOD), (missed(), FAILED), (failed("setup"), OPEN)],
)
def test_the_word_is_the_exit_code(command, results, changes, code):
    SessionBuilder(results).check(**changes).write()
    assert command("verdict", code=code).stderr == ""


def test_an_earlier_verdict_stays_as_it_is(command, results):
    SessionBuilder(results).passed().write()
    first = results / "verdicts" / "run-0" / "verdict.json"
    assert command("verdict").stdout.endswith(f"Verdict: {first}\n")
    before = first.read_text()
    # Another time alone is no other verdict.
    assert command("verdict").stdout.endswith(f"Verdict: {first}\n")
    for number in (2, 3):
        nodes = f"node[1-{number}]"
        other = first.parent / str(number) / "verdict.json"
        assert command("verdict", "--nodes", nodes, code=OPEN).stdout.endswith(
            f"Verdict: {other}\n"
        )
    assert command("verdict", "--nodes", "node[1-2]", code=OPEN).stdout.endswith(
        "/run-0/2/verdict.json\n"
    )
    assert first.read_text() == before
    # A folder that a user names has the verdict that he asked for last.
    for nodes, code in (("node1", GOOD), ("node2", OPEN)):
        command("verdict", "--output", first.parent, "--nodes", nodes, code=code)
        assert json.loads(first.read_text())["exit_code"] == code


def test_json_is_the_document_of_all(command, results, tmp_path):
    SessionBuilder(results).passed().write()
    said = command("verdict", "run-0", "--output", tmp_path / "there", json=True).stdout
    assert json.loads(said) == json.loads((tmp_path / "there" / "verdict.json").read_text())
    assert json.loads(said)["nodes"][0]["status"] == "PASS"


def test_a_simulated_node_says_so_and_is_not_drained(command, results):
    SessionBuilder(results).missed(document=factories.simulated_document()).write()
    said = command("verdict", code=FAILED).stdout
    assert " simulated " in said and "PERF-FAIL, simulated (1): node1" in said
    assert "\n# it is simulated; " in said and ": scontrol update NodeName=node1 " in said
    assert "\nscontrol" not in said


def test_what_a_pass_does_not_rest_on_is_told_once(command, results, wording):
    SessionBuilder(results).passed(perfvalues={}).passed(node="node2", perfvalues={}).write()
    lines = command("verdict").stdout.splitlines()
    wording(line for line in lines if line.startswith("Caveat"))


def test_text_of_others_is_shown_as_text(command, results):
    SessionBuilder(results).failed(
        "setup", "\x1b[31m[red]no[/red]", document=factories.document()
    ).write()
    assert "\\x1b[31m[red]no[/red]" in command("verdict", code=OPEN).stdout


def test_what_is_asked_for_wrongly_is_one_sentence(command, results, tmp_path, wording):
    wording(command("verdict", code=NOTHING).stderr)
    SessionBuilder(results).passed().write()
    for arguments, code in (
        (["run-7"], NOTHING),
        (["--nodes", "node[1-"], USAGE),
        (["--set", "larger"], USAGE),
    ):
        (line,) = command("verdict", *arguments, code=code).stderr.splitlines()
        wording(line)
    (results / "reports" / "run-1.json").write_text("{")
    wording(command("verdict", code=INVALID).stderr)
    assert not (results / "verdicts").exists()


def test_a_full_disk_is_one_sentence_and_leaves_nothing(command, results):
    SessionBuilder(results).passed().write()
    with files_of_at_most(100):
        said = command("verdict", code=NOTHING).stderr
    assert "cannot be written" in said and not list((results / "verdicts" / "run-0").iterdir())


def test_nodes_of_which_the_same_holds_are_told_once(command, results, wording):
    cut = {"result": "abort", "fail_phase": "run_wait"}
    cut["fail_reason"] = "aborted due to RunSessionTimeout"
    cases = [(good_case(name, node) | cut, None) for name in "ab" for node in ("node1", "node2")]
    SessionBuilder(results).each(cases).write()
    said = command("verdict", code=OPEN).stdout
    (told,) = [line for line in said.splitlines() if line.endswith(": INCOMPLETE")]
    assert told == "node[1-2]: INCOMPLETE"
    wording(line for line in said.splitlines() if "(cancelled): a: " in line)


def test_a_long_reason_is_cut_in_the_terminal_alone(command, results):
    many = "Node node1 has 7 devices. " + "Metric copy has no series. " * 40
    SessionBuilder(results).failed(
        "sanity", many, "OtherDevicesError", document=factories.document()
    ).write()
    said = command("verdict", code=FAILED).stdout
    assert max(map(len, said.splitlines())) < 450
    assert "\nnode1: HW-FAIL\n  HW-FAIL (devices): stream_local: Node node1 has 7" in said
    written = json.loads((results / "verdicts/run-0/node1.json").read_text())
    assert len(written["reasons"][0]["sentence"]) > 1000


def test_a_cut_report_leads_to_what_its_session_left(command, results, wording):
    name = "20260102T030405-17"
    factories.write(results / f"stage/{name}/cluster/gpu/sim/a/result.json")
    (results / "reports").mkdir()
    (results / "reports/run-0.json").write_text("")
    for said in (
        command("verdict", code=OPEN).stdout,
        command("verdict", results, code=OPEN).stdout,
    ):
        assert f"Verdict on {name}" in said
        wording(line for line in said.splitlines() if line.startswith("  INCOMPLETE (report)"))


def test_many_reasons_of_one_check_hide_no_other_one(command, results):
    slow = {f"{PARTITION}:metric{n}_worst": judged(7, 10, result="fail") for n in range(12)}
    session = SessionBuilder(results)
    for check in ("p2p_engine", "p2p_kernel"):
        session.missed(check=check, perfvalues=slow)
    session.failed("run", check="stream_local").write()
    said = command("verdict", code=FAILED).stdout
    shown = [line for line in said.splitlines() if line.startswith("  ")]
    assert len(shown) == 11 and "more in" in shown[-1]
    for check in ("p2p_engine", "p2p_kernel", "stream_local"):
        assert any(f"{check}: " in line for line in shown)
