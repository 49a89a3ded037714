"""Handling of the signals that ask a process to end (SIGTERM, SIGINT, SIGHUP)."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def taken(take: Callable[[int, FrameType | None], None]) -> Iterator[None]:
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
