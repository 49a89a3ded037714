"""What was measured between nodes in rounds, and what an attribution says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabricheck.node.fabric import Place

#: One rate in GB/s for each NIC position of a pair of nodes; None where it was not measured.
Rates = Sequence[float | None]


@dataclass(frozen=True)
class Nic:
    """A NIC of a node; ``name`` as the system has it."""

    name: str
    place: Place | None = None


@dataclass(frozen=True)
class Node:
    """A node and its NICs by position: position k of one node is measured with k of another."""

    name: str
    nics: tuple[Nic, ...]


@dataclass(frozen=True)
class NodePair:
    """What two nodes measured with each other in one round, in GB/s by NIC position.

    ``one`` and ``other`` are indices of nodes. ``out`` is from one to the other and ``back`` the
    other way, each NIC apart; the two with ``together`` are of all NICs at once, one way.
    """

    one: int
    other: int
    out: Rates
    back: Rates
    together_out: Rates = ()
    together_back: Rates = ()


@dataclass(frozen=True)
class Round:
    """Pairs of nodes that were measured at the same time; ``phase`` 2 measures suspects again."""

    phase: int
    pairs: Sequence[NodePair]


@dataclass(frozen=True)
class Measured:
    """The nodes of a launch and its rounds, in order.

    ``incomplete`` are the sentences on what is missing: nodes that were left out, pairs that
    failed, rounds that were not reached.
    """

    nodes: Sequence[Node]
    rounds: Sequence[Round]
    incomplete: tuple[str, ...] = ()


@dataclass(frozen=True)
class Named:
    """A NIC or a node that is at fault.

    ``nic`` is ``None`` for a whole node. ``loss`` is the part of the rate that is missing compared
    with the same position of other nodes, between ``low`` and ``high`` at 95 %; ``score`` is the
    loss over the loss that is named, so at least 1. ``direction`` is sending, receiving or both.
    """

    node: str
    nic: str | None
    loss: float
    low: float
    high: float
    score: float
    partners: int
    direction: str
    sentence: str

    @property
    def name(self) -> str:
        """``node:NIC``, or the node."""
        return self.node if self.nic is None else f"{self.node}:{self.nic}"


@dataclass(frozen=True)
class NamedSwitch:
    """A switch of whose NICs most are low, so that it, not they, is named."""

    group: str
    switch: str
    loss: float
    nics: int
    of: int
    sentence: str

    @property
    def name(self) -> str:
        """The switch with its group."""
        return f"switch {self.switch} of group {self.group}"


@dataclass(frozen=True)
class LowPair:
    """Two nodes that are low with each other and right with others: neither is at fault."""

    nodes: tuple[str, str]
    nics: tuple[str, ...]
    loss: float
    times: int
    sentence: str


@dataclass(frozen=True)
class Attribution:
    """Which NICs, nodes and switches are at fault, and what is low without a culprit.

    ``open`` are sentences on what is low or unsteady without a node at fault, and on what is
    missing; ``notes`` say what limits the attribution. ``spread`` is the robust standard deviation
    of healthy NICs and ``least`` the smallest loss that is named of a NIC with all partners, both
    as parts of the rate.
    """

    named: tuple[Named, ...]
    switches: tuple[NamedSwitch, ...] = ()
    pairs: tuple[LowPair, ...] = ()
    open: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    nodes: int = 0
    nics: int = 0
    rounds: int = 0
    spread: float | None = None
    least: float | None = None
    suspects: tuple[str, ...] = ()
