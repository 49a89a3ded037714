"""A process without permission for some system calls, as under a container's profile.

As a program it starts a command so: python forbidden.py COMMAND...
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Sequence

#: Numbers of calls: move_pages, get_mempolicy, set_mempolicy, mbind.
_MEMORY_CALLS = {"x86_64": (279, 239, 238, 237), "aarch64": (239, 236, 237, 235)}
#: As in linux/seccomp.h, linux/filter.h and linux/prctl.h.
_LOAD_NUMBER, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE_EPERM = 0x7FFF0000, 0x00050001
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2


def forbid_memory_calls() -> None:
    """Make calls that get or set the location of memory fail with EPERM; for preexec_fn.

    :raises OSError: when the system accepts no filter.
    """
    _forbid(_MEMORY_CALLS[platform.machine()])


def _forbid(numbers: Sequence[int]) -> None:
    rules = [(_LOAD_NUMBER, 0, 0, 0)]
    for index, number in enumerate(numbers):
        rules.append((_EQUAL, len(numbers) - index, 0, number))
    rules += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE_EPERM)]
    code = b"".join(struct.pack("HBBI", *rule) for rule in rules)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(rules), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    refused = libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if refused or libc.prctl(_SET_SECCOMP, _FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    forbid_memory_calls()
    os.execvp(sys.argv[1], sys.argv[1:])
