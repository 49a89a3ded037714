"""A node that an overlay changed: its links, its NUMA map, and what its platform must have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from fabricheck.core.errors import InvalidFile
from fabricheck.node import platform, system
from fabricheck.node.model import Device, Link, NodeModel
from fabricheck.node.overlay import Overlay, OverlayFile
from fabricheck.node.paths import Pair
from fabricheck.node.placement import right


def apply_overlay(node: NodeModel, overlay: Overlay, path: Path | str | None = None) -> NodeModel:
    """Apply an overlay and return the changed node; the given one is unchanged.

    The links are remapped first, then single links are changed, then the NUMA map is rotated.
    Resources are changed later, when the node's platform is made; here their names are checked.

    :param path: the overlay's file in an error; its name by default.
    :raises InvalidFile: for a link or a resource that the node does not have.
    """
    parts, file = overlay.parts, str(path or overlay.file)
    links = _changed_links(node, parts, file)
    changed = replace(
        node,
        links=MappingProxyType(links),
        rocm=parts.rocm or node.rocm,
        overlay=overlay,
    )
    if parts.rotate_numa:
        changed = _rotated(changed, parts.rotate_numa)
    # An error in a platform made later could not name the file.
    if parts.of_node:
        alone = platform.platform(replace(changed, overlay=None))
        platform.changed(alone, parts.of_node, file)
    if parts.of_systems:
        system.check(changed, parts, file)
    return changed


def _changed_links(node: NodeModel, parts: OverlayFile, file: str) -> dict[Pair, Link]:
    if node.switch is not None and (parts.links or parts.remap_links):
        key = "links" if parts.links else "remap_links"
        raise InvalidFile(
            file, key, f"the devices of {node.name} are connected by a switch, not by links"
        )
    links = dict(node.links)
    if parts.remap_links is not None:
        order = parts.remap_links
        if sorted(order) != list(range(len(node.devices))):
            reason = f"it must name every device of {node.name} once"
            raise InvalidFile(file, "remap_links", reason)
        place = {old: new for new, old in enumerate(order)}
        ends = {pair: (place[pair[0]], place[pair[1]]) for pair in links}
        links = {(min(ends[pair]), max(ends[pair])): link for pair, link in links.items()}
    for number, change in enumerate(parts.links):
        pair = (min(change.pair), max(change.pair))
        if pair not in links:
            named = f"{change.pair[0]}-{change.pair[1]}"
            reason = f"the pair {named} has no link in {node.name}"
            raise InvalidFile(file, f"links[{number}]", reason)
        if change.gone:
            del links[pair]
        elif change.count is not None:
            links[pair] = replace(links[pair], count=change.count)
    return links


def _rotated(node: NodeModel, steps: int) -> NodeModel:
    """Attach the devices of each domain to the domain ``steps`` further on."""
    count = len(node.domains)
    target = {
        domain.index: node.domains[(position + steps) % count]
        for position, domain in enumerate(node.domains)
    }
    attached: dict[int, list[int]] = {domain.index: [] for domain in node.domains}
    devices: list[Device] = []
    for device in node.devices:
        new = target[device.domain]
        attached[new.index].append(device.index)
        usable = tuple(core for core in new.cores if core not in new.reserved)
        devices.append(replace(device, domain=new.index, near_cores=usable))
    domains = tuple(replace(d, devices=tuple(attached[d.index])) for d in node.domains)
    rotated = replace(node, devices=tuple(devices), domains=domains)
    right(rotated, tuple(range(len(devices))))  # every rank must still find a core
    return rotated
