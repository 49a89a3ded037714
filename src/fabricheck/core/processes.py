"""Processes: signals and exit codes, Slurm's commands in standard formats, garbage collection."""

from __future__ import annotations

import atexit
import gc
import signal
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from types import FrameType

#: The highest number of a signal; programs and launchers end with higher codes of their own.
_LAST_SIGNAL = 64


def signal_of(exit_code: int) -> int | None:
    """Return the number of the signal that an exit code of 128 + n names; None for no signal."""
    return exit_code - 128 if 128 < exit_code <= 128 + _LAST_SIGNAL else None


def exit_status(code: int) -> int:
    """Return the exit status that a shell gives a process: 128 + n if signal n ended it.

    :param code: as `subprocess` has it, -n for signal n.
    """
    return 128 - code if code < 0 else code


@contextmanager
def signals_taken(take: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle SIGTERM, SIGINT and SIGHUP inside the block; restore the former handlers after it.

    :param take: a handler as of `signal.signal`.
    """
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, take) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


#: Prefixes of variables that are options of the commands whose text is read.
_OPTIONS = ("SACCT_", "SCANCEL_", "SCONTROL_", "SINFO_", "SQUEUE_")

#: Further variables that change a text, or where it goes. SLURM_CLUSTERS is none of them: it names
#: the cluster of a job.
_TEXTS = (
    "SLURM_BITSTR_LEN",
    "SLURM_JSON",
    "SLURM_LABELIO",
    "SLURM_STDERRMODE",
    "SLURM_STDOUTMODE",
    "SLURM_YAML",
)


def make_slurm_standard(environment: MutableMapping[str, str]) -> None:
    """Let Slurm's commands print in their standard formats, and srun what its steps print."""
    for name in list(environment):
        if name.startswith(_OPTIONS) or name in _TEXTS:
            del environment[name]
    environment["SLURM_TIME_FORMAT"] = "standard"


def with_standard_slurm(environment: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of an environment in which the formats are standard."""
    copy = dict(environment)
    make_slurm_standard(copy)
    return copy


def collect_rarely() -> None:
    """Collect cyclic garbage after 100,000 new objects instead of 700, and not at the end.

    A command keeps nearly all that it reads; searching it took a fifth of a session's start.
    """
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
