"""What must hold of a result document before one of its numbers is believed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabricheck.core.vocabulary import EXIT_MEANING, BytesOfCopy
from fabricheck.results.model import ResultDocument, Series
from fabricheck.rfm.metrics import Figure, where_measured

#: States of a job that was ended from outside, whatever its exit code (Slurm's words).
ENDED_FROM_OUTSIDE = {
    "BOOT_FAIL": "was not started, because its node did not boot",
    "CANCELLED": "was ended from outside: its job was cancelled",
    "DEADLINE": "was ended from outside: its job reached its deadline",
    "NODE_FAIL": "was ended from outside: its node failed",
    "OUT_OF_MEMORY": "was ended from outside: its job had no memory left",
    "PREEMPTED": "was ended from outside: its job was preempted",
    "TIMEOUT": "was ended from outside: its job reached its time limit",
}

#: Those of them that say nothing of the node.
ENDED_BY_SCHEDULER = frozenset({"CANCELLED", "DEADLINE", "PREEMPTED"})


@dataclass(frozen=True)
class Bound:
    """A limit that no true measurement passes.

    A bandwidth in GB/s cannot be above it, a latency in us not below it.

    value: in the unit of the metric.
    origin: published or derived.
    how: where the value is from, as the rest of a sentence.
    per_device: true when the devices of a sum each have it for themselves.
    bytes_counted: ``read+write`` of a bound on what one memory reads and writes together, which a
        copy within it loads twice for each byte that it counts once.
    """

    value: float
    origin: str
    how: str
    per_device: bool = False
    bytes_counted: BytesOfCopy = "once"


def exit_sentence(
    program: str,
    exit_code: int | None,
    document: ResultDocument | None,
    state: str | None = None,
    nodes: Sequence[str] = (),
    awaited: Sequence[str] = (),
) -> str:
    """Say what an exit code other than 0 means, with the document's own message when it has one.

    :param state: that of the job, as the scheduler says it; it may know more than the exit code.
    :param nodes: those on which the job ran.
    :param awaited: those that it was to run on.
    """
    if state == "CANCELLED" and awaited and not nodes:
        return (
            f"{program} was never started: its job waited for {_nodes(awaited)}, and was cancelled."
        )
    if state in ENDED_FROM_OUTSIDE:
        on = f"on {_nodes(nodes)} " if nodes else ""
        meaning = f"{on}{ENDED_FROM_OUTSIDE[state]}"
    elif exit_code is None:
        meaning = "was ended from outside, without an exit code"
    elif exit_code > 128:
        meaning = f"was ended by signal {exit_code - 128} (exit code {exit_code})"
    else:
        known = EXIT_MEANING.get(exit_code, "not one of its own exit codes")
        meaning = f"ended with exit code {exit_code} ({known})"
    message = document["outcome"]["message"] if document else None
    return f"{program} {meaning}: {message}" if message else f"{program} {meaning}."


def _nodes(names: Sequence[str]) -> str:
    return f"node{'s' if len(names) > 1 else ''} {', '.join(names)}"


def document_faults(document: ResultDocument, program: str, runtime: str) -> Iterator[str]:
    """Yield one sentence for each reason not to believe the document.

    :param program: the program that the check ran.
    :param runtime: the runtime that the environment names.
    """
    node = document["host"]["hostname"]
    if not document["complete"]:
        yield f"The result of {program} on node {node} is incomplete: the run did not finish."
    outcome = document["outcome"]
    if outcome["status"] != "good":
        said = f": {outcome['message']}" if outcome["message"] else "."
        yield f"The outcome of {program} on node {node} is {outcome['status']}{said}"
    found = document["program"]
    if found["name"] != program:
        yield f"The result on node {node} is of {found['name']}, and the check ran {program}."
    if found["runtime"] != runtime:
        yield (
            f"{program} on node {node} ran with the runtime {found['runtime']}, and the "
            f"environment names {runtime}."
        )
    if (document["clock"] == "simulated") != (runtime == "sim"):
        yield (
            f"The times of {program} on node {node} are {document['clock']}, which the runtime "
            f"{runtime} cannot give."
        )
    if document["faults_injected"]:
        yield (
            f"{program} on node {node} ran with faults made on purpose: "
            f"{', '.join(document['faults_injected'])}."
        )
    for series in document["series"]:
        yield from verification_faults(document, series)


def described(document: ResultDocument, series: Series) -> str:
    """Name a series by operation, size, pair or devices, and node."""
    where = where_measured(document, (series,))
    return f"{series['operation']} of {series['bytes']} bytes by {where}"


def verification_faults(document: ResultDocument, series: Series) -> Iterator[str]:
    """Yield what is wrong with the data of a series, in one sentence."""
    what = described(document, series)
    verification = series["verification"]
    if verification["errors"]:
        first = verification["first_mismatch"]
        detail = ""
        if first:
            holder = "host memory" if first["device"] is None else f"device {first['device']}"
            detail = (
                f", first at offset {first['offset_bytes']} of {holder}: expected "
                f"{first['expected']}, found {first['found']}"
            )
        yield f"{what[0].upper()}{what[1:]} left {verification['errors']} wrong words{detail}."


def figure_faults(
    document: ResultDocument,
    figures: Iterable[Figure],
    bound_of: Callable[[Series], Bound | None],
) -> Iterator[str]:
    """Yield one sentence for each series of the metrics that cannot be true.

    :param bound_of: the bound for a series; ``None`` where nothing is stated, which is a fault too.
    """
    # Several metrics are made of the same series (worst and median): one sentence for all of them.
    metrics: dict[int, list[str]] = {}
    measured: dict[int, Series] = {}
    for figure in figures:
        for series in figure.series:
            metrics.setdefault(id(series), []).append(figure.metric.name)
            measured[id(series)] = series
    for identity, series in measured.items():
        reason = _impossible(series, bound_of(series))
        if reason:
            yield (
                f"Metric {', '.join(metrics[identity])}: {where_measured(document, (series,))} "
                f"reported {series['median']:g} {series['unit']}, {reason}."
            )


def _impossible(series: Series, bound: Bound | None) -> str | None:
    value, unit = series["median"], series["unit"]
    if not math.isfinite(value) or value <= 0:
        return "which is no measurement"
    if bound is None:
        return "and the partition states no physical bound in that unit"
    together = len(series["device_set"]) if bound.per_device and series["role"] == "sum" else 1
    limit = bound.value * together
    if bound.bytes_counted == "read+write" and series["bytes_counted"] == "once":
        limit /= 2
    if series["better"] == "higher" and value > limit:
        side = "above"
    elif series["better"] == "lower" and value < limit:
        side = "below"
    else:
        return None
    return f"{side} the {bound.origin} physical bound of {limit:g} {unit} ({bound.how})"
