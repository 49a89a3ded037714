"""Text from files and users: made printable, counted, listed and read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fabricheck.core import strict_json
from fabricheck.core.errors import InvalidDocument, InvalidFile, NotFoundError

Model = TypeVar("Model", bound=BaseModel)

#: Sentences shown for one failure; a scan on a bad device has hundreds of bad series.
MOST_SENTENCES = 8

#: The longest value that a sentence quotes.
_LONGEST = 80

#: Characters that control a terminal or reorder text, or that HTML and SVG cannot contain: all
#: control characters but tab and line feed, direction marks, and non-characters.
_CONTROL = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069"
    "\\ud800-\\udfff\\ufffe\\uffff]"
)


def printable(text: str) -> str:
    r"""Escape control characters, as ``\x1b``, so that a text can be printed."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def count(number: int, word: str) -> str:
    """Format a number with its noun, in the plural where needed."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def first_of(sentences: Sequence[str], most: int = MOST_SENTENCES) -> list[str]:
    """Return the first sentences of a failure, and the number of further ones."""
    more = len(sentences) - most
    return [*sentences[:most], *([f"And {more} more."] if more > 0 else [])]


def first_names(names: Sequence[str], most: int) -> str:
    """Join the first names, and the number of further ones: a, b and 5 more."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def read_text(path: Path) -> str:
    """Read the text of a regular file; a pipe could wait for its writer forever.

    :raises NotFoundError: when there is no such file.
    :raises InvalidDocument: when it is not a regular file, cannot be read, or is not UTF-8.
    """
    try:
        if not path.is_file() and path.exists():
            raise InvalidDocument(path, "cannot be read (it is not a regular file)")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}.") from None
    except UnicodeDecodeError as error:
        raise InvalidDocument(path, f"byte {error.start} is not UTF-8 text") from None
    except OSError as error:
        raise InvalidDocument(path, f"cannot be read ({error.strerror})") from None


def read_model(path: Path, model: type[Model]) -> Model:
    """Read a JSON file into a Pydantic model.

    :raises NotFoundError: when there is no such file.
    :raises InvalidInputError: when it cannot be read or does not fit the model, for the first
        fault.
    """
    text = read_text(path)
    try:
        found = model.model_validate_json(text)
    except ValidationError as invalid:
        raise InvalidFile(path, *first_fault(invalid)) from None
    strict_json.parse(text, path)
    return found


def first_fault(error: ValidationError) -> tuple[str | None, str]:
    """Return the key of the first fault, ``None`` for the whole file, and the reason."""
    first = error.errors(include_url=False, include_context=False)[0]
    return key_of(first["loc"]) or None, reason_of(first)


def key_of(location: tuple[int | str, ...]) -> str:
    """Format a location in a file as ``links.matrix[3]``."""
    text = ""
    for part in location:
        if part == "[key]":
            continue
        name = part if isinstance(part, int) or part.isprintable() else ascii(part)
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{name}"
    return text


def reason_of(error: Mapping[str, Any]) -> str:
    """Return what pydantic found at one place, without a full stop."""
    if error["type"] == "missing":
        return "this key is missing"
    if error["type"] == "extra_forbidden":
        return "this key is unknown"
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "value_error":
        return message
    if error["type"] == "json_invalid":
        return f"it is not valid JSON ({message.removeprefix('Invalid JSON: ')})"
    found = repr(error["input"])
    shown = f", not {found}" if len(found) <= _LONGEST else ""
    return f"{message[:1].lower()}{message[1:]}{shown}"
