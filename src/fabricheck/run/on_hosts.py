"""One ReFrame session on hosts that are reached by ssh."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence

from fabricheck.core import nodelists, processes
from fabricheck.results import marking
from fabricheck.schedulers.ssh import HOSTS

#: Seconds between two looks at the session, and those in which it may end its checks.
_LOOK_S, _GRACE_S = 0.2, 60.0


def run(command: Sequence[str], hosts: Sequence[str], name: str) -> int | None:
    """Run a session until it ends by itself or by a signal; return the number of the signal.

    The session has a process group of its own: it goes on where this process is killed.

    :param name: of the session.
    """
    environment = {
        **os.environ,
        HOSTS: nodelists.folded(hosts),
        marking.ENV_SESSION: name,
    }
    signals: list[int] = []
    with processes.signals_taken(lambda number, frame: signals.append(number)):
        session = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
        )
        while session.poll() is None and not signals:
            time.sleep(_LOOK_S)
        if session.poll() is None:
            _end(session)
    return signals[0] if signals else None


def _end(session: subprocess.Popen[bytes]) -> None:
    """Let a session end its checks and write its report; else end it."""
    session.terminate()
    try:
        session.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        session.kill()
        session.wait()
