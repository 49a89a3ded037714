"""One ReFrame session on hosts that are reached by ssh."""

from __future__ import annotations

import os
from collections.abc import Sequence

from fabricheck.core import nodelists, processes
from fabricheck.results import marking
from fabricheck.run import sessions
from fabricheck.schedulers.ssh import HOSTS


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
        session = sessions.start(command, environment)
        if not sessions.wait(session, lambda: bool(signals)):
            sessions.end(session)
    return signals[0] if signals else None
