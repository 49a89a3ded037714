"""Facts collected besides the ten commands: versions and settings."""

from __future__ import annotations

import os
import platform
import re
import resource
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import fabricheck
from fabricheck.core import checkout
from fabricheck.core.vocabulary import UNKNOWN
from fabricheck.run.first_hour.steps import Place
from fabricheck.site.clusters import PROGRAMS, RANK_PROGRAMS
from fabricheck.tools.recording import mpi_version
from fabricheck.tools.runner import output_of, text_of
from fabricheck.tools.topology.host import driver_version

_LIBRARIES = re.compile(r"lib(?:hwloc|amdhip64|hsa-runtime64|cudart|numa|mpi\w*|rccl|nccl)\b\S*")

#: System files with a setting, below the root.
_SETTINGS = (
    "proc/sys/kernel/numa_balancing",
    "proc/sys/vm/nr_hugepages",
    "proc/sys/vm/overcommit_memory",
    "proc/sys/vm/zone_reclaim_mode",
    "sys/kernel/mm/transparent_hugepage/*",
    "sys/devices/system/node/node[0-9]*/meminfo",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "sys/devices/system/cpu/smt/control",
    "sys/module/amdgpu/parameters/*",
)

#: Limits of a control group, of version 2 and of version 1.
_LIMITS = (
    "memory.max",
    "memory.high",
    "memory.limit_in_bytes",
    "cpuset.cpus.effective",
    "cpuset.mems.effective",
    "cpuset.effective_cpus",
    "cpuset.effective_mems",
)

#: Parts of the kernel's command line and messages about devices and their memory.
_BOOT = re.compile(
    r"(?:amdgpu|nvidia)\.\S+|(?:amd_|intel_)?iommu\S*|pci\S*|numa\S*|nosmt\S*"
    r"|isolcpus\S*|nohz_full\S*|(?:default_)?hugepage\S*|transparent_hugepage\S*"
)
_KERNEL = re.compile(r"HMM registered|xgmi|amdgpu.*(?:error|fail|reset|ras)|kfd", re.IGNORECASE)

#: Lines of AMD's runtime (AMD_LOG_LEVEL), and those that show the place of memory and the mover of
#: copies.
_LOG = re.compile(rb"^: ?\d:")
_TELLS = re.compile(
    rb"mempolicy|numa|hsa_amd_memory|hipHostMalloc|hipSetDevice|hipMemcpy|copy|sdma|blit|HMM"
    rb"|ShaderName|error|fail|version|Initializ",
    re.IGNORECASE,
)

#: The most lines, and bytes of each, that are kept.
MOST_LINES, MOST_IN_LINE = 2000, 400

#: Time limit of each version command, in s; none touches a device.
_LIMIT_S = 5


def versions(place: Place, root: Path = Path("/")) -> dict[str, Any]:
    """Return the versions of everything involved in a measurement; null where unknown."""
    release = re.search(r'^PRETTY_NAME="?([^"\n]*)', text_of(root / "etc/os-release"), re.MULTILINE)
    driver = driver_version(root)
    rocm = Path(os.environ.get("ROCM_PATH") or root / "opt/rocm")
    return {
        "fabricheck": fabricheck.__version__,
        "commit": checkout.commit(),
        "reframe": metadata.version("ReFrame-HPC"),
        "python": platform.python_version(),
        "os": release[1] if release else None,
        "kernel": f"{platform.system()} {platform.release()} {platform.version()}",
        "driver": None if driver == UNKNOWN else driver,
        "rocm": text_of(rocm / ".info/version").strip() or None,
        "modules": [one for one in os.environ.get("LOADEDMODULES", "").split(":") if one],
        "programs": {name: _program(place.programs / name) for name in PROGRAMS},
    }


def settings(root: Path = Path("/")) -> dict[str, Any]:
    """Return the settings of node and job that no result document has."""
    return {
        "files": {str(path.relative_to(root)): text_of(path).strip() for path in _files(root)},
        "boot": _BOOT.findall(text_of(root / "proc/cmdline")),
        "allowed": re.findall(r"\w+_allowed_list:\s*\S+", text_of(root / "proc/self/status")),
        "limits": {
            name: resource.getrlimit(getattr(resource, name))
            for name in dir(resource)
            if name.startswith("RLIMIT_")
        },
        "kernel_messages": [
            line
            for line in output_of("dmesg", limit_s=_LIMIT_S).splitlines()
            if _KERNEL.search(line)
        ],
    }


def _files(root: Path) -> Iterator[Path]:
    for pattern in _SETTINGS:
        yield from filter(Path.is_file, sorted(root.glob(pattern)))
    for line in text_of(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        for controller in controllers.split(","):
            folder = root / "sys/fs/cgroup" / controller / group.lstrip("/")
            yield from (folder / name for name in _LIMITS if (folder / name).is_file())


def _program(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    linked = output_of("ldd", str(path), limit_s=_LIMIT_S)
    libraries = {
        name: os.path.realpath(where)
        for name, where in re.findall(r"^\s*(\S+) => (/\S+)", linked, re.MULTILINE)
        if _LIBRARIES.match(name)
    }
    asked = path.name not in RANK_PROGRAMS
    return {
        "says": (asked and output_of(str(path), "--version", limit_s=_LIMIT_S).strip()) or None,
        "libraries": libraries,
        "mpi": mpi_version(path),
    }


def move_log(output: Path, log: Path) -> None:
    """Move the lines of AMD's runtime from a program's output to a file, keeping the significant
    ones.

    :param output: what the program wrote, of any size.
    :param log: the file for them; not created without any.
    :raises OSError: when a file cannot be read or written.
    """
    kept: list[bytes] = []
    seen = 0
    rest = output.with_name(f"{output.name}.rest")
    with output.open("rb") as lines, rest.open("wb") as other:
        for line in lines:
            if not _LOG.match(line):
                other.write(line)
                continue
            seen += 1
            if len(kept) < MOST_LINES and _TELLS.search(line):
                kept.append(line.rstrip(b"\n")[:MOST_IN_LINE] + b"\n")
    rest.replace(output)
    if seen:
        said = f"{len(kept)} of {seen} lines of the runtime, the most significant ones\n"
        log.write_bytes(said.encode() + b"".join(kept))
