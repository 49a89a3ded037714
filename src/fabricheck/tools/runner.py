"""Runs of a program with a time limit; its whole output is kept, and no process is left.

Every other program is started here: benchmarks, `inventory`, simulations. Their ends are always
reported in the same words.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from fabricheck.core import processes
from fabricheck.core.errors import (
    FabricheckError,
    InvalidFile,
    InvalidInputError,
    PreventedBySetting,
)
from fabricheck.core.text import printable
from fabricheck.core.vocabulary import EXIT_CODE, EXIT_INVALID_INPUT

#: Seconds between asking a launcher to end and killing it: it ends the ranks that it started.
PATIENCE_S = 5.0

#: The exit code of several failures is the first of these that one of them has.
SEVERITY = (5, 9, 11, 6, 3, 8, 7, 10, 4, 2)

#: What launchers and nccl-tests add once a step has failed.
_AFTERMATH = (
    r"^(?:srun|slurmstepd): (?:.*Exited with exit code \d+|Job step aborted.*"
    r"|.*(?:Terminating|Terminated) StepId.*|.*: tasks? [\d,-]+: Terminated"
    r"|error: \*{3} STEP \S+ ON \S+ CANCELLED AT \S+ \*{3})$"
    r"|^ *\.\. \S+ pid \d+: Test failure .*$"
    r"|^-{20,}\n(?:(?!-{20,}).*\n)*?.*(?:detected that one or more processes|MPI_ABORT was invoked"
    r"|Primary job +terminated)(?:.*\n(?!-{20,}))*.*\n-{20,}$"
)

#: By which signal a rank ended, as srun says.
_SIGNALLED = r"|^srun: error: .*: tasks? [\d,-]+: (?:Aborted|Bus error|Killed|Out Of|Segment).*$"

#: Lines that count only where a program printed nothing else, the least telling last.
_LESS_TELLING = tuple(
    re.compile(pattern, re.MULTILINE) for pattern in (_AFTERMATH + _SIGNALLED, _AFTERMATH)
)

#: Characters quoted of a program's last output.
_LONGEST = 200


#: What a user can do where no CXI service of Slingshot lets a program use the NICs. That is a
#: permission of the driver, with VNIs and limits: a default one, which sites disable, and those
#: that Slurm makes for steps of several nodes or with ``--network=single_node_vni``.
_NEEDED_SERVICE = (
    "a CXI service must be enabled for it: the default one, or that of a step "
    "(srun --network=single_node_vni)"
)

# A missing permission in words, or by number (ENOSYS, and those of keys). A device that is gone
# (ENODEV, EIO) is none.
_NO_PERMISSION = (
    r"(?:Key (?:has been revoked|has expired|was rejected by service)|Required key not available"
    r"|Function not implemented|-(?:38|12[6-9])\b)"
)
_NO_SERVICE = re.compile(
    "|".join(
        rf".*{form}.*"
        for form in (
            r"Failed to get (?:default )?service\b",
            r"\bVNI\b.*\bnot a? ?valid\b",
            r"\b(?:[Ii]nvalid|[Nn]o|[Mm]issing) (?:VNIs?|CXI services?)\b",
            r"Failed to (?:open CXI device|allocate (?:LNI|Domain|Communication Profile)).*"
            r"(?:Operation not permitted|Permission denied|Invalid argument)",
            # The libraries of NCCL and of MPICH.
            r"(?:NET/OFI Couldn't open domain|OFI domain (?:open|creation) failed).*"
            r"(?:Operation not permitted|Permission denied)",
            rf"(?:cxi|CXI|LNI|OFI|fi_\w+|[Ll]ibfabric).*{_NO_PERMISSION}",
            r"Error: Function not implemented \(",  # Open MPI, below the name of the call
        )
    )
)


class ProgramFailed(InvalidInputError):
    """A program did not start, or failed."""


class TimeLimit(ProgramFailed):
    """A program did not end within its time limit."""

    exit_code = 6


class EndedBadly(FabricheckError):
    """A program of this suite ended with an exit code of its own."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.exit_code = code


