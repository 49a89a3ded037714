"""The program `inventory`: it is run, and how it ended. What it wrote is read by `inventory`."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricheck.core.text import read_text
from fabricheck.tools.runner import Output, ProgramFailed, run

#: The program in the folder of an environment's programs.
PROGRAM = "inventory"

#: Seconds beyond the program's own time limit.
_GRACE_S = 5


@dataclass(frozen=True)
class Answer:
    """How the program ended.

    program: its file. limit_s: the seconds that it had. text: its description; None where it wrote
    none. place: the file of the text, which is gone, for errors.
    """

    program: Path
    limit_s: float
    ended: Output
    text: str | None
    place: Path


def ask(programs: Path, limit_s: float, options: Sequence[str] = ()) -> Answer:
    """Run `inventory` until it ends.

    :param programs: the folder of the programs.
    :param limit_s: in s.
    :param options: more options of the program, such as --passive.
    :raises ProgramFailed: when it cannot be started.
    """
    program = programs / PROGRAM
    own_limit = max(1, math.ceil(limit_s))
    with tempfile.TemporaryDirectory(prefix="fabricheck-") as folder:
        output = Path(folder, "node.json")
        command = [str(program), "--output", str(output), "--time-limit", str(own_limit), *options]
        try:
            ended = run(command, limit_s + _GRACE_S)
        except OSError as error:
            raise ProgramFailed(f"{program} cannot be run ({error.strerror}).") from None
        text = read_text(output) if output.is_file() else None
    return Answer(program, limit_s, ended, text, output)
