"""Differences in the conditions of two partitions, such as an update or another node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from fabricheck.core.vocabulary import ENV_RESULTS
from fabricheck.results import state
from fabricheck.results.model import ResultDocument

#: Variables that name or count a run's files; they differ in every session.
OF_THE_RUN = frozenset(
    {ENV_RESULTS, "OMPI_MCA_initial_wdir", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID"}
)

#: The separator between a fact of a device and the device's index.
_OF_DEVICE = " of device "

#: Facts of a device's state that do not depend on its load, by their member.
FIXED = {
    "vbios": "VBIOS",
    "compute_partition": "compute partition",
    "memory_partition": "memory partition",
    "power_cap_w": "power cap in W",
    "clock_max_mhz": "highest clock in MHz",
    "memory_clock_max_mhz": "highest memory clock in MHz",
    "ecc": "ECC",
}

#: Options that record what happened, not what was requested.
_NO_OPTIONS = frozenset({"launches"})


@dataclass(frozen=True)
class Difference:
    """One difference, with its values in A and in B, sorted."""

    what: str
    a: tuple[str, ...]
    b: tuple[str, ...]


def differences(a: Sequence[ResultDocument], b: Sequence[ResultDocument]) -> list[Difference]:
    """Return the differences between the documents of both sides, if both have some."""
    if not a or not b:
        return []
    ours, theirs = _facts(a), _facts(b)
    found = [
        Difference(what, tuple(sorted(mine)), tuple(sorted(others)))
        for what in sorted(dict.fromkeys([*ours, *theirs]), key=_is_option)
        if (mine := ours.get(what, set())) != (others := theirs.get(what, set()))
    ]
    return list(_folded(found))


def _folded(found: Iterable[Difference]) -> Iterator[Difference]:
    """Yield the differences, one for all devices that differ in the same way."""
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for one in found:
        what, _, device = one.what.partition(_OF_DEVICE)
        alike.setdefault((what, one.a, one.b), []).append(device)
    for (what, a, b), devices in alike.items():
        of = f" of devices {', '.join(devices)}" if len(devices) > 1 else _OF_DEVICE + devices[0]
        yield Difference(what + of if any(devices) else what, a, b)


def causes(documents: Sequence[ResultDocument]) -> tuple[str, ...]:
    """Return sentences on the states in the documents that can explain a changed value."""
    every = chain.from_iterable(map(state.causes, documents))
    return tuple(map(state.sentence, state.merged(every)))


def _is_option(what: str) -> bool:
    return what.startswith("option ")


def _facts(documents: Sequence[ResultDocument]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for document in documents:
        for what, value in _of(document):
            found.setdefault(what, set()).add(value)
    return found


def _of(document: ResultDocument) -> Iterator[tuple[str, str]]:
    program, host = document["program"], document["host"]
    yield "clock", document["clock"]
    yield "host", host["hostname"]
    if host.get("scheduler_node"):
        yield "node", str(host.get("scheduler_node"))
    yield "kernel", host["kernel"]
    yield "processor", host["cpu_model"]
    for device in document["devices"]:
        yield "devices", device["name"]
        if device["numa_domain"] is not None:
            yield f"NUMA domain{_OF_DEVICE}{device['index']}", str(device["numa_domain"])
        if device["unique_id"] is not None:
            yield "unique ids", device["unique_id"]
    yield from _of_state(document)
    for what, version in document["versions"].items():
        # Documents of topology from before `inventory` have no runtime, and nics have none.
        asked = document["program"]["name"] != "nics" or what not in ("runtime", "driver")
        if document["program"]["name"] != "topology" and asked:
            yield f"version of {what}", str(version)
    name = program["name"]
    yield f"program {name}", f"{program['version']} {program['commit']} ({program['compiler']})"
    yield "runtime of the programs", program["runtime"]
    node = document.get("node")
    if node is not None:
        yield "node model", f"{node['name']} {node['digest'][:12]}"
        if node["overlay"]:
            yield "overlay", node["overlay"]["name"]
    for variable, value in document["environment"].items():
        if variable not in OF_THE_RUN:
            yield f"environment {variable}", value
    for fault in document["faults_injected"]:
        yield "injected faults", fault
    for option, value in document["options"].items():
        if option not in _NO_OPTIONS:
            yield f"option {option} of {name}", str(value)


def _of_state(document: ResultDocument) -> Iterator[tuple[str, str]]:
    """Yield facts of the set-up, from the state after the run or, if it was killed, before it."""
    both = document.get("state")
    if both is None:
        return
    snapshot = both["after"] or both["before"]
    host = snapshot["host"]
    for what, value in (
        ("frequency governor", host["governor"]),
        ("huge pages reserved", host["huge_pages_reserved"]),
    ):
        if value is not None:
            yield what, str(value)
    for device in snapshot["devices"]:
        of = f"{_OF_DEVICE}{device['index']}"
        items: Mapping[str, Any] = device
        for name, what in FIXED.items():
            if items[name] is not None:
                yield f"{what}{of}", _text(items[name])
        for name, version in (device["firmware"] or {}).items():
            yield f"firmware {name}{of}", version
        if device["pcie"] is not None and device["pcie"]["width"] is not None:
            yield f"PCIe lanes{of}", str(device["pcie"]["width"])
        if device["links"] is not None:
            number, down = device["links"]["number"], device["links"]["down"]
            yield f"links that are up{of}", f"{number - len(down)} of {number}"


def _text(value: str | float | bool) -> str:
    return str(value) if isinstance(value, (str, bool)) else f"{value:g}"
