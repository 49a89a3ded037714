"""`fabricheck diagnose`: its text, its JSON, and what --measure runs or refuses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import factories
from fabricheck.cli import diagnose
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.judge.diagnosis.model import Diagnosis
from fabricheck.judge.verdict import diagnosing
from fabricheck.judge.verdict.rules import finding
from fabricheck.results import metric_records
from fabricheck.results.metric_records import MetricRecord
from session_builder import SessionBuilder, good_case, missed, of_mi250x


@pytest.fixture
def session(tmp_path):
    """Make a session of local copies on a simulated node, of which device 3 is slow."""
    return write(tmp_path, overlay=None)


def write(folder, overlay):
    node = {"name": "mi250x", "digest": "0" * 64, "overlay": overlay}
    document = of_mi250x(slow=3, node=node)
    case = good_case() | missed("copy_worst")
    results = SessionBuilder(folder).add(case, document).write()
    stage = factories.case_folder(results, case["unique_name"], "stage")
    one = MetricRecord(series=tuple(range(8)), reduce="worst")
    metric_records.write(stage, document, {"copy_worst": one})
    return results


def test_it_names_the_component_its_equals_and_the_checks_that_tell_more(command, session):
    said = command("diagnose", session)
    for words in (
        "HBM of device 3, compute units of device 3 or device 3 is down by 25 %: "
        "this explains the missed limit.",
        "For HBM of device 3: stream_local copy device 3",
        "-n ^p2p_kernel$",
    ):
        assert words in said.output


@pytest.mark.slow
def test_a_terminal_shows_what_it_is_doing_and_a_pipe_does_not(session):
    line = [Path(sys.executable).with_name("fabricheck"), "diagnose", session]
    piped = subprocess.run(line, capture_output=True, text=True)
    assert (piped.returncode, piped.stderr) == (0, "")
    master, slave = os.openpty()
    shown = subprocess.run(line, stdout=subprocess.PIPE, stderr=slave, text=True)
    os.close(slave)
    assert shown.stdout == piped.stdout
    assert os.read(master, 1 << 12).startswith(b"judging ")
    os.close(master)


def test_json_has_all_of_it(command, session):
    (node,) = command("diagnose", session, json=True).json
    assert node["status"] == "PERF-FAIL" and node["sentence"].startswith("HBM of device 3")
    equals = node["diagnosis"]["degraded"][0]["equals"]
    assert [(one["kind"], one["ids"]) for one in equals] == [
        ("compute_units", [3]),
        ("device", [3]),
    ]


def test_of_a_node_that_missed_nothing_there_is_nothing_to_explain(command, tmp_path, wording):
    results = SessionBuilder(tmp_path).passed().write()
    wording(command("diagnose", results).output)


def test_of_a_node_without_a_pass_the_reason_is_there_although_no_limit_was_missed(
    command, tmp_path, wording
):
    results = SessionBuilder(tmp_path).failed("setup", "there is no such overlay").write()
    output = command("diagnose", results).output
    wording(output)
    assert "there is no such overlay" in output


@pytest.mark.parametrize(("left", "code"), [(True, 0), (False, NotFoundError.exit_code)])
def test_measure_runs_the_checks_that_tell_more_and_reads_both_sessions(
    command, session, tmp_path, monkeypatch, left, code
):
    """Where ReFrame leaves no session, nothing new is diagnosed."""
    started, read, original = [], [], diagnose.reading.read
    second = write(tmp_path / "second", overlay=None)
    monkeypatch.setattr(subprocess, "run", lambda line, env, **_: started.append((line, env)))

    def both(names):
        read.append(list(names))
        return original([str(session), *([str(second)] if left and len(read) > 1 else [])])

    monkeypatch.setattr(diagnose.reading, "read", both)
    command("diagnose", session, "--measure", code=code)
    ((line, variables),) = started
    assert line[0].endswith("reframe") and "^p2p_kernel$" in line
    # The new session by its own name: another one may have begun last.
    assert read == [[str(session)], [str(session), variables["FABRICHECK_SESSION"]]]


def test_measure_refuses_what_an_overlay_changed(command, tmp_path):
    results = write(tmp_path, {"name": "slow", "content": {}})
    said = command("diagnose", results, "--measure", code=UsageError.exit_code)
    assert "run reframe" in said.stderr and "(-S overlay=FILE)" in said.stderr


def test_that_nothing_explains_the_misses_stands_behind_the_last_and_is_as_bad_as_it():
    names = ("topology", "at-times", "too-noisy")
    reasons = [finding(name, f"Of {name}.") for name in names]
    nothing = Diagnosis(node_model="mi250x", misses=2, explained=0, degraded=[], unexplained=[])
    found = diagnosing.with_diagnosis(reasons, nothing)
    assert [one.rule.name for one in found] == ["topology", "at-times", "diagnosis", "too-noisy"]
    assert [one.status for one in found] == ["HW-FAIL", "UNSTABLE", "UNSTABLE", "UNSTABLE"]
