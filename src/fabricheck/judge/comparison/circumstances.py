"""Differences in the conditions of two partitions, such as an update or another node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from fabricheck.core.grouping import grouped
from fabricheck.core.vocabulary import ENV_RESULTS
from fabricheck.results import state
from fabricheck.results.model import ResultDocument

#: Variables that name or count a run's files; they differ in every session.
OF_THE_RUN = frozenset(
    {ENV_RESULTS, "OMPI_MCA_initial_wdir", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID"}
)

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


@dataclass(frozen=True)
class Fact:
    """A fact of a document: of the device with an index, or of the whole; or an option."""

    what: str
    device: int | None = None
    option: bool = False


def differences(a: Sequence[ResultDocument], b: Sequence[ResultDocument]) -> list[Difference]:
    """Return the differences between the documents of both sides, if both have some.

    Options come last; devices that differ in the same way are one difference.
    """
    ours, theirs = _facts(a), _facts(b)
    facts = dict.fromkeys([*ours, *theirs]) if a and b else {}
    sides = {
        fact: tuple(tuple(sorted(side.get(fact, ()))) for side in (ours, theirs))
        for fact in sorted(facts, key=lambda fact: fact.option)
    }
    alike = grouped(
        ((fact.what, mine, others), fact.device)
        for fact, (mine, others) in sides.items()
        if mine != others
    )
    return [
        Difference(f"{what}{_of_devices(devices)}", mine, others)
        for (what, mine, others), devices in alike.items()
    ]


def _of_devices(devices: Sequence[int | None]) -> str:
    named = [str(device) for device in devices if device is not None]
    return f" of {'device' if len(named) == 1 else 'devices'} {', '.join(named)}" if named else ""


def causes(documents: Sequence[ResultDocument]) -> tuple[str, ...]:
    """Return sentences on the states in the documents that can explain a changed value."""
    every = chain.from_iterable(map(state.causes, documents))
    return tuple(map(state.sentence, state.merged(every)))


def _facts(documents: Sequence[ResultDocument]) -> dict[Fact, set[str]]:
    found = grouped(fact for document in documents for fact in of_document(document))
    return {fact: set(values) for fact, values in found.items()}


def of_document(document: ResultDocument) -> Iterator[tuple[Fact, str]]:
    """Yield what was measured, where, with what, and how."""
    program, host = document["program"], document["host"]
    yield Fact("clock"), document["clock"]
    yield Fact("host"), host["hostname"]
    if host.get("scheduler_node"):
        yield Fact("node"), str(host.get("scheduler_node"))
    yield Fact("kernel"), host["kernel"]
    yield Fact("processor"), host["cpu_model"]
    for device in document["devices"]:
        yield Fact("devices"), device["name"]
        if device["numa_domain"] is not None:
            yield Fact("NUMA domain", device["index"]), str(device["numa_domain"])
        if device["unique_id"] is not None:
            yield Fact("unique ids"), device["unique_id"]
    yield from _of_state(document)
    name = program["name"]
    for what, version in document["versions"].items():
        # Documents of topology from before `inventory` have no runtime, and nics have none.
        if name != "topology" and (name != "nics" or what not in ("runtime", "driver")):
            yield Fact(f"version of {what}"), str(version)
    commit = f"{program['version']} {program['commit']} ({program['compiler']})"
    yield Fact(f"program {name}"), commit
    yield Fact("runtime of the programs"), program["runtime"]
    node = document.get("node")
    if node is not None:
        yield Fact("node model"), f"{node['name']} {node['digest'][:12]}"
        if node["overlay"]:
            yield Fact("overlay"), node["overlay"]["name"]
    for variable, value in document["environment"].items():
        if variable not in OF_THE_RUN:
            yield Fact(f"environment {variable}"), value
    for fault in document["faults_injected"]:
        yield Fact("injected faults"), fault
    for option, value in document["options"].items():
        if option not in _NO_OPTIONS:
            yield Fact(f"option {option} of {name}", option=True), str(value)


def _of_state(document: ResultDocument) -> Iterator[tuple[Fact, str]]:
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
            yield Fact(what), str(value)
    for device in snapshot["devices"]:
        index = device["index"]
        items: Mapping[str, Any] = device
        for name, what in FIXED.items():
            if items[name] is not None:
                yield Fact(what, index), _text(items[name])
        for name, version in (device["firmware"] or {}).items():
            yield Fact(f"firmware {name}", index), version
        if device["pcie"] is not None and device["pcie"]["width"] is not None:
            yield Fact("PCIe lanes", index), str(device["pcie"]["width"])
        if device["links"] is not None:
            number, down = device["links"]["number"], device["links"]["down"]
            yield Fact("links that are up", index), f"{number - len(down)} of {number}"


def _text(value: str | float | bool) -> str:
    return str(value) if isinstance(value, (str, bool)) else f"{value:g}"
