"""Whether a process that a program started is still there."""

import os
import time


def is_left(process: int, within_s: float = 5) -> bool:
    """Whether a process is there for so long; one that has ended is until its parent asks."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    return True
