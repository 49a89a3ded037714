"""Match of a result document with the requested run: complete, with right data.

A valid document can still be that of another run, another command line or other devices, or contain
less than the program promises. Each difference is one sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fabricheck.core.text import capitalized, count
from fabricheck.results import state
from fabricheck.results.model import ResultDocument, Series
from fabricheck.results.series import at_once, is_from_tool, is_too_noisy
from fabricheck.rfm.metrics import where_measured

#: Seconds by which the clocks of the nodes of a cluster may differ.
CLOCK_SKEW_S = 10.0

#: The fewest samples of a measured series; with fewer, one outlier destroys the interval.
LEAST_SAMPLES = 7

#: The bytes of a large transfer that a simulated node really moves (src/runtime/sim/machine.cpp).
SIMULATED_SLICE = 1 << 20

#: The experiment whose operations are called once to verify their data, and are not timed.
VERIFYING = "E12"

#: The bytes that a pointer chase compares: the word at which it ends.
CHASE_BYTES = 8

#: The largest ratio between the host's clock and the device's events, in either direction. A launch
#: and a wait take some 10 us of a batch of 10 ms; 10 % is a hundred times that.
CLOCKS_DIFFER = 1.1

#: The same on the host runtime, where the waiting thread shares the cores with the measuring
#: threads: it may wait two time slices of the kernel (4 ms each) longer than a batch of 10 ms.
CLOCKS_DIFFER_ON_HOST = 2.0


@dataclass(frozen=True)
class Requested:
    """The run that a check requested.

    program: its name.

    runtime: the runtime that the environment names.

    arguments: the command line, without the program.

    architectures: of each device of the partition.

    since: when the job was submitted, in s since 1970.

    node: the simulated node as its platform file names it (model, digest, overlay); ``None`` where
    times are measured.
    """

    program: str
    runtime: str
    arguments: Sequence[str]
    architectures: Sequence[str]
    since: float
    node: Mapping[str, Any] | None = None


def faults(document: ResultDocument, requested: Requested) -> Iterator[str]:
    """Yield one sentence for each reason not to accept a document as the result of a run."""
    yield from _outcome_faults(document, requested)
    for series in document["series"]:
        yield from verification_faults(document, series)
    yield from _run_faults(document, requested)
    yield from device_faults(document, requested.architectures)
    shares = Counter(at_once(one) for one in document["series"] if one["role"] == "share")
    for series in document["series"]:
        yield from _series_faults(document, series, requested)
        # Of a copy both ways between host and device, the sum has the bytes of both messages.
        both = series["experiment"] in ("E2", "E4") and series["operation"] == "both"
        parts = 2 if both else max(shares[at_once(series)], 1)
        yield from _quality_faults(document, series, parts)
    yield from clock_faults(document)


def _outcome_faults(document: ResultDocument, requested: Requested) -> Iterator[str]:
    program, node = requested.program, document["host"]["hostname"]
    if not document["complete"]:
        yield f"The result of {program} on node {node} is incomplete: the run did not finish."
    outcome = document["outcome"]
    if outcome["status"] != "good":
        said = f": {outcome['message']}" if outcome["message"] else "."
        yield f"The outcome of {program} on node {node} is {outcome['status']}{said}"
    found = document["program"]
    if found["name"] != program:
        yield f"The result on node {node} is from {found['name']}, but the check ran {program}."
    yield from runtime_faults(document, requested)
    if document["faults_injected"]:
        yield (
            f"{program} on node {node} ran with injected faults: "
            f"{', '.join(document['faults_injected'])}."
        )


def runtime_faults(document: ResultDocument, requested: Requested) -> Iterator[str]:
    """Yield one sentence if a program ran with another runtime or clock than requested."""
    program, runtime = requested.program, requested.runtime
    node, ran_with = document["host"]["hostname"], document["program"]["runtime"]
    if ran_with != runtime:
        yield (
            f"{program} on node {node} ran with runtime {ran_with}; the environment requires "
            f"{runtime}."
        )
    if (document["clock"] == "simulated") != (runtime == "sim"):
        yield (
            f"The times of {program} on node {node} are {document['clock']}, which runtime "
            f"{runtime} cannot produce."
        )


def described(document: ResultDocument, series: Series) -> str:
    """Describe a series by operation, size, pair or devices, and node."""
    where = where_measured(document, (series,))
    return f"{series['operation']} of {series['bytes']} bytes by {where}"


def verification_faults(document: ResultDocument, series: Series) -> Iterator[str]:
    """Yield one sentence for wrong data of a series."""
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
        what = capitalized(described(document, series))
        yield f"{what} left {verification['errors']} wrong words{detail}."


def clock_faults(document: ResultDocument) -> Iterator[str]:
    """Yield one sentence for each series with two contradicting clocks."""
    late = state.busy_host(document)
    for series in _clocks_apart(document):
        if late is None or not _host_longer(series):
            what = capitalized(described(document, series))
            yield f"{what}: {_both_clocks(series)}, so one of them is wrong."


def clock_remarks(document: ResultDocument) -> Iterator[str]:
    """Yield one sentence for each series whose clocks may differ in a correct measurement.

    A sum spans several devices, so its event time and the host's time can differ by more than 10 %.
    A busy host's time is longer, because its thread waits for a core before it notices the end.
    """
    for series in document["series"]:
        clock = series["host_clock"]
        if clock and series["role"] == "sum" and _apart(clock["ratio"]) > CLOCKS_DIFFER:
            what = capitalized(described(document, series))
            yield f"{what}: {_both_clocks(series)}."
    late = state.busy_host(document)
    for series in _clocks_apart(document) if late is not None else ():
        if late is not None and _host_longer(series):
            what = capitalized(described(document, series))
            yield f"{what}: {_both_clocks(series)}: the host was late, as {late.clause()}."


def _clocks_apart(document: ResultDocument) -> Iterator[Series]:
    """Yield the series whose two clocks should agree but do not."""
    on_host = document["program"]["runtime"] == "host"
    for series in document["series"]:
        clock = series["host_clock"]
        if clock and series["role"] == "single" and series["regime"] == "memory":
            late = on_host and _host_longer(series)
            if _apart(clock["ratio"]) > (CLOCKS_DIFFER_ON_HOST if late else CLOCKS_DIFFER):
                yield series


def _host_longer(series: Series) -> bool:
    """Whether the host's time is longer, because of waiting for shared cores."""
    ratio = series["host_clock"]["ratio"] if series["host_clock"] else 1.0
    return ratio > 1 if series["unit"] == "us" else ratio < 1