class Interrupted(BaseException):
    """A signal that ends this run; it is not an Exception, so that no handler catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """Signals that ask this process to end: inside ``with`` they raise `Interrupted`, at once or
    when held.

    Between the start of a command and the moment when it can be ended, a signal must wait.
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
        """Handle the signals inside; the former handlers are restored afterwards."""
        with processes.signals_taken(self._take):
            yield

    @contextmanager
    def held(self) -> Iterator[None]:
        """Delay signals until the end of the block."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._pending is not None:
            number, self._pending = self._pending, None
            raise Interrupted(number)


#: Of this process, which has one handler for each signal.
signals = Signals()


@dataclass(frozen=True)
class Ended:
    """The end of a command.

    code: its exit code; 128 + n if signal n ended it, None after its time limit. seconds: its
    duration, in s.
    """

    code: int | None
    seconds: float

    def require_good(self, what: str, limit_s: float, *outputs: str) -> None:
        """Refuse a command that did not end with exit code 0.

        :param what: the command, as the subject of the sentence.
        :param limit_s: its time limit, in s.
        :param outputs: texts that it wrote; the first that is not empty states the reason.
        :raises TimeLimit: when its time limit passed.
        :raises PreventedBySetting: when no CXI service let it use the NICs, with the line that says
            so.
        :raises ProgramFailed: when it ended in another way, with its last output.
        """
        if self.code is None:
            raise TimeLimit(f"{what} did not end within {limit_s:.3g} s.")
        refused = next(filter(None, map(_NO_SERVICE.search, outputs)), None)
        if self.code and refused:
            line = printable(refused[0].strip().rstrip("."))
            sentence = f"{what} ended with exit code {self.code}: {line}; {_NEEDED_SERVICE}."
            raise PreventedBySetting(sentence)
        number = processes.signal_of(self.code)
        if number is not None:
            raise ProgramFailed(f"{what} was ended by signal {number}: {last_words(*outputs)}.")
        if self.code != 0:
            raise ProgramFailed(f"{what} ended with exit code {self.code}: {last_words(*outputs)}.")


@dataclass(frozen=True)
class Output(Ended):
    """The end of a command, with its standard output and standard error."""

    out: str
    err: str


def spawn(
    command: Sequence[str],
    out: BinaryIO | None,
    err: BinaryIO | None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own: Ctrl-C is handled by who started it.

    :param out: the file of its standard output; ``err`` that of its standard error. None for where
        this process prints.
    :param folder: its working directory; None for that of this process.
    :param environment: its variables; None for those of this process.
    :raises OSError: when it cannot be started.
    """
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        start_new_session=True,
    )


def start(
    command: Sequence[str],
    out: Path,
    err: Path,
    limit_s: float,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a command in a process group of its own.

    :param out: the file of its standard output; ``err`` that of its standard error.
    :param limit_s: in s; after it the whole process group is ended.
    :param folder: its working directory; None for that of this process.
    :param environment: its variables; None for those of this process.
    :raises OSError: when a file cannot be written, or the program cannot be started.
    """
    began = time.monotonic()
    process = None
    code: int | None = None
    with out.open("wb") as out_file, err.open("wb") as err_file:
        try:
            with signals.held():
                process = spawn(command, out_file, err_file, folder, environment)
            code = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if process is not None:
                _end_group(process)
    seconds = time.monotonic() - began
    return Ended(None if code is None else processes.exit_status(code), seconds)


def run(
    command: Sequence[str], limit_s: float, environment: Mapping[str, str] | None = None
) -> Output:
    """Run a command and return its output as text.

    :raises OSError: when it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="fabricheck-") as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        ended = start(command, out, err, limit_s, environment=environment)
        return Output(ended.code, ended.seconds, text_of(out), text_of(err))


def output_of(*command: str, limit_s: float) -> str:
    """Return the standard output of a command, however it ends; empty if it cannot be run."""
    try:
        return run(command, limit_s).out
    except OSError:
        return ""


def text_of(path: Path) -> str:
    """Return the text of a file with any content; empty for a missing file.

    :returns: with invalid UTF-8 replaced.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def last_words(*texts: str) -> str:
    """Return a program's last output without a full stop, from the first text that has any.

    Open MPI frames its last message with lines of hyphens: the text between them is returned. What
    launchers add to the end of a failed step counts only where nothing else was printed.
    """
    telling = [pattern.sub("", text) for pattern in _LESS_TELLING for text in texts]
    for text in (*telling, *texts):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        framed = bool(lines) and not lines[-1].strip("-")
        while lines and not lines[-1].strip("-"):
            lines.pop()
        if not lines:
            continue
        above = [i for i, line in enumerate(lines) if not line.strip("-")] if framed else []
        first = above[-1] + 1 if above else len(lines) - 1
        return printable(" ".join(lines[first:]).rstrip("."))[:_LONGEST]
    return "it printed nothing"


def recorded_code(error: FabricheckError) -> int:
    """Return the exit code of a recorded run that an error ended.

    What a command line calls an invalid input is another program's output here, unless it is a file
    of this suite or of the kernel.
    """
    of_file = isinstance(error, InvalidFile)
    if error.exit_code == EXIT_INVALID_INPUT and not of_file:
        return EXIT_CODE["tool"]
    return error.exit_code


def worst(codes: Iterable[int]) -> int:
    """Return the exit code of several runs: that of the worst failure, 0 without one."""
    return min(codes, key=SEVERITY.index, default=0)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        _signal(process.pid, number)
        try:
            process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            continue
    # Processes that a launcher left in its group.
    _signal(process.pid, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
