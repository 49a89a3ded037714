"""Starting a command with a time limit, and leaving nothing of it behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from fabricheck.core import ending_signals

#: Seconds between asking a launcher to end and ending it: it ends the ranks that it started.
PATIENCE_S = 5.0


class Interrupted(BaseException):
    """A signal ends this run; not an error of it, so nothing catches it on the way."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """What asks this process to end, inside ``with``: `Interrupted`, raised at once or when held.

    Between the start of a command and the moment that it can be ended a signal has to wait.
    """

    def __init__(self) -> None:
        self._held = False
        self._pending: int | None = None

    def _take(self, number: int, frame: FrameType | None) -> None:
        if not self._held:
            raise Interrupted(number)
        self._pending = number

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Take the signals inside; afterwards they do what they did before."""
        with ending_signals.taken(self._take):
            yield

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let them wait for the end of what is inside."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._pending is not None:
            number, self._pending = self._pending, None
            raise Interrupted(number)


#: Of this process; there is one handler for each signal.
signals = Signals()


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, None when its time was over; how long it took in s."""

    code: int | None
    seconds: float


def start(
    command: Sequence[str], out: Path, err: Path, limit_s: float, folder: Path | None = None
) -> Ended:
    """Run a command in a process group of its own.

    :param out: the file of its standard output; ``err`` that of its standard error.
    :param limit_s: in s; then the whole group is ended.
    :param folder: where it runs; None for where this process does.
    :raises OSError: when a file can not be written, or the program not be started.
    """
    began = time.monotonic()
    process = None
    code: int | None = None
    with out.open("wb") as out_file, err.open("wb") as err_file:
        try:
            with signals.held():
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=out_file,
                    stderr=err_file,
                    start_new_session=True,
                )
            code = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if process is not None:
                _end_group(process)
    if code is not None and code < 0:
        code = 128 - code
    return Ended(code, time.monotonic() - began)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        _signal(process.pid, number)
        try:
            process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            continue
    # What a launcher that is gone has left in its group.
    _signal(process.pid, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
