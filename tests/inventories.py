"""Descriptions by `inventory`: recorded ones, those of trees of files, and composed ones.

`outputs/inventory/README.md` says which were recorded. Composed ones have what a node model states.
"""

from __future__ import annotations

import copy
import json
from itertools import permutations
from pathlib import Path
from typing import Any

from fabricheck.node import NodeModel

KEPT = Path(__file__).parent / "outputs" / "inventory"

#: The members that the program adds to the description of a tree.
ENVELOPE: dict[str, Any] = {
    "schema": "fabricheck-inventory",
    "schema_version": 1,
    "at": "2026-11-25T12:00:00.000+00:00",
    "program": {"name": "inventory", "version": "0.3.0", "commit": "unknown", "runtime": "rocm",
                "compiler": "none"},
    "node": None,
    "versions": {"driver": "60342134", "runtime": "60342134"},
    "settings": [],
    "host": {"hostname": "node1", "scheduler_node": None, "kernel": "Linux 5.14", "cpu_model": "A",
             "cores_allowed": [0], "last_level_cache_bytes": 1 << 25, "page_size_bytes": 4096,
             "transparent_hugepage": "madvise"},
}  # fmt: skip


def kept(name: str) -> dict[str, Any]:
    """Return a description of `outputs/inventory`."""
    return copy.deepcopy(ENVELOPE) | json.loads((KEPT / f"{name}.json").read_text())


def composed(node: NodeModel, **members: Any) -> dict[str, Any]:
    """Compose the description of a node as its model has it; addresses are invented if need be."""
    amd = node.vendor == "amd"
    kind = "nvswitch" if node.switch else "xgmi" if amd else "nvlink"
    cores = {domain.index: list(domain.cores) for domain in node.domains}
    addresses = [one.pci_address or f"0000:{0x41 + one.index:02x}:00.0" for one in node.devices]
    content = copy.deepcopy(ENVELOPE) | {
        "devices": [
            {
                "index": one.index,
                "name": node.device_model,
                "architecture": node.architecture,
                "memory_bytes": one.memory_bytes,
                "pci_address": addresses[one.index],
                "numa_domain": one.domain,
                "cores": cores[one.domain],
                "host_link": {"kind": "pcie", "gb_per_s": None},
                "pcie": {"width": 16, "width_max": 16, "width_max_port": 16, "gt_per_s": 32.0,
                         "gt_per_s_max": 32.0},
                "compute_partition": "SPX" if amd else "none",
                "memory_partition": None,
            }
            for one in node.devices
        ],
        "links": [
            {
                "from": a,
                "to": b,
                "kind": kind,
                "links": node.link_matrix[a][b],
                "gb_per_s": None,
                "weight": None,
                "hops": None,
                "peer_access": True,
            }
            for a, b in permutations(range(len(node.devices)), 2)
        ],
        "domains": [
            {"index": index, "cores": near, "memory_bytes": 1 << 20}
            for index, near in cores.items()
        ],
        "numa_balancing": 0,
        "pci_functions": [
            {"address": address, "vendor": "0x1002" if amd else "0x10de", "device": "0x740c",
             "driver": "amdgpu" if amd else "nvidia", "mode": None, "accessible": True,
             "indices": [index], "in_driver": True}
            for index, address in enumerate(addresses)
        ],
        "absent": [],
        "sources": {},
    }  # fmt: skip
    content["program"]["runtime"] = "rocm" if amd else "cuda"
    return content | members


def set_links(content: dict[str, Any], a: int, b: int, links: int | None) -> dict[str, Any]:
    """Give a pair so many links, in both directions."""
    for way in content["links"]:
        if {way["from"], way["to"]} == {a, b}:
            way["links"] = links
    return content


def without_device(content: dict[str, Any], index: int) -> dict[str, Any]:
    """Take a device off the bus: neither the driver nor PCI shows it."""
    address = content["devices"][index]["pci_address"]
    content["pci_functions"] = [
        one for one in content["pci_functions"] or () if one["address"] != address
    ]
    return hide_device(content, index)


def hide_device(content: dict[str, Any], index: int) -> dict[str, Any]:
    """Hide a device from the runtime: the driver has it still."""
    address = content["devices"][index]["pci_address"]
    content["devices"] = [one for one in content["devices"] if one["index"] != index]
    content["links"] = [one for one in content["links"] if index not in (one["from"], one["to"])]
    for one in content["devices"]:
        one["index"] -= one["index"] > index
    for way in content["links"]:
        way["from"] -= way["from"] > index
        way["to"] -= way["to"] > index
    for one in content["pci_functions"] or ():
        one["indices"] = [] if one["address"] == address else one["indices"]
    return content


def programs(folder: Path, content: dict[str, Any] | None, code: int = 0, says: str = "") -> Path:
    """Return a folder of programs whose `inventory` writes a description, and how it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    if content is not None:
        (folder / "node.json").write_text(json.dumps(content))
    copied = f'cat "{folder}/node.json" > "$2"' if content is not None else ":"
    path = folder / "inventory"
    path.write_text(f"#!/bin/sh\nPATH=/bin:/usr/bin\n{copied}\n"
                    f"echo '{says}' >&2\nexit {code}\n")  # fmt: skip
    path.chmod(0o755)
    return folder
