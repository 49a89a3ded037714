"""Starting a command with a time limit, and leaving nothing of it behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

#: Seconds between asking a launcher to end and ending it: it ends the ranks that it started.
PATIENCE_S = 5.0


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, None when its time was over; how long it took in s."""

    code: int | None
    seconds: float


def start(command: str, out: Path, err: Path, limit_s: float) -> Ended:
    """Run a command line in a shell, in a process group of its own.

    :param out: the file of its standard output; ``err`` that of its standard error.
    :param limit_s: in s; then the whole group is ended.
    """
    began = time.monotonic()
    with out.open("wb") as out_file, err.open("wb") as err_file:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=out_file,
            stderr=err_file,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
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
