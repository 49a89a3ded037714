"""A simulated system: nodes of one model, their NICs, and the network that joins them.

All nodes are alike but for an overlay. Node n is in group n / 4. Two nodes after each other share
their switches, and each NIC of a node is on a switch of its own, as on LUMI: so nodes 0 and 1 are
on the same switches, 0 and 2 in the same group, 0 and 4 in other groups. These numbers of nodes are
assumed; on LUMI they are 16 at a switch and 124 in a group.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import permutations
from typing import Any

from fabricheck.core.errors import InvalidFile, UsageError
from fabricheck.core.show import listed
from fabricheck.node import fabric, platform
from fabricheck.node.model import Device, Nic, NodeModel
from fabricheck.node.overlay import NodeChange, OverlayFile
from fabricheck.node.platform import Place, Platform, end_of
from fabricheck.node.schema import SimulationSection

#: The version of the JSON format of a system, raised with every change that the runtime must know.
FORMAT = "fabricheck-system-1"
MOST_NODES = 16
NODES_AT_A_SWITCH = 2
NODES_IN_A_GROUP = 4
#: What messages through the kernel reach, in GB/s a NIC and direction, and what each end of one
#: takes, in us: LUMI's TCP is published as about 2 GB/s (zerefwayne/thesis-benchmarks), that of
#: Alps as 1.8 to 3.1 (eth-cscs/cscs-docs); the time is assumed.
TCP_GBS, TCP_US = 2.5, 5.0


def platform_json(node: NodeModel, nodes: int = 1) -> str:
    """Return as JSON text the platform of a node, or a system of so many such nodes.

    :raises FabricheckError: as :func:`fabricheck.node.platform.platform` or :func:`system`.
    """
    content = platform.platform(node) if nodes == 1 else system(node, nodes)
    return json.dumps(content, indent=1) + "\n"


def system(node: NodeModel, count: int) -> dict[str, Any]:
    """Return the platform of a system, with the overlay of the model applied.

    The keys of a node's platform (:func:`fabricheck.node.platform.platform`): ``links`` are those
    of all nodes (``memory of device3 of node2``), of their NICs (``nic cxi1 of node2 out``, ``PCIe
    of nic cxi1 of node2 out``) and between groups (``groups 0-1``); routes name the links of a node
    without it. And ``system``: ``latency_us`` of a message by the distance of its NICs; the
    ``links`` between two ``groups``; ``nodes``, each with its ``provider``, its ``nics`` (address
    and place), and for each place the ``nic`` of its messages, the links ``out`` to the network and
    ``in``, and the ``us`` that its end of a message takes.

    :raises UsageError: when no system has so many nodes.
    :raises InvalidFile: when the model lacks what a simulated system needs, or the overlay changes
        what the system does not have.
    """
    if not 2 <= count <= MOST_NODES:
        raise UsageError(f"A simulated system has 2 to {MOST_NODES} nodes, not {count}.")
    links = platform.simulated(node)
    parameters = node.simulation
    if not node.nics or parameters is None or parameters.nic_efficiency is None:
        key = "simulation.nic_efficiency" if node.nics else "nics"
        raise InvalidFile(node.file, key, "a simulated system needs this key")
    overlay = node.overlay
    changes = [] if overlay is None else overlay.parts.nodes
    names = [f"node{number}" for number in range(count)]
    for number, change in enumerate(changes):
        if overlay is not None and not any(fnmatchcase(name, change.name) for name in names):
            reason = f"no node of a system of {count} is named '{change.name}'"
            raise InvalidFile(overlay.file, f"nodes[{number}].name", reason)
    nodes = [_Node(node, number, changes) for number in range(count)]
    content = links.content()
    ends = [node.description(links) for node in nodes]
    efficiency = float(parameters.nic_efficiency.value)
    network = [link for node in nodes for link in node.nic_links(efficiency)]
    groups = _groups(node, efficiency, count)
    content |= {
        "format": FORMAT,
        "links": [
            *({"name": f"{link} of {name}", **what}
              for name in names for link, what in links.links.items()),
            *network,
            *(link for _, link in groups),
        ],
        "system": {
            "latency_us": _latencies(parameters),
            "groups": [{"from": a, "to": b, "links": [link["name"]]} for (a, b), link in groups],
            "nodes": ends,
        },
    }  # fmt: skip
    return content if overlay is None else _changed(content, overlay.parts, overlay.file)


def check(node: NodeModel, parts: OverlayFile, file: str) -> None:
    """Check what an overlay changes of systems of a node.

    :param file: the overlay's file in an error.
    :raises InvalidFile: for a NIC or a resource that no such system has.
    """
    names = [nic.name for nic in node.nics]
    for number, change in enumerate(parts.nodes):
        key = f"nodes[{number}]"
        for nic in (*change.gone, *change.nic_of.values()):
            if nic not in names:
                reason = f"there is no NIC {nic}; {node.name} has {listed(names) or 'none'}"
                raise InvalidFile(file, key, reason)
        for device in change.nic_of:
            if device >= len(node.devices):
                raise InvalidFile(file, f"{key}.nic_of", f"{node.name} has no device {device}")
        for device, nic in change.nic_of.items():
            if nic in change.gone:
                reason = f"device {device} cannot use {nic}, which is gone"
                raise InvalidFile(file, f"{key}.nic_of", reason)
        if not set(names) - set(change.gone):
            raise InvalidFile(file, f"{key}.gone", "no NIC of the node is left")
    healthy = system(replace(node, overlay=None), MOST_NODES)
    _changed(healthy, parts, file)


def _changed(content: dict[str, Any], parts: OverlayFile, file: str) -> dict[str, Any]:
    for number, change in enumerate(parts.resources):
        if change.take_turns:
            reason = "resources of a system cannot take turns: use nic_of"
            raise InvalidFile(file, f"resources[{number}].take_turns", reason)
    return platform.changed(content, parts.resources, file)


class _Node:
    """One node of a system, with the changes that an overlay makes of it."""

    def __init__(self, model: NodeModel, number: int, changes: Sequence[NodeChange]) -> None:
        self.name = f"node{number}"
        self.group, at = divmod(number, NODES_IN_A_GROUP)
        pair, self.port = divmod(at, NODES_AT_A_SWITCH)
        self.first_switch = pair * len(model.nics)
        mine = [change for change in changes if fnmatchcase(self.name, change.name)]
        gone = {nic for change in mine for nic in change.gone}
        self.model = replace(model, nics=tuple(n for n in model.nics if n.name not in gone))
        self.nic_of = {device: nic for change in mine for device, nic in change.nic_of.items()}
        self.tcp = any(change.provider == "tcp" for change in mine)
        self.staged = any(change.staged for change in mine)

    def description(self, links: Platform) -> dict[str, Any]:
        """Return what the runtime knows of the node beside its links and routes."""
        nics = {nic.name: nic for nic in self.model.nics}
        places = {}
        for place in links.places:
            is_device = isinstance(place, Device)
            named = self.nic_of.get(place.index, "") if is_device else ""
            nic = nics.get(named) or self._nearest(place)
            end = self._end(links, place, nic, staged=self.staged and is_device)
            places[str(end_of(place))] = end
        return {
            "name": self.name,
            "provider": "tcp" if self.tcp else "cxi",
            "nics": [self._nic(nic) for nic in self.model.nics],
            "places": places,
        }

    def nic_links(self, efficiency: float) -> list[dict[str, Any]]:
        """Return the links of the node's NICs: to the network and to the node, both ways.

        :param efficiency: the part of its peak that a NIC reaches.
        """
        links = []
        for nic in self.model.nics:
            gbs = TCP_GBS if self.tcp else nic.peak_gbs * efficiency
            for way in ("out", "in"):
                name = f"nic {nic.name} of {self.name} {way}"
                links.append({"name": name, "gbs": gbs, "each": False})
                if nic.pcie_gbs is not None:
                    links.append({"name": f"PCIe of {name}", "gbs": nic.pcie_gbs, "each": False})
        return links

    def _nearest(self, place: Place) -> Nic:
        """Return the NIC of messages of a place: of a domain that of its first device."""
        first = place.index if isinstance(place, Device) else next(iter(place.devices), 0)
        nearest = self.model.nearest_nic(first)
        assert nearest is not None
        return nearest

    def _end(self, links: Platform, place: Place, nic: Nic, *, staged: bool) -> dict[str, Any]:
        """Return one end of messages: the links of the node and of the NIC, and its time."""
        parameters = links.parameters
        start = float(parameters.copy_start_us.value) + float(parameters.copy_hop_us.value)
        end: dict[str, Any] = {"nic": nic.name, "us": TCP_US * self.tcp + start * staged}
        for way in ("out", "in"):
            name = f"nic {nic.name} of {self.name} {way}"
            bus = [] if nic.pcie_gbs is None else [f"PCIe of {name}"]
            links_of_nic = links.network_end(place, nic, out=way == "out", staged=staged)
            end[way] = [*links_of_nic, *bus, name]
        return end

    def _nic(self, nic: Nic) -> dict[str, Any]:
        switch = self.first_switch + nic.index
        place = fabric.Place(str(self.group), str(switch), str(self.port))
        return {
            "name": nic.name,
            "interface": f"hsn{nic.index}",
            "address": fabric.slingshot_address(place),
            "group": self.group,
            "switch": switch,
        }


def _groups(
    node: NodeModel, efficiency: float, count: int
) -> list[tuple[tuple[int, int], dict[str, Any]]]:
    """Return the link of each ordered pair of groups: all that the NICs of a group send, so that it
    limits nothing unless an overlay changes it (assumed)."""
    gbs = efficiency * NODES_IN_A_GROUP * sum(nic.peak_gbs for nic in node.nics)
    numbers = range((count - 1) // NODES_IN_A_GROUP + 1)
    return [
        ((a, b), {"name": f"groups {a}-{b}", "gbs": gbs, "each": False})
        for a, b in permutations(numbers, 2)
    ]


def _latencies(parameters: SimulationSection) -> Mapping[str, float]:
    """Return the latency by distance: one, two or three switches."""
    assert parameters.network_us is not None and parameters.network_switch_us is not None
    two, switch = float(parameters.network_us.value), float(parameters.network_switch_us.value)
    return {"same-switch": two - switch, "same-group": two, "other-group": two + switch}
