"""A part of a node: a machine that shows only the first devices of a larger host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fabricheck.core.errors import UsageError

if TYPE_CHECKING:
    from fabricheck.node.model import Domain, NodeModel

#: The key of a node file that states that such machines exist.
KEY = "parts"


def part(node: NodeModel, count: int) -> NodeModel:
    """Return the node with its first devices and the cores near them.

    Cores that are near to other devices only are left out, and a NUMA domain without a core that
    remains is left out too. All devices are the node itself.

    :raises UsageError: for no device, for more devices than the node has, and for a node whose file
        does not state that machines show a part of it (key ``parts``).
    """
    whole = len(node.devices)
    if count == whole:
        return node
    if not 1 <= count < whole:
        raise UsageError(f"{node.name} has {whole} devices, and {count} were requested.")
    if KEY not in node.facts:
        raise UsageError(
            f"{node.name} has {whole} devices, and {count} were requested: {node.file} does not "
            f"state what a machine with some of them shows (key {KEY})."
        )
    devices = node.devices[:count]
    near = {core for device in devices for core in device.near_cores}
    others = {core for device in node.devices[count:] for core in device.near_cores} - near
    domains = (_cut(domain, count, others) for domain in node.domains)
    name = Path(node.file).stem
    return replace(
        node,
        name=f"{name} ({count} of {node.part_of or whole} devices)",
        devices=devices,
        domains=tuple(domain for domain in domains if domain.cores),
        nics=tuple(nic for nic in node.nics if nic.device is not None and nic.device < count),
        part_of=node.part_of or whole,
    )


def _cut(domain: Domain, count: int, others: set[int]) -> Domain:
    return replace(
        domain,
        cores=tuple(core for core in domain.cores if core not in others),
        reserved=tuple(core for core in domain.reserved if core not in others),
        devices=tuple(device for device in domain.devices if device < count),
    )
