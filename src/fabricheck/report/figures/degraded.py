"""The places of diagnosed components in the drawing of the node."""

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

#: The location of a mark: a pair's link, a device's link to the host by its number, a device, or a
#: NUMA domain.
Kind = Literal["link", "host", "device", "domain"]
Place: TypeAlias = "tuple[Kind, int | Pair]"

#: The first words of a component's name, by its kind; all others belong to devices.
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

#: The separators in a component's name before its device or link.
_OF = re.compile(r" (?:of|from|to|on|between|by) | ?\d")

#: The most letters in a line of a label, and the most lines that name components; a device has no
#: more space.
_WIDE, _MOST_LINES = 13, 3


@dataclass(frozen=True)
class Mark:
    """The components that are marked at a place.

    certain: whether one of them is certainly degraded, not only one of several equal explanations.
    """

    components: tuple[str, ...]
    certain: bool

    @property
    def word(self) -> str:
        """The text of the mark: degraded, or possibly degraded."""
        return "degraded" if self.certain else "degraded?"

    @property
    def outline(self) -> Outline:
        """The style: dashed where another component may be the cause."""
        why = "" if self.certain else ", or another component that explains as much"
        return Outline(not self.certain, f"{self.word}: {' or '.join(self.components)}{why}")

    @property
    def label(self) -> tuple[str, ...]:
        """The lines of its label: the text of the mark, and the part of the place."""
        words = [word for one in self.components if (word := _short(one))]
        lines = [line for word in dict.fromkeys(words) for line in textwrap.wrap(word, _WIDE)]
        more = ["..."] if len(lines) > _MOST_LINES else []
        return (self.word, *lines[:_MOST_LINES], *more)


def marks(diagnosis: Diagnosis | None, node: NodeModel) -> dict[Place, Mark]:
    """Return the degraded or possibly degraded components by their place in the drawing."""
    found: dict[Place, Mark] = {}
    for one in diagnosis.degraded if diagnosis is not None else ():
        for component in (one.component, *one.equals):
            for place in places(component, node):
                before = found.get(place, Mark((), False))
                certain = before.certain or not one.equals
                found[place] = Mark((*before.components, component), certain)
    return found


def places(component: str, node: NodeModel) -> Iterator[Place]:
    """Yield the places of a component; none for one without a place, such as a library."""
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
    """Return the part of its place that a component is; empty for a whole link."""
    one_way = re.fullmatch(r"link (\d+)-(\d+), one direction", component)
    if one_way:
        return f"{one_way[1]} to {one_way[2]}"
    if component.endswith(" gone"):
        return "gone"
    word = _OF.split(component)[0]
    return "" if word in ("link", "links", "host link", "host links") else word
