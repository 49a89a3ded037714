"""The lock of a node: one session at a time measures it, and another one waits.

A lock ends with the process of its session, killed or not. That of the machine that a session runs
on also holds for sessions in other containers of the machine. A session waits some minutes, tells
each minute for whom, and then ends without having measured anything.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pwd
import shlex
import stat
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.core.show import enumerated, listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import EXIT_NODE_OPEN
from fabricheck.rfm.host import whole_number
from fabricheck.schedulers import table

#: The variable with the minutes that a session waits at most; 0 waits for no other session.
ENV_WAIT_MINUTES = "FABRICHECK_WAIT_MINUTES"

#: The minutes without that variable: four sessions of the set `node` one after another, with their
#: starts. A session of the set `full` takes longer.
WAIT_MINUTES = 15

#: The time from one sentence about a lock to the next, in s.
SECONDS_BETWEEN_SENTENCES = 60.0

#: The time from one try to take a lock to the next, in s.
SECONDS_BETWEEN_TRIES = 0.5

#: Folders shared by all users of a machine; the first existing one holds the lock files.
LOCK_FOLDERS = (Path("/dev/shm"), Path("/tmp"))

LOCK_NAME = "fabricheck-measures-{}.lock"

#: The part of a lock file's name for the machine that a session runs on.
THIS_NODE = "this-node"

#: Characters of another session's command that are shown.
_LONGEST_COMMAND = 100


class NodeTaken(FabricheckError):
    """Another session measured the node for as long as this one waits."""

    exit_code = EXIT_NODE_OPEN


@dataclass(frozen=True)
class _Wait:
    """How long a session waits for all its locks together, and whom it tells.

    minutes: the most. began: when it began, on the monotonic clock.
    """

    minutes: int
    began: float
    say: Callable[[str], object]

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def seconds_left(self) -> float:
        return 60.0 * self.minutes - self.seconds


def longest_wait_minutes() -> int:
    """Return the minutes that a session waits for other sessions.

    :raises InvalidInputError: when the variable contains no whole number.
    """
    return whole_number(ENV_WAIT_MINUTES, default=WAIT_MINUTES, least=0)


@contextlib.contextmanager
def held_nodes(
    here: bool, stepping: Collection[int], say: Callable[[str], object]
) -> Iterator[None]:
    """Hold the locks of the nodes that a session measures, after waiting for other sessions.

    A scheduler admits only this job to a node of its allocation, but the job may have two sessions.
    If the session runs on the node itself, sessions without a scheduler are locked out too. Several
    nodes on one machine are measured in turn.

    :param here: whether the session measures the machine that it runs on, without a scheduler.
    :param stepping: how many nodes of the allocation around it each check measures, by steps.
    :param say: called with a sentence for each minute in which the session waits for another one.
    :raises NodeTaken: when a lock was not free in time.
    :raises FabricheckError: when a lock cannot be made or opened.
    """
    around = table.around(os.environ)
    nodes: set[str] = set()
    if around is not None:
        for number in stepping:
            nodes.update(around.measured_nodes(os.environ, number))
    wait = _Wait(longest_wait_minutes(), time.monotonic(), say)
    with contextlib.ExitStack() as stack:
        if here:
            stack.enter_context(_held_machine(fcntl.LOCK_EX, wait))
        elif stepping and around is not None and around.is_inside(os.environ):
            stack.enter_context(_held_machine(fcntl.LOCK_SH, wait))
        # In one order, so that no two sessions wait for each other.
        for node in sorted(nodes):
            lock = _open_file(f"node-{node}")
            stack.enter_context(_held(lock, fcntl.LOCK_EX, f"node {node}", wait))
        yield


@contextlib.contextmanager
def _held_machine(kind: int, wait: _Wait) -> Iterator[None]:
    """Hold the lock of the machine that the session runs on."""
    try:
        lock = open_of_the_machine()
    except OSError as error:
        wait.say(
            "Sessions in other containers of this machine are not waited for: its kernel has no "
            f"lock for them all ({error.strerror})."
        )
        lock = _open_file(THIS_NODE)
    with _held(lock, kind, "this node", wait):
        yield


@contextlib.contextmanager
def _held(lock: int, kind: int, node: str, wait: _Wait) -> Iterator[None]:
    """Hold an open lock, and close it: the system releases it, also when the process is killed."""
    try:
        _take(lock, kind, node, wait)
        yield
    finally:
        os.close(lock)


def _take(lock: int, kind: int, node: str, wait: _Wait) -> None:
    """Take a lock when it is free, and say each minute who holds it.

    :raises NodeTaken: when it was not free in time: any user can hold it, and for ever.
    """
    next_sentence = 0.0
    while not _is_taken(lock, kind):
        if wait.seconds_left <= 0:
            raise NodeTaken(
                f"Nothing was measured: another session measures {node} ({_holders(lock)}), and "
                f"did not end within {count(wait.minutes, 'minute')}. Measure again when it has "
                f"ended, or wait longer ({ENV_WAIT_MINUTES})."
            )
        if wait.seconds >= next_sentence:
            next_sentence = wait.seconds + SECONDS_BETWEEN_SENTENCES
            wait.say(
                f"Another session measures {node} ({_holders(lock)}): waiting until it ends, "
                f"{wait.seconds / 60:.0f} of at most {count(wait.minutes, 'minute')} so far."
            )
        time.sleep(min(SECONDS_BETWEEN_TRIES, wait.seconds_left))


def _is_taken(lock: int, kind: int) -> bool:
    """Take a lock if no other process has it, and return whether it was taken."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# The lock of the machine. A file is of one container: it has /dev/shm and /tmp for itself, and
