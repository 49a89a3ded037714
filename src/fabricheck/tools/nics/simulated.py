"""The NICs of a simulated node: those of its node model."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

from fabricheck.core import strict_json
from fabricheck.core.errors import InvalidFile
from fabricheck.core.models import validated
from fabricheck.core.text import count, read_text
from fabricheck.node import NodeModel, load
from fabricheck.node.fabric import Place, slingshot_address
from fabricheck.node.overlay import Overlay, OverlayFile, apply_overlay
from fabricheck.node.platform import platform
from fabricheck.results.model import Device
from fabricheck.tools.nics.reading import SeenNic
from fabricheck.tools.topology.host import simulated_host

#: What a simulated NIC does not have.
_NOT_SIMULATED = ("mtu", "firmware", "driver", "pci_address", "pcie_gt_per_s", "pcie_width")


def simulated_nics(path: Path) -> tuple[tuple[SeenNic, ...], dict[str, Any]]:
    """Return the NICs of a simulated node, and the fields of a document that it fills.

    :param path: a platform, as ``fabricheck topology export`` writes it.
    :raises NotFoundError: when there is no such file, or no such node model.
    :raises InvalidInputError: when it is not a platform, or not that of the model it names.
    """
    fields, model = _fields(path)
    seen = tuple(
        SeenNic(
            name=nic.name,
            kind="cxi",
            # Each NIC of the one node is at a switch of its own, as on LUMI.
            address=slingshot_address(Place("0", str(nic.index), "0")),
            numa_domain=nic.domain,
            state="up",
            gbit_per_s=8 * nic.peak_gbs,
            absent=dict.fromkeys(_NOT_SIMULATED, "it is not simulated"),
        )
        for nic in model.nics
    )
    return seen, fields


def _fields(path: Path) -> tuple[dict[str, Any], NodeModel]:
    """Return the fields of a document that a platform fills, and its node model."""
    content = _read(path)
    node = _node(content["node"], path)
    if "system" in content:
        nodes = count(len(content["system"]["nodes"]), "node")
        reason = f"this is a system of {nodes}, and one node is needed: export it without --nodes"
        raise InvalidFile(path, None, reason)
    if platform(node) != content:
        reason = f"this is not the platform of the present node model {node.name}: export it again"
        raise InvalidFile(path, None, reason)
    devices: list[Device] = [
        {
            "index": index,
            "name": f"{device['model']} (simulated)",
            "arch": device["architecture"],
            "pci_address": device["pci_address"],
            "unique_id": None,
            "memory_bytes": device["memory_bytes"],
            "compute_units": device["compute_units"],
            "last_level_cache_bytes": device["cache_bytes"],
            "numa_domain": device["domain"],
        }
        for index, device in enumerate(content["devices"])
    ]
    host = simulated_host(node.name, content["domains"])
    return {"node": content["node"], "devices": devices, "host": host}, node


def _read(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        content: dict[str, Any] = strict_json.parse(text, path)
        content["node"]["name"], content["node"]["overlay"]
    except (InvalidFile, KeyError, TypeError):
        raise InvalidFile(path, None, "this is not the platform of a simulated node") from None
    return content


def _node(identity: dict[str, Any], path: Path) -> NodeModel:
    node = load(str(identity["name"]))
    if identity["overlay"] is None:
        return node
    content = identity["overlay"]["content"]
    parts = validated(OverlayFile, content, path)
    overlay = Overlay(parts.name, path.name, "", MappingProxyType(content), parts)
    return apply_overlay(node, overlay, path)
