"""The NICs of this machine, from the files of its kernel: no tool, no privilege.

What cannot be read is ``None`` and named in `SeenNic.absent` with the reason; nothing is guessed.

Sources: docs/ABI/testing/sysfs-class-cxi and cass_sysfs.c of HewlettPackard/shs-cxi-driver; Linux's
Documentation/ABI, sysfs-class-infiniband, sysfs-class-net and sysfs-bus-pci.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from fabricheck.core.errors import NotFoundError
from fabricheck.core.vocabulary import CXI_ERRORS, CXI_RETRIES, IB_ERRORS, NET_ERRORS

Kind = Literal["cxi", "infiniband", "net"]
State = Literal["up", "down"]

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

#: The drivers of devices whose place beside a NIC matters.
_DEVICE_DRIVERS = ("amdgpu", "nvidia")

#: The type of an interface of Ethernet (ARPHRD_ETHER).
_ETHERNET = "1"

#: The counter that is the time of a link's last restart.
LAST_RESTART = "device/link_restarts"


@dataclass(frozen=True)
class PcieLink:
    """A PCIe link as it is, and the most that the NIC and its slot allow.

    The most of the slot is unknown in a virtual machine.
    """

    gt_per_s: float | None = None
    width: int | None = None
    gt_per_s_max: float | None = None
    width_max: int | None = None
    slot_gt_per_s_max: float | None = None
    slot_width_max: int | None = None


@dataclass(frozen=True)
class SeenNic:
    """A NIC as the kernel shows it.

    interface: the kernel's network interface on it. near_devices: PCI addresses of the devices with
    which it shares the most PCIe bridges; empty where none is shared. device_file: what a process
    opens to send, below the root. restarts: when the link restarted, in s since 1970, at most the
    last ten. absent: what could not be read, by item, with the reason.
    """

    name: str
    kind: Kind
    interface: str | None = None
    address: str | None = None
    pci_address: str | None = None
    numa_domain: int | None = None
    state: State | None = None
    gbit_per_s: float | None = None
    mtu_bytes: int | None = None
    pcie: PcieLink = PcieLink()
    firmware: str | None = None
    driver: str | None = None
    near_devices: tuple[str, ...] = ()
    device_file: Path | None = None
    restarts: tuple[int, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)


def read_nics(root: Path = Path("/")) -> tuple[SeenNic, ...]:
    """Return the NICs of this machine: those of CXI and InfiniBand, else physical Ethernet.

    Virtual functions are left out: they are parts of a NIC.

    :param root: the folder with ``sys``.
    :raises NotFoundError: when it has no list of network interfaces, so that nothing can be told.
    """
    classes = root / "sys/class"
    if not (classes / "net").is_dir():
        raise NotFoundError(f"{classes / 'net'} is not there, so no NIC can be told.")
    found = [_cxi(folder, root) for folder in _listed(classes / "cxi")]
    found += [_infiniband(folder, root) for folder in _listed(classes / "infiniband")]
    found = found or [_ethernet(folder, root) for folder in _physical(classes / "net")]
    return tuple(found)


def counters(nic: SeenNic, root: Path = Path("/")) -> dict[str, int]:
    """Return the error counters of a NIC that can be read now, by their words."""
    folder, names = _counted(nic, root)
    found: dict[str, int] = {}
    for name in names:
        path = folder / name
        if name.startswith("rh:"):
            path = root / "run/cxi" / nic.name / name.removeprefix("rh:")
        match = _TELEMETRY.fullmatch(_Reading().text(path, name) or "")
        if match is not None:
            found[name] = int(match[1])
    if nic.kind == "cxi":
        restarts = _restarts(folder / "device")
        if restarts is not None:
            found[LAST_RESTART] = max(restarts, default=0)
    return found


def _counted(nic: SeenNic, root: Path) -> tuple[Path, Sequence[str]]:
    if nic.kind == "cxi":
        return root / "sys/class/cxi" / nic.name, (*CXI_ERRORS, *CXI_RETRIES)
    if nic.kind == "infiniband":
        return root / "sys/class/infiniband" / nic.name / "ports/1", IB_ERRORS
    return root / "sys/class/net" / nic.name, NET_ERRORS


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
        found = None if line is None else form.fullmatch(line)
        if line is not None and found is None:
            self.absent[item] = f"{path} has {line[:40]!a}"
        return found

    def number(self, path: Path, item: str, least: int = 0) -> int | None:
        """Return a whole number of at least ``least``."""
        found = self.match(path, item, _NUMBER)
        value = None if found is None else int(found[0])
        if value is not None and value < least:
            self.absent[item] = f"{path} has {value}"
            return None
        return value

    def decimal(self, path: Path, item: str, form: re.Pattern[str]) -> float | None:
        """Return the number at the start of a file's first line; a driver writes 0 for unknown."""
        found = self.match(path, item, form)
        if found is not None and float(found[1]) <= 0:
            self.absent[item] = f"{path} has {found[0]!a}"
            return None
        return None if found is None else float(found[1])


