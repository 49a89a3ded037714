"""The signals that ask a process to end, taken for a while by who has something to stop first."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def taken(take: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call a function for SIGTERM, SIGINT and SIGHUP inside; afterwards they do what they did.

    :param take: a handler as of `signal.signal`.
    """
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, take) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
