"""One session at a time measures a node, and a killed one leaves nothing locked."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import signal
import socket
import subprocess
import sys
import time

import pytest
from reframe.core.exceptions import ReframeError

from fabricheck.rfm import node_lock

HOLD = """
import sys, pathlib
from fabricheck.rfm import node_lock
node_lock.LOCK_FOLDERS = (pathlib.Path(sys.argv[1]),)
with node_lock.held_nodes(sys.argv[2] == "", (1,) if sys.argv[2] else (), print):
    print("locked", flush=True)
    sys.stdin.read()
"""


def on(node, nodes="node[1-2]"):
    """Return the environment of a session in an allocation; node: where it runs, if on one."""
    return {"SLURM_JOB_NODELIST": nodes, "SLURMD_NODENAME": node}


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
    started = []

    def start(node=""):
        started.append(hold(folder, node))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_second_session_says_that_it_waits(other):
    said = []
    process = other()

    def say(sentence):
        said.append(sentence)
        process.stdin.close()

    with here(say):
        (sentence,) = said
        assert process.wait() == 0
    assert sentence.startswith("Another session measures this node (")
    user = pwd.getpwuid(os.getuid()).pw_name
    holder = f"process {process.pid} of user {user}"
    assert sentence.endswith(f" is locked by {holder}): waiting until it ends, at most 4 hours.")


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
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-2]")
    monkeypatch.setenv("SLURMD_NODENAME", "node2")
    with node_lock.held_nodes(here=True, stepping=(1,), say=pytest.fail):
        names = sorted(file.name for file in node_lock.LOCK_FOLDERS[0].iterdir())
    assert names == [node_lock.LOCK_NAME.format(name) for name in ("node-node2", "this-node")]


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
        (file,) = node_lock.LOCK_FOLDERS[0].iterdir()
        descriptor = os.open(file, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    assert said == []


def test_other_users_can_take_it_whatever_the_umask(other):
    before = os.umask(0o077)
    try:
        with here(print):
            (file,) = node_lock.LOCK_FOLDERS[0].iterdir()
            assert file.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


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


def make_link(file):
    file.symlink_to("elsewhere")


def make_socket(file):
    # The path of a socket is short; that of a folder of tests is not.
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as made, contextlib.chdir(file.parent):
        made.bind(file.name)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (make_link, "cannot be opened: Too many levels of symbolic links"),
        (os.mkfifo, "is not a regular file"),
        (os.mkdir, "is not a regular file"),
        (make_socket, "cannot be opened: No such device or address"),
    ],
    ids=["link", "pipe", "folder", "socket"],
)
def test_what_is_no_lock_is_named_and_not_waited_for(other, make, why):
    file = node_lock.LOCK_FOLDERS[0] / node_lock.LOCK_NAME.format(node_lock.THIS_NODE)
    make(file)
    with at_most_seconds(5), pytest.raises(ReframeError) as error, here(print):
        pass
    owner = pwd.getpwuid(file.lstat().st_uid).pw_name
    assert str(error.value) == (
        f"The lock of this node, {file}, {why}. Remove it, or ask its owner to ({owner}): the next "
        "session creates it."
    )


def test_a_lock_that_stays_locked_is_not_waited_for_for_ever(other, monkeypatch):
    monkeypatch.setattr(node_lock, "LONGEST_WAIT_S", 0.2)
    monkeypatch.setattr(node_lock, "SECONDS_BETWEEN_TRIES", 0.05)
    process = other()
    with pytest.raises(ReframeError) as error, here(lambda sentence: None):
        pass
    file = node_lock.LOCK_FOLDERS[0] / node_lock.LOCK_NAME.format(node_lock.THIS_NODE)
    user = pwd.getpwuid(os.getuid()).pw_name
    assert str(error.value).startswith(f"The lock of this node, {file}, was not free within ")
    assert f"process {process.pid} of user {user} holds it. End that process" in str(error.value)


def test_a_node_without_a_folder_for_it(monkeypatch, tmp_path):
    monkeypatch.setattr(node_lock, "LOCK_FOLDERS", (tmp_path / "none",))
    with pytest.raises(ReframeError, match="none is writable"), here(print):
        pass


@pytest.mark.slow
def test_the_time_that_a_session_waits_is_not_the_program_s(suite, tmp_path, monkeypatch):
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
    assert "waiting until it ends, at most 4 hours." in outcome
    word, _, moment = suite.log.read_text().splitlines()[0].split()
    assert word == "start"
    assert [float(moment)] > ends
    # A dry run measures nothing.
    assert suite("--dry-run").status == 0
