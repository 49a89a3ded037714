"""YAML files, read so that every fault is one sentence: file, key and reason."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from fabricheck.core.errors import InvalidFile, NotFoundError

M = TypeVar("M")

#: A longer value is not repeated in a sentence.
_LONGEST = 80

#: By libyaml where PyYAML was built with it: several times faster.
SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(SAFE):  # type: ignore[misc]
    """A safe loader that refuses a key given twice, of which YAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key.value}' is there twice", key.start_mark
                )
            seen.add(key.value)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


def read(path: Path) -> Any:
    """Return what a YAML file holds.

    :raises NotFoundError: when there is no such file.
    :raises InvalidFile: when it cannot be read, or is no YAML.
    """
    return _parsed(_bytes(path), path)


def read_mapping(path: Path) -> tuple[dict[str, Any], str]:
    """Return the mapping that a YAML file holds, and the SHA-256 digest of the file.

    :raises NotFoundError: when there is no such file.
    :raises InvalidFile: when it cannot be read, is no YAML, or no mapping.
    """
    raw = _bytes(path)
    content = _parsed(raw, path)
    if not isinstance(content, dict):
        raise InvalidFile(path, None, "it holds no mapping of keys to values")
    return content, hashlib.sha256(raw).hexdigest()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise InvalidFile(path, None, f"it cannot be read ({error.strerror})") from None


def _parsed(raw: bytes, path: Path) -> Any:
    try:
        return yaml.load(raw, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark is not None else ""
        reason = f"{line}it is no valid YAML ({error.problem})"
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = f"it is no valid YAML ({str(error).splitlines()[0]})"
    raise InvalidFile(path, None, reason)


def validated(kind: type[M], content: Any, path: Path) -> M:
    """Check what a file holds against a type, as pydantic understands it.

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
    """Write a location in a file as ``links.matrix[3]``."""
    text = ""
    for part in location:
        if part == "[key]":
            continue
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


def reason_of(error: Mapping[str, Any]) -> str:
    """Say what pydantic found at one place, without a full stop."""
    if error["type"] == "missing":
        return "this key is missing"
    if error["type"] == "extra_forbidden":
        return "there is no such key"
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "value_error":
        return message
    found = repr(error["input"])
    shown = f", not {found}" if len(found) <= _LONGEST else ""
    return f"{message[:1].lower()}{message[1:]}{shown}"
