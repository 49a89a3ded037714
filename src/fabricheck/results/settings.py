"""Settings of a node or a job that a result document tells: what they prevent, in sentences.

The programs know them by name (``src/bench/harness/settings.cpp``) and list those that are set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fabricheck.results.model import ResultDocument, Setting

_EFFECTS = {
    "launches": "launches or copies wait for the device then",
    "engines": "kernels copy then, and not the copy engines",
    "peer-engines": "kernels copy between devices then, and not the copy engines",
}


def disturbing(
    document: ResultDocument, own: Mapping[str, str], requested: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a sentence for each setting of the environment that changed what was measured.

    :param own: the variables that the check itself sets: these it means.
    :param requested: what the check's metrics request of series, by field; ``source.memory`` is
        dotted.
    """
    for one in document.get("settings") or ():
        meant = own.get(one["name"]) == one["value"]
        if one["concerns"] in _EFFECTS and not meant and _concerned(document, one, requested):
            yield (
                f"{_set_on(document, one)}, which the check does not ask for: "
                f"{_EFFECTS[one['concerns']]}. Unset it."
            )


def hiding_devices(document: ResultDocument) -> str | None:
    """Return what may hide devices of the node from the program, as a sentence; none: nothing."""
    for one in document.get("settings") or ():
        if one["concerns"] == "devices":
            return f"{_set_on(document, one)}: let every process see all devices."
    return None


def numa_balancing(documents: Sequence[ResultDocument]) -> str | None:
    """Return a remark where a measured node had NUMA balancing on."""
    for document in documents:
        value = document["host"]["numa_balancing"]
        if value and document["clock"] == "measured":
            return balancing_sentence(document["host"]["hostname"], value)
    return None


def balancing_sentence(node: str, value: int) -> str:
    """Say that NUMA balancing is on, what it does, and how to switch it off."""
    return (
        f"Node {node} has NUMA balancing on (/proc/sys/kernel/numa_balancing is {value}), which "
        "moves pages while devices use them: switch it off (sysctl kernel.numa_balancing=0)."
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
    return any(_by_engine(one, setting["concerns"]) for one in requested)


def _by_engine(fields: Mapping[str, Any], concerns: str) -> bool:
    memories = (fields.get("source.memory"), fields.get("destination.memory"))
    return fields.get("engine") == "mpi" or (
        fields.get("engine") == "copy-engine" and (concerns == "engines" or "peer" in memories)
    )
