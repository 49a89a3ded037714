"""Which NIC of a node is which of its node model: by place and kind, and only then by name.

Names change: udev calls mlx5_0 ibp26s0 after an update, and the kernel numbers NICs in the order in
which it finds them. A NIC stays beside its device and in its NUMA domain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from fabricheck.node import Nic, NodeModel
from fabricheck.node.fabric import Fabric
from fabricheck.results.model import NodeNic

#: What a pair of NICs has in common.
By = Literal["device", "domain", "name", "order"]

#: The class of the kernel for the NICs of a provider. TCP takes any.
_KIND_OF_PROVIDER = {"cxi": "cxi", "verbs": "infiniband"}

#: The same by the first letters of a driver's name for them, where no fabric is named.
_KIND_OF_NAME = {"cxi": "cxi", "mlx": "infiniband", "ib": "infiniband", "roce": "infiniband"}


#: A rate may be this much below or above what the model states: documents round.
ROUNDING = 0.01


@dataclass(frozen=True)
class Pair:
    """A NIC of the model and the one of the node that has its place; found_by: how."""

    expected: Nic
    nic: NodeNic
    found_by: By

    @property
    def is_renamed(self) -> bool:
        """Whether it has another name than in the model."""
        return self.expected.name != self.nic["name"]


@dataclass(frozen=True)
class Matching:
    """The NICs of a model and those of a node.

    pairs: in the order of the model. other_kind: pairs whose NIC is of another kind than the
    model's. missing: those of the model that the node lacks. extra: those of the node that the
    model lacks, as for storage. doubtful: the NICs of the model that may be any of several of the
    node. knows_devices: whether devices tell the places.
    """

    pairs: Sequence[Pair]
    other_kind: Sequence[Pair]
    missing: Sequence[Nic]
    extra: Sequence[NodeNic]
    doubtful: Sequence[tuple[Nic, Sequence[NodeNic]]]
    knows_devices: bool

    def alike(self, expected: Nic, nics: Sequence[Nic]) -> Sequence[Nic]:
        """Return the NICs of a model that the node does not tell from one of them, with itself."""
        if any(pair.found_by == "order" for pair in self.pairs):
            return list(nics)
        if self.knows_devices:
            return [nic for nic in nics if nic.device == expected.device]
        return [nic for nic in nics if nic.domain == expected.domain]

    def is_any_renamed(self, nics: Sequence[Nic]) -> bool:
        """Whether one of a model's NICs has another name on the node."""
        return any(pair.is_renamed and pair.expected in nics for pair in self.pairs)


def match(model: NodeModel, nics: Sequence[NodeNic], fabric: Fabric | None) -> Matching:
    """Return which NIC of a node is which of its model.

    :param fabric: gives the kind of the NICs; without one, their names in the model do.
    """
    of_kind = [nic for nic in nics if is_of_kind(model, nic, fabric)]
    of_another = [nic for nic in nics if nic not in of_kind]
    knows_devices = _knows_devices(model, nics)
    search = _Search(
        model, knows_devices, _knows_domains(model, of_kind), list(model.nics), list(of_kind)
    )
    search.by("device", search.is_at_device, same_name=True)
    search.by("device", search.is_at_device)
    search.by("domain", search.is_in_domain, same_name=True)
    search.by("domain", search.is_in_domain)
    search.by("name", search.is_anywhere, same_name=True)
    search.by("order", search.is_nowhere)
    if not knows_devices and len(of_kind) >= len(model.nics):
        # As many as the model has: none of them is gone, wherever the domains say that they are.
        search.doubt_the_rest()
    other = _Search(model, knows_devices, _knows_domains(model, nics), search.missing, of_another)
    other.by("device", other.is_at_device)
    other.by("name", other.is_not_elsewhere, same_name=True)
    # A NIC of storage is rarely as fast as those of the model.
    other.by("order", other.may_be_any_by_its_rate)
    if not of_kind:
        # The whole node has them. A single one may as well be a NIC of storage beside a lost one.
        other.left = [nic for nic in other.left if nic.get("kind") != "net"]
        other.by("domain", other.is_in_domain)
        other.by("order", other.is_anywhere)
    used = [pair.nic["name"] for pair in (*search.pairs, *other.pairs)]
    return Matching(
        pairs=sorted(search.pairs, key=lambda pair: pair.expected.index),
        other_kind=sorted(other.pairs, key=lambda pair: pair.expected.index),
        missing=other.missing,
        extra=[nic for nic in nics if nic["name"] not in used],
        doubtful=search.doubtful,
        knows_devices=knows_devices,
    )


def is_of_kind(model: NodeModel, nic: NodeNic, fabric: Fabric | None) -> bool:
    """Whether a NIC is of the kind that the fabric needs, else of the model's.

    What is unknown of either is no contradiction.
    """
    wanted = _kind(model, fabric)
    kind, layer = nic.get("kind"), nic.get("link_layer")
    if wanted is not None and kind is not None and kind != wanted:
        return False
    if fabric is None or fabric.link_layer is None or layer is None:
        return True
    return layer == fabric.link_layer


