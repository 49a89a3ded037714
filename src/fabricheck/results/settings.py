"""Node and job settings recorded in a result document, and their effects, as sentences.

The programs list the settings that they must know while they run (``settings.cpp`` of the harness).
``settings.yaml`` has the variables that take something away from what is measured. All other
variables of the runtimes and libraries are named where a limit is missed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricheck.core import yaml_files
from fabricheck.core.models import StrictModel, validated
from fabricheck.core.show import cut
from fabricheck.core.text import printable
from fabricheck.core.vocabulary import Runtime
from fabricheck.results.model import Host, ResultDocument, Series, Setting, node_name
from fabricheck.results.series import is_from_tool

_EFFECTS = {
    "launches": "launches and copies then wait for the device",
    "engines": "copies are then made by kernels instead of copy engines",
    "peer-engines": "copies between devices are then made by kernels instead of copy engines",
}


#: The prefixes of variables that configure a runtime, a communication library or an MPI.
_PREFIXES = (
    "HSA_", "HIP_", "ROCR_", "ROC_", "GPU_", "AMD_", "DEBUG_CLR_", "DEBUG_HIP_", "PAL_", "CUDA_",
    "NCCL_", "RCCL_", "UCX_", "OMPI_MCA_", "MPICH_", "MPIR_CVAR_", "FI_",
)  # fmt: skip

#: Names that only say where a software is, which one, or for what it compiles. What a library loads
#: (HSA_TOOLS_LIB, FI_PROVIDER_PATH, UCX_MODULE_DIR, CUDA_INJECTION64_PATH) is more than that.
_INFORMATION = re.compile(
    r"[A-Z]+_(?:(?:TOOLKIT|ROOT|SDK|NVCC|CLANG|DEVICE|BIN|INC|INCLUDE|LIB|LIBRARY|CACHE)_)*"
    r"(?:HOME|PATH|ROOT|DIR|PREFIX|BASE|INC|INCLUDE|LIB|VERSION|PLATFORM|COMPILER|RUNTIME|ARCH)"
)

#: What Open MPI's launcher sets for each rank, beside what users set.
_OF_LAUNCHER = re.compile(
    r"OMPI_MCA_(orte|ess|pmix|plm|prte|ras|oob|hwloc|shmem|initial_wdir|num_procs|cpu_type|"
    r"mpi_oversubscribe|PREFIXES).*"
)

#: Lists of visible devices: whether they hide any is judged by the devices that a program sees.
_LISTS = re.compile(r".*_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL")

#: More queues than the default take nothing away, and p2p sets them itself for many destinations.
_MORE_QUEUES = re.compile(r"GPU_MAX_HW_QUEUES=([5-9]|[1-9]\d+)")

#: The share of a node's cores below which their lack can explain a slow value: assumed.
FEW_CORES = 0.5

#: The longest value of a variable that is shown.
_LONGEST_VALUE = 60


class _Variable(StrictModel):
    """A row of settings.yaml, which explains the members."""

    effect: str
    values: str
    concerns: list[dict[str, str]]
    source: str
    runtimes: list[Runtime] | None = None
    mpi: str | None = None

    def takes_away(self, value: str, document: ResultDocument) -> bool:
        """Whether a value takes something away from what a document measured."""
        if re.fullmatch(self.values, value, re.IGNORECASE) is None:
            return False
        runtime = document["program"]["runtime"]
        obeyed_by = "rocm" if runtime == "sim" else runtime
        if self.runtimes is not None and obeyed_by not in self.runtimes:
            return False
        mpi = document["versions"].get("mpi")
        if self.mpi is not None and mpi and re.fullmatch(self.mpi, mpi, re.IGNORECASE) is None:
            return False
        return any(
            _has_fields(series, fields) for series in document["series"] for fields in self.concerns
        )


@functools.cache
def _table() -> Mapping[str, _Variable]:
    path = Path(__file__).with_name("settings.yaml")
    return validated(dict[str, _Variable], yaml_files.read(path), path)


def table() -> Iterator[tuple[str, str, str]]:
    """Yield name, effect and source of each variable that takes something away."""
    for name, variable in _table().items():
        yield name, variable.effect, variable.source


def _has_fields(series: Series, fields: Mapping[str, str]) -> bool:
    for name, value in fields.items():
        value_: Any = series
        for step in name.split("."):
            value_ = value_[step]
        if value_ != value:
            return False
    return True


def disturbing(
    document: ResultDocument, intended: Mapping[str, str], requested: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a sentence for each environment setting that changed what was measured.

    :param intended: the variables that the check and its site set.
    :param requested: what the check's metrics request of series, by field; ``source.memory`` is
        dotted.
    """
    for setting in document.get("settings") or ():
        if (
            setting["concerns"] in _EFFECTS
            and not _is_intended(setting["name"], setting["value"], intended)
            and _concerned(document, setting, requested)
        ):
            set_on = _set_on(document, setting["name"], setting["value"])
            effect = _EFFECTS[setting["concerns"]]
            yield f"{set_on}, but the check does not set it: {effect}. Unset it."
    for name in not_intended(document, intended):
        variable, value = _table().get(name), document["environment"][name]
        if variable is not None and variable.takes_away(value, document):
            set_on = _set_on(document, name, value)
            yield (
                f"{set_on}, but neither the check nor the site file sets it: {variable.effect}. "
                "Unset it, or state it in the site file if it is meant."
            )


