"""One session at a time measures a node: a lock that ends with the process that holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from reframe.core.exceptions import ReframeError

#: Folders that all users of a node share; the first that is there holds the lock's file.
FOLDERS = (Path("/dev/shm"), Path("/tmp"))

NAME = "fabricheck-measures-this-node.lock"


@contextlib.contextmanager
def of_this_node(say: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock of the node that this process runs on, after waiting for other sessions.

    The system releases it when the process ends, killed or not. The file stays, and is never
    written: a second user can open it for reading, and that is enough to lock it.

    :param say: called with a sentence when there is someone to wait for.
    :raises ReframeError: when the file can not be made or opened.
    """
    file = _file()
    descriptor = _open(file)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Another session measures this node ({file} is locked): waiting for its end.")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _file() -> Path:
    for folder in FOLDERS:
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder / NAME
    raise ReframeError(
        f"No folder for the lock of this node: none of {', '.join(map(str, FOLDERS))} is writable."
    )


def _open(file: Path) -> int:
    try:
        # Not O_CREAT on a file that is there: systems refuse that for another user's in /tmp.
        with contextlib.suppress(FileNotFoundError):
            return os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(file, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.fchmod(descriptor, 0o644)  # whatever the umask
            return descriptor
        return os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise ReframeError(
            f"The lock of this node, {file}, can not be opened: {error.strerror}."
        ) from None
