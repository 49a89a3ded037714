"""Content of files as pydantic models: one strict base, and every fault as file, key and reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from fabricheck.core import strict_json
from fabricheck.core.errors import InvalidFile
from fabricheck.core.text import read_text

M = TypeVar("M")

#: The longest value that a sentence quotes.
_LONGEST = 80


class StrictModel(BaseModel):
    """Base of all models: no unknown key, no other type than stated, no infinite number, no change.

    Pydantic builds a model when it is first used: a command uses few of them.
    """

    model_config = ConfigDict(
        defer_build=True, extra="forbid", frozen=True, strict=True, allow_inf_nan=False
    )


def read_model(path: Path, kind: type[M]) -> M:
    """Read a JSON file into a model.

    :raises NotFoundError: when there is no such file.
    :raises InvalidFile: when it cannot be read or does not fit the model, for the first fault.
    """
    return parse_model(read_text(path), kind, path)


def parse_model(text: str, kind: type[M], path: Path | str) -> M:
    """Parse JSON into a model.

    :param path: names the file in errors.
    :raises InvalidFile: as `read_model`.
    """
    try:
        found = TypeAdapter(kind).validate_json(text)
    except ValidationError as error:
        raise InvalidFile(path, *first_fault(error)) from None
    strict_json.parse(text, path)
    return found


def validated(kind: type[M], content: Any, path: Path) -> M:
    """Validate the parsed content of a file against a model.

    :raises InvalidFile: for the first fault, naming file and key.
    """
    try:
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        raise InvalidFile(path, *first_fault(error)) from None


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
