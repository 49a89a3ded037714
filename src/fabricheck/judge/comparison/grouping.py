"""Long lists by what is alike: check, experiment, operation, memory and unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from fabricheck.judge.comparison.compare import What

Item = TypeVar("Item")

#: Check, kind and unit.
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Group(Generic[Item]):
    """Some of the values that are alike, the first of which stands for them; of so many in all."""

    check: str
    kind: str
    unit: str
    items: tuple[Item, ...]
    of: int

    @property
    def first(self) -> Item:
        """The first, of judged values the worst, or the best."""
        return self.items[0]


def group(
    items: Sequence[Item],
    what: Callable[[Item], What],
    everything: Iterable[What] = (),
    apart: bool = False,
) -> list[Group[Item]]:
    """Return items in groups, in the order of their first ones.

    :param what: gives what an item is of.
    :param everything: of what the groups are a part; without any, of the items alone.
    :param apart: each item is a group of its own.
    """
    totals: dict[Key, int] = {}
    for one in everything or map(what, items):
        totals[_key(one)] = totals.get(_key(one), 0) + 1
    found: dict[Key | tuple[Key, int], list[Item]] = {}
    for number, item in enumerate(items):
        key = _key(what(item))
        found.setdefault((key, number) if apart else key, []).append(item)
    return [
        Group(*key, tuple(some), totals[key])
        for some in found.values()
        for key in [_key(what(some[0]))]
    ]


def _key(what: What) -> Key:
    return what.check, what.kind, what.unit
