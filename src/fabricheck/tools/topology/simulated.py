"""The report of a simulated node about itself, its overlay included."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

from fabricheck.core import strict_json
from fabricheck.core.errors import InvalidDocument, InvalidFile
from fabricheck.core.text import count, read_text
from fabricheck.core.yaml_files import validated
from fabricheck.node import NodeModel, load
from fabricheck.node.overlay import Overlay, OverlayFile, apply_overlay
from fabricheck.node.platform import platform
from fabricheck.results.model import Device, Host, NumaDomain
from fabricheck.tools.topology.host import scheduler_node
from fabricheck.tools.topology.reported import Reported

NONE = "none (simulated)"


def ask_simulated(path: Path) -> tuple[Reported, dict[str, Any]]:
    """Read the platform of a simulated node: its tools' report, and fields of a document.

    A platform has the widest path of each pair, not its links: those come from the node model and
    the overlay that the platform names, which must produce this platform.

    :param path: what ``fabricheck topology export`` wrote.
    :raises NotFoundError: when there is no such file, or no such node model.
    :raises InvalidFile: when it is not a platform, or not that of the model it names.
    """
    content = _read(path)
    node = _node(content["node"], path)
    if "system" in content:
        nodes = count(len(content["system"]["nodes"]), "node")
        reason = f"this is a system of {nodes}, and one node is needed: export it without --nodes"
        raise InvalidFile(path, None, reason)
    if platform(node) != content:
        reason = f"this is not the platform of the present node model {node.name}: export it again"
        raise InvalidFile(path, None, reason)
    overlay = content["node"]["overlay"]
    changed = f" with the overlay '{overlay['name']}'" if overlay else ""
    report = Reported(
        origin=f"the simulated node{changed}",
        vendor=node.vendor,
        count=len(node.devices),
        links=node.link_matrix,
        # Tools report the speed of this kind of link, not the present speed of the link.
        link_peak_gbs=max((link.peak_gbs for link in node.links.values()), default=None),
        numa=tuple(device.domain for device in node.devices),
    )
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
    return report, {"node": content["node"], "devices": devices, "host": host}


def simulated_host(name: str, domains: list[NumaDomain]) -> Host:
    """Describe the host of a simulated node, as the programs of the sim runtime do."""
    return {
        "hostname": f"{name} (simulated)",
        "scheduler_node": scheduler_node(),
        "kernel": NONE,
        "cpu_model": NONE,
        "cores_allowed": [core for domain in domains for core in domain["cores"]],
        "numa_domains": domains,
        "last_level_cache_bytes": 0,
        "page_size_bytes": 4096,
        "numa_balancing": None,
        "transparent_hugepage": None,
    }


def _read(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        content: dict[str, Any] = strict_json.parse(text, path)
        content["node"]["name"], content["node"]["overlay"]
    except (InvalidDocument, KeyError, TypeError):
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
