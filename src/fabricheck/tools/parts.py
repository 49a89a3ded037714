"""Serial numbers, slots and firmware of the parts of this machine: what a vendor asks for first.

Of AMD's devices the driver's files tell the serial number, of NVIDIA's its tool; those of the
machine and its boards only root may read. What nothing tells is null, and is not guessed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fabricheck.tools.runner import output_of, text_of

#: What the firmware tells of the machine (/sys/class/dmi/id).
_MACHINE = (
    "sys_vendor",
    "product_name",
    "product_serial",
    "board_name",
    "board_serial",
    "bios_version",
    "bios_date",
)

#: The files of a device by amdgpu.
_DEVICE = ("serial_number", "product_name", "product_number", "unique_id", "vbios_version")

#: Seconds for the vendor's tool.
_LIMIT_S = 20


def parts(addresses: list[str], root: Path = Path("/")) -> dict[str, Any]:
    """Return the parts of this machine: itself, its devices by PCI address, and their slots.

    :param addresses: the PCI addresses of its devices.
    :param root: the folder with ``sys``.
    """
    bus = root / "sys/bus/pci"
    slots = {
        text_of(folder / "address").strip(): folder.name
        for folder in sorted((bus / "slots").glob("*"))
    }
    serials = _nvidia_serials() if root == Path("/") else {}
    devices = {}
    for address in addresses:
        folder = bus / "devices" / address
        facts = {name: text_of(folder / name).strip() or None for name in _DEVICE}
        facts["serial_number"] = facts["serial_number"] or serials.get(address)
        facts["slot"] = slots.get(address.rpartition(".")[0])
        devices[address] = facts
    machine = root / "sys/class/dmi/id"
    return {
        "machine": {name: text_of(machine / name).strip() or None for name in _MACHINE},
        "devices": devices,
    }


def _nvidia_serials() -> dict[str, str]:
    """Return the serial numbers by PCI address, as nvidia-smi tells them; none without it."""
    query = ("nvidia-smi", "--query-gpu=pci.bus_id,serial", "--format=csv,noheader")
    try:
        text = output_of(*query, limit_s=_LIMIT_S)
    except OSError:
        return {}
    serials = {}
    for line in text.splitlines():
        bus, _, serial = line.partition(", ")
        domain, _, rest = bus.strip().lower().partition(":")
        if rest and serial.strip().isdecimal() and serial.strip() != "0":
            serials[f"{domain[-4:]}:{rest}"] = serial.strip()
    return serials
