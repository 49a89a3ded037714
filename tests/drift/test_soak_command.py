"""`fabricheck soak` and `fabricheck drift` as a user meets them."""

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import factories
from drift.rounds import PLAN, leave, load_rounds, loop_of, round_of, soak_of, soak_there
from fabricheck.cli import every_node
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.results import reading, soaks
from fabricheck.run import soak as running
from session_builder import PARTITION, SessionBuilder


def test_a_soak_goes_on_where_it_was(results_folder):
    leave(results_folder, [round_of(1), round_of(2, ended="the allocation ends")])
    assert soak_there(results_folder).ended == "the allocation ends"
    again = running.begun(results_folder, "soak", PLAN)
    assert (again.hours, len(again.rounds), again.ended) == (1.0, 2, None)


def test_other_arguments_and_a_soak_that_has_its_hours_are_refused(
    results_folder, command, wording
):
    leave(results_folder, [round_of(number) for number in (1, 2, 3, 4)])
    common = ("soak", "--hours", "2", "--round-minutes", "30", "--quiet-set", "none")
    ended = command(*common, code=2)
    wording(ended.stderr)
    other = command(*common, "--", "--system=local:host", code=2)
    wording(other.stderr)


def test_bad_names_and_sets_are_refused(results_folder, command, wording):
    assert "names no soak" in command("soak", "--hours", "1", "--name", "1a", code=2).stderr
    ended = command("soak", "--hours", "1", "--quiet-set", "nod", code=2)
    wording(ended.stderr)
    wording(command("drift", code=3).stderr)
    wording(command("drift", "x", code=3).stderr)


def test_hours_beyond_the_allocation_are_refused(results_folder, command, monkeypatch):
    ends = datetime.now(UTC) + timedelta(hours=1)
    monkeypatch.setattr(running, "end_of_allocation", lambda environment: ends)
    ended = command("soak", "--hours", "2", code=2)
    assert "The allocation ends at" in ended.stderr


def test_the_end_of_a_soak_has_room_for_the_starts_of_its_sessions(results_folder):
    soak = soak_of([round_of(1), round_of(2)])
    needs = running.needs(results_folder, soak)
    # An hour in three sessions, the last of which may go beyond it.
    left = (needs.ends - datetime.now(UTC)).total_seconds()
    assert left == pytest.approx(3600 + 3 * running.START_S, abs=5)


def test_a_soak_that_would_fill_the_disk_is_refused(results_folder, command, monkeypatch):
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 0, 10**8)
    )
    ended = command("soak", "--hours", "20000", code=2)
    assert "and the disk has 100 MB" in ended.stderr


def test_sessions_that_leave_no_load_end_it_after_three(results_folder, monkeypatch):
    loop = loop_of(results_folder, monkeypatch, lambda name: None)
    loop.run()
    assert len(loop.soak.rounds) == running.MOST_FAILED
    assert "its session ran no check" in loop.soak.ended
    # Nothing began, so that nothing is there.
    assert soaks.read(results_folder) == []


def test_a_reframe_that_refuses_ends_it_with_its_sentence(results_folder, tmp_path):
    reframe = tmp_path / "reframe"
    reframe.write_text("#!/bin/sh\necho 'ERROR: local:gpu has no node model.'\nexit 1\n")
    reframe.chmod(0o755)
    quiet = {"quiet_set": "smoke", "quiet_every": 1}
    soak = replace(soak_of([]), plan=PLAN.model_copy(update=quiet))
    loop = running.Loop(
        soak, results_folder, str(reframe), lambda results: [], print, goes_on=False
    )
    loop.run()
    assert [each.phase for each in loop.soak.rounds] == ["quiet", "load", "quiet"]
    assert loop.soak.ended.endswith("ERROR: local:gpu has no node model")


def test_no_round_begins_that_would_outlast_the_allocation(results_folder, monkeypatch):
    ends = datetime.now(UTC) + timedelta(minutes=20)
    loop = loop_of(results_folder, monkeypatch, lambda name: None, until=ends)
    loop.run()
    assert (loop.soak.rounds, loop.soak.ended) == (
        (), "the allocation ends before another round would",
    )  # fmt: skip


