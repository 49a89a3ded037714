"""JSON, read so that nothing in it is ambiguous: of two equal keys parsers take the last."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, NoReturn

from pydantic_core import from_json, to_json

from fabricheck.core.errors import InvalidDocument

#: A number of twice as many digits may be beyond every finite one.
_MANY_DIGITS = 150


class _NotStrictJson(ValueError):
    """What Python's parser accepts, and JSON or this document does not."""


def parse(text: str, path: Path | str, infinite: bool = False) -> Any:
    """Return what a text holds: each key of an object is there once, and numbers are finite.

    :param path: names the file in errors.
    :param infinite: whether a number may be none, or beyond every finite one, as Python writes it.
    :raises InvalidDocument: when it is cut, no JSON, or leaves open what is meant.
    """
    value = _parse_quickly(text)
    return _parse_strictly(text, path, infinite) if value is None else value


def _parse_quickly(text: str) -> Any:
    """Return what Pydantic's parser makes of a text; None where that need not be all of it.

    It keeps the last of two equal keys, so that the colons of what it made are fewer than those of
    the text, and takes numbers that are beyond every finite one.
    """
    if "\\" in text and "\\u" in text:  # to look for one character takes no time
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
            raise InvalidDocument(path, "is empty") from None
        raise InvalidDocument(
            path,
            f"is not JSON, or cut short: {error.msg} at line {error.lineno} column {error.colno}",
        ) from None
    except _NotStrictJson as error:
        raise InvalidDocument(path, str(error)) from None
    except (ValueError, RecursionError):
        # An integer of thousands of digits, or thousands of nested brackets.
        raise InvalidDocument(path, "holds a number or a nesting beyond any sense") from None
    try:
        # Such text is rare, and a walk through the document takes as long as its parsing.
        if "\\ud" in text or "\\uD" in text or not text.isascii():
            _refuse_lone_surrogates(value)
    except ValueError as error:
        raise InvalidDocument(path, str(error)) from None
    return value


def _refuse_constant(word: str) -> NoReturn:
    raise _NotStrictJson(f"holds {word}, which is not a finite number")


def _finite_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _NotStrictJson(f"holds {digits[:40]}, which is not a finite number")
    return value


def _finite_int(digits: str) -> int:
    value = int(digits)
    if abs(value) > sys.float_info.max:
        raise _NotStrictJson(f"holds {digits[:40]}..., which is beyond every finite number")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise _NotStrictJson(f"holds the key {twice!r} twice in one object")
    return result


def _refuse_lone_surrogates(value: Any) -> None:
    """Refuse text that no terminal can show and no file can hold: half of a surrogate pair.

    :param value: what JSON was parsed to; only JSON's escapes can bring such text in.
    :raises ValueError: when there is one.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = ord(error.object[error.start])
        raise ValueError(f"holds \\u{half:04x}, which is half of a character") from None
