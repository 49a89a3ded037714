"""The lock of a node: one session at a time measures it; the lock ends with its process."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from reframe.core.exceptions import ReframeError

from fabricheck.rfm import steps

#: Folders shared by all users of a node; the first existing one holds the lock file.
FOLDERS = (Path("/dev/shm"), Path("/tmp"))

NAME = "fabricheck-measures-{}.lock"

#: The part of the lock file's name for the machine that a session without Slurm measures.
THIS_NODE = "this-node"


@contextlib.contextmanager
def held(here: bool, stepping: Collection[int], say: Callable[[str], object]) -> Iterator[None]:
    """Hold the locks of the nodes that a session measures, after waiting for other sessions.

    Slurm admits only this job to a node of its allocation, but the job may have two sessions. If
    the session runs on the node itself, sessions without Slurm are locked out too. Several nodes on
    one machine (``slurmd -N``) are measured in turn.

    :param here: whether the session measures the machine that it runs on, without Slurm.
    :param stepping: how many nodes of the allocation around it each check measures, by steps.
    :param say: called with a sentence when the session waits for another one.
    :raises ReframeError: when the lock file cannot be created or opened.
    """
    nodes = {node for number in stepping for node in steps.nodes(os.environ, number)}
    with contextlib.ExitStack() as stack:
        if here:
            stack.enter_context(_held(THIS_NODE, fcntl.LOCK_EX, say))
        elif stepping and steps.is_inside(os.environ):
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
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Another session measures this node ({file} is locked): waiting until it ends.")
            fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


def _file(name: str) -> Path:
    for folder in FOLDERS:
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder / NAME.format(name)
    raise ReframeError(
        f"There is no folder for the lock of this node: none of {', '.join(map(str, FOLDERS))} "
        "is writable."
    )


def _open(file: Path) -> int:
    try:
        # Not O_CREAT on an existing file: systems refuse that for another user's file in /tmp.
        with contextlib.suppress(FileNotFoundError):
            return os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(file, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.fchmod(descriptor, 0o644)  # independent of the umask
            return descriptor
        return os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise ReframeError(
            f"The lock of this node, {file}, cannot be opened: {error.strerror}."
        ) from None
