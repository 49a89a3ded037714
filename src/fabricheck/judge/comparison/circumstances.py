"""Differences in the conditions of two partitions, such as an update or another node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from fabricheck.core.grouping import grouped
from fabricheck.core.show import numbered
from fabricheck.core.vocabulary import ENV_NODE_NAME, ENV_RESULTS
from fabricheck.node import products
from fabricheck.results import state
from fabricheck.results.causes import merged, sentence_of
from fabricheck.results.model import DeviceState, ResultDocument
from fabricheck.schedulers import table

#: Variables that name or count a run's files; they differ in every session.
OF_THE_RUN = frozenset(
    {
        ENV_NODE_NAME,
        ENV_RESULTS,
        "OMPI_MCA_initial_wdir",
        "OMPI_MCA_ess_base_jobid",
        *table.allocation_variables(),
    }
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
class ChangedCircumstance:
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


def differences(
    a: Sequence[ResultDocument], b: Sequence[ResultDocument]
) -> list[ChangedCircumstance]:
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
        ChangedCircumstance(f"{what} of {numbered('device', on)}" if on else what, mine, others)
        for (what, mine, others), devices in alike.items()
        for on in [[device for device in devices if device is not None]]
    ]


def causes(documents: Sequence[ResultDocument]) -> tuple[str, ...]:
    """Return sentences on the states in the documents that can explain a changed value."""
    causes_of_all = chain.from_iterable(map(state.causes, documents))
    return tuple(map(sentence_of, merged(causes_of_all)))


def _facts(documents: Sequence[ResultDocument]) -> dict[Fact, set[str]]:
    facts = grouped(fact for document in documents for fact in of_document(document))
    return {fact: set(values) for fact, values in facts.items()}


def of_document(document: ResultDocument) -> Iterator[tuple[Fact, str]]:
    """Yield what was measured, where, with what, and how."""
    program, host, node = document["program"], document["host"], document.get("node")
    yield from _known({
        "clock": document["clock"],
        "host": host["hostname"],
        "node": host.get("scheduler_node") or None,
        "kernel": host["kernel"],
        "processor": host["cpu_model"],
    })  # fmt: skip
    for device in document["devices"]:
        yield from _known({"devices": products.label(device)})
        yield from _known({"NUMA domain": device["numa_domain"]}, device["index"])
        yield from _known({"unique ids": device["unique_id"]})
    both = document.get("state")
    # The state after the run or, if it was killed, before it.
    if both is not None and (snapshot := both["after"] or both["before"]) is not None:
        of_host = snapshot["host"]
        yield from _known({
            "frequency governor": of_host["governor"],
            "huge pages reserved": of_host["huge_pages_reserved"],
        })  # fmt: skip
        for device_state in snapshot["devices"]:
            yield from _known(_set_up(device_state), device_state["index"])
    name = program["name"]
    yield from _known({
        f"version of {what}": str(version)
        for what, version in document["versions"].items()
        # Documents of topology from before `inventory` have no runtime, and nics have none.
        if name != "topology" and (name != "nics" or what not in ("runtime", "driver"))
    })  # fmt: skip
    yield from _known({
        f"program {name}": f"{program['version']} {program['commit']} ({program['compiler']})",
        "runtime of the programs": program["runtime"],
        "node model": node and f"{node['name']} {node['digest'][:12]}",
        "overlay": node and node["overlay"] and node["overlay"]["name"],
    })  # fmt: skip
    variables = document["environment"].items()
    yield from _known({f"environment {k}": value for k, value in variables if k not in OF_THE_RUN})
    yield from ((Fact("injected faults"), fault) for fault in document["faults_injected"])
    for option, value in document["options"].items():
        if option not in _NO_OPTIONS:
            yield Fact(f"option {option} of {name}", option=True), str(value)


def _set_up(device: DeviceState) -> dict[str, object]:
    """Return what a device's state has of its set-up."""
    items: Mapping[str, Any] = device
    pcie, links = device["pcie"], device["links"]
    firmware = (device["firmware"] or {}).items()
    return {
        **{what: items[name] for name, what in FIXED.items()},
        **{f"firmware {name}": version for name, version in firmware},
        "PCIe lanes": pcie and pcie["width"],
        "links that are up": links
        and f"{links['number'] - len(links['down'])} of {links['number']}",
    }


def _known(values: Mapping[str, object], device: int | None = None) -> Iterator[tuple[Fact, str]]:
    """Yield the facts that are known: of a device, or of the whole."""
    for what, value in values.items():
        if value is not None:
            yield Fact(what, device), f"{value:g}" if isinstance(value, float) else str(value)
