"""What the nodes of one verdict have in common: failures, kernel, driver, VBIOS and firmware."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabricheck.core import nodelists
from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.judge.verdict.model import NodeVerdict, Row, Versions


@dataclass(frozen=True)
class Difference:
    """A property that is not the same on all nodes of one kind.

    what: ``driver``, ``firmware smu``. nodes: by value the nodes that have it, the fewest first.
    """

    what: str
    nodes: dict[str, list[str]]

    @property
    def rarer(self) -> dict[str, str]:
        """By node, its value if at least as many nodes have another value."""
        most = len([*self.nodes.values()][-1])
        several = sum(len(nodes) == most for nodes in self.nodes.values()) > 1
        values = self.nodes.items()
        return {
            node: value for value, nodes in values if several or len(nodes) < most for node in nodes
        }

    @property
    def note(self) -> str:
        """A sentence with all values, and the nodes of all but the most frequent value."""
        *fewer, (most, rest) = self.nodes.items()
        unlike = [f"{value} on {nodelists.folded(nodes)}" for value, nodes in fewer]
        even = len(rest) == len([*self.nodes.values()][-2])
        others = nodelists.folded(rest) if even else f"the other {count(len(rest), 'node')}"
        return f"The nodes differ in {self.what}: {listed(unlike)}, {most} on {others}."

    def caveat(self, value: str) -> str:
        """Return a sentence on one node that has a rarer value."""
        others = [
            f"{other} on {count(len(nodes), 'node')}"
            for other, nodes in reversed(self.nodes.items())
            if other != value
        ]
        return f"Its {self.what} is {value}; that of others is {listed(others)}."


def software_first(verdicts: Iterable[NodeVerdict | Row]) -> list[str]:
    """Return what to say before anything else where all nodes that ran checks failed them alike."""
    checks = grouped(
        ((alike.nodes, listed(alike.drivers)), alike.check)
        for verdict in verdicts
        for alike in verdict.all_alike
    )
    return [
        f"Software and settings first: all {nodes} nodes that ran "
        f"{listed([*dict.fromkeys(names)], 3)} "
        f"{f'with driver {driver} ' if driver else ''}failed alike."
        for (nodes, driver), names in checks.items()
    ]


def differences(verdicts: Sequence[NodeVerdict]) -> Iterator[Difference]:
    """Yield the differences among measured nodes that have the same devices."""
    kinds = grouped(
        (frozenset(device.name for device in verdict.devices), verdict)
        for verdict in verdicts
        if verdict.kind == "measured" and not nodelists.is_several(verdict.node)
    )
    for same_devices in kinds.values():
        found = grouped(
            (what, (listed(values), verdict.node))
            for verdict in same_devices
            for what, values in _by_name(verdict.versions).items()
            if values
        )
        for what, values in found.items():
            nodes = grouped(values)
            if len(nodes) > 1:
                ordered = sorted(nodes.items(), key=lambda each: (len(each[1]), each[0]))
                yield Difference(what, dict(ordered))


def _by_name(versions: Versions) -> dict[str, list[str]]:
    return {
        "kernel": versions.kernel,
        "driver": versions.driver,
        "VBIOS": versions.vbios,
        **{f"firmware {name}": values for name, values in versions.firmware.items()},
    }


def with_caveats(verdicts: Sequence[NodeVerdict]) -> list[NodeVerdict]:
    """Return the verdicts in their order, with a caveat on each node that has a rarer value."""
    caveats = grouped(
        (node, difference.caveat(value))
        for difference in differences(verdicts)
        for node, value in difference.rarer.items()
    )
    return [
        verdict.model_copy(update={"caveats": [*verdict.caveats, *caveats[verdict.node]]})
        if verdict.kind == "measured" and verdict.node in caveats
        else verdict
        for verdict in verdicts
    ]
