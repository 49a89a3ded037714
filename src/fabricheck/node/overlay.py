"""Overlays: a small YAML file that changes a node, to simulate a broken or miswired one.

An overlay is part of the identity of the model it changed, so that a result carries it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fabricheck.core.errors import InvalidFile
from fabricheck.core.yaml_files import read_mapping, validated
from fabricheck.node.model import Device, Link, NodeModel
from fabricheck.node.paths import Pair
from fabricheck.node.placement import right

Factor = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LinkChange(_Part):
    """A change of the links of one pair: other count, other width, or all gone."""

    pair: Annotated[list[int], Field(min_length=2, max_length=2)]
    count: Annotated[int, Field(ge=1)] | None = None
    width_factor: Factor | None = None
    gone: Literal[True] | None = None

    @model_validator(mode="after")
    def _changes_one_thing(self) -> LinkChange:
        given = [name for name in ("count", "width_factor", "gone") if getattr(self, name)]
        if len(given) != 1:
            raise ValueError("exactly one of count, width_factor and gone is needed")
        return self


class DeviceChange(_Part):
    """A change of one device: its memory peak times a factor."""

    index: int
    memory_factor: Factor


class DomainChange(_Part):
    """A change of one NUMA domain: its memory peak times a factor."""

    index: int
    memory_factor: Factor


class OverlayFile(_Part):
    """A whole overlay file; what is left out stays as it is."""

    name: str
    description: str
    links: list[LinkChange] = []
    devices: list[DeviceChange] = []
    domains: list[DomainChange] = []
    rotate_numa: int = 0
    rocm: Annotated[str, Field(pattern=r"^\d+\.\d+$")] | None = None
    remap_links: list[int] | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> OverlayFile:
        parts = (self.links, self.devices, self.domains, self.rotate_numa, self.remap_links)
        if not any((*parts, self.rocm)):
            raise ValueError("it changes nothing")
        return self


@dataclass(frozen=True)
class Overlay:
    """An overlay as read: ``content`` is the file's own mapping, ``sha256`` its digest."""

    name: str
    file: str
    sha256: str
    content: Mapping[str, Any]
    parts: OverlayFile

    @property
    def identity(self) -> dict[str, Any]:
        """What a result carries of it."""
        return {
            "name": self.name,
            "file": self.file,
            "sha256": self.sha256,
            "content": dict(self.content),
        }


def read_overlay(path: Path) -> Overlay:
    """Read an overlay file.

    :raises NotFoundError: when there is no such file.
    :raises InvalidFile: when it is no overlay, naming file and key.
    """
    content, digest = read_mapping(path)
    parts = validated(OverlayFile, content, path)
    return Overlay(parts.name, path.name, digest, MappingProxyType(content), parts)


def apply_overlay(node: NodeModel, overlay: Overlay, path: Path | str | None = None) -> NodeModel:
    """Return the changed node; the given one stays as it is.

    The remapping of links comes first, then changes of single links, devices and domains, then
    the rotation of the NUMA map.

    :param path: what to call the overlay's file in an error; its name by default.
    :raises InvalidFile: for a device, a domain or a link that the node lacks.
    """
    parts, file = overlay.parts, str(path or overlay.file)
    links = _changed_links(node, parts, file)
    devices = list(node.devices)
    for change in parts.devices:
        if not 0 <= change.index < len(devices):
            raise InvalidFile(file, "devices", f"{node.name} has no device {change.index}")
        old = devices[change.index]
        peak = old.memory_peak_gbs * change.memory_factor
        devices[change.index] = replace(old, memory_peak_gbs=peak)
    domains = {domain.index: domain for domain in node.domains}
    for slow in parts.domains:
        domain = domains.get(slow.index)
        if domain is None:
            raise InvalidFile(file, "domains", f"{node.name} has no NUMA domain {slow.index}")
        if domain.memory_peak_gbs is None:
            reason = f"the memory peak of NUMA domain {slow.index} of {node.name} is unknown"
            raise InvalidFile(file, "domains", reason)
        peak = domain.memory_peak_gbs * slow.memory_factor
        domains[slow.index] = replace(domain, memory_peak_gbs=peak)
    changed = replace(
        node,
        links=MappingProxyType(links),
        devices=tuple(devices),
        domains=tuple(domains.values()),
        rocm=parts.rocm or node.rocm,
        overlay=overlay,
    )
    return _rotated(changed, parts.rotate_numa) if parts.rotate_numa else changed


def _changed_links(node: NodeModel, parts: OverlayFile, file: str) -> dict[Pair, Link]:
    if node.switch is not None and (parts.links or parts.remap_links):
        key = "links" if parts.links else "remap_links"
        raise InvalidFile(file, key, f"the devices of {node.name} hang on a switch, not on links")
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
        elif change.width_factor is not None:
            links[pair] = replace(links[pair], peak_gbs=links[pair].peak_gbs * change.width_factor)
    return links


def _rotated(node: NodeModel, steps: int) -> NodeModel:
    """Attach the devices of each domain to the one ``steps`` further, in the domains' order."""
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
