"""The file format of a node model: one pydantic class per section of the YAML file.

The format is described in ``docs/reference/node-model.md``. These classes check single sections;
:mod:`fabricheck.node.loading` checks several together.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PlainSerializer,
    model_validator,
)

from fabricheck.core.models import StrictModel
from fabricheck.node.cores import format_cores, parse_cores

Kind = Literal["published", "measured", "derived", "assumed", "fitted", "unknown"]

#: A PCI address as Linux writes it: domain, bus, device, function.
PCI_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def _pci(text: str) -> str:
    if PCI_ADDRESS.fullmatch(text) is None:
        raise ValueError(f"'{text}' is not a PCI address such as 0000:c1:00.0")
    return text


CoreList = Annotated[tuple[int, ...], BeforeValidator(parse_cores), PlainSerializer(format_cores)]
PciAddress = Annotated[str, AfterValidator(_pci)]


class Provenance(StrictModel):
    """The source of a fact.

    ``kind`` is *published* (stated in a document), *measured* (on a machine), *derived* (by the
    arithmetic in ``note``), *assumed* (for the reason in ``note``), *fitted* (to the published
    value ``record``, which the model then does not predict) or *unknown*. ``source`` is a key of
    the file's ``sources``, ``where`` the place in it, ``record`` an id in the published data set.
    """

    kind: Kind
    source: str | None = None
    where: str | None = None
    record: str | None = None
    note: str | None = None

    @model_validator(mode="after")
    def _has_a_reason(self) -> Provenance:
        if self.kind in ("published", "measured") and not self.source:
            raise ValueError(f"a {self.kind} fact needs a source")
        if self.kind == "fitted" and not self.record:
            raise ValueError("a fitted fact needs the record that it was fitted to")
        if self.kind in ("derived", "assumed", "unknown") and not self.note:
            raise ValueError(f"kind {self.kind} needs a note that says why")
        return self


class Quantity(Provenance, allow_inf_nan=True):
    """A positive, finite number with its provenance; ``None`` only where it is unknown.

    Bandwidths are in GB/s (1e9 B/s), per direction; sizes in bytes.
    """

    # Its own check names the key without the type that pydantic tried.
    value: float | int | None

    @model_validator(mode="after")
    def _is_possible(self) -> Quantity:
        if (self.value is None) != (self.kind == "unknown"):
            raise ValueError("a value must be null exactly where its kind is unknown")
        if self.value is not None and not 0 < self.value <= sys.float_info.max:
            raise ValueError(f"{self.value} is impossible: it must be positive and finite")
        return self


class KnownQuantity(Quantity):
    """A quantity that every model must state: it may not be unknown."""

    value: float | int


class Source(StrictModel):
    """A document or a machine that facts come from."""

    title: str
    url: str | None = None


class PciSection(Provenance):
    """PCI addresses of the devices, as far as known."""

    addresses: dict[int, PciAddress]


class UniqueIdSection(Provenance):
    """The vendor's unique ids of the devices of one machine; a kind of node has none."""

    ids: dict[int, Annotated[str, Field(min_length=1)]]


class DeviceSection(StrictModel):
    """Properties that all devices of the node share. They are numbered as HIP or CUDA does."""

    count: Annotated[int, Field(ge=1)]
    model: str
    architecture: str
    memory_bytes: KnownQuantity
    memory_peak_gbs: Quantity
    pci: PciSection | None = None
    unique_ids: UniqueIdSection | None = None


class PackageSection(Provenance):
    """The devices of each package (an OAM, a board); every device is in exactly one."""

    devices: list[list[int]]


class DomainEntry(StrictModel):
    """One NUMA domain: its cores, the reserved ones, and the cores nearest each device."""

    index: Annotated[int, Field(ge=0)]
    cores: CoreList
    reserved: CoreList = ()
    devices: dict[int, CoreList] = {}

    @model_validator(mode="after")
    def _cores_belong(self) -> DomainEntry:
        if not self.cores:
            raise ValueError(f"domain {self.index} has no core")
        for what, cores in [("reserved", self.reserved), *self.devices.items()]:
            stray = set(cores) - set(self.cores)
            if stray:
                named = what if what == "reserved" else f"device {what}"
                raise ValueError(
                    f"core {min(stray)} ({named}) is not one of domain {self.index}'s cores"
                )
        return self


class DomainSection(Provenance):
    """The NUMA domains of the host."""

    memory_peak_gbs: Quantity
    list_: Annotated[list[DomainEntry], Field(alias="list", min_length=1)]


class LinkSection(Provenance):
    """Links between pairs of devices: a matrix of counts, and the peak of one link."""

    peak_gbs: Quantity
    matrix: list[list[Annotated[int, Field(ge=0)]]]


class SwitchSection(Provenance):
    """A switch that connects all devices, each with the same number of links."""

    peak_gbs: Quantity
    links_per_device: Annotated[int, Field(ge=1)]


