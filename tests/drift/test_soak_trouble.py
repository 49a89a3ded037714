"""A soak in trouble: clocks that are set, other sessions, full disks, kills, ends of jobs."""

import os
from datetime import datetime, timedelta

import pytest

import factories
from drift.rounds import PLAN, leave, load_rounds, round_of, soak_there
from fabricheck.core.errors import NotFoundError
from fabricheck.core.vocabulary import EXIT_NODE_OPEN
from fabricheck.judge.drift import judging
from fabricheck.results import reading, soaks
from fabricheck.results.soaks import Soak
from fabricheck.run import soak as running
from full_disk import files_of_at_most
from session_builder import SessionBuilder

LOADED = {
    "soak": {
        "passes": [[0.0, 299.0], [300.0, 600.0]],
        "cpu_s": 60.0,
        "readings": [],
        "throttled": [{"index": 0, "throttled_s": {"power": 30.0, "thermal": None}}],
        "wrong": [],
    },
    "duration_s": 640.0,
}


@pytest.fixture
def measured(results_folder):
    """Leave the session of a round in a results folder of its own; return what it measured."""

    def of(session_start=factories.SESSION_START, name="soak-0001", result="pass", **changes):
        case = factories.case("soak_all", tags=["soak"], result=result)
        session = SessionBuilder(results_folder, start=session_start, stamp=factories.stamp(1))
        session.add(case, factories.document(**LOADED | changes)).write()
        factories.mark(results_folder, 1, session_start, name=name)
        return soaks.measured(reading.read([name]), Soak("soak", PLAN), "load", name)

    return of


def test_hours_are_those_of_programs_whatever_the_clock_and_the_wait(measured):
    # The session took a minute by a clock that was set, and may have waited for another one.
    each = measured()
    assert (each.took_s, each.load_s, each.problem) == (640.0, 600.0, None)
    assert each.commits == ["unknown"]
    assert {member.better for member in each.members.values()} == {"higher"}
    assert each.devices[0].throttled_s == {"power": 30.0}


def test_a_device_is_as_warm_as_in_the_second_half_of_its_load(measured):
    unknown = dict.fromkeys(("memory_temperature_c", "power_w", "clock_mhz"))
    reading = {"index": 0, "throttle": [], **unknown}
    readings = [
        {"at_s": 60.0 * number, "devices": [reading | {"temperature_c": celsius}]}
        for number, celsius in enumerate((30.0, 50.0, 60.0, 64.0))
    ]
    each = measured(soak=LOADED["soak"] | {"readings": readings})
    assert each.devices[0].temperature_c == 62.0


def test_a_clock_set_back_within_a_round_is_named_as_why_it_cannot_be_judged(measured):
    each = measured(session_start=factories.SESSION_START + 3600)
    assert "the node's clock is wrong" in each.problem
    (finding, _) = judging.judge(Soak("soak", PLAN, (each,))).findings
    assert (finding.rule, finding.status) == ("unfinished", "INCOMPLETE")


def test_a_clock_set_back_between_rounds_changes_neither_their_order_nor_hours(results_folder):
    rounds = [
        each.model_copy(update={"began": each.began - timedelta(hours=each.number)})
        for each in map(round_of, (1, 2, 3, 4))
    ]
    leave(results_folder, rounds)
    for each in rounds:
        path = results_folder / "output" / each.session / soaks.NAME
        os.utime(path, (each.began.timestamp(), each.began.timestamp()))
    soak = soak_there(results_folder)
    assert [each.number for each in soak.rounds] == [1, 2, 3, 4]
    assert soak.hours == 2.0
    assert judging.judge(soak).status == "PASS"
    again = running.begun(results_folder, "soak", PLAN.model_copy(update={"hours": 4.0}))
    assert again.rounds[-1].number == 4


