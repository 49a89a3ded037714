"""Garbage collection of a short-lived process."""

from __future__ import annotations

import atexit
import gc


def collect_rarely() -> None:
    """Collect cyclic garbage after 100,000 new objects instead of 700, and not at the end.

    A command keeps nearly all that it reads; searching it took a fifth of a session's start.
    """
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
