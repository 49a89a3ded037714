"""The lock of a node: one session at a time measures it.

It ends with the process of its session.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import stat
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from reframe.core.exceptions import ReframeError

from fabricheck.core.show import enumerated, listed
from fabricheck.rfm import slurm

#: Folders shared by all users of a node; the first existing one holds the lock file.
LOCK_FOLDERS = (Path("/dev/shm"), Path("/tmp"))

LOCK_NAME = "fabricheck-measures-{}.lock"

#: The longest that a session waits for a lock, in s: a whole set takes less.
LONGEST_WAIT_S = 4 * 3600.0

#: The time from one try to take a lock to the next, in s.
SECONDS_BETWEEN_TRIES = 0.5

#: The part of the lock file's name for the machine that a session without Slurm measures.
THIS_NODE = "this-node"


@contextlib.contextmanager
def held_nodes(
    here: bool, stepping: Collection[int], say: Callable[[str], object]
) -> Iterator[None]:
    """Hold the locks of the nodes that a session measures, after waiting for other sessions.

    Slurm admits only this job to a node of its allocation, but the job may have two sessions. If
    the session runs on the node itself, sessions without Slurm are locked out too. Several nodes on
    one machine (``slurmd -N``) are measured in turn.

    :param here: whether the session measures the machine that it runs on, without Slurm.
    :param stepping: how many nodes of the allocation around it each check measures, by steps.
    :param say: called with a sentence when the session waits for another one.
    :raises ReframeError: when the lock file cannot be created or opened, or stays locked.
    """
    nodes = {node for number in stepping for node in slurm.measured_nodes(os.environ, number)}
    with contextlib.ExitStack() as stack:
        if here:
            stack.enter_context(_held(THIS_NODE, fcntl.LOCK_EX, say))
        elif stepping and slurm.is_inside(os.environ):
            stack.enter_context(_held(THIS_NODE, fcntl.LOCK_SH, say))
        # In one order, so that no two sessions wait for each other.
        for node in sorted(nodes):
            stack.enter_context(_held(f"node-{node}", fcntl.LOCK_EX, say))
        yield


@contextlib.contextmanager
def _held(name: str, kind: int, say: Callable[[str], object]) -> Iterator[None]:
    """Hold a lock.

    The system releases it when the process ends, killed or not. The file stays and is never
    written: a second user can open it for reading, which is enough to lock it.
    """
    file = _file(name)
    descriptor = _open(file)
    try:
        if not _is_taken(descriptor, kind):
            say(
                f"Another session measures this node ({file} is locked by {_holders(descriptor)}): "
                f"waiting until it ends, at most {LONGEST_WAIT_S / 3600:g} hours."
            )
            _wait(file, descriptor, kind)
        yield
    finally:
        os.close(descriptor)


def _is_taken(descriptor: int, kind: int) -> bool:
    """Take a lock if no other process has it, and return whether it was taken."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(file: Path, descriptor: int, kind: int) -> None:
    """Wait for a lock.

    :raises ReframeError: after the longest wait: any user can hold it, and for ever.
    """
    end = time.monotonic() + LONGEST_WAIT_S
    while not _is_taken(descriptor, kind):
        if time.monotonic() >= end:
            raise ReframeError(
                f"The lock of this node, {file}, was not free within {LONGEST_WAIT_S / 3600:g} "
                f"hours: {_holders(descriptor)} holds it. End that process, or ask its user to."
            )
        time.sleep(SECONDS_BETWEEN_TRIES)


def _holders(descriptor: int) -> str:
    """Return the processes that hold the lock of a file, with their users, as the kernel knows."""
    info = os.fstat(descriptor)
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
            holders.append(f"process {words[4]}{_user_of(words[4])}")
    return enumerated(holders) or "a process that the kernel does not list here"


def _user_of(process: str) -> str:
    try:
        return f" of user {_user_name(Path('/proc', process).stat().st_uid)}"
    except OSError:  # in another container, or it just ended
        return ""


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _file(name: str) -> Path:
    for folder in LOCK_FOLDERS:
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder / LOCK_NAME.format(name)
    raise ReframeError(
        "There is no folder for the lock of this node: none of "
        f"{listed(map(str, LOCK_FOLDERS))} is writable."
    )


def _open(file: Path) -> int:
    """Open the file of a lock, which is created if there is none.

    Every user can write to its folder. A link is not followed, and a pipe not waited for.

    :raises ReframeError: when it cannot be opened, or is not a regular file.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = _open_or_create(file, flags)
    except OSError as error:
        why = f"cannot be opened: {error.strerror}"
    else:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        why = "is not a regular file"
    raise ReframeError(
        f"The lock of this node, {file}, {why}. Remove it, or ask its owner to{_owner_of(file)}: "
        "the next session creates it."
    )


def _open_or_create(file: Path, flags: int) -> int:
    # Not O_CREAT on an existing file: systems refuse that for another user's file in /tmp.
    with contextlib.suppress(FileNotFoundError):
        return os.open(file, flags)
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(file, flags | os.O_CREAT | os.O_EXCL, 0o644)
        os.fchmod(descriptor, 0o644)  # independent of the umask
        return descriptor
    return os.open(file, flags)


def _owner_of(file: Path) -> str:
    try:
        return f" ({_user_name(file.lstat().st_uid)})"
    except OSError:
        return ""
