"""JSON and the content of files, read strictly: every fault has its file, key and reason.

A key of an object occurs once and numbers are finite; a model has no unknown key.
"""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from fabricheck.core.errors import InvalidFile
from fabricheck.core.text import read_text

#: The number of digits up to which a number is surely finite; longer ones are checked.
_MANY_DIGITS = 150


class _NotStrictJson(ValueError):
    """Text that Python's parser accepts, but JSON or this document does not."""


def parse_json(text: str, path: Path | str, infinite: bool = False) -> Any:
    """Parse a text in which each key of an object occurs once and all numbers are finite.

    :param path: names the file in errors.
    :param infinite: whether numbers may be NaN or infinite, as Python writes them.
    :raises InvalidFile: when it is cut off, not JSON, or ambiguous.
    """
    value = _parse_quickly(text)
    return _parse_strictly(text, path, infinite) if value is None else value


def _parse_quickly(text: str) -> Any:
    """Parse with Pydantic's parser; return None where its result may be incomplete.

    It keeps the last of two equal keys, so the result has fewer colons than the text, and it
    accepts numbers beyond every finite one.
    """
    if "\\" in text and "\\u" in text:  # searching for one character takes no time
        return None
    try:
        value = from_json(text, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        return None
    written = to_json(value, inf_nan_mode="constants")
    blocks = (text[at : at + _MANY_DIGITS] for at in range(0, len(text), _MANY_DIGITS))
    if written.count(b":") != text.count(":") or b"Infinity" in written:
        return None
    return None if any(map(str.isdigit, blocks)) else value


def _parse_strictly(text: str, path: Path | str, infinite: bool) -> Any:
    finite: dict[str, Any] = {
        "parse_constant": _refuse_constant,
        "parse_float": _finite_float,
        "parse_int": _finite_int,
    }
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys, **({} if infinite else finite))
    except json.JSONDecodeError as error:
        if not text.strip():
            raise InvalidFile(path, None, "is empty") from None
        raise InvalidFile(
            path,
            None,
            f"is not JSON, or cut off: {error.msg} at line {error.lineno} column {error.colno}",
        ) from None
    except _NotStrictJson as error:
        raise InvalidFile(path, None, str(error)) from None
    except (ValueError, RecursionError):
        # An integer of thousands of digits, or thousands of nested brackets.
        raise InvalidFile(
            path, None, "contains a number with too many digits, or brackets nested too deep"
        ) from None
    try:
        # Such text is rare, and a walk through the document takes as long as parsing it.
        if "\\ud" in text or "\\uD" in text or not text.isascii():
            _refuse_lone_surrogates(value)
    except ValueError as error:
        raise InvalidFile(path, None, str(error)) from None
    return value


def _refuse_constant(word: str) -> NoReturn:
    raise _NotStrictJson(f"contains {word}, which is not a finite number")


def _finite_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _NotStrictJson(f"contains {digits[:40]}, which is not a finite number")
    return value


def _finite_int(digits: str) -> int:
    value = int(digits)
    if abs(value) > sys.float_info.max:
        raise _NotStrictJson(f"contains {digits[:40]}..., which is not a finite number")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise _NotStrictJson(f"contains the key {twice!r} twice in one object")
    return result


def _refuse_lone_surrogates(value: Any) -> None:
    """Refuse half a surrogate pair, which no terminal can show and no file can store.

    :param value: the parsed JSON; only JSON's escapes can bring such text in.
    :raises ValueError: when there is one.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = ord(error.object[error.start])
        raise ValueError(f"contains \\u{half:04x}, which is half of a character") from None


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
        model: M = _adapter(kind).validate_json(text)
    except ValidationError as error:
        raise InvalidFile(path, *_first_fault(error)) from None
    parse_json(text, path)
    return model


def validated(kind: type[M], content: Any, path: Path | str) -> M:
    """Validate the parsed content of a file against a model.

    :raises InvalidFile: for the first fault, naming file and key.
    """
    try:
        valid: M = _adapter(kind).validate_python(content)
    except ValidationError as error:
        raise InvalidFile(path, *_first_fault(error, content)) from None
    return valid


def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what validates a type; made once, since each takes some 10 ms."""
    try:
        return _made(kind)
    except TypeError:
        return TypeAdapter(kind)  # a type with constraints of its own may have no hash


@functools.cache
def _made(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _first_fault(error: ValidationError, content: Any = None) -> tuple[str | None, str]:
    """Return the key of the first fault, ``None`` for the whole file, and the reason.

    :param content: that of the file, for the names of what lists have.
    """
    first = error.errors(include_url=False, include_context=False)[0]
    return _key_of(first["loc"], content) or None, _reason_of(first)


def _key_of(location: tuple[int | str, ...], content: Any = None) -> str:
    """Format a location in a file as ``links.matrix[3]``, or ``systems[lumi].partitions[gpu]``.

    :param content: that of the file: an item of a list is named by its ``name`` or ``id``.
    """
    text, here = "", content
    for part in location:
        if isinstance(part, int):
            here = here[part] if isinstance(here, list) and part < len(here) else None
            known = (here.get("name"), here.get("id")) if isinstance(here, dict) else ()
            names = [
                name for name in known if name and isinstance(name, str) and name.isprintable()
            ]
            text += f"[{next(iter(names), part)}]"
        elif part != "[key]":
            here = here.get(part) if isinstance(here, dict) else None
            text += f"{'.' if text else ''}{part if part.isprintable() else ascii(part)}"
    return text


#: What users are told instead of pydantic's words.
_REASONS = {
    "missing": "this key is missing",
    "extra_forbidden": "this key is unknown",
    "model_type": "it must contain a mapping of keys to values",
    "dict_type": "it must contain a mapping of keys to values",
    "string_pattern_mismatch": "this is not a name of its kind: a character in it is not allowed",
}


def _reason_of(error: Mapping[str, Any]) -> str:
    """Return what pydantic found at one place, without a full stop."""
    if error["type"] in _REASONS:
        return _REASONS[error["type"]]
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "value_error":
        return message
    if error["type"] == "json_invalid":
        return f"it is not valid JSON ({message.removeprefix('Invalid JSON: ')})"
    value = repr(error["input"])
    shown = f", not {value}" if len(value) <= _LONGEST else ""
    return f"{message[:1].lower()}{message[1:]}{shown}"