class NicEntry(StrictModel):
    """One NIC: its name in the system, and the device that it hangs on, or a NUMA domain."""

    name: Annotated[str, Field(min_length=1)]
    device: Annotated[int, Field(ge=0)] | None = None
    domain: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _hangs_somewhere(self) -> NicEntry:
        if (self.device is None) == (self.domain is None):
            raise ValueError(f"NIC {self.name} needs exactly one of device and domain")
        return self


class NicSection(Provenance):
    """The NICs of the network between nodes: peak of one, and of its PCIe link, per direction."""

    peak_gbs: KnownQuantity
    pcie_gbs: Quantity | None = None
    mtu_bytes: KnownQuantity | None = None
    list_: Annotated[list[NicEntry], Field(alias="list", min_length=1)]


class PartSection(Provenance):
    """Whether machines exist that show only the first devices of the node and the cores near them.

    It requires a switch: on other nodes it matters which devices remain.
    """


class HostLinkSection(StrictModel):
    """The link between each device and its NUMA domain."""

    type: str
    peak_gbs: Quantity


class EngineSection(StrictModel):
    """The copy engines of a device: the peak of one transfer, and their number."""

    peak_gbs: Quantity
    count: Quantity


class SimulationSection(StrictModel):
    """Parameters of a simulated node besides the peaks; see ``docs/reference/node-model.md``.

    Efficiencies are fractions of a peak, times are in us, bandwidths in GB/s, sizes in bytes.
    ``interconnect_gbs`` is the bandwidth between two NUMA domains, per direction; without it, host
    memory of any domain is reached equally. ``pageable_host_gbs`` is shared by all copies of
    pageable memory; with memory on another NUMA domain than its device a copy uses
    ``pageable_far_cost`` times its bytes of it; without both they share nothing. ``message_us`` is
    what an MPI message costs its receiver; messages of host memory and those of fewer than
    ``message_small_bytes`` cost ``message_small_us``. Between nodes a NIC reaches
    ``nic_efficiency`` of its peak; a message takes ``network_us`` beside its bytes through two
    switches, and ``network_switch_us`` for one more or fewer.
    """

    memory_efficiency: KnownQuantity
    link_efficiency: KnownQuantity
    kernel_window: KnownQuantity
    host_link_efficiency: KnownQuantity
    host_kernel_efficiency: KnownQuantity
    launch_us: KnownQuantity
    copy_start_us: KnownQuantity
    copy_hop_us: KnownQuantity
    copy_split_us: KnownQuantity
    pageable_efficiency: KnownQuantity
    pageable_pin_us: KnownQuantity
    pageable_staged_bytes: KnownQuantity
    pageable_host_gbs: KnownQuantity | None = None
    pageable_far_cost: KnownQuantity | None = None
    migration_gbs: KnownQuantity
    message_us: KnownQuantity
    message_small_us: KnownQuantity
    message_small_bytes: KnownQuantity
    interconnect_gbs: KnownQuantity | None = None
    nic_efficiency: KnownQuantity | None = None
    network_us: KnownQuantity | None = None
    network_switch_us: KnownQuantity | None = None
    compute_units: KnownQuantity
    cache_bytes: KnownQuantity
    host_memory_bytes: KnownQuantity

    @model_validator(mode="after")
    def _is_complete(self) -> SimulationSection:
        if (self.pageable_host_gbs is None) != (self.pageable_far_cost is None):
            raise ValueError("pageable_host_gbs and pageable_far_cost require each other")
        if self.pageable_far_cost is not None and self.pageable_far_cost.value < 1:
            raise ValueError(
                "pageable_far_cost is below 1: far memory would cost less than near memory"
            )
        network = (self.nic_efficiency, self.network_us, self.network_switch_us)
        if None in network and network != (None, None, None):
            raise ValueError("nic_efficiency, network_us and network_switch_us require each other")
        return self


class NodeFile(StrictModel):
    """A whole node model file."""

    format: Literal[1]
    name: str
    title: str
    vendor: Literal["amd", "nvidia"]
    systems: list[str] = []
    sources: dict[str, Source]
    devices: DeviceSection
    packages: PackageSection
    domains: DomainSection
    links: LinkSection | None = None
    switch: SwitchSection | None = None
    host_link: HostLinkSection
    copy_engine: EngineSection
    nics: NicSection | None = None
    parts: PartSection | None = None
    simulation: SimulationSection | None = None

    @model_validator(mode="after")
    def _has_equal_parts(self) -> NodeFile:
        if self.parts is not None and self.switch is None:
            raise ValueError(
                "parts requires a switch: on other nodes it matters which devices remain"
            )
        return self


def provenances(section: BaseModel, place: str = "") -> Iterator[tuple[str, Provenance]]:
    """Yield every fact of a file with its key."""
    for name in type(section).model_fields:
        value = getattr(section, name)
        if not isinstance(value, BaseModel):
            continue
        key = f"{place}.{name}" if place else name
        if isinstance(value, Provenance):
            yield key, value
        yield from provenances(value, key)
