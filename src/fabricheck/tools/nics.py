"""The NICs of this machine, from the files of its kernel: no tool, no privilege.

They are in the form of a result document: what cannot be read is ``None``, and in ``absent`` with
the reason; nothing is guessed.

Sources: docs/ABI/testing/sysfs-class-cxi and cass_sysfs.c of HewlettPackard/shs-cxi-driver; Linux's
Documentation/ABI, sysfs-class-infiniband, sysfs-class-net and sysfs-bus-pci.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from fabricheck.core.errors import NotFoundError
from fabricheck.core.vocabulary import CXI_ERRORS, CXI_RETRIES, IB_ERRORS, NET_ERRORS
from fabricheck.node.fabric import Fabric
from fabricheck.results.model import NodeNic

#: What the class of a network begins with, of Ethernet or InfiniBand.
_NETWORK = "0x02"

_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_TELEMETRY = re.compile(r"([0-9]{1,20})(?:@[0-9.]+)?")
_TRANSFERS = re.compile(r"([0-9]{1,3}(?:\.[0-9])?) GT/s.*")
_RATE = re.compile(r"([0-9]{1,4}(?:\.[0-9]+)?) Gb/sec.*")
_PORT_STATE = re.compile(r"([0-9]): [A-Z_]+")

#: States of an interface that is not down; drivers that do not watch their link say unknown.
_NOT_DOWN = (None, "up", "unknown")

#: The state of a port of InfiniBand that carries messages (4: ACTIVE).
_ACTIVE = "4"

#: The link layer of a port of the class infiniband.
_LINK_LAYER = re.compile(r"InfiniBand|Ethernet")

#: The drivers of devices whose place beside a NIC matters.
_DEVICE_DRIVERS = ("amdgpu", "nvidia")

#: The type of an interface of Ethernet (ARPHRD_ETHER).
_ETHERNET = "1"

#: The counter that is the time of a link's last restart.
LAST_RESTART = "device/link_restarts"


def read_nics(
    node: str, fabric: Fabric | None = None, root: Path = Path("/")
) -> tuple[NodeNic, ...]:
    """Return the NICs of this machine: those of CXI and InfiniBand, else physical Ethernet.

    Virtual functions are left out: they are parts of a NIC.

    :param node: the scheduler's name of this machine, else its host name.
    :param fabric: what tells the places of its NICs; ``None`` where the site names none.
    :param root: the folder with ``sys``.
    :raises NotFoundError: when it has no list of network interfaces, so that nothing can be told.
    """
    classes = root / "sys/class"
    if not (classes / "net").is_dir():
        raise NotFoundError(f"{classes / 'net'} is not there, so no NIC is known.")
    folders = [*_listed(classes / "cxi"), *_listed(classes / "infiniband")]
    folders = folders or list(_physical(classes / "net"))
    return tuple(_nic(node, folder, fabric, root) for folder in folders)


def hidden_nics(node: str, nics: Sequence[NodeNic], root: Path = Path("/")) -> list[NodeNic]:
    """Return what has the class and the driver of a NIC, and is none to this process.

    A network namespace, as a container has by default, hides their interfaces. Their names are
    their PCI addresses; of the rest only their places are known.

    :param nics: those that are shown.
    """
    shown = {nic["pci_address"] for nic in nics}
    hidden = []
    for device in _listed(root / "sys/bus/pci/devices"):
        if device.name in shown or not (device / "driver").exists():
            continue
        reading = _Reading()
        kind = reading.text(device / "class", "class") or ""
        interfaces = [*device.glob("net/*"), *device.glob("*/net/*")]
        if kind.startswith(_NETWORK) and not interfaces:
            hidden.append({
                "node": node,
                "name": device.name,
                "pci_address": device.name,
                "numa_domain": reading.number(device / "numa_node", "numa_domain"),
                "near_devices": _near_devices(device, root),
            })  # fmt: skip
    return cast(list[NodeNic], hidden)


def counters(nic: NodeNic, root: Path = Path("/")) -> dict[str, int]:
    """Return the error counters of a NIC that can be read now, by their words."""
    folder, values = _folder(nic, root), {}
    names: Sequence[str] = (*CXI_ERRORS, *CXI_RETRIES)
    if nic["kind"] == "infiniband":
        folder, names = folder / "ports/1", IB_ERRORS
    elif nic["kind"] == "net":
        names = NET_ERRORS
    for name in names:
        path = folder / name
        if name.startswith("rh:"):
            path = root / "run/cxi" / nic["name"] / name.removeprefix("rh:")
        match = _TELEMETRY.fullmatch(_Reading().text(path, name) or "")
        if match is not None:
            values[name] = int(match[1])
    times = restarts(nic, root)
    return values if times is None else values | {LAST_RESTART: max(times, default=0)}


def restarts(nic: NodeNic, root: Path = Path("/")) -> Sequence[int] | None:
    """Return when the link of a NIC restarted, in s since 1970, at most the last ten.

    ``None`` where the kernel does not tell that: only the driver of Slingshot does.
    """
    folder = _folder(nic, root) / "device/link_restarts"
    times = [_Reading().number(path, "time") for path in _listed(folder)]
    known = [time for time in times if time is not None]
    return sorted(filter(None, known)) if known else None


def device_file(nic: NodeNic, root: Path = Path("/")) -> Path | None:
    """Return what a process opens to send by a NIC, below the root; ``None`` without one."""
    if nic["kind"] == "cxi":
        return Path("dev", nic["name"])
    verbs = _listed(_folder(nic, root) / "device/infiniband_verbs")
    return Path("dev/infiniband", verbs[0].name) if verbs else None


def most_of_slot(nic: NodeNic, root: Path = Path("/")) -> tuple[float | None, int | None]:
    """Return the most GT/s and lanes of a NIC's slot, which a virtual machine does not show."""
    slot, unread = Path(os.path.realpath(_folder(nic, root) / "device")).parent, _Reading()
    speed = unread.decimal(slot / "max_link_speed", "slot", _TRANSFERS)
    return speed, unread.number(slot / "max_link_width", "slot", least=1)


