"""Reading YAML files so that every fault becomes one sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from fabricheck.core.errors import NotFoundError
from fabricheck.node.errors import InvalidNode

M = TypeVar("M", bound=BaseModel)

#: What a drafted node model has in the place of a number or a list that no tool tells.
TO_FILL = "to fill"


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


def read_yaml(path: Path) -> tuple[dict[str, Any], str]:
    """Read a YAML file that holds a mapping.

    :returns: the mapping and the SHA-256 digest of the file.
    :raises NotFoundError: when there is no such file.
    :raises InvalidNode: when it cannot be read, is no YAML, or no mapping.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"{path}: there is no such file.") from None
    except OSError as error:
        reason = f"it cannot be read ({error.strerror})"
        raise InvalidNode(path, None, reason) from None
    try:
        content = yaml.load(raw, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark is not None else ""
        reason = f"{line}it is no valid YAML ({error.problem})"
        raise InvalidNode(path, None, reason) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = f"it is no valid YAML ({str(error).splitlines()[0]})"
        raise InvalidNode(path, None, reason) from None
    if not isinstance(content, dict):
        raise InvalidNode(path, None, "it holds no mapping of keys to values")
    return content, hashlib.sha256(raw).hexdigest()


def validated(kind: type[M], content: dict[str, Any], path: Path) -> M:
    """Check a mapping against a pydantic class.

    :raises InvalidNode: for the first fault, naming file and key.
    """
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidNode(path, key_of(first["loc"]) or None, _reason(dict(first))) from None


def key_of(location: tuple[int | str, ...]) -> str:
    """Write a location in a file as ``links.matrix[3]``."""
    text = ""
    for part in location:
        if part == "[key]":
            continue
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


def _reason(error: dict[str, Any]) -> str:
    if error["type"] == "missing":
        return "this key is missing"
    if error["type"] == "extra_forbidden":
        return "there is no such key"
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "value_error":
        return message
    return f"{message[:1].lower()}{message[1:]}, not {error['input']!r}"


def to_fill(content: Any, place: tuple[int | str, ...] = ()) -> list[str]:
    """Return the keys of everything that is still marked as to be filled in."""
    if content == TO_FILL:
        return [key_of(place)]
    if isinstance(content, dict):
        return [key for k, value in content.items() for key in to_fill(value, (*place, k))]
    if isinstance(content, list):
        return [key for i, value in enumerate(content) for key in to_fill(value, (*place, i))]
    return []
