"""One session at a time measures a node, and a killed one leaves nothing locked."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from unittest import mock

import pytest

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.judge.verdict import judging
from fabricheck.results import reading
from fabricheck.rfm import node_lock
from fabricheck.rfm.node_lock import NodeTaken

HOLD = """
import os, sys, pathlib
from fabricheck.rfm import node_lock
node_lock.LOCK_FOLDERS = (pathlib.Path(sys.argv[1]),)
node_lock.open_of_the_machine = lambda: os.open(sys.argv[1], os.O_RDONLY)
with node_lock.held_nodes(sys.argv[2] == "", (1,) if sys.argv[2] else (), print):
    print("locked", flush=True)
    sys.stdin.read()
"""


def on(node, nodes="node[1-2]"):
    """Return the environment of a session in an allocation; node: where it runs, if on one."""
    return {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": nodes, "SLURMD_NODENAME": node}


def hold(folder, node=""):
    """Start another process that holds the lock until its standard input is closed.

    Of a node of an allocation, on which it runs, or without one of this machine.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), node],
        env={**os.environ, **on(node, node)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "locked\n"
    return process


def without_holder(sentence):
    """Return a sentence without what is known of the process that holds the lock."""
    return re.sub(r"\(process .*\)", "(HOLDER)", sentence, flags=re.DOTALL)


def here(say):
    """Hold the lock of this machine, as a session without Slurm does."""
    return node_lock.held_nodes(here=True, stepping=(), say=say)


def by_steps(say):
    """Hold the lock of the node that the environment tells."""
    return node_lock.held_nodes(here=False, stepping=(1,), say=say)


@pytest.fixture
def other(tmp_path, monkeypatch):
    """Start another process that holds the lock."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    monkeypatch.setattr(node_lock, "LOCK_FOLDERS", (folder,))
    monkeypatch.setattr(node_lock, "open_of_the_machine", lambda: os.open(folder, os.O_RDONLY))
    started = []

    def start(node=""):
        started.append(hold(folder, node))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@contextlib.contextmanager
def at_most_seconds(number):
    """End what waits for ever, as opening a pipe for reading does."""

    def end(*_):
        raise TimeoutError(f"it waited for {number} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(number)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_waiting_session_says_each_minute_for_whom(other, monkeypatch, wording):
    monkeypatch.setattr(node_lock, "SECONDS_BETWEEN_TRIES", 0.01)
    monkeypatch.setattr(node_lock, "SECONDS_BETWEEN_SENTENCES", 0.2)
    said, moments = [], []
    process = other()

    def say(sentence):
        said.append(sentence)
        moments.append(time.monotonic())
        if len(said) == 3:
            process.stdin.close()

    with at_most_seconds(20), here(say):
        assert len(said) == 3
        assert process.wait() == 0
    assert moments[2] - moments[0] > 0.2
    user = pwd.getpwuid(os.getuid()).pw_name
    holder = f"process {process.pid} of user {user} since {datetime.now():%Y-%m-%d} "
    (sentence,) = {*said}
    assert f"({holder}" in sentence and f" by `{sys.executable} -c " in sentence
    wording(without_holder(sentence))


def test_the_start_of_a_holder_is_that_of_its_process(other):
    before = datetime.now().astimezone()
    process = other()
    start = node_lock._start(Path("/proc", str(process.pid)))
    # A tick of the kernel is 10 ms.
    assert abs((start - before).total_seconds()) < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("others", "environment", "own"),
    [
        ("node1", on(""), by_steps),
        ("node1", on("node1"), by_steps),
        ("node1", {}, here),
        ("", on("node1"), by_steps),
    ],
    ids=["from a login node", "on the node", "without Slurm", "beside one without Slurm"],
)
def test_one_session_at_a_time_measures_a_node(other, monkeypatch, others, environment, own):
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    said = []
    process = other(others)

    def say(sentence):
        said.append(sentence)
        process.stdin.close()

    with own(say):
        assert len(said) == 1
        assert process.wait() == 0


def test_a_session_of_both_kinds_does_not_wait_for_itself(other, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-2]")
    monkeypatch.setenv("SLURMD_NODENAME", "node2")
    with node_lock.held_nodes(here=True, stepping=(1,), say=pytest.fail):
        names = sorted(file.name for file in node_lock.LOCK_FOLDERS[0].iterdir())
    assert names == [node_lock.LOCK_NAME.format("node-node2")]


def test_other_nodes_are_measured_at_the_same_time(other, monkeypatch):
    other("node1")
    said = []
    # A Slurm of several nodes on one machine; and another machine, from a login node.
    for environment in (on("node2"), on("", "node2")):
        for name, text in environment.items():
            monkeypatch.setenv(name, text)
        with by_steps(said.append):
            assert said == []


def test_a_killed_session_leaves_nothing_locked(other):
    process = other()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    said = []
    with here(said.append):
        assert said == []


def test_the_lock_is_given_back_and_held_in_between(other):
    said = []
    with here(said.append):
        descriptor = node_lock.open_of_the_machine()
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    assert said == []


def test_other_users_can_take_it_whatever_the_umask(other, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-2]")
    before = os.umask(0o077)
    try:
        with by_steps(print):
            (file,) = node_lock.LOCK_FOLDERS[0].iterdir()
            assert file.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


def make_link(file):
    file.symlink_to("elsewhere")


def make_socket(file):
    # The path of a socket is short; that of a folder of tests is not.
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as made, contextlib.chdir(file.parent):
        made.bind(file.name)


@pytest.mark.parametrize(
    "make",
    [make_link, os.mkfifo, os.mkdir, make_socket],
    ids=["link", "pipe", "folder", "socket"],
)
def test_what_is_no_lock_is_named_and_not_waited_for(other, monkeypatch, make, wording):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-2]")
    file = node_lock.LOCK_FOLDERS[0] / node_lock.LOCK_NAME.format("node-node1")
    make(file)
    with at_most_seconds(5), pytest.raises(InvalidInputError) as error, by_steps(print):
        pass
    owner = pwd.getpwuid(file.lstat().st_uid).pw_name
    wording(str(error.value).replace(f"({owner})", "(OWNER)"))


@pytest.mark.parametrize("others", ["", "node1"], ids=["this machine", "a named node"])
def test_a_session_waits_no_longer_than_the_user_wants(other, monkeypatch, others):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-2]")
    monkeypatch.setattr(node_lock, "SECONDS_BETWEEN_TRIES", 0.05)
    process = other(others)
    monkeypatch.setenv(node_lock.ENV_WAIT_MINUTES, "0")
    said = []
    take = by_steps if others else here
    with pytest.raises(NodeTaken) as error, take(said.append):
        pass
    assert error.value.exit_code == 13
    assert said == []
    node = "node node1" if others else "this node"
    assert f"another session measures {node} (process {process.pid} of user " in str(error.value)
    assert "did not end within 0 minutes" in str(error.value)
    monkeypatch.setenv(node_lock.ENV_WAIT_MINUTES, "-1")
    with pytest.raises(InvalidInputError, match="FABRICHECK_WAIT_MINUTES=-1 is not"), here(print):
        pass


def test_a_node_without_a_folder_for_its_lock(monkeypatch, tmp_path):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-2]")
    monkeypatch.setattr(node_lock, "LOCK_FOLDERS", (tmp_path / "none",))
    with pytest.raises(NotFoundError, match="none is writable"), by_steps(print):
        pass


#: A container of this machine: it has its users, files, processes, network, names and clock.
CONTAINER = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc",
             "--ipc", "--net", "--uts", "--cgroup", "--time")  # fmt: skip

#: The folders that it has for itself.
ITS_FOLDERS = "mount -t tmpfs shm /dev/shm && mount -t tmpfs tmp /tmp && mount -t sysfs sys /sys"

MEASURE = """
from fabricheck.rfm import node_lock
with node_lock.held_nodes(here=True, stepping=(), say=print):
    print("measures")
"""


def test_a_session_in_another_container_of_the_machine_is_noticed():
    tried = subprocess.run(
        [*CONTAINER, "sh", "-c", ITS_FOLDERS], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"this machine lets no container be made: {tried.stderr.strip()}")
    if Path(sys.executable).is_relative_to("/tmp"):
        pytest.skip(
            "the container has a /tmp of its own, and this checkout is in that of the machine"
        )
    lock = node_lock.open_of_the_machine()
    # Whether it is this test or a session that measures here now: the machine is locked.
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    inside = f'{ITS_FOLDERS} && exec "$0" -c "$1"'
    ended = subprocess.run(
        [*CONTAINER, "sh", "-c", inside, sys.executable, MEASURE],
        env={**os.environ, node_lock.ENV_WAIT_MINUTES: "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(lock)
    assert "measures\n" not in ended.stdout
    assert (
        "NodeTaken: Nothing was measured: another session measures this node (a process that is "
        "not visible here, as one in another container)" in ended.stderr
    )


@pytest.mark.parametrize(
    "opened",
    [lambda: os.memfd_create("of this process"), lambda: os.open("/", os.O_PATH)],
    ids=["not shared", "not lockable"],
)
def test_a_kernel_without_a_lock_for_all_containers_is_named(
    tmp_path, monkeypatch, opened, wording
):
    monkeypatch.setattr(node_lock, "LOCK_FOLDERS", (tmp_path,))
    monkeypatch.setattr(node_lock.os, "eventfd", lambda start: opened())
    said = []
    with here(said.append):
        assert (tmp_path / node_lock.LOCK_NAME.format("this-node")).exists()
    wording(said)


@pytest.mark.slow
def test_a_session_that_waited_in_vain_ends_with_13_and_leaves_the_earlier_one(
    suite, monkeypatch, wording
):
    assert suite("-r", "-n", "stream_local").status == 0
    process = hold(suite.programs)
    suite.variables["FABRICHECK_WAIT_MINUTES"] = "0"
    suite.variables["FABRICHECK_SESSION"] = "in-vain"
    outcome = suite("-r", "-n", "stream_local")
    suite.variables["FABRICHECK_WAIT_MINUTES"] = "soon"
    refused = suite("-r", "-n", "stream_local")
    process.kill()
    process.wait()
    assert outcome.status == 13
    assert "another session measures this node (process" in outcome
    assert "Traceback" not in outcome
    assert refused.status == 4
    wording(refused.lines_with("ERROR"))
    assert len(list(suite.results.glob("reports/run-*.json"))) == 1
    monkeypatch.setenv("FABRICHECK_RESULTS", str(suite.results))
    earlier, in_vain = (judging.judge(reading.read([name])) for name in ("run-0", "in-vain"))
    assert [verdict.status for verdict in in_vain] == ["INCOMPLETE"]
    assert [session.id for verdict in earlier for session in verdict.sessions] == ["run-0"]


@pytest.mark.slow
def test_ctrl_c_ends_a_waiting_session_in_one_sentence(suite):
    # Its processes use the lock of the machine, which a folder stands in for here.
    process = hold(suite.programs)
    raised = mock.patch.object(node_lock.time, "sleep", side_effect=KeyboardInterrupt)
    with raised:
        outcome = suite("-r", "-n", "stream_local")
    process.kill()
    process.wait()
    assert outcome.status == 1
    assert "ERROR: run session stopped: cancelled by user" in outcome
    assert "Traceback" not in outcome


@pytest.mark.slow
def test_the_time_that_a_session_waits_is_not_the_program_s(suite, tmp_path, monkeypatch, wording):
    process = hold(suite.programs)
    held = node_lock.held_nodes
    ends = []

    @contextlib.contextmanager
    def then_end_the_other(here, stepping, say):
        def said(sentence):
            say(sentence)
            ends.append(time.monotonic())
            process.stdin.close()

        with held(here, stepping, said):
            # ReFrame waits for it, as for every child, where the session did not.
            process.stdin.close()
            yield

    monkeypatch.setattr(node_lock, "held_nodes", then_end_the_other)
    outcome = suite("-r", "-n", "stream_local")
    process.kill()
    process.wait()
    assert outcome.status == 0
    wording(without_holder(line) for line in outcome.lines_with("waiting until"))
    word, _, moment = suite.log.read_text().splitlines()[0].split()
    assert word == "start"
    assert [float(moment)] > ends
    # A dry run measures nothing.
    assert suite("--dry-run").status == 0
