"""The driver of one job over many nodes, with stand-ins for Slurm's commands."""

from __future__ import annotations

import os
import signal
import threading
import time
from datetime import timedelta

import pytest

from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.results import requested_nodes
from fabricheck.run.every_node import driver, session, staging
from fabricheck.schedulers.row import Allocation, Node
from fabricheck.schedulers.table import SLURM

#: Finds its node, notes its own options and environment, and is what the node's file says.
SRUN = """#!/bin/sh
for option in "$@"; do case $option in --nodelist=*) node=${option#*=} ;; esac; done
export node folder=FOLDER
group="pid and session $(cut -d " " -f 1,6 /proc/$$/stat)"
{ echo "$@"; env; echo "$group"; } > "$folder/$node.started"
report() { mkdir -p "$FABRICHECK_RESULTS/reports"; : > "$FABRICHECK_RESULTS/reports/run-0.json"; }
. "$folder/$node.does"
"""

BEGINS = 'echo "[==========] Running 1 check(s)"\n'

#: What a session does that measured all, and one that hangs until it is ended.
GOOD = f"{BEGINS}report\n"
HANGS = f"{BEGINS}trap 'report; exit 1' TERM\nwhile :; do sleep 0.05; done\n"
STUBBORN = f"{BEGINS}trap '' TERM\nwhile :; do sleep 0.05; done\n"

#: The steps of the job: those of the sessions and of their checks, and one of before.
STEPS = (
    "7.0|before|node2\n7.batch|batch|node1\n7.1|{name}|node1\n7.2|{name}|node2\n7.3|stream|node2\n"
)


