"""Overlays: small YAML files that change a node, to simulate a broken or miswired one.

An overlay is part of the identity of the model it changed, and results record it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fabricheck.core.models import StrictModel, validated
from fabricheck.core.show import listed
from fabricheck.core.yaml_files import read_mapping
from fabricheck.node.over_time import DeviceChange, When

Factor = Annotated[float, Field(gt=0)]
Size = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


class LinkChange(StrictModel):
    """A change of the links of one pair: another count, or none at all."""

    pair: Annotated[list[Size], Field(min_length=2, max_length=2)]
    count: Count | None = None
    gone: Literal[True] | None = None

    @model_validator(mode="after")
    def _changes_one_thing(self) -> LinkChange:
        if (self.count is None) == (self.gone is None):
            raise ValueError("exactly one of count and gone is needed")
        return self


class ResourceChange(StrictModel):
    """A change of resources of the simulated node, for all transfers over them or for some.

    ``names`` are those of the platform's links; ``*`` matches any text. ``bytes`` are the least and
    the most bytes of an affected transfer; ``first`` is the number of first transfers that are
    affected. ``take_turns``: they share the bandwidth of the first of them. ``hangs``: a transfer
    never ends. ``when``: a bandwidth of all transfers that changes with time.
    """

    names: Annotated[list[str], Field(min_length=1)]
    bandwidth_factor: Factor | None = None
    delay_us: Factor | None = None
    take_turns: Literal[True] | None = None
    hangs: Literal[True] | None = None
    bytes: Annotated[list[Size], Field(min_length=2, max_length=2)] | None = None
    first: Count | None = None
    when: When | None = None

    @property
    def of_systems(self) -> bool:
        """Whether they are resources of a simulated system only, not of a single node."""
        network = ("nic ", "PCIe of nic ", "groups ")
        return any(name.startswith(network) or " of node" in name for name in self.names)

    @model_validator(mode="after")
    def _changes_one_thing(self) -> ResourceChange:
        effects = ("bandwidth_factor", "delay_us", "take_turns", "hangs")
        if sum(getattr(self, name) is not None for name in effects) != 1:
            raise ValueError(f"exactly one of {listed(effects)} is needed")
        if self.bytes is not None and (self.take_turns or self.bytes[0] > self.bytes[1]):
            raise ValueError("bytes must be the least and the most of an affected transfer")
        if self.first is not None and self.delay_us is None:
            raise ValueError("first requires delay_us")
        if self.when is not None and (self.bandwidth_factor is None or self.bytes is not None):
            raise ValueError("when is of a bandwidth_factor of all transfers")
        return self


class NodeChange(StrictModel):
    """A change of nodes of a simulated system; ``name`` is node3, ``*`` matches any text.

    ``gone`` are NICs that the node lacks; ``nic_of`` states the NIC of ranks on a device instead of
    the nearest. With ``provider`` tcp messages go through the kernel; ``staged`` messages of
    devices go through host memory.
    """

    name: str
    gone: list[str] = []
    nic_of: dict[Size, str] = {}
    provider: Literal["tcp"] | None = None
    staged: Literal[True] | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> NodeChange:
        if not any((self.gone, self.nic_of, self.provider, self.staged)):
            raise ValueError("it changes nothing")
        return self


class OverlayFile(StrictModel):
    """A whole overlay file; keys that are left out change nothing."""

    name: str
    description: str
    links: list[LinkChange] = []
    resources: list[ResourceChange] = []
    nodes: list[NodeChange] = []
    devices: list[DeviceChange] = []
    rotate_numa: int = 0
    rocm: Annotated[str, Field(pattern=r"^\d+\.\d+$")] | None = None
    remap_links: list[Size] | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> OverlayFile:
        parts = (
            self.links,
            self.resources,
            self.nodes,
            self.devices,
            self.rotate_numa,
            self.remap_links,
        )
        if not any((*parts, self.rocm)):
            raise ValueError("it changes nothing")
        return self

    @property
    def of_node(self) -> list[ResourceChange]:
        """The changes of resources that a single node has, too."""
        return [change for change in self.resources if not change.of_systems]

    @property
    def of_systems(self) -> str:
        """The key of the first change that needs a system of several nodes; empty without one."""
        if self.nodes:
            return "nodes"
        numbers = [i for i, change in enumerate(self.resources) if change.of_systems]
        return f"resources[{numbers[0]}].names" if numbers else ""


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
        """Return what a result records of it."""
        return {
            "name": self.name,
            "file": self.file,
            "sha256": self.sha256,
            "content": dict(self.content),
        }


def read_overlay(path: Path) -> Overlay:
    """Read an overlay file.

    :raises NotFoundError: when there is no such file.
    :raises InvalidFile: when it is not an overlay, naming file and key.
    """
    content, digest = read_mapping(path)
    parts = validated(OverlayFile, content, path)
    return Overlay(parts.name, path.name, digest, MappingProxyType(content), parts)
