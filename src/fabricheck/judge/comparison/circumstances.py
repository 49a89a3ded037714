"""What is not the same around the values of two partitions: what an update, or a node, changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabricheck.core.vocabulary import ENV_RESULTS
from fabricheck.results.model import ResultDocument

#: Variables that name where a run wrote, or count it: they differ in every session.
OF_THE_RUN = frozenset(
    {ENV_RESULTS, "OMPI_MCA_initial_wdir", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID"}
)

#: Options that tell what happened, not what was asked for.
_NO_OPTIONS = frozenset({"launches"})


@dataclass(frozen=True)
class Difference:
    """One thing that differs, with its values in A and in B, sorted."""

    what: str
    a: tuple[str, ...]
    b: tuple[str, ...]


def differences(a: Sequence[ResultDocument], b: Sequence[ResultDocument]) -> list[Difference]:
    """Return what differs between the documents of both sides; nothing where one has none."""
    if not a or not b:
        return []
    ours, theirs = _facts(a), _facts(b)
    return [
        Difference(what, tuple(sorted(mine)), tuple(sorted(others)))
        for what in sorted(dict.fromkeys([*ours, *theirs]), key=_is_option)
        if (mine := ours.get(what, set())) != (others := theirs.get(what, set()))
    ]


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
            yield f"NUMA domain of device {device['index']}", str(device["numa_domain"])
        if device["unique_id"] is not None:
            yield "unique ids", device["unique_id"]
    for what, version in document["versions"].items():
        if document["program"]["name"] != "topology":  # which asks the driver only
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