def _folder(nic: NodeNic, root: Path) -> Path:
    return root / "sys/class" / nic["kind"] / nic["name"]


class _Reading:
    """Reads files of one NIC, and keeps why some of its items are unknown."""

    def __init__(self) -> None:
        self.absent: dict[str, str] = {}

    def text(self, path: Path, item: str) -> str | None:
        """Return the first line of a file; ``None`` where it has none."""
        try:
            with path.open("rb") as file:
                line = file.read(4096).decode("utf-8", "replace").partition("\n")[0].strip()
        except OSError as error:
            self.absent[item] = f"{path}: {error.strerror}"
            return None
        if not line:
            self.absent[item] = f"{path} is empty"
            return None
        self.absent.pop(item, None)
        return line

    def match(self, path: Path, item: str, form: re.Pattern[str]) -> re.Match[str] | None:
        """Return a file's first line where it has a form; ``None`` where it has none."""
        line = self.text(path, item)
        match = None if line is None else form.fullmatch(line)
        if line is not None and match is None:
            self.absent[item] = f"{path} has {line[:40]!a}"
        return match

    def number(self, path: Path, item: str, least: int = 0) -> int | None:
        """Return a whole number of at least ``least``."""
        match = self.match(path, item, _NUMBER)
        value = None if match is None else int(match[0])
        if value is not None and value < least:
            self.absent[item] = f"{path} has {value}"
            return None
        return value

    def decimal(self, path: Path, item: str, form: re.Pattern[str]) -> float | None:
        """Return the number at the start of a file's first line; a driver writes 0 for unknown."""
        match = self.match(path, item, form)
        if match is not None and float(match[1]) <= 0:
            self.absent[item] = f"{path} has {match[0]!a}"
            return None
        return None if match is None else float(match[1])


def _nic(node: str, folder: Path, fabric: Fabric | None, root: Path) -> NodeNic:
    reading, device, kind = _Reading(), folder / "device", folder.parent.name
    interface = folder.name if kind == "net" else _interface(device, root)
    net = root / "sys/class/net" / (interface or "none")
    read = {"cxi": _cxi, "infiniband": _infiniband, "net": _ethernet}[kind]
    members = read(folder, net if interface else None, reading)
    place = None if fabric is None else fabric.place(node, members["address"])
    return cast(NodeNic, {
        "node": node,
        "name": folder.name,
        "kind": kind,
        "interface": interface,
        "pci_address": _pci_address(device, reading),
        "numa_domain": reading.number(device / "numa_node", "numa_domain"),
        "near_devices": _near_devices(device, root),
        **members,
        "pcie": _pcie(device, reading),
        "driver": _driver(device, reading, root),
        "place": None if place is None else asdict(place),
        "errors": {},
        "absent": [{"item": item, "why": why} for item, why in reading.absent.items()],
    })  # fmt: skip


def _cxi(folder: Path, net: Path | None, reading: _Reading) -> dict[str, Any]:
    properties = folder / "device/properties"
    link = reading.number(properties / "link", "state")
    # In Mb/s; 0 and -1 where the driver does not know, and the interface may.
    speed = _Reading().number(properties / "speed", "speed", least=1)
    if speed is None:
        speed = reading.number((net or properties) / "speed", "speed", least=1)
    state = None if link is None else "up" if link else "down"
    # The interface may be down although the link is up.
    if state == "up" and net and _Reading().text(net / "operstate", "state") not in _NOT_DOWN:
        state = "down"
    if net is None:
        reading.absent["address"] = "no network interface is on the NIC"
    return {
        "address": None if net is None else reading.text(net / "address", "address"),
        "state": state,
        "gbit_per_s": None if speed is None else speed / 1000,
        "mtu_bytes": reading.number(properties / "hpc_mtu", "mtu", least=1),
        "firmware": reading.text(folder / "device/uc/version", "firmware"),
    }


