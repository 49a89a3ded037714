"""Node and job settings recorded in a result document, and their effects, as sentences.

The programs know the settings by name (``src/bench/harness/settings.cpp``) and list those that are
set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fabricheck.results.model import Host, ResultDocument, Setting

_EFFECTS = {
    "launches": "launches and copies then wait for the device",
    "engines": "copies are then made by kernels instead of copy engines",
    "peer-engines": "copies between devices are then made by kernels instead of copy engines",
}


def disturbing(
    document: ResultDocument, own: Mapping[str, str], requested: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a sentence for each environment setting that changed what was measured.

    :param own: the variables that the check itself sets: these are intended.
    :param requested: what the check's metrics request of series, by field; ``source.memory`` is
        dotted.
    """
    for setting in document.get("settings") or ():
        meant = own.get(setting["name"]) == setting["value"]
        if (
            setting["concerns"] in _EFFECTS
            and not meant
            and _concerned(document, setting, requested)
        ):
            yield (
                f"{_set_on(document, setting)}, but the check does not set it: "
                f"{_EFFECTS[setting['concerns']]}. Unset it."
            )


def hiding_devices(document: ResultDocument) -> str | None:
    """Return a sentence about settings that may hide devices from the program; empty for none."""
    for setting in document.get("settings") or ():
        if setting["concerns"] == "devices":
            return f"{_set_on(document, setting)}: unset it so that every process sees all devices."
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


def _set_on(document: ResultDocument, setting: Setting) -> str:
    return f"{setting['name']} is {setting['value']} on node {document['host']['hostname']}"


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
