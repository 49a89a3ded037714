"""Folders like those of a kernel with NICs: composed, after the documented files of each driver."""

from __future__ import annotations

import shutil
from pathlib import Path

#: Of a node like Frontier's: PCI bridge, device, NIC and NUMA domain of each pair.
FRONTIER = (
    ("0000:d0:01.1", "0000:d1:00.0", "0000:d5:00.0", 3),
    ("0000:c8:01.1", "0000:c9:00.0", "0000:cd:00.0", 1),
    ("0000:d8:01.1", "0000:d9:00.0", "0000:dd:00.0", 0),
    ("0000:c0:01.1", "0000:c1:00.0", "0000:c5:00.0", 2),
)
#: Group 3; switches 0, 0, 1 and 1; ports 4 and 5.
ADDRESSES = ("02:00:00:00:18:04", "02:00:00:00:18:05", "02:00:00:00:18:44", "02:00:00:00:18:45")


def put(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def pcie(folder: Path, speed: str = "16.0", width: int = 16, most: str = "16.0") -> None:
    put(folder / "current_link_speed", f"{speed} GT/s PCIe")
    put(folder / "current_link_width", width)
    put(folder / "max_link_speed", f"{most} GT/s PCIe")
    put(folder / "max_link_width", 16)


def interface(root: Path, name: str, device: Path, address: str, speed: int, mtu: int) -> None:
    folder = root / "sys/class/net" / name
    link(folder / "device", device)
    (device / "net" / name).mkdir(parents=True)
    for file, text in (
        ("type", 1), ("address", address), ("speed", speed), ("mtu", mtu), ("operstate", "up"),
        ("statistics/tx_errors", 0), ("statistics/rx_errors", 0),
    ):  # fmt: skip
        put(folder / file, text)


def frontier(root: Path) -> Path:
    """Build a healthy node with four NICs of Slingshot on every second device; return its root."""
    for number, (bridge, gpu, nic, domain) in enumerate(FRONTIER):
        slot = root / f"sys/devices/pci0000:{number}0" / bridge
        device = slot / nic
        pcie(slot)
        pcie(device)
        put(slot / gpu / "numa_node", domain)
        link(root / "sys/bus/pci/drivers/amdgpu" / gpu, slot / gpu)
        link(device / "driver", root / "sys/bus/pci/drivers/cxi_ss1")
        (root / "sys/bus/pci/drivers/cxi_ss1").mkdir(parents=True, exist_ok=True)
        link(root / "sys/bus/pci/devices" / nic, device)
        for file, text in (
            ("class", "0x020000"), ("numa_node", domain), ("uc/version", "1.5.61"),
            ("properties/link", 1), ("properties/speed", 200000), ("properties/hpc_mtu", 2112),
            ("properties/driver_rev", "9ce667e"), ("properties/pcie_corr_err", 2),
            ("properties/pcie_uncorr_err", 0), ("properties/current_esm_link_speed", "25.0 GT/s"),
            ("telemetry/hni_pcs_uncorrected_cw", "7@1764000000.000000001"),
            *((f"link_restarts/time_{index}", 0) for index in range(10)),
        ):  # fmt: skip
            put(device / file, text)
        link(root / f"sys/class/cxi/cxi{number}/device", device)
        interface(root, f"hsn{number}", device, ADDRESSES[number], 200000, 9000)
        put(root / f"run/cxi/cxi{number}/nacks", 11)
        put(root / f"dev/cxi{number}", "")
    return root


def leonardo(root: Path) -> Path:
    """Build a healthy node with four NICs of InfiniBand, one on the bridge of each device."""
    devices = ("0000:1d:00.0", "0000:56:00.0", "0000:8f:00.0", "0000:c8:00.0")
    for number, gpu in enumerate(devices):
        slot = root / f"sys/devices/pci0000:{number}0" / f"0000:{number}0:02.0"
        device = slot / f"0000:{number}1:00.0"
        pcie(slot)
        pcie(device)
        put(slot / gpu / "numa_node", 0)
        link(root / "sys/bus/pci/drivers/nvidia" / gpu, slot / gpu)
        link(device / "driver", root / "sys/bus/pci/drivers/mlx5_core")
        (root / "sys/bus/pci/drivers/mlx5_core").mkdir(parents=True, exist_ok=True)
        put(device / "numa_node", 0)
        (device / "infiniband_verbs" / f"uverbs{number}").mkdir(parents=True)
        put(root / f"dev/infiniband/uverbs{number}", "")
        own = root / f"sys/class/infiniband/mlx5_{number}"
        link(own / "device", device)
        for file, text in (
            ("fw_ver", "20.31.1014"), ("node_guid", f"b83f:d203:009a:000{number}"),
            ("ports/1/state", "4: ACTIVE"), ("ports/1/rate", "100 Gb/sec (2X HDR)"),
            ("ports/1/link_layer", "InfiniBand"), ("ports/1/counters/link_downed", 1),
            ("ports/1/counters/symbol_error", 0),
        ):  # fmt: skip
            put(own / file, text)
    put(root / "sys/module/mlx5_core/version", "5.8-1.1.2")
    (root / "sys/class/net/lo").mkdir(parents=True, exist_ok=True)
    return root


def infiniband(root: Path) -> dict[str, Path]:
    """Return the folders of the NICs of a tree of InfiniBand, by name."""
    folder = root / "sys/class/infiniband"
    return {path.name: path for path in sorted(folder.iterdir())}


def rename(root: Path, **names: str) -> None:
    """Rename NICs of InfiniBand, all at the same time."""
    for old in names:
        infiniband(root)[old].rename(root / "sys/class/infiniband" / f"new-{names[old]}")
    for new in names.values():
        infiniband(root)[f"new-{new}"].rename(root / "sys/class/infiniband" / new)


def remove(root: Path, name: str) -> None:
    """Remove a NIC of InfiniBand."""
    shutil.rmtree(infiniband(root)[name])


def virtual(root: Path) -> None:
    """Let a tree be that of a virtual machine, which tells no place of a NIC."""
    for path in infiniband(root).values():
        put((path / "device").resolve() / "numa_node", -1)
    shutil.rmtree(root / "sys/bus/pci/drivers/nvidia")


def nic(root: Path, name: str) -> Path:
    """Return the PCI folder of a NIC."""
    kind = "cxi" if name.startswith("cxi") else "infiniband"
    return (root / "sys/class" / kind / name / "device").resolve()