def _cxi(folder: Path, root: Path) -> SeenNic:
    reading = _Reading()
    device = folder / "device"
    properties = device / "properties"
    interface = _interface(device, root)
    net = root / "sys/class/net" / (interface or "none")
    link = reading.number(properties / "link", "state")
    # In Mb/s; 0 and -1 where the driver does not know, and the interface may.
    speed = _Reading().number(properties / "speed", "speed", least=1)
    if speed is None:
        speed = reading.number(net / "speed" if interface else properties / "speed", "speed", 1)
    return SeenNic(
        name=folder.name,
        kind="cxi",
        interface=interface,
        address=_address(net, reading, interface),
        state=_with_interface(None if link is None else "up" if link else "down", net, interface),
        gbit_per_s=None if speed is None else speed / 1000,
        mtu_bytes=reading.number(properties / "hpc_mtu", "mtu", least=1),
        firmware=reading.text(device / "uc/version", "firmware"),
        driver=_driver(device, reading, properties / "driver_rev"),
        pcie=_pcie(device, reading, properties / "current_esm_link_speed"),
        device_file=Path("dev", folder.name),
        restarts=_restarts(device) or (),
        pci_address=_pci_address(device, reading),
        numa_domain=reading.number(device / "numa_node", "numa_domain"),
        near_devices=_near_devices(device, root),
        absent=reading.absent,
    )


def _infiniband(folder: Path, root: Path) -> SeenNic:
    reading = _Reading()
    device, port = folder / "device", folder / "ports/1"
    interface = _interface(device, root)
    net = root / "sys/class/net" / (interface or "none")
    state = reading.match(port / "state", "state", _PORT_STATE)
    guid = folder / "node_guid"
    ethernet = _Reading().text(port / "link_layer", "link_layer") == "Ethernet"
    on_ethernet = ethernet and interface is not None
    verbs = [path.name for path in _listed(device / "infiniband_verbs")]
    return SeenNic(
        name=folder.name,
        kind="infiniband",
        interface=interface,
        address=reading.text(net / "address" if on_ethernet else guid, "address"),
        state=None if state is None else "up" if state[1] == _ACTIVE else "down",
        gbit_per_s=reading.decimal(port / "rate", "speed", _RATE),
        mtu_bytes=reading.number(net / "mtu", "mtu", 1) if interface else None,
        firmware=reading.text(folder / "fw_ver", "firmware"),
        driver=_driver(device, reading, _module(device, root) / "version"),
        pcie=_pcie(device, reading),
        device_file=Path("dev/infiniband", verbs[0]) if verbs else None,
        pci_address=_pci_address(device, reading),
        numa_domain=reading.number(device / "numa_node", "numa_domain"),
        near_devices=_near_devices(device, root),
        absent=reading.absent,
    )


