"""The places of diagnosed components in the drawing of the node."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fabricheck.judge.diagnosis.model import Component, ComponentKind, Diagnosis
from fabricheck.node import NodeModel
from fabricheck.report.figures.drawing import Outline
from fabricheck.results.table import Pair

#: The location of a mark: a pair's link, a device's link to the host by its number, a device, or a
#: NUMA domain.
Kind = Literal["link", "host", "device", "domain"]
Place: TypeAlias = "tuple[Kind, int | Pair]"

#: By kind of component where it is drawn, and the word for what of the place it is; those of no
#: place are software.
_DRAWN: Mapping[ComponentKind, tuple[Kind, str]] = {
    "device": ("device", "device"),
    "package": ("device", "package"),
    "pair": ("device", "pair"),
    "hbm": ("device", "HBM"),
    "compute_units": ("device", "compute units"),
    "kernel_accesses": ("device", "kernels"),
    "host_accesses": ("host", "kernels' host accesses"),
    "copy_engines": ("device", "copy engines"),
    "copies": ("device", "copy engine"),
    "host_link": ("host", ""),
    "pageable_copies": ("host", "pageable copies"),
    "page_migration": ("host", "page migration"),
    "messages": ("device", "messages"),
    "rank": ("device", "rank"),
    "link": ("link", ""),
    "latency_of_copies": ("device", "latency"),
    "latency_of_messages": ("device", "latency"),
    "latency_of_link": ("link", "latency"),
    "ddr": ("domain", "DDR"),
    "numa_connection": ("domain", "connection"),
    "link_gone": ("link", "gone"),
    "link_turns": ("link", "turns"),
    "cables_exchanged": ("device", "cables"),
    "numa_rotated": ("domain", "NUMA domains rotated"),
}

#: The most letters in a line of a label, and the most lines that name components; a device has no
#: more space.
_WIDE, _MOST_LINES = 13, 3


@dataclass(frozen=True)
class Mark:
    """The components that are marked at a place.

    certain: whether one of them is certainly degraded, not only one of several equal explanations.
    """

    components: tuple[Component, ...]
    certain: bool

    @property
    def word(self) -> str:
        """The text of the mark: degraded, or possibly degraded."""
        return "degraded" if self.certain else "degraded?"

    @property
    def outline(self) -> Outline:
        """The style: dashed where another component may be the cause."""
        why = "" if self.certain else ", or another component that explains as much"
        labels = " or ".join(component.label for component in self.components)
        return Outline(not self.certain, f"{self.word}: {labels}{why}")

    @property
    def label(self) -> tuple[str, ...]:
        """The lines of its label: the text of the mark, and the part of the place."""
        words = filter(None, map(_short, self.components))
        lines = [line for word in dict.fromkeys(words) for line in textwrap.wrap(word, _WIDE)]
        more = ["..."] if len(lines) > _MOST_LINES else []
        return (self.word, *lines[:_MOST_LINES], *more)


def marks(diagnosis: Diagnosis | None, node: NodeModel) -> dict[Place, Mark]:
    """Return the degraded or possibly degraded components by their place in the drawing."""
    found: dict[Place, Mark] = {}
    for degraded in diagnosis.degraded if diagnosis is not None else ():
        for component in (degraded.component, *degraded.equals):
            for place in places(component, node):
                before = found.get(place, Mark((), False))
                certain = before.certain or not degraded.equals
                found[place] = Mark((*before.components, component), certain)
    return found


def places(component: Component, node: NodeModel) -> Iterator[Place]:
    """Yield the places of a component; none for one without a place, such as a library."""
    if component.kind not in _DRAWN:
        return
    kind, _ = _DRAWN[component.kind]
    every = not component.ids
    if kind == "link" and node.switch is None:
        for pair in node.links:
            if set(component.ids) <= set(pair):
                yield "link", pair
    else:
        for one in node.domains if kind == "domain" else node.devices:
            if every or one.index in component.ids:
                yield kind, one.index


def _short(component: Component) -> str:
    """Return the part of its place that a component is; empty for a whole link."""
    if component.kind == "link" and component.direction == "one-way":
        return "{} to {}".format(*component.ids)
    return _DRAWN[component.kind][1]