def _kind(model: NodeModel, fabric: Fabric | None) -> str | None:
    if fabric is not None:
        return _KIND_OF_PROVIDER.get(fabric.provider)
    kinds = set()
    for nic in model.nics:
        kinds |= {kind for letters, kind in _KIND_OF_NAME.items() if nic.name.startswith(letters)}
    return kinds.pop() if len(kinds) == 1 else None


def address_of(model: NodeModel, expected: Nic) -> str | None:
    """Return the PCI address of the device beside a NIC of a model; None where none is stated."""
    return None if expected.device is None else model.devices[expected.device].pci_address


def _knows_devices(model: NodeModel, nics: Sequence[NodeNic]) -> bool:
    """Whether the devices near NICs tell their places.

    The model must state the addresses of its devices, and the node must have these. A virtual
    machine shows no bridge that a NIC and a device share.
    """
    stated = {device.pci_address for device in model.devices}
    near = {address for nic in nics for address in nic.get("near_devices") or ()}
    return (
        None not in {address_of(model, nic) for nic in model.nics}
        and bool(near)
        and (near <= stated)
    )


def _knows_domains(model: NodeModel, nics: Sequence[NodeNic]) -> bool:
    """Whether NUMA domains tell places: a node with one domain for all, unlike its model, has none.

    A firmware setting joins all domains of a processor.
    """
    shown = {nic.get("numa_domain") for nic in nics} - {None}
    return len(shown) > 1 or shown == {nic.domain for nic in model.nics}


@dataclass
class _Search:
    """The NICs of a model that are not found yet, and the NICs of a node that may be they."""

    model: NodeModel
    knows_devices: bool
    knows_domains: bool
    missing: list[Nic]
    left: list[NodeNic]
    pairs: list[Pair] = field(default_factory=list)
    doubtful: list[tuple[Nic, Sequence[NodeNic]]] = field(default_factory=list)

    def by(self, by: By, fits: Callable[[Nic, NodeNic], bool], *, same_name: bool = False) -> None:
        """Pair what fits; of several NICs at a place that are alike the first by PCI address."""
        for expected in list(self.missing):
            names = {expected.name} if same_name else {nic["name"] for nic in self.left}
            able = [nic for nic in self.left if nic["name"] in names and fits(expected, nic)]
            if not able:
                continue
            rivals = [nic for nic in self.missing if fits(nic, able[0])]
            self.missing.remove(expected)
            if not same_name and len(able) > len(rivals) and not _are_alike(able):
                self.doubtful.append((expected, able))
                continue
            chosen = min(able, key=_pci_address)
            self.pairs.append(Pair(expected, chosen, by))
            self.left.remove(chosen)

    def doubt_the_rest(self) -> None:
        """Let what is not found be any of the NICs that are left."""
        if self.left:
            self.doubtful += [(expected, list(self.left)) for expected in self.missing]
            self.missing.clear()

    def is_at_device(self, expected: Nic, nic: NodeNic) -> bool:
        """Whether the device beside the model's NIC is beside this one."""
        near = nic.get("near_devices") or ()
        return self.knows_devices and address_of(self.model, expected) in near

    def is_in_domain(self, expected: Nic, nic: NodeNic) -> bool:
        """Whether it is in the same NUMA domain, where no device tells more."""
        return not self.knows_devices and nic.get("numa_domain") == expected.domain

    def is_anywhere(self, expected: Nic, nic: NodeNic) -> bool:
        """Whether it may be at another place than the model's; it always may."""
        return True

    def is_nowhere(self, expected: Nic, nic: NodeNic) -> bool:
        """Whether the node tells nothing of its place, so that it may be any of the model's."""
        tells_domain = self.knows_domains and nic.get("numa_domain") is not None
        return not self.knows_devices and not tells_domain

    def may_be_any_by_its_rate(self, expected: Nic, nic: NodeNic) -> bool:
        """Whether nothing is known of its place, and it has ports of the rate of the model's."""
        rate = nic.get("gbit_per_s")
        same = rate is not None and abs(rate - 8 * expected.peak_gbs) <= ROUNDING * rate
        return same and nic.get("kind") != "net" and self.is_nowhere(expected, nic)

    def is_not_elsewhere(self, expected: Nic, nic: NodeNic) -> bool:
        """Whether no device tells that it is at another place than the model's."""
        tells_device = self.knows_devices and bool(nic.get("near_devices"))
        return not tells_device or self.is_at_device(expected, nic)


def _pci_address(nic: NodeNic) -> str:
    return nic.get("pci_address") or nic["name"]


def _are_alike(nics: Sequence[NodeNic]) -> bool:
    return len({(nic.get("state"), nic.get("gbit_per_s")) for nic in nics}) == 1
