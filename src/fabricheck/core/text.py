"""Text from files and users: made printable, counted and read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fabricheck.core.errors import InvalidFile, NotFoundError

#: Characters that control a terminal, reorder text, end a line or show nothing, or that HTML and
#: SVG cannot contain: all control characters but tab and line feed, direction marks, separators of
#: lines, what has no width, and non-characters.
_CONTROL = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f"
    "\\ud800-\\udfff\\ufeff\\ufff9-\\ufffb\\ufffe\\uffff\\U000e0000-\\U000e007f]"
)

#: The most parts of a set of indices that are written in full.
MOST_PARTS = 4


def printable(text: str) -> str:
    r"""Escape control characters, as ``\x1b``, so that a text can be printed."""
    return _CONTROL.sub(lambda control: ascii(control[0])[1:-1], text)


def printable_line(text: str) -> str:
    r"""Escape control characters and line feeds, so that a text stays one line."""
    return printable(text).replace("\n", "\\n")


def printable_json(value: Any) -> str:
    """Return a value as JSON in which control characters are escapes of JSON."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    return _CONTROL.sub(lambda control: json.dumps(control[0])[1:-1], text)


def capitalized(text: str) -> str:
    """Return a text with its first letter as at the start of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def count(number: int, word: str) -> str:
    """Format a number with its noun, in the plural where needed."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def ranges(indices: Iterable[int]) -> str:
    """Return indices with runs of three and more joined: 0-3,6.

    Of more than four parts, only the first two, the last and the number of indices are given:
    0,2,..,34 (18).
    """
    runs: list[list[int]] = []
    for index in sorted(indices):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts = [
        part
        for run in runs
        for part in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))
    ]
    if len(parts) > MOST_PARTS:
        return f"{parts[0]},{parts[1]},..,{parts[-1]} ({sum(map(len, runs))})"
    return ",".join(parts)


def moment(text: str) -> datetime | None:
    """Return a date and time with a time zone in UTC; None for any other text."""
    try:
        parsed = datetime.fromisoformat(text)
        return parsed.astimezone(UTC) if parsed.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def read_text(path: Path) -> str:
    """Read the text of a regular file; a pipe could wait for its writer forever.

    :raises NotFoundError: when there is no such file.
    :raises InvalidFile: when it is not a regular file, cannot be read, or is not UTF-8.
    """
    try:
        if not path.is_file() and path.exists():
            raise InvalidFile(path, None, "cannot be read (it is not a regular file)")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFoundError(f"{path}: there is no such file.") from None
    except UnicodeDecodeError as error:
        raise InvalidFile(path, None, f"byte {error.start} is not UTF-8 text") from None
    except OSError as error:
        raise InvalidFile(path, None, f"cannot be read ({error.strerror})") from None
