"""Which MPI a program is linked with, as the library says it of itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

#: Libraries that hold an MPI: MPICH and those made of it, Open MPI, and SimGrid's SMPI.
_LIBRARY = re.compile(r"^\s*lib(?:mpi|mpich|mpi_\w+|simgrid)\.so\S* => (/\S+)", re.MULTILINE)

# MPI allows this one call without MPI_Init. In a process of its own: a library may end it.
_ASK = """
import ctypes, sys
text, length = ctypes.create_string_buffer(65536), ctypes.c_int()
ctypes.CDLL(sys.argv[1]).MPI_Get_library_version(text, ctypes.byref(length))
print(text.value.decode(errors="replace").splitlines()[0].strip())
"""
_LIMIT_S = 30


def mpi_version(program: Path) -> str | None:
    """Return the first line of MPI_Get_library_version of a program's MPI.

    :returns: ``None`` where the program has no MPI library of its own, or that does not answer.
    """
    found = _LIBRARY.search(_said(["ldd", str(program)]))
    if found is None:
        return None
    return " ".join(_said([sys.executable, "-c", _ASK, found[1]]).split()) or None


def _said(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LIMIT_S, check=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
