"""The mark that a session leaves in its results folder before anything can fail.

Without it the session before would be taken for one that could not start, was killed at once or
wrote elsewhere. The number of a mark is a counter, because clocks may be wrong or differ. ReFrame's
settings leave the mark before they import what takes time, so this imports little.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import socket
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TextIO

from fabricheck.core.errors import InvalidInputError
from fabricheck.core.vocabulary import ENV_RESULTS

#: The folder of the marks in a results folder.
FOLDER = "marks"

FORM = "fabricheck-mark-1"

#: The variable by which a user names a session before it starts.
ENV_SESSION = "FABRICHECK_SESSION"

#: A name that a user may give a session, and what would be taken for an id: numbers are those of
#: jobs, so none begins with a digit.
NAME = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
_IDS = r"latest|run-\d+|mark-\d+"

#: Digits of the number in a file name, so that files sort by it.
_DIGITS = 6


def measures(arguments: Sequence[str]) -> bool:
    """Return whether ReFrame's arguments start a session: not a list, a dry run or the like."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-r", "--run", action="store_true")
    # Short options without a value, with which -r may share its dash.
    parser.add_argument("-R", "-q", "-v", action="store_true", dest="other")
    options, _ = parser.parse_known_args(list(arguments))
    return bool(options.run)


def new_stamp() -> str:
    """Return the start of this process's session, its process and the millisecond, for file names.

    Two sessions that start in the same second differ by their process, and those of two machines
    that share the folder and number processes alike by the millisecond.
    """
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    start = time.strftime("%Y%m%dT%H%M%S", time.localtime(seconds))
    return f"{start}-{os.getpid()}-{milliseconds:03}"


def leave(stamp: str, command: Sequence[str], default: Path) -> Path | None:
    """Leave the mark of a session, or of a job over many nodes; return its file.

    The results folder is the one that the user means, also where the session will refuse its name:
    ReFrame reads its settings in another working folder than the user's, which the shell tells. On
    a full disk the file may stay empty, which is a mark as well. None where the session refuses the
    folder itself: one that is not writable, or relative and not there.

    :param default: the results folder without FABRICHECK_RESULTS.
    :raises InvalidInputError: when the mark cannot be made, and then, with the mark made, when
        FABRICHECK_SESSION is no name.
    """
    given = os.environ.get(ENV_SESSION, "")
    text = os.environ.get(ENV_RESULTS, "")
    results = Path(os.environ.get("PWD") or ".", text) if text else default
    is_relative = bool(text) and not Path(text).is_absolute()
    if is_relative and not results.is_dir():
        return None
    is_name = bool(re.fullmatch(NAME, given)) and not re.fullmatch(_IDS, given)
    content = {
        "form": FORM,
        "stamp": stamp,
        "name": given if is_name else None,
        "began": datetime.now().astimezone().isoformat(),
        "host": socket.gethostname(),
        "command": shlex.join(command),
    }
    try:
        with _new_file(results / FOLDER) as file:
            file.write(json.dumps(content, indent=1) + "\n")
    except OSError as error:
        if not os.access(results, os.W_OK | os.X_OK):
            return None
        raise InvalidInputError(
            f"The session cannot leave its mark in {results / FOLDER}: {error.strerror}. Without "
            "it a verdict could judge the session before."
        ) from None
    if given and not is_name:
        raise InvalidInputError(
            f"{ENV_SESSION}={given} does not name a session: write a letter, then letters, digits, "
            "dashes or underscores; ids such as run-3 are ReFrame's."
        )
    return Path(file.name)


def _new_file(folder: Path) -> TextIO:
    """Open a new file of the next number; another session may take the number at the same time."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [int(name.stem) for name in folder.glob("*.json") if name.stem.isdecimal()]
    number = max(numbers, default=0)
    while True:
        number += 1
        # An exclusive creation is atomic, on NFS as well, and follows no link.
        with contextlib.suppress(FileExistsError):
            return (folder / f"{number:0{_DIGITS}}.json").open("x", encoding="utf-8")
