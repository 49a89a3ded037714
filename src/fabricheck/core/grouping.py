"""Grouping of values by a key."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


def grouped(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """Return the values of pairs of key and value by key, all in the order of the pairs."""
    groups: dict[_K, list[_V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
