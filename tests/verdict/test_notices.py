"""`--notify` tells a change of a status once; what Prometheus and `fleet --stale` see."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest

from fabricheck.cli import soak
from fabricheck.results.reading import read
from session_builder import SessionBuilder, slow_node, sound_node

DAY = 86400


@pytest.fixture
def notices(tmp_path):
    """A command that keeps what it gets, and what it got."""
    folder = tmp_path / "notices"
    folder.mkdir()
    script = tmp_path / "notice"
    script.write_text(f"#!/bin/sh\ncat > {folder}/$(ls {folder} | wc -l)\n")
    script.chmod(0o755)

    def got() -> list[list[tuple]]:
        verdicts = [json.loads(path.read_text()) for path in sorted(folder.iterdir())]
        assert all(verdict["form"] == "fabricheck-verdict-4" for verdict in verdicts)
        return [
            [(each["node"], each["was"], each["status"]) for each in verdict["changes"]]
            for verdict in verdicts
        ]

    return script, got


@pytest.fixture
def night(command, results_folder, notices):
    """Judge a session of two nodes some days ago, of which one is slow or not, and notify."""
    sessions = iter(range(100))

    def night(*, slow: bool, by: object = notices[0], days_ago: float = 0) -> str:
        number = next(sessions)
        start = time.time() - days_ago * DAY
        at = datetime.fromtimestamp(start + 10, UTC).isoformat()
        session = SessionBuilder(results_folder, number, start=start)
        outcomes = {"n1": sound_node(), "n2": slow_node() if slow else sound_node()}
        for node, (changes, document) in outcomes.items():
            times = {"started": at, "finished": at}
            session.check("stream_local", node, document | times, **changes)
        session.write()
        return command("verdict", f"run-{number}", "--notify", by, code=None).stderr

    return night


def test_a_round_of_a_soak_tells_a_changed_status(results_folder, notices):
    by, got = notices
    for number, outcome in enumerate((sound_node(), slow_node(), slow_node())):
        session = SessionBuilder(results_folder, number)
        changes, document = outcome
        session.check("stream_local", "n1", document, **changes)
        session.write()
        findings = soak._findings(read([f"run-{number}"]), str(by))
    assert {finding.status for finding in findings} >= {"PERF-FAIL"}
    assert got() == [[("n1", None, "PERF-FAIL")]]


def test_a_fault_is_told_once_and_so_is_its_end(night, notices):
    _, got = notices
    for slow in (False, True, True, True, False, False):
        night(slow=slow)
    assert got() == [[("n2", None, "PERF-FAIL")], [("n2", "PERF-FAIL", "PASS")]]


@pytest.mark.parametrize(
    ("command_line", "why"),
    [("/nowhere/notice", "No such file"), ("false", "ended with 1"), ("", "names no command")],
)
def test_a_notice_that_was_not_taken_is_sent_again(night, notices, command_line, why):
    script, got = notices
    assert why in night(slow=True, by=command_line)
    night(slow=True, by=script)
    assert got() == [[("n2", None, "PERF-FAIL")]]


def samples(text: str) -> dict[str, dict[str, str]]:
    """Return by metric and node the rest of its sample."""
    read: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition("{")
            node = rest.partition('node="')[2].partition('"')[0]
            assert node, f"always with its node: {line}"
            read.setdefault(name, {})[node] = rest
    return read


def test_prometheus_gets_status_ages_and_the_worst_metric(command, night, tmp_path):
    night(slow=False, days_ago=8)
    night(slow=True, days_ago=1)
    file = tmp_path / "nodes.prom"
    command("results", "export", "run-1", "--prometheus", file)
    read = samples(file.read_text())
    assert 'status="PERF-FAIL",rule="reference"' in read["fabricheck_node_status"]["n2"]
    assert 'next_step="Measure the node again' in read["fabricheck_node_status"]["n2"]
    assert read["fabricheck_node_exit_code"]["n1"].endswith(" 0")
    assert read["fabricheck_node_exit_code"]["n2"].endswith(" 12")

    def days(name: str, node: str) -> float:
        return (time.time() - float(read[name][node].split()[-1])) / DAY

    assert days("fabricheck_node_session_timestamp_seconds", "n2") == pytest.approx(1, abs=0.01)
    assert days("fabricheck_node_pass_timestamp_seconds", "n2") == pytest.approx(8, abs=0.01)
    ratios = read["fabricheck_node_worst_metric_ratio"]
    assert float(ratios["n2"].split()[-1]) < 1 <= float(ratios["n1"].split()[-1])


def test_one_node_has_its_label_too(command, results_folder, tmp_path):
    changes, document = sound_node()
    SessionBuilder(results_folder).check("stream_local", "n1", document, **changes).write()
    command("verdict", code=None)
    file = tmp_path / "nodes.prom"
    command("results", "export", "--prometheus", file)
    assert set(samples(file.read_text())["fabricheck_node_status"]) == {"n1"}


def test_stale_nodes_are_named(command, night):
    night(slow=False, days_ago=8.5)
    ended = command("fleet", "--stale", "7", "--nodes", "n[2-3]", code=14)
    assert ended.stdout.splitlines() == ["n3: no session", "n2: 8 days ago, PASS"]
    assert command("fleet", "--stale", "9").stdout.startswith("Every node had a session")
    (node,) = command("fleet", "--stale", "7", "--nodes", "n1", json=True, code=14).json
    assert (node["node"], node["status"]) == ("n1", "PASS")
    command("fleet", "--nodes", "n1", code=2)


@pytest.mark.parametrize("member", ["node", "file"])
def test_a_verdict_that_names_something_else_than_a_node_or_a_file_is_refused(
    command, night, results_folder, member
):
    night(slow=False, days_ago=1.0)
    for path in results_folder.rglob("verdicts/**/*.json"):
        content = json.loads(path.read_text())
        for row in (content, *content.get("nodes", ())):
            if member in row:
                row[member] = f"../{row[member]}\nscontrol update"
        path.write_text(json.dumps(content))
    ended = command("fleet", "--stale", "9", code=4)
    assert f"{member}: " in ended.output and "\nscontrol" not in ended.output
