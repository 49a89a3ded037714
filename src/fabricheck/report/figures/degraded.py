"""The places of a diagnosis's components in the drawing of the node."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fabricheck.judge.diagnosis.model import Diagnosis
from fabricheck.node import NodeModel
from fabricheck.report.figures.drawing import Outline
from fabricheck.results.table import Pair

#: A pair's link, or by its number a device's link to the host, a device, or a NUMA domain.
Kind = Literal["link", "host", "device", "domain"]
Place: TypeAlias = "tuple[Kind, int | Pair]"

#: What a component's name begins with, by its kind; all others are of devices.
_KINDS: tuple[tuple[str, Kind], ...] = (
    ("link", "link"),
    ("latency of link", "link"),
    ("turns of both directions of link", "link"),
    ("host link", "host"),
    ("pageable copies", "host"),
    ("page migration", "host"),
    ("kernels' host accesses", "host"),
    ("DDR", "domain"),
    ("connection of NUMA domains", "domain"),
    ("NUMA domains rotated", "domain"),
)

#: Where a component's name goes on with what it is of.
_OF = re.compile(r" (?:of|from|to|on|between|by) | ?\d")

#: Letters in a line of a label, and lines that name components: a device has no room for more.
_WIDE, _MOST_LINES = 13, 3


@dataclass(frozen=True)
class Mark:
    """The mark of a place: the components there."""

    components: tuple[str, ...]
    certain: bool

    @property
    def word(self) -> str:
        """What the mark says: that it is degraded, or may be."""
        return "degraded" if self.certain else "degraded?"

    @property
    def outline(self) -> Outline:
        """How it is drawn: dashed where it may be another one."""
        why = "" if self.certain else ", or another component that explains as much"
        return Outline(not self.certain, f"{self.word}: {' or '.join(self.components)}{why}")

    @property
    def label(self) -> tuple[str, ...]:
        """The lines of its label: the word, and what it is of the place."""
        words = [word for one in self.components if (word := _short(one))]
        lines = [line for word in dict.fromkeys(words) for line in textwrap.wrap(word, _WIDE)]
        more = ["..."] if len(lines) > _MOST_LINES else []
        return (self.word, *lines[:_MOST_LINES], *more)


def marks(diagnosis: Diagnosis | None, node: NodeModel) -> dict[Place, Mark]:
    """Return what is degraded, or may be, by its place in the drawing."""
    found: dict[Place, Mark] = {}
    for one in diagnosis.degraded if diagnosis is not None else ():
        for component in (one.component, *one.equals):
            for place in places(component, node):
                before = found.get(place, Mark((), False))
                certain = before.certain or not one.equals
                found[place] = Mark((*before.components, component), certain)
    return found


def places(component: str, node: NodeModel) -> Iterator[Place]:
    """Yield where a component is; nothing of one that is at no place, such as a library."""
    begun = (kind for start, kind in _KINDS if component.startswith(start))
    kind: Kind = next(begun, "device")
    every = "all" in component.split() or "rotated" in component
    numbers = set() if every else {int(one) for one in re.findall(r"\d+", component)}
    if not (every or numbers):
        return
    if kind == "link" and node.switch is None:
        for pair in node.links:
            if numbers <= set(pair):
                yield "link", pair
    else:
        for one in node.domains if kind == "domain" else node.devices:
            if every or one.index in numbers:
                yield kind, one.index


def _short(component: str) -> str:
    """Return what a component is of its place; nothing of a link as a whole."""
    one_way = re.fullmatch(r"link (\d+)-(\d+), one direction", component)
    if one_way:
        return f"{one_way[1]} to {one_way[2]}"
    if component.endswith(" gone"):
        return "gone"
    word = _OF.split(component)[0]
    return "" if word in ("link", "links", "host link", "host links") else word
