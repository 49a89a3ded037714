"""The host of a node according to its operating system, and its comparison with a node model."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

from fabricheck.core.errors import InvalidFile
from fabricheck.core.vocabulary import UNKNOWN
from fabricheck.node import NodeModel, format_cores, parse_cores
from fabricheck.results.model import Host, NumaDomain
from fabricheck.schedulers import table
from fabricheck.tools.runner import text_of

_NONE = "none (simulated)"

CPUS = Path("/sys/devices/system/cpu")


def describe_host(root: Path = Path("/")) -> Host:
    """Describe this machine for a result document; sizes in bytes, cores by the system's index.

    :param root: the folder with ``proc`` and ``sys``.
    """
    balancing = _line(root / "proc/sys/kernel/numa_balancing")
    pages = re.search(r"\[(\w+)\]", _line(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    return {
        "hostname": platform.node(),
        "scheduler_node": scheduler_node(),
        "kernel": f"{platform.system()} {platform.release()}",
        "cpu_model": _cpu_model(root / "proc/cpuinfo"),
        "cores_allowed": sorted(os.sched_getaffinity(0)),
        "numa_domains": sorted(_domains(root), key=lambda domain: domain["index"]),
        "last_level_cache_bytes": last_level_cache_bytes(root / str(CPUS).lstrip("/")),
        "page_size_bytes": os.sysconf("SC_PAGESIZE"),
        "numa_balancing": int(balancing) if balancing.isdecimal() else None,
        "transparent_hugepage": pages[1] if pages else None,
    }


def simulated_host() -> Host:
    """Describe the host of a simulated node before its program does."""
    return {
        "hostname": f"{UNKNOWN} (simulated)",
        "scheduler_node": scheduler_node(),
        "kernel": _NONE,
        "cpu_model": _NONE,
        "cores_allowed": [],
        "numa_domains": [],
        "last_level_cache_bytes": 0,
        "page_size_bytes": 4096,
        "numa_balancing": None,
        "transparent_hugepage": None,
    }


def scheduler_node() -> str | None:
    """Return the scheduler's name of this process's node, None without one.

    Machines that simulate several nodes have one host name for all.
    """
    return table.node_name(os.environ)


def driver_version(root: Path = Path("/")) -> str:
    """Return the version of the loaded GPU driver, ``unknown`` if it is not available."""
    for module in ("amdgpu", "nvidia"):
        version = _line(root / "sys/module" / module / "version")
        if version:
            return f"{module} {version}"
    return UNKNOWN


def host_differences(model: NodeModel, host: Host) -> list[str]:
    """Return how the NUMA domains and their cores differ from a model.

    The system may list second hardware threads, which models leave out, and domains without cores,
    which are memory of devices.
    """
    node = f"on node {host['hostname']}"
    differences: list[str] = []
    seen = {domain["index"]: domain["cores"] for domain in host["numa_domains"]}
    if seen:
        for domain in model.domains:
            expected = f"NUMA domain {domain.index}: the cores {format_cores(domain.cores)}"
            cores = seen.pop(domain.index, None)
            if cores is None:
                differences.append(f"{expected} in {model.name}, no such domain {node}.")
            elif not set(domain.cores) <= set(cores):
                there = format_cores(cores) or "none"
                differences.append(f"{expected} in {model.name}, {there} {node}.")
        for index, cores in seen.items():
            if cores:
                differences.append(
                    f"NUMA domain {index}: not in {model.name}, the cores {format_cores(cores)} "
                    f"{node}."
                )
    return differences


def _line(path: Path) -> str:
    return next(iter(text_of(path).splitlines()), "").strip()


def _cpu_model(path: Path) -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", text_of(path), re.MULTILINE)
    return match[1].strip() if match else UNKNOWN


def _domains(root: Path) -> Iterator[NumaDomain]:
    for folder in (root / "sys/devices/system/node").glob("node[0-9]*"):
        memory = re.search(r"MemTotal:\s+(\d+) kB", text_of(folder / "meminfo"))
        yield {
            "index": int(folder.name.removeprefix("node")),
            "cores": _cores(folder / "cpulist"),
            "memory_bytes": int(memory[1]) * 1024 if memory else 0,
        }


def _cores(path: Path) -> list[int]:
    try:
        return list(parse_cores(_line(path)))
    except ValueError as error:
        raise InvalidFile(path, None, str(error)) from None


def last_level_cache_bytes(cpus: Path = CPUS) -> int:
    """Return the size of all last-level caches together in bytes; 0 if the system hides it."""
    sizes: dict[tuple[int, str], int] = {}
    for index in cpus.glob("cpu[0-9]*/cache/index[0-9]*"):
        names = ("level", "shared_cpu_list", "size")
        level, shared, size = (text_of(index / name).strip() for name in names)
        if level.isdecimal() and shared and size.removesuffix("K").isdecimal():
            sizes[int(level), shared] = int(size.removesuffix("K")) * 1024
    last = max((level for level, _ in sizes), default=0)
    return sum(size for (level, _), size in sizes.items() if level == last)
