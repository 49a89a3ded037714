"""The diagnosis of a node as types: part of a verdict's document, and what the command prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from fabricheck.core import amounts
from fabricheck.core.models import StrictModel
from fabricheck.core.show import enumerated, listed

#: Above this power of ten the odds depend on the assumed noise and are not printed.
_SURE = 12


ComponentKind = Literal[
    "device",
    "package",
    "pair",
    "hbm",
    "compute_units",
    "kernel_accesses",
    "host_accesses",
    "copy_engines",
    "copies",
    "host_link",
    "pageable_copies",
    "page_migration",
    "messages",
    "rank",
    "link",
    "latency_of_copies",
    "latency_of_messages",
    "latency_of_link",
    "latency_of_host_copies",
    "transfers_at_once",
    "ddr",
    "numa_connection",
    "mpi",
    "rccl",
    "link_gone",
    "link_turns",
    "cables_exchanged",
    "numa_rotated",
]

Direction = Literal["from", "to", "one-way"]

#: What ends the noun that a label begins with.
_PREPOSITIONS = ("at", "between", "from", "of", "on", "to")

#: The words of a kind by its direction, else by the number of its ids; a and b are the first and
#: the second half of its ids.
_Forms = Mapping[str | int | None, str]

#: The label of each kind.
_LABELS: Mapping[ComponentKind, _Forms] = {
    "device": {1: "device {a}"},
    "package": {"any": "package of devices {ids}"},
    "pair": {2: "pair {a}-{b}"},
    "hbm": {0: "HBM of all devices", 1: "HBM of device {a}"},
    "compute_units": {0: "compute units of all devices", 1: "compute units of device {a}"},
    "kernel_accesses": {2: "kernels of device {a} at device {b}"},
    "host_accesses": {1: "kernels' host accesses of device {a}"},
    "copy_engines": {0: "copy engines of all devices", 1: "copy engines of device {a}"},
    "copies": {
        1: "copies {way} device {a}",
        2: "copy engines between {a} and {b}",
        "one-way": "copy engine {a}-{b}",
    },
    "host_link": {0: "host links of all devices", 1: "host link {way} device {a}"},
    "pageable_copies": {
        0: "pageable copies of all devices",
        1: "pageable copies {way} device {a}",
    },
    "page_migration": {0: "page migration of all devices", 1: "page migration of device {a}"},
    "messages": {
        0: "messages of all devices",
        1: "messages {way} device {a}",
        2: "messages between {a} and {b}",
        "one-way": "messages {a}-{b}",
    },
    "rank": {1: "rank on device {a}"},
    "link": {
        0: "links of all devices",
        1: "links of device {a}",
        2: "link {a}-{b}",
        "one-way": "link {a}-{b}, one direction",
        "from": "links from device {a} to the switch",
        "to": "links from the switch to device {a}",
    },
    "latency_of_copies": {
        0: "latency of all copies",
        1: "latency of copies {way} device {a}",
        2: "latency of copies {a}-{b}",
    },
    "latency_of_messages": {
        0: "latency of all messages",
        1: "latency of messages {way} device {a}",
        2: "latency of messages {a}-{b}",
    },
    "latency_of_link": {2: "latency of link {a}-{b}"},
    "latency_of_host_copies": {
        0: "latency of all host copies",
        1: "latency of host copies {way} device {a}",
    },
    "transfers_at_once": {
        0: "transfers at once of all devices",
        1: "transfers at once {way} device {a}",
    },
    "ddr": {0: "DDR of all NUMA domains", 1: "DDR of NUMA domain {a}"},
    "numa_connection": {2: "connection of NUMA domains {a} to {b}"},
    "mpi": {0: "{operation} of MPI"},
    "rccl": {0: "{operation} of RCCL"},
    "link_gone": {2: "link {a}-{b} gone"},
    "link_turns": {2: "turns of both directions of link {a}-{b}"},
    "cables_exchanged": {
        2: "cables of devices {a} and {b} exchanged",
        "any": "cables of packages {a} and {b} exchanged",
    },
    "numa_rotated": {"any": "NUMA domains rotated by {steps}"},
}

#: The clause of each kind that is not a matter of degree.
_FACTS: Mapping[ComponentKind, _Forms] = {
    "link_gone": {2: "link {a}-{b} is gone"},
    "link_turns": {2: "the two directions of link {a}-{b} take turns"},
    "cables_exchanged": {
        2: "the cables of devices {a} and {b} are exchanged",
        "any": "the cables of packages {a} and {b} are exchanged",
    },
    "numa_rotated": {"any": "the NUMA domains are rotated by {steps}"},
}


class Component(StrictModel):
    """A component of a node, or a way in which the node is wired otherwise than its model."""

    kind: ComponentKind
    ids: tuple[int, ...] = ()
    """The devices that it is of or joins; of `ddr`, `numa_connection` and `numa_rotated` the NUMA
    domains. Empty where it is of all; rotated domains are in their new order."""
    direction: Direction | None = None
    """`from` or `to` a device, or `one_way` from the first of two to the second; else null."""
    operation: str | None = None
    """The collective of `mpi` or `rccl`: `collectives` are all of them."""

    @property
    def label(self) -> str:
        """The component in words."""
        return self._filled(_LABELS[self.kind])

    @property
    def is_latency(self) -> bool:
        """Whether it is slower by taking longer, not by less bandwidth."""
        return self.kind.startswith("latency_of_")

    @property
    def is_plural(self) -> bool:
        """Whether its label takes a plural verb: copies from device 3 do, HBM of device 3 not."""
        for word in self.label.split():
            if word in _PREPOSITIONS:
                return False
            if word.endswith("s"):
                return True
        return False

    @property
    def fact(self) -> str | None:
        """What is the case, in a clause; None for a component that is slower by some degree."""
        return self._filled(_FACTS[self.kind]) if self.kind in _FACTS else None

    def _filled(self, forms: _Forms) -> str:
        ids = self.ids
        form = next(forms[key] for key in (self.direction, len(ids), "any") if key in forms)
        half = (len(ids) + 1) // 2
        a, b, all_ids = (listed(part) for part in (ids[:half], ids[half:], ids))
        steps = sorted(ids).index(ids[0]) if ids else 0
        return form.format(
            a=a, b=b, ids=all_ids, steps=steps, way=self.direction or "of", operation=self.operation
        )


class Degraded(StrictModel):
    """A degraded component."""

    component: Component
    equals: list[Component] = []
    """Other components that explain as much: one of them all is degraded."""
    loss_percent: float | None
    """By how many percent it is below its bandwidth, or, of a latency, how much higher that is;
    null where it is not a matter of degree, as of a link that is gone."""
    sizes: tuple[int, int] | None = None
    """The least and the most bytes of the transfers that are slower; null where all sizes are."""
    devices: list[int]
    """The devices that it is of or joins."""
    explains: int = Field(ge=0)
    """The misses that it explains."""
    odds: float
    """How much likelier the measured values are with it than without, as a power of ten."""
    supporting: list[str] = []
    """Measurements that are as slow as it predicts."""
    contradicting: list[str] = []
    """Measurements that are faster than it predicts."""
    next: list[str] = []
    """Checks of the set node, not in the session, that would tell it from its equals."""
    causes: list[str] = []
    """What the devices' counters say of them."""

    @property
    def odds_in_words(self) -> str:
        """The odds, up to the precision of the noise that they depend on."""
        return f"1e{self.odds:.0f}" if self.odds <= _SURE else f">1e{_SURE}"

    @property
    def loss(self) -> str:
        """The loss of bandwidth, or the increase of a latency; empty without a degree."""
        if self.loss_percent is None:
            return ""
        if self.component.is_latency:
            return f"{self.loss_percent:.3g} % higher"
        only = " to ".join(dict.fromkeys(map(amounts.about, self.sizes or ())))
        return f"{self.loss_percent:.2g} %" + (f" only at {only}" if only else "")


