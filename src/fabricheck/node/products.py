"""What a device is, by what PCI has for it, and by its name where nothing tells that.

The name that a runtime gives a device is a label: it is empty in some containers, and another one
in virtual machines. The products are those of ``config/devices.yaml``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from fabricheck.core import checkout, yaml_files
from fabricheck.core.models import StrictModel, validated
from fabricheck.core.vocabulary import UNKNOWN

#: Names that drivers give to devices that they do not know.
_NAMES_OF_ANY_DEVICE = ("", UNKNOWN, "AMD Radeon Graphics", "Graphics Device")

#: What the runtime of simulated nodes adds to the name of a device.
_SIMULATED = "(simulated)"

#: Words of names that do not tell one product from another.
_BRANDS = frozenset({"AMD", "INSTINCT", "NVIDIA", "TESLA"})

#: A device of less than this part of its product's memory is a part of one: drivers keep a little
#: of it, and the largest parts have half.
_WHOLE = 0.75

#: Vendor and kind of device, and the board's where that is needed.
_Id = Annotated[str, Field(pattern="^[0-9a-f]{4}:[0-9a-f]{4}( [0-9a-f]{4}:[0-9a-f]{4})?$")]


class KernelShape(StrictModel):
    """How the kernels of STREAM are launched on a device's own memory.

    block_size: threads of a block. elements: of 16 B, that a thread loads before it stores. loads:
    how it reads. source: what was measured, or the document.
    """

    block_size: int = Field(ge=1, le=1024)
    elements: Literal[1, 2, 4, 8] = 1
    loads: Literal["plain", "streaming"] = "plain"
    source: str

    @property
    def options(self) -> list[str]:
        """The options of the program stream; plain loads of one element are its default."""
        options = ["--block-sizes", str(self.block_size)]
        if self.elements != 1:
            options += ["--elements", str(self.elements)]
        if self.loads != "plain":
            options += ["--loads", self.loads]
        return options


#: That of a device whose product states none.
USUAL_SHAPE = KernelShape(
    block_size=256, source="the programs' default, and TransferBench's (GFX_BLOCK_SIZE)"
)


class Product(StrictModel):
    """What is known of a product; the comment in the file says what each key means."""

    name: str = ""
    ids: list[_Id]
    memory_gb: float | None = None
    memory_peak_gbs: float | None = None
    source: str | None = None
    references: str | None = None
    package: int = 1
    kernel: KernelShape = USUAL_SHAPE

    def has_part(self, memory_bytes: int | None) -> bool:
        """Whether a device with so much memory is a part of such a device."""
        if self.memory_gb is None or memory_bytes is None:
            return False
        return memory_bytes < _WHOLE * self.memory_gb * 1e9


def table() -> Mapping[str, Product]:
    """Return the products of config/devices.yaml by name.

    :raises InvalidFile: when the file has something else.
    """
    return _table(checkout.ROOT / "config" / "devices.yaml")


@functools.cache
def _table(file: Path) -> Mapping[str, Product]:
    rows = validated(dict[str, Product], yaml_files.read(file), file)
    return {name: row.model_copy(update={"name": name}) for name, row in rows.items()}


def product(device: Mapping[str, Any]) -> Product | None:
    """Return the product that a device is; None for one that the table lacks.

    :param device: of a result document, or of a description by `inventory`.
    """
    pci_id, board = device.get("pci_id"), device.get("pci_subsystem")
    for row in table().values():
        if pci_id in row.ids or f"{pci_id} {board}" in row.ids:
            return row
    # Documents of earlier versions have no id, and new ids of a known product may come.
    return by_name(device["name"] or "")


def by_name(name: str) -> Product | None:
    """Return the product whose words are all in a name; of several the one with the most words."""
    words = _words(name)
    products = [row for row in table().values() if _words(row.name) <= words]
    return max(products, key=lambda row: len(_words(row.name)), default=None)


@functools.lru_cache(maxsize=1024)
def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Z0-9]+", name.upper())) - _BRANDS


def kernel_shape(name: str | None) -> KernelShape:
    """Return the shape of the kernels of a device with a name, as a node model states it."""
    known = by_name(name or "")
    return USUAL_SHAPE if known is None else known.kernel


def label(device: Mapping[str, Any]) -> str:
    """Return what to call a device: its product, else its name, else its id.

    A simulated device keeps its name, which says that it is one.
    """
    known, name = product(device), device["name"] or ""
    if known is not None and _SIMULATED not in name:
        return known.name
    if name not in _NAMES_OF_ANY_DEVICE:
        return str(name)
    pci_id = device.get("pci_id")
    return f"device {pci_id}" if pci_id else UNKNOWN


def missing_limits(device: Mapping[str, Any], has_peak: bool) -> str | None:
    """Return a sentence on the limits that a device has none of, as the table lacks its product.

    :param has_peak: whether the node model states the peak of its memory all the same.
    """
    if product(device) is not None:
        return None
    name, pci_id = device["name"] or "without a name", device.get("pci_id") or "not told"
    missing = "those of the same product"
    if not has_peak:
        missing = f"that on its memory, whose peak is unknown, and {missing}"
    return (
        f"The device ({name}, PCI id {pci_id}) is in no row of config/devices.yaml, so limits are "
        f"missing: {missing}."
    )
