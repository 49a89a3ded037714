"""A node as a tree of files and stand-ins of its tools, and a partition that it should fit."""

from __future__ import annotations

import shutil
from pathlib import Path

import inventories
from fabricheck.node import NodeModel, load
from fabricheck.run.site_check import Machine
from fabricheck.site.partitions import Target

NODE = load("mi250x")
USABLE = frozenset(core for one in NODE.domains for core in one.cores if core not in one.reserved)


class Tree:
    """A folder with ``root`` (proc, sys, the site's software) and ``bin`` (the PATH)."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.root.mkdir()
        bash = shutil.which("bash")
        assert bash
        (self.bin / "bash").symlink_to(bash)
        self.environ = {"PATH": str(self.bin)}

    def tool(self, name: str, body: str = "exit 0", folder: Path | None = None) -> Path:
        """Put a stand-in of a command there."""
        path = (folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    def put(self, path: str, text: str = "") -> Path:
        """Put a file of the system there."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def machine(self, compute: bool | None = None, cores: frozenset[int] = USABLE) -> Machine:
        """Return the machine that the tree is."""
        return Machine(self.root, self.environ, cores, compute)

    def devices(self, count: int = 8) -> None:
        """Let the kernel's driver have so many AMD devices, behind the node's four processors."""
        for index in range(4 + count):
            number = f"{index * (index >= 4)}\n"
            self.put(f"/sys/class/kfd/kfd/topology/nodes/{index}/gpu_id", number)

    def inventory(self, node: NodeModel = NODE, **changes: object) -> None:
        """Let the drivers tell what a node model has."""
        inventories.programs(self.programs, inventories.composed(node, **changes))

    @property
    def programs(self) -> Path:
        """The folder of the environment's programs."""
        return self.bin.parent / "programs"


def target(environment: dict | None = None, **partition) -> Target:
    """Return a partition of a site as LUMI-G, changed as said."""
    about = {
        "name": "gpu",
        "scheduler": "slurm",
        "launcher": "srun",
        "environs": ["rocm"],
        "access": [],
        "features": [],
        "devices": [{"type": "gpu", "arch": "gfx90a", "num_devices": 8}],
        "extras": {"node": "mi250x"},
        **partition,
    }
    system = {"name": "lumi", "modules_system": "lmod"}
    return Target(system, about, [environment or environment_of("/my/bin")])


def environment_of(folder: Path | str, features: tuple[str, ...] = (), **extras) -> dict:
    """Return an environment whose programs are in a folder."""
    own = {"runtime": "rocm", "programs": str(folder), "build_command": "make it", **extras}
    return {"name": "rocm", "features": list(features), "extras": own}


def said(findings) -> list[tuple[str, str]]:
    """Return findings as pairs."""
    return [(one.status, one.says) for one in findings]