def not_intended(document: ResultDocument, intended: Mapping[str, str]) -> list[str]:
    """Return the variables of a document that have another value than the check and its site set.

    :param intended: the variables that the check and its site set.
    """
    environment = document["environment"]
    return [name for name in environment if not _is_intended(name, environment[name], intended)]


def _is_intended(name: str, value: str, intended: Mapping[str, str]) -> bool:
    if name not in intended:
        return False
    # The shell expands what a site file states with the value of another variable.
    return "$" in intended[name] or intended[name] == value


def named(document: ResultDocument, names: Sequence[str]) -> Iterator[str]:
    """Yield, as ``NCCL_ALGO=Ring``, those of some variables that can change a measured value.

    :param names: some of the document's environment.
    """
    for name in names:
        value = document["environment"].get(name)
        if value is None or not name.startswith(_PREFIXES):
            continue
        if any(left_out.fullmatch(name) for left_out in (_INFORMATION, _OF_LAUNCHER, _LISTS)):
            continue
        if _MORE_QUEUES.fullmatch(f"{name}={value}"):
            continue
        yield f"{name}={cut(printable(value), _LONGEST_VALUE)}"


@dataclass(frozen=True)
class FewerCores:
    """A program that may use some of the cores (hardware threads) of its node.

    by_quota: whether it may run on more cores, and a control group grants the time of so many.
    """

    node: str
    allowed: float
    cores: int
    by_quota: bool = False

    @property
    def few(self) -> bool:
        """Whether their lack can explain what the host moves slowly."""
        return self.allowed < FEW_CORES * self.cores

    @property
    def sentence(self) -> str:
        """How many they are, and what leaves out the others."""
        if self.by_quota:
            return (
                f"Node {self.node} has {self.cores} cores (hardware threads), and a control group "
                f"grants the time of {self.allowed:g}: the quota of a container (--cpus, the "
                "limits of a pod) stops a program for the rest of each period; start it without."
            )
        return (
            f"Node {self.node} has {self.cores} cores (hardware threads), of which a program could "
            f"use {self.allowed:g}: --cpus-per-task, taskset or a control group of the job leaves "
            "out the others."
        )


def fewer_cores(document: ResultDocument, usable: Sequence[int] = ()) -> FewerCores | None:
    """Return the cores of a program that had fewer than its node; None if it had all.

    Ranks are bound to cores on purpose, and share a quota. The host of a third-party tool's
    document is that of the program that describes the node.

    :param usable: the cores of the node model but those reserved for the system; a program that may
        use all of them has what the site gives.
    """
    state = document.get("state")
    if state is None or is_from_tool(document):
        return None
    host = document["host"]
    cores = state["before"]["host"]["cores"]
    if cores is None:
        return None
    quota = host.get("cpu_quota")
    allowed = cores if document.get("ranks") else len(host["cores_allowed"])
    enough = len(usable) or cores
    if quota is not None and quota < min(allowed, enough):
        return FewerCores(node_name(host), quota, cores, by_quota=True)
    if allowed >= cores or (usable and set(host["cores_allowed"]).issuperset(usable)):
        return None
    return FewerCores(node_name(host), allowed, cores)


def hiding_devices(document: ResultDocument) -> str | None:
    """Return a sentence about settings that may hide devices from the program; empty for none."""
    for setting in document.get("settings") or ():
        if setting["concerns"] == "devices":
            set_on = _set_on(document, setting["name"], setting["value"])
            return f"{set_on}: unset it so that every process sees all devices."
    return None


def numa_balancing(host: Host) -> str | None:
    """Return a sentence where a host has NUMA balancing on: what it does, and how to turn it off.

    The Hugging Face page on AMD Instinct nodes shows a service that is faster without it.
    """
    value = host["numa_balancing"]
    return (
        f"Node {host['hostname']} has NUMA balancing on (/proc/sys/kernel/numa_balancing is "
        f"{value}), which moves pages while devices use them: turn it off (sysctl "
        "kernel.numa_balancing=0)."
        if value
        else None
    )


def _set_on(document: ResultDocument, name: str, value: str) -> str:
    shown = cut(printable(value), _LONGEST_VALUE)
    return f"{name} is {shown} on node {document['host']['hostname']}"


def _concerned(
    document: ResultDocument, setting: Setting, requested: Sequence[Mapping[str, Any]]
) -> bool:
    if setting["concerns"] == "launches":
        return True
    if not any(device["arch"].startswith("gfx") for device in document["devices"]):
        return False
    return any(
        fields.get("engine") == "mpi"
        or (
            fields.get("engine") == "copy-engine"
            and (
                setting["concerns"] == "engines"
                or "peer" in (fields.get("source.memory"), fields.get("destination.memory"))
            )
        )
        for fields in requested
    )
