"""The hardware of a node, as documents show it, and what of it changed from session to session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fabricheck.judge.acceptance.model import Change, DevicePart, Hardware, NicPart
from fabricheck.judge.verdict import provenance
from fabricheck.results import state
from fabricheck.results.model import ResultDocument, node_name


def of_documents(documents: list[ResultDocument], node: str) -> Hardware:
    """Return the devices and NICs of a node by the documents of one session.

    Firmware is that of the last snapshot that tells it.
    """
    vbios: dict[str, str] = {}
    firmware: dict[str, dict[str, str]] = {}
    for document in documents:
        address_of = {each["index"]: each["pci_address"] for each in document["devices"]}
        for each in state.device_states(document):
            address = address_of.get(each["index"])
            if address is None:
                continue
            if each["vbios"] is not None:
                vbios[address] = each["vbios"]
            firmware.setdefault(address, {}).update(each["firmware"] or {})
    devices = [
        DevicePart(
            name=device.name,
            pci_address=device.pci_address,
            unique_id=device.unique_id,
            vbios=vbios.get(device.pci_address or ""),
            firmware=firmware.get(device.pci_address or "", {}),
        )
        for device in provenance.devices(documents)
    ]
    return Hardware(
        hostnames=sorted({document["host"]["hostname"] for document in documents}),
        devices=devices,
        nics=list(_nics(documents, node).values()),
    )


def _nics(documents: Iterable[ResultDocument], node: str) -> Mapping[str, NicPart]:
    nics = {}
    for document in documents:
        names = {node, node_name(document["host"])}
        for nic in document.get("nics") or ():
            if nic["node"] in names and nic.get("kind") is not None:
                nics[nic["name"]] = NicPart(
                    name=nic["name"],
                    pci_address=nic.get("pci_address"),
                    address=nic.get("address"),
                    firmware=nic.get("firmware"),
                )
    return nics


def changes(before: Hardware, after: Hardware) -> list[Change]:
    """Return what changed; what one of both does not tell is no change."""
    return [*_of_devices(before, after), *_of_nics(before, after)]


def _of_devices(before: Hardware, after: Hardware) -> Iterator[Change]:
    first, last = _by_place(before), _by_place(after)
    if first and last and first.keys() != last.keys():
        gone, come = sorted(first.keys() - last.keys()), sorted(last.keys() - first.keys())
        yield Change(what="devices", where="PCI", before=" ".join(gone), after=" ".join(come))
    for address in sorted(first.keys() & last.keys()):
        old, new = first[address], last[address]
        if old.unique_id and new.unique_id and old.unique_id != new.unique_id:
            yield Change(what="serial", where=address, before=old.unique_id, after=new.unique_id)
        if old.vbios and new.vbios and old.vbios != new.vbios:
            yield Change(what="vbios", where=address, before=old.vbios, after=new.vbios)
        for name in sorted(old.firmware.keys() & new.firmware.keys()):
            if old.firmware[name] != new.firmware[name]:
                yield Change(
                    what="firmware",
                    where=f"{address} {name}",
                    before=old.firmware[name],
                    after=new.firmware[name],
                )


def _by_place(hardware: Hardware) -> dict[str, DevicePart]:
    """Return the devices by their PCI addresses; those without one by their numbers."""
    return {
        device.pci_address or f"device {number}": device
        for number, device in enumerate(hardware.devices)
    }


def _of_nics(before: Hardware, after: Hardware) -> Iterator[Change]:
    first = {nic.name: nic for nic in before.nics}
    last = {nic.name: nic for nic in after.nics}
    for name in sorted(first.keys() & last.keys()):
        old, new = first[name], last[name]
        if old.address and new.address and old.address != new.address:
            yield Change(what="nic", where=name, before=old.address, after=new.address)
        if old.firmware and new.firmware and old.firmware != new.firmware:
            yield Change(what="nic-firmware", where=name, before=old.firmware, after=new.firmware)


def same_machines(now: Mapping[str, Hardware]) -> dict[str, list[str]]:
    """Return by node the serials and host names that another node has, too, each with that node."""
    holders: dict[str, list[str]] = {}
    for node, hardware in now.items():
        for name in hardware.hostnames:
            holders.setdefault(name, []).append(node)
        for device in hardware.devices:
            if device.unique_id:
                holders.setdefault(device.unique_id, []).append(node)
    twice: dict[str, list[str]] = {}
    for serial, nodes in holders.items():
        for node in dict.fromkeys(nodes):
            for other in dict.fromkeys(nodes):
                if other != node:
                    twice.setdefault(node, []).extend([serial, other])
    return twice
