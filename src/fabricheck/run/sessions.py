"""Sessions of ReFrame as processes: how each is started, waited for, and ended."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fabricheck.tools import runner

#: Seconds between two looks at a session.
LOOK_S = 0.2

#: Seconds in which a session that is told to end may end its checks and write its report.
GRACE_S = 60.0

#: Lines of ReFrame at the end of every failed session.
_SAYS_NOTHING = ("Log file(s) saved in", "session stored with UUID")

#: Bytes at the end of a log that are searched for its last message.
_TAIL = 8192


def start(
    command: Sequence[str], environment: Mapping[str, str], log: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a session in a process group of its own: Ctrl-C is handled by who started it.

    :param log: the file of what it prints; None for where this process prints.
    :raises OSError: when it cannot be started, or its log cannot be written.
    """
    if log is None:
        return runner.spawn(command, None, None, environment=environment)
    with log.open("wb") as out:
        return runner.spawn(command, out, out, environment=environment)


def wait(session: subprocess.Popen[bytes], is_to_end: Callable[[], bool]) -> bool:
    """Wait until a session ends, or is to be ended; return whether it has ended by itself."""
    while session.poll() is None and not is_to_end():
        time.sleep(LOOK_S)
    return session.poll() is not None


def end(session: subprocess.Popen[bytes], grace_s: float = GRACE_S) -> None:
    """Let a session end its checks and write its report; after some time end it."""
    session.terminate()
    try:
        session.wait(grace_s)
    except subprocess.TimeoutExpired:
        session.kill()
        session.wait()


def last_words(log: Path, noise: Sequence[str] = ()) -> str:
    """Return the last message in the log of a session, without a full stop.

    :param noise: parts of lines that say nothing, besides ReFrame's.
    """
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        lines = file.read().decode(errors="replace").splitlines()
    nothing = (*_SAYS_NOTHING, *noise)
    telling = [line for line in lines if not any(phrase in line for phrase in nothing)]
    return runner.last_words("\n".join(telling))
