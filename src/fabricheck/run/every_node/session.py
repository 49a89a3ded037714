"""The session of one node: a step of the job, seen through the srun that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from fabricheck.core.text import printable
from fabricheck.core.vocabulary import ENV_RESULTS
from fabricheck.rfm import steps
from fabricheck.run.every_node.stopping import SESSION

#: What a session says, in the folder of its node.
LOG = "session.log"

#: What ReFrame says when all check files are read, and the first check is about to start.
_BEGINS = b"[==========] Running "

#: What srun says of every session that did not end with 0, and ReFrame at its end.
_SAYS_NOTHING = ("Exited with exit code", "Log file(s) saved in", "session stored with UUID")

#: Characters of a line that is quoted.
_LONGEST = 300

#: Bytes at the end of a log in which its last words are looked for.
_TAIL = 8192


def command(node: str, arguments: Sequence[str]) -> list[str]:
    """Return what starts a command on one node of the job, beside which its own steps fit.

    Without ``--overlap`` the steps that it starts would wait for its end.
    """
    return [
        "srun",
        "--overlap",
        "--nodes=1",
        "--ntasks=1",
        f"--nodelist={node}",
        f"--job-name={SESSION}",
        "--kill-on-bad-exit=0",
        "--cpu-bind=none",
        "--export=ALL",
        "--input=none",
        *arguments,
    ]


class NodeSession:
    """A session that was started on a node.

    node: its name. folder: its results. began: when, on the monotonic clock, in s.
    stopped: why it was told to end, in a sentence; None of one that ends by itself.
    """

    def __init__(self, node: str, folder: Path, arguments: Sequence[str]) -> None:
        """Start it.

        :param folder: its results folder, which is made.
        :param arguments: the command.
        :raises OSError: when it cannot be started, or its log not be written.
        """
        folder.mkdir(parents=True)
        environment = {**os.environ, ENV_RESULTS: str(folder)}
        # What the job was asked for is for as many tasks as it has nodes, or more.
        steps.forget_tasks(environment)
        self.node, self.folder = node, folder
        self.stopped: str | None = None
        self.began = time.monotonic()
        self._begun = False
        with (folder / LOG).open("wb") as log:
            self._srun = subprocess.Popen(
                command(node, arguments),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C is for the driver, which stops its sessions in order.
                start_new_session=True,
            )

    @property
    def status(self) -> int | None:
        """Its exit status; 128 and the number of a signal that ended srun; None while it runs."""
        code = self._srun.poll()
        return 128 - code if code is not None and code < 0 else code

    def has_begun(self) -> bool:
        """Whether it has read all it needs, so that the next one may load the file system."""
        self._begun = self._begun or _BEGINS in (self.folder / LOG).read_bytes()
        return self._begun

    def has_report(self) -> bool:
        """Whether ReFrame has written what it measured, as it does at the end of each session."""
        return any(self.folder.glob("reports/run-*.json"))

    def terminate(self) -> None:
        """Let srun end its step."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End srun, whatever is left of its step."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._srun.poll() is None:
            self._srun.send_signal(number)

    def last_words(self) -> str:
        """Return the last line of its log that says something, without a full stop."""
        with (self.folder / LOG).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
            lines = log.read().decode(errors="replace").splitlines()
        telling = [
            line.strip()
            for line in lines
            if line.strip() and not any(one in line for one in _SAYS_NOTHING)
        ]
        return printable(telling[-1])[:_LONGEST].rstrip(".") if telling else "it said nothing"