def test_the_first_the_last_and_the_worst_round_are_left_whole():
    def value(middle):
        return {"copy 0": soaks.Value(middle=middle, low=middle, high=middle, n=30)}

    rates = [100.0, 101.0, 80.0, 99.0, 100.0, 98.0]
    members = {
        "copy 0": soaks.Member(
            phase="load", group="copy", devices=(0,), unit="GB/s", better="higher", noise="devices"
        )
    }
    soak = soak_of(
        round_of(n, values=value(rate), members=members) for n, rate in enumerate(rates, 1)
    )
    assert running.left_whole(soak) == {"soak-0001", "soak-0003", "soak-0006"}


def test_of_a_round_that_is_not_left_whole_the_record_alone_is_left(results_folder):
    outputs = results_folder / "output"
    session = SessionBuilder(results_folder, stamp=factories.stamp(1))
    report = session.copies({"node1": 10.0}).write_report()
    mark = factories.mark(results_folder, 1, name="soak-0001")
    soaks.write(outputs, round_of(1))
    stage = results_folder / "stage" / "output"
    stage.mkdir(parents=True)
    running.delete_sessions(results_folder, {"soak-0002"})
    assert all(path.exists() for path in (report, mark, stage))
    running.delete_sessions(results_folder, {"soak-0001"})
    assert not any(path.exists() for path in (report, mark, stage))
    assert [path.name for path in outputs.iterdir()] == [soaks.NAME]


def test_a_quiet_session_comes_first_and_after_so_many_rounds(results_folder):
    plan = PLAN.model_copy(update={"quiet_every": 2, "quiet_set": "node"})
    soak = replace(soak_of([]), plan=plan)
    phases = []
    for number in range(1, 8):
        loop = running.Loop(soak, results_folder, "", lambda results: [], print, goes_on=False)
        phase = loop._next_phase()
        phases.append(phase)
        made = round_of(number).model_copy(update={"phase": phase})
        soak = replace(soak, rounds=(*soak.rounds, made))
    assert phases == ["quiet", "load", "load", "quiet", "load", "load", "quiet"]


def test_drift_shows_nodes_of_a_job_by_hours_drift_and_errors(results_folder, command):
    job = results_folder / "every-node" / "17"
    for node in ("node1", "node2"):
        folder = job / node
        folder.mkdir(parents=True)
        rounds = [round_of(number) for number in range(1, 5 if node == "node1" else 3)]
        leave(folder, [each.model_copy(update={"node": node}) for each in rounds])
    ended = command("drift", "17", code=13)
    assert "2.0 of 2" in ended.words
    assert "1.0 of 2" in ended.words
    result = command("drift", "17", code=13, json=True).json
    assert [each["status"] for each in result["soaks"]] == ["PASS", "INCOMPLETE"]


@pytest.mark.full
def test_the_page_of_a_day_is_below_two_megabytes(results_folder, command, tmp_path, wording):
    devices = range(8)
    names = [f"copy {device}" for device in devices]
    names += [f"engine {a}-{b}" for a in devices for b in devices if a != b]
    members = {
        name: soaks.Member(
            phase="load", group=name.split()[0], devices=(0,), unit="GB/s", better="higher",
            noise="devices",
        )
        for name in names
    }  # fmt: skip
    value = soaks.Value(middle=1234.5, low=1230.0, high=1240.0, n=150)
    plan = PLAN.model_copy(update={"hours": 24.0})
    rounds = [
        round_of(
            number,
            hours=1 / 12,
            plan=plan,
            members=members,
            cpu_s=360.0,
            values=dict.fromkeys(names, value),
            devices={
                device: soaks.DeviceRound(
                    pci_address=None, unique_id=None, temperature_c=70.0, power_w=600.0
                )
                for device in devices
            },
        )
        for number in range(1, 289)
    ]
    leave(results_folder, rounds)
    page = tmp_path / "page.html"
    command("drift", "--output", page, code=None)
    text = page.read_text()
    assert len(text) < 2_000_000
    # Copies, peers, temperature, power and errors.
    assert text.count('role="img"') == 5
    assert "24.00 of 24 h" in text
    assert "worst: 1234 GB/s at first" in text
    # 360 s of the cores in five minutes.
    (soak,) = command("drift", code=None, json=True).json["soaks"]
    assert soak["cpu_cores"] == pytest.approx(1.2)
    wording(re.findall(r"The load [^<]+", text))


