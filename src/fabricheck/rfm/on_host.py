"""Runs the job script of a check on a host that no scheduler gives to one session alone.

    python -m fabricheck.rfm.on_host SCRIPT OUTPUT ERRORS

It takes the lock of the host, waits for it as a session does, and ends with the exit code of the
script. Where nothing reads what it prints, who started it has closed its connection: then it ends
the script, so that no program measures for nobody.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from fabricheck.core import processes
from fabricheck.core.errors import FabricheckError
from fabricheck.rfm import node_lock

#: Seconds between two looks, and those that a script has to end after it was told to.
_LOOK_S, _GRACE_S = 0.1, 10.0


def main(arguments: Sequence[str]) -> int:
    """Run the script, and return its exit code; 128 plus the number of a signal that ended it."""
    script, output, errors = arguments
    with Path(output).open("w") as out, Path(errors).open("w") as err:
        try:
            with node_lock.held_nodes(here=True, stepping=(), say=_saying(err)):
                return _run(script, out, err)
        except FabricheckError as error:
            print(error, file=err)
            return error.exit_code


def _saying(err: TextIO) -> Callable[[object], None]:
    def say(sentence: object) -> None:
        print(sentence, file=err, flush=True)

    return say


def _run(script: str, out: TextIO, err: TextIO) -> int:
    process = subprocess.Popen(
        ["bash", "-l", script],
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        start_new_session=True,
    )
    readers = select.poll()
    readers.register(sys.stdout.fileno(), 0)
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return processes.exit_status(process.wait(_LOOK_S))
        if readers.poll(0):
            return _end(process)


def _end(process: subprocess.Popen[bytes]) -> int:
    """End a script and all that it started."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    return processes.exit_status(process.wait())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
