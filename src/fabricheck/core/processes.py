"""Processes: signals and exit codes, and garbage collection."""

from __future__ import annotations

import atexit
import gc
import signal
from collections.abc import Callable, Iterator
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


def collect_rarely() -> None:
    """Collect cyclic garbage after 100,000 new objects instead of 700, and not at the end.

    A command keeps nearly all that it reads; searching it took a fifth of a session's start.
    """
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