@pytest.mark.full
def test_rounds_on_the_simulated_node_are_counted_and_resumed(tmp_path):
    fabricheck = Path(sys.executable).with_name("fabricheck")
    results = tmp_path / "results"
    results.mkdir()

    def soak(hours, code):
        done = subprocess.run(
            [fabricheck, "soak", "--hours", hours, "--round-minutes", "30", "--quiet-set", "none",
             "--", "--system=local:sim-mi250x"],
            env=os.environ | {"FABRICHECK_RESULTS": str(results)},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    assert "soak-0002, under load: nothing wrong" in soak("1", 0)
    more = soak("2", 0)
    assert "1.00 of 2 h are there" in more
    assert "soak-0001" not in more
    assert len(soak_there(results).rounds) == 4
    # The first and the last are whole; of the others only the record is left.
    left = sorted(len(list(outputs.iterdir())) for outputs in results.glob("output/*"))
    assert left[:2] == [1, 1]
    assert min(left[2:]) > 1
    assert len(list(results.glob("reports/run-*.json"))) == 2
    assert len(list(results.glob("marks/*.json"))) == 2


POSITIVE = soaks.RoundFinding(
    status="HW-FAIL", rule="memory-errors", sentence="Device 3 is broken.", positive=True
)


@pytest.mark.parametrize(("goes_on", "rounds"), [(False, 2), (True, 4)])
def test_positive_evidence_of_hardware_ends_it(results_folder, monkeypatch, goes_on, rounds):
    load_rounds(monkeypatch, results_folder)
    judged = iter([[], [POSITIVE], [], []])
    loop = loop_of(
        results_folder, monkeypatch, lambda name: None, judge=lambda _: next(judged),
        goes_on=goes_on,
    )  # fmt: skip
    loop.run()
    assert len(loop.soak.rounds) == rounds
    assert (loop.soak.ended is None) == goes_on


def test_a_signal_costs_the_round_and_the_record_stays(results_folder, monkeypatch):
    load_rounds(monkeypatch, results_folder)

    def sessions(name):
        if name == "soak-0003":
            os.kill(os.getpid(), signal.SIGTERM)

    loop = loop_of(results_folder, monkeypatch, sessions)
    loop.run()
    assert len(soak_there(results_folder).rounds) == 2
    assert loop.soak.ended == "SIGTERM ended it"
    assert loop.signal == signal.SIGTERM


def test_a_full_disk_leaves_the_record_whole_and_the_node_incomplete(
    results_folder, monkeypatch, command
):
    load_rounds(monkeypatch, results_folder)
    write = soaks.write

    def full(outputs, round_):
        if round_.number > 2:
            raise NotFoundError("round.json cannot be written (No space left on device).")
        write(outputs, round_)

    monkeypatch.setattr(soaks, "write", full)
    with pytest.raises(NotFoundError):
        loop_of(results_folder, monkeypatch, lambda name: None).run()
    ended = command("drift", code=13)
    assert "1.00 of 2 h, 2 rounds under load: INCOMPLETE" in ended.words
    assert "Next for node1 (unfinished): Start the same command again" in ended.words


def test_every_node_runs_a_soak_and_refuses_a_network_with_it(monkeypatch):
    words = every_node.soak_command(24, ["--system=lumi:gpu"], False)
    assert words[1:] == ("soak", "--hours=24", "--", "--system=lumi:gpu")
    with pytest.raises(UsageError, match="no network"):
        every_node.soak_command(24, [], True)


def test_a_quiet_session_leaves_the_metrics_that_have_a_direction_and_a_noise(results_folder):
    values = {f"{PARTITION}:wrong": factories.judged(0.0, unit="count")}
    session = SessionBuilder(results_folder).copies({"node1": 10.0})
    folder = session.passed("other", perfvalues=values).write()
    results = reading.read([str(folder)])
    left = soaks.measured(results, soak_of([]), "quiet", "soak-0001")
    assert left.values.keys() == left.members.keys() == {"stream_local.copy_worst"}
    assert left.values["stream_local.copy_worst"].middle == 10.0
    assert left.members["stream_local.copy_worst"].better == "higher"