def _both_clocks(series: Series) -> str:
    ratio = series["host_clock"]["ratio"] if series["host_clock"] else 1.0
    devices = "devices'" if series["role"] == "sum" else "device's"
    measured = f"{series['median']:g} {series['unit']}"
    return f"the host's clock gives {ratio:.3g} of the {devices} {measured}"


def _run_faults(document: ResultDocument, requested: Requested) -> Iterator[str]:
    node, program = document["host"]["hostname"], requested.program
    early = requested.since - datetime.fromisoformat(document["started"]).timestamp()
    if early > CLOCK_SKEW_S:
        yield (
            f"The result on node {node} was started {early:.0f} s before {program} was "
            "submitted: it belongs to another run, or the node's clock is wrong."
        )
    simulated = document.get("node")
    if simulated != requested.node:
        yield (
            f"The result is from {_simulated(simulated)}, but the check requested "
            f"{_simulated(requested.node)} of {program}."
        )
    given = document["arguments"][1:]
    if given != list(requested.arguments):
        yield (
            f"The result on node {node} is from '{' '.join(given)}', but the check ran {program} "
            f"with '{' '.join(requested.arguments)}'."
        )
    if "--noise-limit" in requested.arguments:
        limit = requested.arguments[list(requested.arguments).index("--noise-limit") + 1]
        used = document["options"].get("noise_limit")
        if used != float(limit):
            yield f"{program} on node {node} used the noise limit {used}; {limit} was requested."


def _simulated(node: Mapping[str, Any] | None) -> str:
    if node is None:
        return "no simulated node"
    changed = f" with the overlay {node['overlay']['name']}" if node["overlay"] else ""
    return f"the simulated node {node['name']}{changed} (digest {node['digest'][:12]})"


def device_faults(document: ResultDocument, architectures: Sequence[str]) -> Iterator[str]:
    """Yield one sentence if a node has other devices than the check's partition states."""
    # ROCm appends the modes of a device to its architecture: gfx90a:sramecc+:xnack-.
    found = Counter(device["arch"].split(":")[0] for device in document["devices"])
    wanted = Counter(architectures)
    if found != wanted:
        yield (
            f"Node {document['host']['hostname']} has {_count(found)}; the partition states "
            f"{_count(wanted)}."
        )


def _count(architectures: Counter[str]) -> str:
    named = (f"{count(number, 'device')} {name}" for name, number in sorted(architectures.items()))
    return " and ".join(named) or "no device"


def _series_faults(document: ResultDocument, series: Series, requested: Requested) -> Iterator[str]:
    """Yield the fields of a series that contradict the command line."""
    memory = {series["source"]["memory"], series["destination"]["memory"]} - {"device", "peer"}
    if series["engine"] == "cpu":
        memory.discard("host-pageable")  # the CPU's own side
    found: dict[str, list[str]] = {
        "--operations": [series["operation"]],
        "--memory": sorted(one.removeprefix("host-") for one in memory),
        "--expect": [series.get("movement") or "of no movement"],
    }
    arguments = list(requested.arguments)
    for option in [option for option in found if option in arguments]:
        wanted = arguments[arguments.index(option) + 1]
        allowed = set(wanted.split(","))
        if option == "--expect":
            # A prefetch has its own movement, whatever an access does; and on some nodes the host
            # accesses pages in place, though kernels migrate them.
            allowed |= {"prefetch"} | ({"zero-copy"} if series["engine"] == "cpu" else set())
        for one in found[option]:
            if one not in allowed:
                yield (
                    f"{capitalized(described(document, series))} is {one}, but the check ran "
                    f"{requested.program} with {option} {wanted}."
                )


def _quality_faults(document: ResultDocument, series: Series, parts: int) -> Iterator[str]:
    what = described(document, series)
    simulated = document["clock"] == "simulated"
    least = _least_checked(series, simulated) * (parts if series["role"] == "sum" else 1)
    checked = series["verification"]["bytes_checked"]
    if checked < least:
        yield f"Of {what} only {checked} bytes were verified; at least {least} are required."
    verified_only = series["experiment"] == VERIFYING
    fewest = 1 if simulated or verified_only or is_from_tool(document) else LEAST_SAMPLES
    option = document["options"].get("samples")
    if isinstance(option, int) and not verified_only:
        fewest = max(fewest, option)
    if len(series["samples"]) < fewest:
        number = len(series["samples"])
        yield f"{capitalized(what)} has {number} sample(s); at least {fewest} are required."
    if is_too_noisy(series) and document["outcome"]["status"] == "good":
        yield f"{capitalized(what)} is noisy, but the outcome is good."


def _least_checked(series: Series, simulated: bool) -> int:
    if series["operation"] == "chase":
        return CHASE_BYTES
    words = series["bytes"] // 8 * 8
    return min(words, SIMULATED_SLICE) if simulated else words


def _apart(ratio: float) -> float:
    return max(ratio, 1 / ratio) if ratio > 0 else float("inf")