class Run:
    """A driver with stand-ins in a folder."""

    def __init__(self, folder, monkeypatch) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.results = folder / "results"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.script("srun", SRUN.replace("FOLDER", str(folder)))
        # The step of before is there from the start, the others when a session was started.
        steps = STEPS.format(name="fabricheck-every-node")
        self.script(
            "squeue",
            f'#!/bin/sh\nif ls "{folder}"/*.started > /dev/null 2>&1; then printf "{steps}"; '
            'else echo "7.0|before|node2"; fi\n',
        )
        self.script("scancel", f'#!/bin/sh\necho "$@" >> "{folder}/cancelled"\n')
        monkeypatch.setenv("PATH", f"{self.bin}:/usr/bin:/bin")
        monkeypatch.setattr(driver, "GRACE_S", 0.3)
        monkeypatch.setattr(driver, "LAST_GRACE_S", 0.3)
        monkeypatch.setattr(driver, "_LOOK_S", 0.02)

    def script(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def driver(
        self, does, minutes=1.0, at_once=9, left_s=3600.0, stage=False, **requested
    ) -> driver.Driver:
        nodes = {}
        for name, what in does.items():
            (self.folder / f"{name}.does").write_text(what)
            nodes[name] = Node(state="ALLOCATED")
        nodes |= {name: Node(unusable=text) for name, text in requested.items()}
        ends = None
        if left_s is not None:
            ends = requested_nodes.now() + timedelta(seconds=left_s + driver.KEPT_S)
        return driver.Driver(
            ("reframe", "-r"), Allocation(SLURM, "7", nodes, ends), self.results, self.said.append,
            chosen=("-t", "smoke"), minutes=minutes, at_once=at_once, stage=stage,
        )  # fmt: skip

    def started(self, node: str) -> str:
        return (self.folder / f"{node}.started").read_text()

    def cancelled(self) -> list[str]:
        file = self.folder / "cancelled"
        return file.read_text().splitlines() if file.exists() else []

    def file(self, name="7") -> requested_nodes.RequestedNodes:
        return requested_nodes.read(self.results / "every-node" / name / "nodes.json")


@pytest.fixture
def a_run(tmp_path, monkeypatch):
    return Run(tmp_path, monkeypatch)


def test_each_node_ends_for_itself_and_is_noted(a_run, wording):
    fails = f"{BEGINS}report\necho 'srun: error: node2: task 0: Exited with exit code 1'\nexit 1\n"
    lost = f"{BEGINS}echo 'srun: error: Node failure on node3'\n"
    before = (
        "echo 'ERROR: no such system'\necho 'srun: error: x: Exited with exit code 1'\nexit 1\n"
    )
    does = {"node1": GOOD, "node2": fails, "node3": lost, "node4": before}
    down = "node5 was DOWN, so nothing was started on it."
    run = a_run.driver(does, node5=down)
    # All names are there before anything is started.
    requested = a_run.file()
    assert list(requested.nodes) == ["node1", "node2", "node3", "node4", "node5"]
    assert (requested.job, requested.chosen) == ("7", ("-t", "smoke"))
    assert run.run() is None
    nodes = a_run.file().nodes
    # Of node3, srun ended with 0.
    assert [one.status for one in nodes.values()] == [0, 1, None, 1, None]
    assert nodes["node1"].how_ended is nodes["node2"].how_ended is None
    assert nodes["node5"].how_ended == down
    wording([nodes["node3"].how_ended, nodes["node4"].how_ended])
    assert [one.ended is not None for one in nodes.values()] == [True] * 4 + [False]
    assert a_run.said[0] == down
    # In whichever order the nodes ended.
    wording(sorted(line.rpartition(" (")[0] for line in a_run.said[1:]))
    assert [line.rpartition(" (")[2] for line in a_run.said[1:]] == [
        f"{n} of 4)" for n in range(1, 5)
    ]
    assert not (a_run.folder / "node5.started").exists()


def test_where_nothing_runs_a_node_is_started_at_once(a_run):
    a_run.driver({"node1": GOOD}, left_s=5.0).run()
    assert a_run.file().nodes["node1"].status == 0


def test_a_session_is_one_task_beside_which_its_checks_fit(a_run, monkeypatch):
    monkeypatch.setenv("SLURM_NTASKS_PER_NODE", "8")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    run = a_run.driver({"node1": GOOD})
    run.run()
    options, *lines = a_run.started("node1").splitlines()
    assert options.endswith(" --input=none reframe -r")
    assert {"--overlap", "--nodes=1", "--ntasks=1", "--nodelist=node1"} <= set(options.split())
    assert f"FABRICHECK_RESULTS={run.folder}/node1" in lines
    assert "SLURM_JOB_ID=7" in lines
    assert not any(line.startswith("SLURM_NTASKS") for line in lines)
    # Ctrl-C reaches the driver alone.
    number, leader = lines[-1].removeprefix("pid and session ").split()
    assert number == leader


def test_what_hangs_is_asked_to_end_and_the_others_have_ended(a_run, wording):
    run = a_run.driver({"node1": GOOD, "node2": HANGS}, minutes=0.005)
    run.run()
    nodes = a_run.file().nodes
    assert nodes["node1"].how_ended is None
    wording(nodes["node2"].how_ended)
    assert nodes["node2"].status is None and nodes["node2"].ended is not None
    # Asked first; then all of the node's steps but the one of before, and again what was left.
    assert a_run.cancelled() == ["--signal=TERM 7.2", "7.2 7.3", "7.2 7.3"]


def test_between_two_calls_that_end_sessions_others_become_late(a_run, monkeypatch):
    # Each call takes, say, so long that the next one is due after 0.2 s.
    monkeypatch.setattr(driver, "_PART", 1e-9)
    monkeypatch.setattr(driver, "_LONGEST_S", 0.2)
    monkeypatch.setattr(driver, "GRACE_S", 0.05)
    steps = "".join(f"7.{n}|fabricheck-every-node|node{n}\\n" for n in (1, 2, 3))
    a_run.script("squeue", f"#!/bin/sh\nprintf '{steps}'\n")
    first = time.monotonic()
    began = iter([first, first + 0.05, first + 0.1])

    def one_after_the_other(*given):
        started = session.NodeSession(*given)
        started.began = next(began)
        return started

    monkeypatch.setattr(driver, "NodeSession", one_after_the_other)
    a_run.driver(dict.fromkeys(("node1", "node2", "node3"), HANGS), minutes=0.002).run()
    asked = [line for line in a_run.cancelled() if line.startswith("--signal=TERM")]
    # On a slow machine more of them are late at the first call.
    assert len(asked) <= 2 and " ".join(asked).count("7.") == 3


def test_an_srun_that_does_not_end_is_killed(a_run):
    run = a_run.driver({"node1": STUBBORN}, minutes=0.005)
    began = time.monotonic()
    run.run()
    assert 0.9 <= time.monotonic() - began < 30
    assert a_run.file().nodes["node1"].how_ended.endswith("and was stopped.")


def test_all_is_stopped_before_the_job_ends(a_run, wording):
    run = a_run.driver({"node1": HANGS, "node2": GOOD}, minutes=None, at_once=1, left_s=1.0)
    # It never begins, so that the other would wait for a minute.
    (a_run.folder / "node1.does").write_text(HANGS.removeprefix(BEGINS))
    run.run()
    wording(one.how_ended for one in a_run.file().nodes.values())
    assert a_run.file().nodes["node2"].ended is None


def test_so_many_read_their_files_at_once_and_measure_together(a_run):
    # How many sessions have started and not begun, itself one of them.
    reads = (
        'started=$(ls "$folder" | grep -c "[.]started$")\n'
        'begun=$(ls "$folder" | grep -c "[.]begun$")\n'
        'echo $((started - begun)) > "$folder/$node.reading"\nsleep 0.2\n'
    )
    until = 'while [ ! -e "$folder/{}.started" ]; do sleep 0.02; done\n'
    measures = f': > "$folder/$node.begun"\n{BEGINS}{until.format("node5")}report\n'
    does = {f"node{number}": reads + measures for number in range(1, 6)}
    does["node1"] = reads + until.format("node2") + measures
    run = a_run.driver(does, at_once=2)
    run.run()
    reading = [int((a_run.folder / f"{node}.reading").read_text()) for node in does]
    assert max(reading) <= 2
    assert all(one.status == 0 for one in a_run.file().nodes.values())


def test_nodes_that_never_begin_do_not_hold_up_the_others(a_run, monkeypatch):
    monkeypatch.setattr(driver, "LEAST_STARTING_S", 0.05)
    # However long a busy machine takes to begin the first.
    monkeypatch.setattr(driver, "STARTING_S", 1.0)
    dead = HANGS.removeprefix(BEGINS)
    does = {"node1": GOOD, "node2": dead, "node3": dead, "node4": GOOD}
    run = a_run.driver(does, minutes=0.1, at_once=1)
    run.run()
    nodes = a_run.file().nodes
    assert [one.status for one in nodes.values()] == [0, None, None, 0]
    # It began before the first of them was stopped.
    began = (a_run.folder / "node4.started").stat().st_mtime
    assert began < nodes["node2"].ended.timestamp()


def test_the_file_of_nodes_is_not_written_for_each_of_them(a_run, monkeypatch):
    writes = []
    write = requested_nodes.write
    monkeypatch.setattr(requested_nodes, "write", lambda *given: writes.append(write(*given)))
    # One of them takes, say, so long that the next one is not due for a while.
    monkeypatch.setattr(driver, "_PART", 1e-9)
    run = a_run.driver({f"node{n}": f"sleep 0.{n}\n{GOOD}" for n in range(1, 8)})
    run.run()
    # Before all, after the first, and at the end.
    assert len(writes) == 3
    assert all(one.status == 0 for one in a_run.file().nodes.values())


def test_where_there_is_room_for_one_srun_nodes_take_turns(a_run, monkeypatch):
    monkeypatch.setattr(
        driver.session, "number_of_starters", lambda _, wanted: (1, f"Room for 1 of {wanted}.")
    )
    slowly = f'{BEGINS}sleep 0.2\ndate +%s.%N > "$folder/$node.ended"\nreport\n'
    run = a_run.driver({"node1": slowly, "node2": slowly})
    run.run()
    assert a_run.said[0] == "Room for 1 of 2."
    first = float((a_run.folder / "node1.ended").read_text())
    assert (a_run.folder / "node2.started").stat().st_mtime >= first


def test_a_node_for_which_there_was_no_process_waits_for_one(a_run, monkeypatch, wording):
    running = []

    def limited(*given):
        if sum(one.status is None for one in running) == 2:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        running.append(session.NodeSession(*given))
        return running[-1]

    monkeypatch.setattr(driver, "NodeSession", limited)
    run = a_run.driver({f"node{n}": f"{BEGINS}sleep 0.1\nreport\n" for n in range(1, 5)})
    run.run()
    assert all(one.status == 0 for one in a_run.file().nodes.values())
    (said,) = (line for line in a_run.said if "no room" in line)
    wording(said)


def test_sessions_that_cannot_be_staged_read_the_shared_files(a_run, monkeypatch):
    monkeypatch.setenv("RFM_CONFIG_FILES", "/x/settings.py")
    run = a_run.driver({"node1": GOOD}, stage=True)
    run.run()
    assert a_run.said[0].startswith("The sessions read the shared files: the settings /x/settings")
    assert a_run.started("node1").splitlines()[0].endswith(" --input=none reframe -r")
    assert a_run.file().nodes["node1"].status == 0


def test_staged_sessions_read_an_archive_that_is_there_meanwhile(a_run, monkeypatch, wording):
    monkeypatch.setattr(staging, "pack", lambda path, *_: path.write_text("x" * 2_000_000))
    does = f'{BEGINS}[ ! -e "$FABRICHECK_RESULTS/../staged.tar.gz" ] || report\n'
    run = a_run.driver({"node1": does}, stage=True)
    run.run()
    wording(a_run.said[0])
    options = a_run.started("node1")
    assert f" sh  {run.folder}/staged.tar.gz reframe -r" in options.replace("\n", " ")
    assert a_run.file().nodes["node1"].how_ended is None
    assert not (run.folder / "staged.tar.gz").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_all_and_is_noted(a_run, number):
    run = a_run.driver({"node1": HANGS, "node2": GOOD}, at_once=1)
    (a_run.folder / "node1.does").write_text(HANGS.removeprefix(BEGINS))
    timer = threading.Timer(0.5, os.kill, (os.getpid(), number))
    timer.start()
    assert run.run() == number
    timer.join()
    name = signal.Signals(number).name
    assert [one.how_ended for one in a_run.file().nodes.values()] == [
        f"node1 was stopped because {name} ended the run.",
        f"node2 was not started because {name} ended the run.",
    ]
    assert a_run.cancelled()[0] == "--signal=TERM 7.1"


def test_a_second_run_of_a_job_has_a_folder_of_its_own(a_run):
    a_run.driver({"node1": GOOD}).run()
    second = a_run.driver({"node1": HANGS}, minutes=0.005)
    second.run()
    assert second.folder.name == "7-2"
    assert a_run.file("7-2").nodes["node1"].how_ended is not None
    assert a_run.file("7").nodes["node1"].how_ended is None


def test_sessions_go_on_when_the_file_of_nodes_can_not_be_written(a_run, monkeypatch):
    run = a_run.driver({"node1": GOOD, "node2": f"sleep 0.2\n{GOOD}"})
    full = NotFoundError("nodes.json cannot be written (No space left on device).")

    def refuses(path, requested):
        raise full

    monkeypatch.setattr(requested_nodes, "write", refuses)
    with pytest.raises(NotFoundError, match="No space left"):
        run.run()
    assert a_run.said.count(str(full)) == 1
    assert "node2: ended well (2 of 2)" in a_run.said
    # What was there before is whole.
    assert a_run.file().nodes["node1"].ended is None


def test_a_node_without_srun_does_not_end_the_run(a_run, monkeypatch):
    run = a_run.driver({"node1": GOOD})
    (a_run.bin / "srun").unlink()
    monkeypatch.setenv("PATH", str(a_run.bin))
    run.run()
    said = a_run.file().nodes["node1"].how_ended
    assert said.startswith("node1: the session cannot be started (") and "srun" in said


@pytest.mark.parametrize(
    ("minutes", "left_s", "sentence"),
    [
        (None, None, "The job 7 has no time limit, .* waited for without end: set --minutes."),
        (5.0, -1.0, "The job 7 ends at .*, and 60 s of its time are reserved for the verdict"),
    ],
)
def test_who_waits_for_what_hangs_is_told_before_anything_is_written(
    a_run, minutes, left_s, sentence
):
    with pytest.raises(UsageError, match=sentence):
        a_run.driver({"node1": GOOD}, minutes=minutes, left_s=left_s)
    assert not a_run.results.exists()


def test_last_words_are_short_and_printable(a_run):
    words = "x" * 400
    run = a_run.driver({"node1": f"printf '\\033[31m{words}\\n\\n'\n"})
    run.run()
    said = a_run.file().nodes["node1"].how_ended
    assert "\\x1b[31mxxx" in said and len(said) < 360
    assert session.LOG in {path.name for path in (run.folder / "node1").iterdir()}
