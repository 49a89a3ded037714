"""Finding, reading and checking node models."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fabricheck.core.checkout import config_file, config_folder
from fabricheck.core.errors import InvalidFile
from fabricheck.core.models import validated
from fabricheck.core.text import read_text
from fabricheck.core.yaml_files import read_mapping
from fabricheck.node.model import CopyEngine, Device, Domain, Link, Nic, NodeModel, Switch
from fabricheck.node.paths import Pair
from fabricheck.node.schema import (
    LinkSection,
    NicSection,
    NodeFile,
    Quantity,
    provenances,
)

#: The key of the source, in a drafted node model, of what the drivers of a node told: comparing it
#: with these drivers would prove nothing.
OF_DRIVER = "driver"


def node_directory() -> Path:
    """Return the folder of the node models."""
    return config_folder("nodes")


def available() -> tuple[str, ...]:
    """Return the names of the node models."""
    return tuple(sorted(path.stem for path in node_directory().glob("*.yaml")))


def load(name: str, overlay: Path | str | None = None, devices: int | None = None) -> NodeModel:
    """Read a node model, and apply an overlay if one is given.

    :param name: the model's name, or the path of a YAML file.
    :param overlay: the file of an overlay.
    :param devices: how many of its devices a machine has, the first ones; ``None`` is all of them.
    :raises NotFoundError: when a file does not exist.
    :raises InvalidFile: when a file is unusable: one sentence that names file and key.
    :raises UsageError: as :meth:`NodeModel.part`.
    """
    path = config_file("nodes", name, "node model")
    node = _of_text(path, read_text(path))
    if overlay is not None:
        # Most nodes have none.
        from fabricheck.node.overlaid import apply_overlay
        from fabricheck.node.overlay import read_overlay

        node = apply_overlay(node, read_overlay(Path(overlay)), overlay)
    return node if devices is None else node.part(devices)


@functools.lru_cache
def _of_text(path: Path, text: str) -> NodeModel:
    """Build a node model once from each text of a file: checks ask for theirs thousands of times.

    :param text: that of the file, which tells one state of it from another.
    """
    content, digest = read_mapping(path)
    return from_content(content, digest, path)


def from_content(content: dict[str, Any], digest: str, path: Path) -> NodeModel:
    """Build a node model from the mapping of a file.

    :param digest: SHA-256 of the file.
    :param path: what to call the file in an error.
    :raises InvalidFile: when the mapping describes no possible node.
    """
    file = validated(NodeFile, content, path)
    if not path.stem == file.name:
        raise InvalidFile(path, "name", f"'{file.name}' differs from the file's name")
    facts = dict(provenances(file))
    for key, fact in facts.items():
        if fact.source is not None and fact.source not in file.sources:
            raise InvalidFile(path, f"{key}.source", f"'{fact.source}' is not among the sources")
    count = file.devices.count
    packages = (
        (f"packages.devices[{i}]", i, devices) for i, devices in enumerate(file.packages.devices)
    )
    package = _owners(packages, count, path, "packages.devices", "package")
    domains = _domains(file, path)
    of_domains = (
        (f"domains.list[{i}].devices", domain.index, domain.devices)
        for i, domain in enumerate(file.domains.list_)
    )
    home = _owners(of_domains, count, path, "domains.list", "NUMA domain")
    pci = _pci(file, path)
    unique_ids = _unique_ids(file, path)
    near = {
        device: tuple(core for core in cores if core not in entry.reserved)
        for entry in file.domains.list_
        for device, cores in entry.devices.items()
    }
    links = {} if file.links is None else _links(file.links, count, path)
    if file.links is not None and file.switch is not None:
        raise InvalidFile(path, "switch", "a node has either links or a switch")
    if file.links is None and file.switch is None and count > 1:
        raise InvalidFile(path, "links", "this key is missing, and there is no switch either")
    _check_peaks(file, links, path)
    engine, peak = file.copy_engine, file.devices.memory_peak_gbs.value
    devices = tuple(
        Device(
            index=index,
            package=package[index],
            domain=home[index],
            memory_bytes=int(file.devices.memory_bytes.value),
            memory_peak_gbs=None if peak is None else float(peak),
            host_link_gbs=_peak(file.host_link.peak_gbs),
            near_cores=near[index],
            pci_address=pci.get(index),
            unique_id=unique_ids.get(index),
        )
        for index in range(count)
    )
    return NodeModel(
        name=file.name,
        title=file.title,
        vendor=file.vendor,
        device_model=file.devices.model,
        architecture=file.devices.architecture,
        file=path.name,
        sha256=digest,
        devices=devices,
        domains=domains,
        links=MappingProxyType(links),
        switch=None
        if file.switch is None
        else Switch(file.switch.links_per_device, _peak(file.switch.peak_gbs)),
        host_link_type=file.host_link.type,
        copy_engine=CopyEngine(
            None if engine.peak_gbs.value is None else float(engine.peak_gbs.value),
            None if engine.count.value is None else int(engine.count.value),
        ),
        sources=MappingProxyType(file.sources),
        nics=() if file.nics is None else _nics(file.nics, devices, domains, path),
        facts=MappingProxyType(facts),
        systems=tuple(file.systems),
        simulation=file.simulation,
    )


def _owners(
    groups: Iterable[tuple[str, int, Iterable[int]]], count: int, path: Path, key: str, what: str
) -> dict[int, int]:
    """Return by device the group that it is in.

    :param groups: the key of each, its number, and its devices.
    :raises InvalidFile: unless every device of the node is in exactly one.
    """
    owners: dict[int, int] = {}
    for place, number, devices in groups:
        for device in devices:
            if not 0 <= device < count:
                raise InvalidFile(path, place, _no_device(device, count))
            if device in owners:
                where = f"{owners[device]} and {number}"
                raise InvalidFile(path, place, f"device {device} is in two {what}s ({where})")
            owners[device] = number
    for device in range(count):
        if device not in owners:
            raise InvalidFile(path, key, f"device {device} is in no {what}")
    return owners


def _domains(file: NodeFile, path: Path) -> tuple[Domain, ...]:
    peak = file.domains.memory_peak_gbs.value
    owner: dict[int, int] = {}
    domains: list[Domain] = []
    for number, entry in enumerate(file.domains.list_):
        key = f"domains.list[{number}]"
        if entry.index in {domain.index for domain in domains}:
            raise InvalidFile(path, key, f"NUMA domain {entry.index} occurs twice")
        for core in entry.cores:
            if core in owner:
                where = f"{owner[core]} and {entry.index}"
                raise InvalidFile(path, key, f"core {core} is in two NUMA domains ({where})")
            owner[core] = entry.index
        domains.append(
            Domain(
                index=entry.index,
                cores=entry.cores,
                reserved=entry.reserved,
                devices=tuple(sorted(entry.devices)),
                memory_peak_gbs=None if peak is None else float(peak),
            )
        )
    return tuple(sorted(domains, key=lambda domain: domain.index))


def _pci(file: NodeFile, path: Path) -> dict[int, str]:
    if file.devices.pci is None:
        return {}
    addresses = file.devices.pci.addresses
    _require_distinct(addresses, "PCI address", file, path, "devices.pci.addresses")
    return addresses


def _unique_ids(file: NodeFile, path: Path) -> dict[int, str]:
    if file.devices.unique_ids is None:
        return {}
    ids = file.devices.unique_ids.ids
    _require_distinct(ids, "unique id", file, path, "devices.unique_ids.ids")
    return ids


def _require_distinct(
    by_device: dict[int, str], what: str, file: NodeFile, path: Path, key: str
) -> None:
    """Require that each device exists, and that no two have the same PCI address or unique id."""
    for device in by_device:
        if not 0 <= device < file.devices.count:
            raise InvalidFile(path, key, _no_device(device, file.devices.count))
    if len(set(by_device.values())) != len(by_device):
        raise InvalidFile(path, key, f"two devices have the same {what}")


def _peak(quantity: Quantity) -> float:
    """Return the peak of a link, infinite where it is unknown: it then bounds nothing."""
    return math.inf if quantity.value is None else float(quantity.value)


def _links(section: LinkSection, count: int, path: Path) -> dict[Pair, Link]:
    matrix = section.matrix
    key = "links.matrix"
    if len(matrix) != count:
        raise InvalidFile(path, key, f"it has {len(matrix)} rows for {count} devices")
    for row, cells in enumerate(matrix):
        if len(cells) != count:
            reason = f"it names {len(cells)} devices, but the node has {count}"
            raise InvalidFile(path, f"{key}[{row}]", reason)
        if cells[row]:
            raise InvalidFile(path, f"{key}[{row}]", f"device {row} has a link to itself")
    links: dict[Pair, Link] = {}
    for a in range(count):
        for b in range(a + 1, count):
            there, back = matrix[a][b], matrix[b][a]
            if there != back:
                reason = f"the link {a}-{b} is one-sided: {there} from {a} to {b}, {back} back"
                raise InvalidFile(path, key, reason)
            if there:
                links[(a, b)] = Link(there, _peak(section.peak_gbs))
    return links


def _nics(
    section: NicSection, devices: Sequence[Device], domains: Sequence[Domain], path: Path
) -> tuple[Nic, ...]:
    nics: list[Nic] = []
    pcie, mtu = section.pcie_gbs, section.mtu_bytes
    for number, entry in enumerate(section.list_):
        key = f"nics.list[{number}]"
        if entry.name in {nic.name for nic in nics}:
            raise InvalidFile(path, key, f"NIC {entry.name} occurs twice")
        if entry.device is not None and entry.device >= len(devices):
            raise InvalidFile(path, f"{key}.device", _no_device(entry.device, len(devices)))
        if entry.domain is not None and entry.domain not in {domain.index for domain in domains}:
            raise InvalidFile(path, f"{key}.domain", f"there is no NUMA domain {entry.domain}")
        home = devices[entry.device].domain if entry.device is not None else entry.domain
        assert home is not None
        nics.append(
            Nic(
                index=number,
                name=entry.name,
                device=entry.device,
                domain=home,
                peak_gbs=float(section.peak_gbs.value),
                pcie_gbs=None if pcie is None or pcie.value is None else float(pcie.value),
                mtu_bytes=None if mtu is None else int(mtu.value),
            )
        )
    return tuple(nics)


def _check_peaks(file: NodeFile, links: Mapping[Pair, Link], path: Path) -> None:
    """Refuse peaks at which data would leave a memory faster than the memory delivers it."""
    stated = file.devices.memory_peak_gbs.value
    memory = math.inf if stated is None else float(stated)
    for (a, b), link in links.items():
        if memory < link.total_gbs < math.inf:
            reason = (
                f"the link {a}-{b} has {link.total_gbs:g} GB/s, but its devices' memory has "
                f"{memory:g}"
            )
            raise InvalidFile(path, "links.peak_gbs", reason)
    if file.switch is not None:
        total = file.switch.links_per_device * _peak(file.switch.peak_gbs)
        if memory < total < math.inf:
            reason = f"a device has {total:g} GB/s to the switch, but its memory has {memory:g}"
            raise InvalidFile(path, "switch.peak_gbs", reason)
    host = file.domains.memory_peak_gbs.value
    link_peak = _peak(file.host_link.peak_gbs)
    if host is not None and host < link_peak < math.inf:
        reason = f"a host link has {link_peak:g} GB/s, but the memory of a NUMA domain has {host:g}"
        raise InvalidFile(path, "host_link.peak_gbs", reason)


def _no_device(device: int, count: int) -> str:
    return f"there is no device {device}; the node has devices 0 to {count - 1}"
