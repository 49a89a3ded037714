"""YAML files, read so that every fault becomes one sentence: file, key and reason."""

from __future__ import annotations

import functools
import hashlib
import pickle
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from fabricheck.core.errors import InvalidFile
from fabricheck.core.text import read_text

#: libyaml's loader where PyYAML was built with it: several times faster.
SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


#: The deepest nesting; no settings file needs more.
_DEEPEST = 100

_BRACKET = re.compile(r"[\[\]{}]")
_LISTS = re.compile(r"(?:[-?:][ \t]+){100}")


class _Loader(SAFE):  # type: ignore[misc]
    """A safe loader that refuses duplicate keys, of which YAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # a list or a mapping is not a key: the safe loader refuses it
            # 1 and 0x1 are the same key
            name = key.value if key.tag.endswith(":merge") else self.construct_object(key)
            if name in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key.value}' occurs twice", key.start_mark
                )
            seen.add(name)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


def read(path: Path) -> Any:
    """Return the content of a YAML file.

    :raises NotFoundError: when there is no such file.
    :raises InvalidFile: when it cannot be read, or is not YAML.
    """
    return pickle.loads(_pickled(read_text(path), path))


def read_mapping(path: Path) -> tuple[dict[str, Any], str]:
    """Return the mapping in a YAML file, and the SHA-256 digest of its text.

    :raises NotFoundError: when there is no such file.
    :raises InvalidFile: when it cannot be read, is not YAML, or is not a mapping.
    """
    content = read(path)
    if not isinstance(content, dict):
        raise InvalidFile(path, None, "it must contain a mapping of keys to values")
    return content, hashlib.sha256(read_text(path).encode()).hexdigest()


def _is_deep(text: str) -> bool:
    """Whether brackets, or lists on one line, are nested so deep that libyaml crashes."""
    depth = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket in "[{" else -1
        if depth > _DEEPEST:
            return True
    return _LISTS.search(text) is not None


def _holds_itself(node: Any, above: set[int], done: set[int]) -> bool:
    """Whether a part contains itself by an alias, also one that is merged (``<<``).

    :param above: the ids of the parts around this one. done: those already checked.
    """
    if isinstance(node, yaml.MappingNode):
        parts = [part for pair in node.value for part in pair]
    elif isinstance(node, yaml.SequenceNode):
        parts = node.value
    else:
        return False
    if id(node) in done:
        return id(node) in above
    above.add(id(node))
    done.add(id(node))
    holds = any(_holds_itself(part, above, done) for part in parts)
    above.discard(id(node))
    return holds


@functools.lru_cache(maxsize=128)
def _pickled(text: str, path: Path) -> bytes:
    """Parse a text once; a copy of what it holds is made sixty times as fast from its pickle."""
    if _is_deep(text):
        raise InvalidFile(path, None, f"its lists or mappings are nested more than {_DEEPEST} deep")
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if "*" not in text or not _holds_itself(node, set(), set()):
            return pickle.dumps(None if node is None else loader.construct_document(node))
        reason = "a part of it contains itself, by an alias"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark is not None else ""
        reason = f"{line}it is not valid YAML ({error.problem})"
    except (yaml.YAMLError, ValueError) as error:
        # An invalid date, or an integer of thousands of digits, is a ValueError.
        reason = f"it is not valid YAML ({str(error).splitlines()[0]})"
    finally:
        loader.dispose()
    raise InvalidFile(path, None, reason)