#: Why a diagnosis is unsure, and the words for it.
Doubt = Literal["contradicted", "unexplained", "many"]
_DOUBTS: Mapping[Doubt, str] = {
    "contradicted": "other measurements contradict it",
    "unexplained": "most missed limits stay unexplained",
    "many": "so many components are seldom degraded at once",
}


class Diagnosis(StrictModel):
    """The explanation of a node's misses: its missed limits and its differences from the model."""

    node_model: str | None = None
    """The node model whose routes it knows; null without one."""
    misses: int = Field(ge=0)
    """Metrics that missed a limit, and differences from the node model."""
    explained: int = Field(ge=0)
    degraded: list[Degraded]
    """The smallest set of components that explains them; empty where nothing does."""
    unsure: bool = False
    """Whether the components are only candidates."""
    doubts: list[Doubt] = []
    """Why it is unsure: other measurements contradict a component, most misses stay unexplained, or
    more components would be degraded than is likely."""
    unexplained: list[str]
    """The misses that stay unexplained: check and metric."""
    lacking: list[str] = []
    """What it could not take into account, in sentences."""

    @property
    def sentence(self) -> str:
        """The diagnosis in one line."""
        if not self.degraded:
            many = "the missed limit" if self.misses == 1 else f"any of {self.misses} missed limits"
            return f"No degraded component explains {many}."
        clauses = "; ".join(_clause(degraded) for degraded in self.degraded)
        if self.unsure:
            why = listed(_DOUBTS[doubt] for doubt in self.doubts)
            return f"Unsure, since {why}; perhaps {clauses}: this would explain {self._limits}."
        return f"{clauses[0].upper()}{clauses[1:]}: {self._pronoun} {self._limits}."

    @property
    def _pronoun(self) -> str:
        """What stands for the clauses, with its verb."""
        first = self.degraded[0]
        if len(self.degraded) > 1:
            return "together they explain"
        if first.equals or first.component.is_plural:
            return "this explains"
        return "it explains"

    @property
    def _limits(self) -> str:
        """How many limits are explained: both missed limits; 45 of the 49 missed limits."""
        if self.explained < self.misses:
            return f"{self.explained} of the {self.misses} missed limits"
        if self.misses == 1:
            return "the missed limit"
        return "both missed limits" if self.misses == 2 else f"all {self.misses} missed limits"


def _clause(degraded: Degraded) -> str:
    """Return what is wrong, with the other components that would explain as much."""
    components = (degraded.component, *degraded.equals)
    slower = [each for each in components if each.fact is None]
    clauses = [each.fact for each in components if each.fact is not None]
    if slower:
        labels = enumerated([each.label for each in slower], last="or")
        verb = "are" if slower[-1].is_plural else "is"
        by = "" if slower[-1].is_latency else "down by "
        state = f"{by}{degraded.loss}" if degraded.loss else "slower"
        clauses.insert(0, f"{labels} {verb} {state}")
    clause = " or ".join(clauses)
    return f"{clause} ({degraded.causes[0]})" if degraded.causes else clause
