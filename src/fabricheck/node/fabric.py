"""Fabrics: the networks that join nodes, from ``config/fabrics``, and how far apart two NICs are.

The place of a NIC (group, switch, port) follows from its address, where the network's manager gives
addresses by place, or from a list of the nodes at each switch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fabricheck.core import nodelists
from fabricheck.core.checkout import config_file
from fabricheck.core.errors import InvalidFile, UsageError
from fabricheck.core.models import StrictModel, validated
from fabricheck.core.vocabulary import Distance
from fabricheck.core.yaml_files import read_mapping
from fabricheck.node.schema import Provenance, Source

#: The bits of a Slingshot address that are group, switch and port: the low 20 bits of the MAC
#: address (HPE's "Fabric validation", concepts and scripts, in HewlettPackard/shs-docs).
_PORT_BITS, _SWITCH_BITS, _GROUP_BITS = 6, 5, 9


class SwitchEntry(StrictModel):
    """A switch: its group, and the nodes at it as a host list."""

    name: Annotated[str, Field(min_length=1)]
    group: Annotated[str, Field(min_length=1)]
    nodes: Annotated[str, Field(min_length=1)]


class PlaceSection(Provenance):
    """How the place of a NIC is known: from its address, or from the switch of its node."""

    rule: Literal["address", "switches", "none"]
    switches: list[SwitchEntry] = []

    @model_validator(mode="after")
    def _has_switches(self) -> PlaceSection:
        if (self.rule == "switches") != bool(self.switches):
            raise ValueError("switches are needed with the rule switches, and only with it")
        return self


@dataclass(frozen=True)
class Place:
    """Where a NIC is in the network; ``port`` is ``None`` where only its switch is known."""

    group: str
    switch: str
    port: str | None = None


class Fabric(StrictModel):
    """A fabric: the content of its file.

    ``provider`` is the driver that messages must go by: cxi, verbs or tcp. ``transport`` is ``nic``
    unless the network is the kernel's. ``link_layer`` is that of the ports; ``None`` where it does
    not matter.
    """

    format: Literal[1]
    name: str
    title: str
    sources: dict[str, Source] = {}
    provider: Literal["cxi", "verbs", "tcp"]
    transport: Literal["nic", "kernel"] = "nic"
    link_layer: Literal["InfiniBand", "Ethernet"] | None = None
    places: PlaceSection

    @property
    def distances(self) -> tuple[Distance, ...]:
        """The distances that two NICs may have; none where places are unknown."""
        if self.places.rule == "none":
            return ()
        return ("same-switch", "same-group", "other-group")

    def place(self, node: str, address: str | None = None) -> Place | None:
        """Return the place of a NIC; ``None`` where the fabric does not tell it.

        :param node: the scheduler's name of its node.
        :param address: its MAC address; for places by address.
        """
        if self.places.rule == "address":
            return None if address is None else slingshot_place(address)
        return self._by_node.get(node)

    @cached_property
    def _by_node(self) -> Mapping[str, Place]:
        return {
            node: Place(switch.group, switch.name)
            for switch in self.places.switches
            for node in nodelists.unfolded(switch.nodes)
        }


def distance(place: Place | None, other: Place | None) -> Distance | None:
    """Return how far apart two NICs are; ``None`` where the place of one is unknown."""
    if place is None or other is None:
        return None
    if place.group != other.group:
        return "other-group"
    return "same-switch" if place.switch == other.switch else "same-group"


def slingshot_place(address: str) -> Place | None:
    """Return the place that a Slingshot address states: 02:00:00:00:07:ea is group 0, switch 31.

    ``None`` for an address that no fabric manager gave: one that is not locally administered, or
    of several receivers.
    """
    parts = address.split(":")
    try:
        numbers = [int(part, 16) for part in parts]
    except ValueError:
        return None
    if len(numbers) != 6 or numbers[0] & 3 != 2 or any(not 0 <= number < 256 for number in numbers):
        return None
    low = int.from_bytes(bytes(numbers), "big") & ((1 << 20) - 1)
    port = low & ((1 << _PORT_BITS) - 1)
    switch = (low >> _PORT_BITS) & ((1 << _SWITCH_BITS) - 1)
    group = low >> (_PORT_BITS + _SWITCH_BITS)
    return Place(str(group & ((1 << _GROUP_BITS) - 1)), str(switch), str(port))


def slingshot_address(place: Place) -> str:
    """Return the Slingshot address of a place that has a port; see :func:`slingshot_place`."""
    low = int(place.group) << _SWITCH_BITS | int(place.switch)
    low = low << _PORT_BITS | int(place.port or 0)
    return ":".join(f"{byte:02x}" for byte in (2 << 40 | low).to_bytes(6, "big"))


def load_fabric(name: str) -> Fabric:
    """Read a fabric.

    :param name: such as ``lumi``, or the path of a file that ends in ``.yaml`` or ``.yml``.
    :raises NotFoundError: when there is none, listing those that exist.
    :raises InvalidFile: when the file is unusable: one sentence that names file and key.
    """
    path = config_file("fabrics", name, "fabric")
    content, _ = read_mapping(path)
    fabric = validated(Fabric, content, path)
    if path.stem != fabric.name:
        raise InvalidFile(path, "name", f"'{fabric.name}' differs from the file's name")
    source = fabric.places.source
    if source is not None and source not in fabric.sources:
        raise InvalidFile(path, "places.source", f"'{source}' is not among the sources")
    seen: dict[str, str] = {}
    for number, switch in enumerate(fabric.places.switches):
        try:
            nodes = nodelists.unfolded(switch.nodes)
        except UsageError as error:
            raise InvalidFile(path, f"places.switches[{number}].nodes", str(error)[:-1]) from None
        for node in nodes:
            if node in seen:
                reason = f"{node} is at two switches ({seen[node]} and {switch.name})"
                raise InvalidFile(path, f"places.switches[{number}].nodes", reason)
            seen[node] = switch.name
    return fabric
