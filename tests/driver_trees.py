"""Folders like those of a kernel with eight dies of MI250X and four NICs: composed, of no machine.

The links are those of the node model, as KFD states them; `nic_trees.frontier` builds the NICs.
"""

from __future__ import annotations

from pathlib import Path

from fabricheck.node import load
from nic_trees import FRONTIER, frontier, link, put

#: PCI addresses of the dies in the order of the model: two of a package share a slot.
DIES = tuple(
    address
    for _, first, _, _ in FRONTIER
    for address in (first, first.replace("1:00", "6:00").replace("9:00", "e:00"))
)


class Tree:
    """The folder ``root`` of a healthy node."""

    def __init__(self, root: Path) -> None:
        self.root = frontier(root)
        model = load("mi250x")
        for domain in range(4):
            self._node(domain, "cpu_cores_count 32\nsimd_count 0")
        for index, address in enumerate(DIES):
            bus = int(address[5:7], 16)
            facts = "cpu_cores_count 0\nsimd_count 440\ngfx_target_version 90010\ndomain 0"
            self._node(4 + index, f"{facts}\nlocation_id {bus << 8}")
            self._function(index, address, model.devices[index].domain)
            self._path(4 + index, model.devices[index].domain, 11, 15, 36000, 36000)
        for a, row in enumerate(model.link_matrix):
            for b, links in enumerate(row):
                if a != b and links:
                    self._path(4 + a, 4 + b, 11, 15, 50000, 50000 * links)
                elif a != b:
                    self._path(4 + a, 4 + b, 11, 30, 0, 0)
        put(root / "dev/kmsg", "6,1,100;Linux version 6")

    def device(self, index: int) -> Path:
        """Return the folder of a die."""
        return self.root / "sys/bus/pci/devices" / DIES[index]

    def count(self, index: int, block: str, uncorrected: int = 0, corrected: int = 0) -> None:
        """Set the errors that the driver's RAS counted of a block of a die."""
        put(self.device(index) / f"ras/{block}_err_count", f"ue: {uncorrected}\nce: {corrected}")

    def log(self, microseconds: int, text: str) -> None:
        """Add a line to the kernel's log."""
        with (self.root / "dev/kmsg").open("a") as file:
            file.write(f"3,{microseconds},{microseconds},-;{text}\n")

    def lose(self, index: int) -> None:
        """Let KFD lose a die that is on the bus."""
        put(self._kfd(4 + index) / "properties", "cpu_cores_count 0\nsimd_count 0")

    def cut(self, a: int, b: int) -> None:
        """Remove the link between two dies."""
        for one, other in ((a, b), (b, a)):
            self._path(4 + one, 4 + other, 2, 40, 0, 0)

    def _kfd(self, number: int) -> Path:
        return self.root / "sys/class/kfd/kfd/topology/nodes" / str(number)

    def _node(self, number: int, properties: str) -> None:
        put(self._kfd(number) / "properties", properties)

    def _path(self, a: int, b: int, kind: int, weight: int, least: int, most: int) -> None:
        put(
            self._kfd(a) / f"io_links/{b}/properties",
            f"type {kind}\nweight {weight}\nnode_from {a}\nnode_to {b}\nmin_bandwidth {least}\n"
            f"max_bandwidth {most}",
        )

    def _function(self, index: int, address: str, domain: int) -> None:
        bridge, first, _, _ = FRONTIER[index // 2]
        folder = self.root / f"sys/devices/pci0000:{index // 2}0" / bridge / address
        for name, text in {
            "vendor": "0x1002", "device": "0x7408", "class": "0x038000", "numa_node": domain,
            "local_cpulist": f"{16 * domain}-{16 * domain + 15}",
            "current_link_width": 16, "max_link_width": 16, "current_link_speed": "16.0 GT/s PCIe",
            "max_link_speed": "16.0 GT/s PCIe", "gpu_busy_percent": 0, "pcie_replay_count": 0,
        }.items():  # fmt: skip
            put(folder / name, text)
        put(folder / f"drm/renderD{128 + index}/dev", f"226:{128 + index}")
        put(self.root / f"dev/dri/renderD{128 + index}", "")
        link(self.device(index), folder)
        if address != first:
            link(self.root / "sys/bus/pci/drivers/amdgpu" / address, folder)
        link(folder / "driver", self.root / "sys/bus/pci/drivers/amdgpu")
        self.count(index, "umc")
        self.count(index, "xgmi_wafl")