def test_another_session_on_the_node_ends_it_with_that_sentence(
    results_folder, tmp_path, command, wording
):
    leave(results_folder, [round_of(1)])
    reframe = tmp_path / "reframe"
    reframe.write_text(f"#!/bin/sh\necho 'user2 measures the node.'\nexit {EXIT_NODE_OPEN}\n")
    reframe.chmod(0o755)
    loop = running.Loop(
        running.begun(results_folder, "soak", PLAN), results_folder, str(reframe), list, print,
        goes_on=False,
    )  # fmt: skip
    loop.run()
    wording(loop.soak.ended)
    judged = judging.judge(loop.soak)
    assert judged.status == "INCOMPLETE"
    assert "user2 measures the node" in judged.findings[0].note
    # Later, the same command goes on.
    assert len(running.begun(results_folder, "soak", PLAN).rounds) == 1


def test_a_disk_that_is_full_in_mid_round_leaves_the_rounds_before_whole(
    results_folder, monkeypatch, command
):
    load_rounds(monkeypatch, results_folder)
    leave(results_folder, [round_of(1), round_of(2)])
    loop = running.Loop(
        running.begun(results_folder, "soak", PLAN), results_folder, "", lambda results: [], print,
        goes_on=False,
    )  # fmt: skip
    monkeypatch.setattr(loop, "_session", lambda name, kind: None)
    with files_of_at_most(100), pytest.raises(NotFoundError, match=r"round\.json"):
        loop.run()
    assert len(soak_there(results_folder).rounds) == 2
    ended = command("drift", code=13)
    assert "1.00 of 2 h, 2 rounds under load: INCOMPLETE" in ended.words
    # With room again it goes on, and measures the lost round once more.
    loop = running.Loop(
        running.begun(results_folder, "soak", PLAN), results_folder, "", lambda results: [], print,
        goes_on=False,
    )  # fmt: skip
    monkeypatch.setattr(loop, "_session", lambda name, kind: None)
    loop.run()
    assert [each.number for each in soak_there(results_folder).rounds] == [1, 2, 3, 4]


def started(results, monkeypatch):
    """Run a soak until it starts a session; return the name of that session."""
    names = []

    def session(loop, name, kind):
        names.append(name)
        loop.signal = 15

    monkeypatch.setattr(running.Loop, "_session", session)
    loop = running.Loop(
        running.begun(results, "soak", PLAN.model_copy(update={"hours": 9.0})), results, "",
        lambda results: [], print, goes_on=False,
    )  # fmt: skip
    loop.run()
    return names, loop.soak


def test_a_killed_round_is_measured_again(results_folder, monkeypatch):
    leave(results_folder, [round_of(1)])
    # It left its mark, and no report.
    factories.mark(results_folder, 2, name="soak-0002")
    names, soak = started(results_folder, monkeypatch)
    assert (names, len(soak.rounds)) == (["soak-0002"], 1)


def test_a_round_that_a_signal_ended_is_measured_again_although_it_left_a_report(
    measured, results_folder, monkeypatch
):
    leave(results_folder, [round_of(1)])
    measured(name="soak-0002", result="abort")
    names, soak = started(results_folder, monkeypatch)
    assert (names, len(soak.rounds)) == (["soak-0002"], 1)


def test_a_round_whose_soak_was_killed_before_its_record_counts(
    measured, results_folder, monkeypatch
):
    leave(results_folder, [round_of(1)])
    measured(name="soak-0002")
    names, soak = started(results_folder, monkeypatch)
    assert names == ["soak-0003"]
    assert [each.took_s for each in soak.rounds] == [1800.0, 640.0]


def test_hours_beyond_the_allocation_are_refused_by_the_job_that_is_around(
    results_folder, tmp_path, monkeypatch, command
):
    ends = datetime.now() + timedelta(hours=1)
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(
        "#!/bin/sh\ncase $2 in\n"
        f"job) echo 'JobId=7 EndTime={ends:%Y-%m-%dT%H:%M:%S} NodeList=node1 OverSubscribe=NO' ;;\n"
        "*) echo 'NodeName=node1 State=ALLOCATED' ;; esac\n"
    )
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node1")
    ended = command("soak", "--hours", "2", code=2)
    assert f"The allocation ends at {ends:%Y-%m-%d %H:%M}" in ended.stderr


def test_a_job_whose_end_nobody_tells_has_none():
    assert running.end_of_allocation({"PBS_JOBID": "1234.pbs01"}) is None
    assert running.end_of_allocation({}) is None