def _ethernet(folder: Path, root: Path) -> SeenNic:
    reading = _Reading()
    device = folder / "device"
    state = reading.text(folder / "operstate", "state")
    speed = reading.number(folder / "speed", "speed", least=1)
    return SeenNic(
        name=folder.name,
        kind="net",
        interface=folder.name,
        address=reading.text(folder / "address", "address"),
        state="up" if state == "up" else "down" if state not in _NOT_DOWN else None,
        gbit_per_s=None if speed is None else speed / 1000,
        mtu_bytes=reading.number(folder / "mtu", "mtu", least=1),
        driver=_driver(device, reading, _module(device, root) / "version"),
        pcie=_pcie(device, reading),
        pci_address=_pci_address(device, reading),
        numa_domain=reading.number(device / "numa_node", "numa_domain"),
        near_devices=_near_devices(device, root),
        absent=reading.absent,
    )


def _pci_address(device: Path, reading: _Reading) -> str | None:
    name = Path(os.path.realpath(device)).name
    if _PCI_ADDRESS.fullmatch(name):
        return name
    reading.absent["pci_address"] = f"{device} is no PCI device"
    return None


def _near_devices(nic: Path, root: Path) -> tuple[str, ...]:
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
    return tuple(name for name, number in sorted(shared.items()) if number == most and most)


def _pcie(device: Path, reading: _Reading, esm: Path | None = None) -> PcieLink:
    """Return the PCIe link of a device.

    :param esm: the file with the speed beyond the standard's (extended speed mode), which the
        kernel does not know.
    """
    speed = None if esm is None else _Reading().decimal(esm, "esm", _TRANSFERS)
    if speed is None:
        speed = reading.decimal(device / "current_link_speed", "pcie_gt_per_s", _TRANSFERS)
    slot, unread = Path(os.path.realpath(device)).parent, _Reading()
    return PcieLink(
        gt_per_s=speed,
        width=reading.number(device / "current_link_width", "pcie_width", least=1),
        gt_per_s_max=reading.decimal(device / "max_link_speed", "pcie_gt_per_s_max", _TRANSFERS),
        width_max=reading.number(device / "max_link_width", "pcie_width_max", least=1),
        slot_gt_per_s_max=unread.decimal(slot / "max_link_speed", "slot", _TRANSFERS),
        slot_width_max=unread.number(slot / "max_link_width", "slot", least=1),
    )


def _restarts(device: Path) -> tuple[int, ...] | None:
    """Return when the link of CXI restarted; ``None`` where the kernel does not tell that."""
    times = [_Reading().number(path, "time") for path in _listed(device / "link_restarts")]
    known = [time for time in times if time is not None]
    return tuple(sorted(filter(None, known))) if known else None


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


def _address(net: Path, reading: _Reading, interface: str | None) -> str | None:
    if interface is not None:
        return reading.text(net / "address", "address")
    reading.absent["address"] = "no network interface is on the NIC"
    return None


def _with_interface(state: State | None, net: Path, interface: str | None) -> State | None:
    """Return the state of a NIC whose interface may be down although its link is up."""
    shown = _Reading().text(net / "operstate", "state") if interface else None
    return "down" if state == "up" and shown not in _NOT_DOWN else state


def _driver(device: Path, reading: _Reading, revision: Path) -> str | None:
    """Return the driver of a device, and its version where a file has it."""
    if not (device / "driver").exists():
        reading.absent["driver"] = f"{device / 'driver'} is not there"
        return None
    name, version = _module(device).name, _Reading().text(revision, "driver")
    return f"{name} {version}" if version else name


def _module(device: Path, root: Path = Path("/")) -> Path:
    """Return the folder of the module of a device's driver."""
    return root / "sys/module" / Path(os.path.realpath(device / "driver")).name


def _listed(folder: Path) -> list[Path]:
    """Return the entries of a folder by number and name; none where it is not there."""
    try:
        entries = list(folder.iterdir())
    except OSError:
        return []
    kept = [entry for entry in entries if not (entry / "device/physfn").exists()]
    return sorted(kept, key=lambda entry: [int(part) if part.isdecimal() else part
                                           for part in re.split(r"(\d+)", entry.name)])  # fmt: skip


def _physical(net: Path) -> Iterator[Path]:
    """Yield the interfaces of Ethernet that have a device."""
    for path in _listed(net):
        if (path / "device").exists() and _Reading().text(path / "type", "type") == _ETHERNET:
            yield path