def _infiniband(folder: Path, net: Path | None, reading: _Reading) -> dict[str, Any]:
    port, address = folder / "ports/1", folder / "node_guid"
    state = reading.match(port / "state", "state", _PORT_STATE)
    # Kernels before 2.6.38 have no such file.
    layer = _Reading().match(port / "link_layer", "link_layer", _LINK_LAYER)
    if net and layer is not None and layer[0] == "Ethernet":
        address = net / "address"
    return {
        "link_layer": None if layer is None else layer[0],
        "address": reading.text(address, "address"),
        "state": None if state is None else "up" if state[1] == _ACTIVE else "down",
        "gbit_per_s": reading.decimal(port / "rate", "speed", _RATE),
        "mtu_bytes": reading.number(net / "mtu", "mtu", least=1) if net else None,
        "firmware": reading.text(folder / "fw_ver", "firmware"),
    }


def _ethernet(folder: Path, net: Path | None, reading: _Reading) -> dict[str, Any]:
    state = reading.text(folder / "operstate", "state")
    speed = reading.number(folder / "speed", "speed", least=1)
    return {
        "address": reading.text(folder / "address", "address"),
        "state": "up" if state == "up" else "down" if state not in _NOT_DOWN else None,
        "gbit_per_s": None if speed is None else speed / 1000,
        "mtu_bytes": reading.number(folder / "mtu", "mtu", least=1),
        "firmware": None,
    }


def _pci_address(device: Path, reading: _Reading) -> str | None:
    name = Path(os.path.realpath(device)).name
    if _PCI_ADDRESS.fullmatch(name):
        return name
    reading.absent["pci_address"] = f"{device} is no PCI device"
    return None


def _near_devices(nic: Path, root: Path) -> list[str]:
    """Return the devices with which a NIC shares the most bridges; none where it shares none."""
    shared: dict[str, int] = {}
    above_nic = Path(os.path.realpath(nic)).parts[:-1]
    bridges = [part for part in above_nic if _PCI_ADDRESS.fullmatch(part)]
    for driver in _DEVICE_DRIVERS:
        for entry in _listed(root / "sys/bus/pci/drivers" / driver):
            if _PCI_ADDRESS.fullmatch(entry.name):
                above = Path(os.path.realpath(entry)).parts[:-1]
                shared[entry.name] = sum(bridge in above for bridge in bridges)
    most = max(shared.values(), default=0)
    return [name for name, number in sorted(shared.items()) if number == most and most]


def _pcie(device: Path, reading: _Reading) -> dict[str, Any]:
    # The driver of Slingshot has the speed beyond the standard's (extended speed mode).
    beyond = device / "properties/current_esm_link_speed"
    speed = _Reading().decimal(beyond, "esm", _TRANSFERS)
    if speed is None:
        speed = reading.decimal(device / "current_link_speed", "pcie_gt_per_s", _TRANSFERS)
    most = reading.decimal(device / "max_link_speed", "pcie_gt_per_s_max", _TRANSFERS)
    return {
        "gt_per_s": speed,
        "width": reading.number(device / "current_link_width", "pcie_width", least=1),
        "gt_per_s_max": most,
        "width_max": reading.number(device / "max_link_width", "pcie_width_max", least=1),
    }


def _interface(device: Path, root: Path) -> str | None:
    """Return the network interface on a device; the first of several."""
    names = [path.name for path in _listed(device / "net")]
    if names:
        return names[0]
    place = os.path.realpath(device)
    for path in _physical(root / "sys/class/net"):
        if os.path.realpath(path / "device") == place:
            return path.name
    return None


def _driver(device: Path, reading: _Reading, root: Path) -> str | None:
    """Return the driver of a device, and its version where a file has it."""
    if not (device / "driver").exists():
        reading.absent["driver"] = f"{device / 'driver'} is not there"
        return None
    name = Path(os.path.realpath(device / "driver")).name
    files = (device / "properties/driver_rev", root / "sys/module" / name / "version")
    versions = (_Reading().text(file, "driver") for file in files)
    return " ".join([name, *list(filter(None, versions))[:1]])


def _listed(folder: Path) -> list[Path]:
    """Return the entries of a folder by number and name; none where it is not there."""
    try:
        entries = list(folder.iterdir())
    except OSError:
        return []
    functions = [entry for entry in entries if not (entry / "device/physfn").exists()]
    return sorted(functions, key=lambda entry: [int(part) if part.isdecimal() else part
                                           for part in re.split(r"(\d+)", entry.name)])  # fmt: skip


def _physical(net: Path) -> Iterator[Path]:
    """Yield the interfaces of Ethernet that have a device."""
    for path in _listed(net):
        if (path / "device").exists() and _Reading().text(path / "type", "type") == _ETHERNET:
            yield path
