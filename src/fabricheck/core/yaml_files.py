"""YAML files, read so that every fault is one sentence: file, key and reason."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from fabricheck.core.errors import InvalidFile, NotFoundError
from fabricheck.core.text import first_fault

M = TypeVar("M")

#: By libyaml where PyYAML was built with it: several times faster.
SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(SAFE):  # type: ignore[misc]
    """A safe loader that refuses a key given twice, of which YAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # a list or a mapping is no key: the safe loader refuses it
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
        reason = f"{line}it is not valid YAML ({error.problem})"
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = f"it is not valid YAML ({str(error).splitlines()[0]})"
    raise InvalidFile(path, None, reason)


def validated(kind: type[M], content: Any, path: Path) -> M:
    """Check what a file holds against a type, as pydantic understands it.

    :raises InvalidFile: for the first fault, naming file and key.
    """
    try:
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        raise InvalidFile(path, *first_fault(error)) from None