# /sys, /proc and the namespaces of user, network and time as well, by default or by an option.


def open_of_the_machine() -> int:
    """Open what every process on this kernel can lock, whatever its container and its user are.

    Linux has one inode for all event counters of all processes (fs/anon_inodes.c), and a lock is
    one of the inode. It needs no folder and no permission, and nothing is left behind.

    :raises OSError: where a kernel has another inode for each of them, or does not lock them.
    """
    lock = os.eventfd(0)
    another = os.eventfd(0)
    try:
        if not os.path.sameopenfile(lock, another):
            raise OSError(errno.ENOTSUP, "it has an inode for each event counter")
        # Taking nothing shows whether a lock is possible.
        fcntl.flock(lock, fcntl.LOCK_UN)
    except OSError:
        os.close(lock)
        raise
    finally:
        os.close(another)
    return lock


# The lock of a named node: two sessions of a job measure its nodes from one machine. A second user
# can open the file for reading, which is enough to lock it; it stays and is never written.


def _open_file(name: str) -> int:
    """Open the file of a lock, which is created if there is none.

    Every user can write to its folder. A link is not followed, and a pipe not waited for.

    :raises NotFoundError: when no folder can have it.
    :raises InvalidInputError: when it cannot be opened, or is not a regular file.
    """
    file = _file(name)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        lock = _open_or_create(file, flags)
    except OSError as error:
        why = f"cannot be opened: {error.strerror}"
    else:
        if stat.S_ISREG(os.fstat(lock).st_mode):
            return lock
        os.close(lock)
        why = "is not a regular file"
    raise InvalidInputError(
        f"The lock of a node, {file}, {why}. Remove it, or ask its owner to{_owner_of(file)}: the "
        "next session creates it."
    )


def _file(name: str) -> Path:
    for folder in LOCK_FOLDERS:
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder / LOCK_NAME.format(name)
    raise NotFoundError(
        "There is no folder for the lock of a node: none of "
        f"{listed(map(str, LOCK_FOLDERS))} is writable."
    )


def _open_or_create(file: Path, flags: int) -> int:
    # Not O_CREAT on an existing file: systems refuse that for another user's file in /tmp.
    with contextlib.suppress(FileNotFoundError):
        return os.open(file, flags)
    with contextlib.suppress(FileExistsError):
        lock = os.open(file, flags | os.O_CREAT | os.O_EXCL, 0o644)
        os.fchmod(lock, 0o644)  # independent of the umask
        return lock
    return os.open(file, flags)


def _owner_of(file: Path) -> str:
    try:
        return f" ({_user_name(file.lstat().st_uid)})"
    except OSError:
        return ""


# Who holds a lock.


def _holders(lock: int) -> str:
    """Return the processes that hold a lock, as the kernel lists them to this container."""
    info = os.fstat(lock)
    inode = f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino}"
    try:
        listed_locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        listed_locks = []
    holders = []
    for line in listed_locks:
        # 1: FLOCK  ADVISORY  WRITE 4711 00:1a:53 0 EOF; of one that waits, "1: -> FLOCK ...".
        words = line.split()
        if len(words) == 8 and words[1] == "FLOCK" and words[5] == inode:
            holders.append(_described(words[4]))
    return enumerated(holders) or "a process that is not visible here, as one in another container"


def _described(process: str) -> str:
    """Return a process with its user, its start and its command, as far as they are visible."""
    folder = Path("/proc", process)
    parts = [f"process {process}"]
    # It may just end, or be another user's where those are hidden.
    with contextlib.suppress(OSError):
        parts.append(f"of user {_user_name(folder.stat().st_uid)}")
        parts.append(f"since {_start(folder):%Y-%m-%d %H:%M:%S}")
        words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        command = shlex.join(filter(None, words))
        if len(command) > _LONGEST_COMMAND:
            command = f"{command[:_LONGEST_COMMAND]} ..."
        parts.append(f"by `{command}`")
    return " ".join(parts)


def _start(folder: Path) -> datetime:
    """Return when a process started; its session takes the lock some seconds later."""
    # The name of the program is in brackets, and may have blanks.
    fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    since_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot
    return datetime.fromtimestamp(time.time() - age).astimezone()


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
