"""Which result documents count: those of the requested run, whole, with right and possible values.

A valid document can still be that of another run, another command line or other devices, contain
less than the program promises, or a value beyond a physical bound: the peaks of the node model, or
values that a site states. Each is one sentence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fabricheck.core.show import enumerated, listed
from fabricheck.core.text import capitalized, count
from fabricheck.core.vocabulary import BytesOfCopy
from fabricheck.node import NodeModel
from fabricheck.results import state
from fabricheck.results.model import Rank, ResultDocument, Series
from fabricheck.results.series import (
    BETWEEN_NODES,
    device_pair,
    host_domains,
    is_from_tool,
    is_too_noisy,
    shares_key,
)
from fabricheck.rfm.metrics import Figure, where_measured

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

    architectures: of each device of the partition; ``None`` where any devices may be found.

    since: when the job was submitted, in s since 1970.

    node: the simulated node as its platform file names it (model, digest, overlay); ``None`` where
    times are measured.
    """

    program: str
    runtime: str
    arguments: Sequence[str]
    architectures: Sequence[str] | None
    since: float
    node: Mapping[str, Any] | None = None


def faults(document: ResultDocument, requested: Requested) -> Iterator[str]:
    """Yield one sentence for each reason not to accept a document as the result of a run."""
    yield from _outcome_faults(document, requested)
    for series in document["series"]:
        yield from verification_faults(document, series)
    yield from _run_faults(document, requested)
    yield from device_faults(document, requested.architectures)
    shares = Counter(
        shares_key(series) for series in document["series"] if series["role"] == "share"
    )
    for series in document["series"]:
        # The sum of a copy both ways between host and device has the bytes of both messages.
        both = series["experiment"] in ("E2", "E4") and series["operation"] == "both"
        parts = 2 if both else max(shares[shares_key(series)], 1)
        yield from _quality_faults(document, series, parts)
    yield from clock_faults(document)


def _outcome_faults(document: ResultDocument, requested: Requested) -> Iterator[str]:
    program, node = requested.program, document["host"]["hostname"]
    if not document["complete"]:
        yield f"The result of {program} on node {node} is incomplete: the run did not finish."
    outcome = document["outcome"]
    if outcome["status"] != "good":
        message = f": {outcome['message']}" if outcome["message"] else "."
        yield f"The outcome of {program} on node {node} is {outcome['status']}{message}"
    measured_by = document["program"]
    if measured_by["name"] != program:
        other = measured_by["name"]
        yield f"The result on node {node} is from {other}, but the check ran {program}."
    yield from runtime_faults(document, requested)
    if document["faults_injected"]:
        yield (
            f"{program} on node {node} ran with injected faults: "
            f"{listed(document['faults_injected'])}."
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
        yield f"{what} left {count(verification['errors'], 'wrong word')}{detail}."


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


def _simulated(node: Mapping[str, Any] | None) -> str:
    if node is None:
        return "no simulated node"
    changed = f" with the overlay {node['overlay']['name']}" if node["overlay"] else ""
    return f"the simulated node {node['name']}{changed} (digest {node['digest'][:12]})"


def device_faults(document: ResultDocument, architectures: Sequence[str] | None) -> Iterator[str]:
    """Yield one sentence if a node has other devices than the check's partition states."""
    # ROCm appends the modes of a device to its architecture: gfx90a:sramecc+:xnack-.
    present = Counter(device["arch"].split(":")[0] for device in document["devices"])
    wanted = present if architectures is None else Counter(architectures)
    if present != wanted:
        yield (
            f"Node {document['host']['hostname']} has {_count(present)}; the partition states "
            f"{_count(wanted)}."
        )


def _count(architectures: Counter[str]) -> str:
    named = (f"{count(number, 'device')} {name}" for name, number in sorted(architectures.items()))
    return enumerated(named) or "no device"


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
        yield f"{capitalized(what)} has {count(number, 'sample')}; at least {fewest} are required."
    if is_too_noisy(series) and document["outcome"]["status"] == "good":
        yield f"{capitalized(what)} is noisy, but the outcome is good."


def _least_checked(series: Series, simulated: bool) -> int:
    if series["operation"] == "chase":
        return CHASE_BYTES
    words = series["bytes"] // 8 * 8
    return min(words, SIMULATED_SLICE) if simulated else words


def _apart(ratio: float) -> float:
    return max(ratio, 1 / ratio) if ratio > 0 else float("inf")


#: The fraction of bytes that may come from caches for larger arrays (`regime` memory: at least four
#: times the last-level cache).
CACHED = 0.25


@dataclass(frozen=True)
class Bound:
    """A limit that no correct measurement exceeds.

    A bandwidth in GB/s cannot be above it, a latency in us not below it.

    value: in the unit of the metric. origin: published or derived. how: the source of the value, as
    the rest of a sentence. per_device: true if each device of a sum has it to itself.
    bytes_counted: ``read+write`` for a bound on reads and writes of one memory together; a copy
    within the memory loads it twice for each byte that it counts once.
    """

    value: float
    origin: str
    how: str
    per_device: bool = False
    bytes_counted: BytesOfCopy = "once"


def node_bound(node: NodeModel, series: Series, ranks: Sequence[Rank] = ()) -> Bound | None:
    """Return the bound of a series from the theoretical peaks of a node.

    A bandwidth between devices is bounded by the widest path of the pair, a bandwidth with the host
    by the host link, a local bandwidth by device memory, and one between nodes by the NICs. A sum
    is bounded by the sum of the bounds of its members. Where bytes are counted read plus written, a
    link that carries each byte once allows twice its peak: both directions, or the local half of a
    one-way transfer. Beyond the caches, a transfer with the host is also bounded by the memory of
    the NUMA domains that it verifiably uses. A latency is bounded by zero only.

    :param node: the healthy node, without an overlay.
    :param ranks: those of the document; they tell nodes apart, and have the NICs that each used.
    :returns: ``None`` where the model states no peak for the path of the data.
    """
    bound = _bound(node, series, ranks)
    return None if bound is None or math.isinf(bound.value) else bound


def _bound(node: NodeModel, series: Series, ranks: Sequence[Rank]) -> Bound | None:
    if series["unit"] == "us":
        return Bound(0.0, "derived", "a time is positive")
    if series["experiment"] == BETWEEN_NODES:
        return _between_nodes(node, series, ranks)
    if series["bytes_counted"] == "bus":
        return _of_a_bus(node, series["device_set"])
    active = series["device_set"]
    places = {series["source"]["memory"], series["destination"]["memory"]}
    if "peer" in places or (series["engine"] == "mpi" and places == {"device"}):
        if series["role"] == "single" and len(active) == 1:
            return _within_a_device(node, series)
        return _between_devices(node, series)
    executing = active if series["device"] is None else [series["device"]]
    if places == {"device"}:
        peaks = [node.device(device).memory_peak_gbs for device in executing]
        known = [peak for peak in peaks if peak is not None]
        if len(known) < len(peaks):
            return None
        return Bound(sum(known), "derived", f"{node.name}: {sum(known):g} GB/s of device memory")
    bounds = _with_the_host(node, series, executing)
    return min(bounds, key=lambda bound: bound.value, default=None)


def _between_devices(node: NodeModel, series: Series) -> Bound:
    active = device_pair(series)
    ways = 2 if series["bytes_counted"] == "read+write" else 1
    pairs = list(zip(active[::2], active[1::2], strict=True))
    peak = sum(node.peer_peak_gbs(*pair) for pair in pairs)
    if series["role"] == "sum" and len(pairs) == 1:
        ways = 2  # both directions of the one pair
    how = f"{ways} x {peak:g} GB/s of the widest path"
    return Bound(ways * peak, "derived", f"{node.name}: {how}")


def _between_nodes(node: NodeModel, series: Series, ranks: Sequence[Rank]) -> Bound | None:
    """Bound a bandwidth between nodes by the NICs, each way.

    A rank may use several NICs, as UCX does and MPICH can: all of its node, unless counters tell.
    """
    if not node.nics:
        return None
    all_nics = sum(nic.peak_gbs for nic in node.nics)
    if series["bytes_counted"] == "bus":
        # For each byte that a node's NICs send, of n ranks on two nodes; over more nodes the NICs
        # send more, and allow less.
        ranked = len(series.get("ranks") or series["device_set"])
        divided = series["operation"] in ("allreduce", "allgather", "reduce_scatter")
        times = 2 * (ranked - 1) / ranked if divided else 1.0
        how = f"{times:g} x {all_nics:g} GB/s of all NICs of a node, which send each byte once"
        return Bound(times * all_nics, "derived", f"{node.name}: {how}")
    ways = 2 if series["direction"] == "both-ways" else 1
    senders = (series.get("ranks") or [])[::2]
    known = {rank["rank"]: rank for rank in ranks}
    if series["role"] == "sum":
        nodes = len({known[sender]["host"] for sender in senders if sender in known}) or 1
        peak, what = nodes * all_nics, f"all NICs of {'a node' if nodes == 1 else f'{nodes} nodes'}"
    else:
        peak, what = _of_used_nics(node, known[senders[0]] if senders and known else None)
    how = f"{ways} x {peak:g} GB/s of {what}"
    return Bound(ways * peak, "derived", f"{node.name}: {how}")


def _of_used_nics(node: NodeModel, rank: Rank | None) -> tuple[float, str]:
    """Return the sum of the peaks of the NICs that a rank used, and these in words."""
    network = None if rank is None else rank.get("network")
    used = {nic["name"] for nic in network["nics"]} if network else set()
    peaks = [nic.peak_gbs for nic in node.nics if nic.name in used]
    if not peaks or len(peaks) < len(used):
        return sum(nic.peak_gbs for nic in node.nics), "all NICs of a node"
    return sum(peaks), f"NIC {listed(sorted(used))}"


def _within_a_device(node: NodeModel, series: Series) -> Bound | None:
    """Bound a message between two ranks on one device: its memory reads and writes the message."""
    peak = node.device(series["device_set"][0]).memory_peak_gbs
    if peak is None:
        return None
    counted: BytesOfCopy = "read+write" if series["regime"] == "memory" else "once"
    how = f"{peak:g} GB/s of device memory, which reads and writes each byte"
    return Bound(peak, "derived", f"{node.name}: {how}", bytes_counted=counted)


def _of_a_bus(node: NodeModel, devices: Sequence[int]) -> Bound:
    """Bound a bus bandwidth, the rate at which a device sends and receives.

    A switch that reduces and copies by itself (NVLink SHARP) halves what devices send.
    """
    peaks = node.direct_peaks_gbs
    if node.switch is not None:
        peak, ways = max(max(row) for row in peaks), 2
    else:
        peak, ways = max(sum(peaks[device]) for device in devices), 1
    how = f"{ways} x {peak:g} GB/s of all links of a device"
    return Bound(ways * peak, "derived", f"{node.name}: {how}")


def _with_the_host(node: NodeModel, series: Series, executing: Sequence[int]) -> Iterator[Bound]:
    """Yield the bounds of a transfer between host memory and devices: the link, and the memory."""
    read_and_written = series["bytes_counted"] == "read+write"
    both_ways = series["direction"] == "both-ways" and series["role"] == "sum"
    ways = 2 if read_and_written or both_ways else 1
    places = (series["source"], series["destination"])
    # A CPU accesses managed memory that is on the host: no device takes part.
    if series["engine"] != "cpu" or any(place["device"] is not None for place in places):
        peak = sum(node.device(device).host_link_gbs for device in executing)
        how = f"{ways} x {peak:g} GB/s of the host link"
        yield Bound(ways * peak, "derived", f"{node.name}: {how}")
    domains = host_domains(series)
    peaks = [domain.memory_peak_gbs for domain in node.domains if domain.index in domains]
    stated = [peak for peak in peaks if peak is not None]
    if series["regime"] == "memory" and stated and len(stated) == len(domains):
        how = f"{sum(stated):g} GB/s of NUMA domain {listed(map(str, domains))}"
        part = f"and at most {CACHED:g} of the bytes from caches"
        yield Bound(sum(stated) / (1 - CACHED), "derived", f"{node.name}: {how}, {part}")


def figure_faults(
    document: ResultDocument,
    figures: Iterable[Figure],
    bound_of: Callable[[Series], Bound | None],
    may_be_unknown: bool = False,
) -> Iterator[str]:
    """Yield one sentence for each series of the metrics that exceeds its physical bound.

    :param bound_of: returns the bound of a series; ``None`` if none is stated.
    :param may_be_unknown: whether that is no fault, as where the node model has an unknown peak.
    """
    # Several metrics may use the same series (worst and median): one sentence for all of them.
    metrics: dict[int, list[str]] = {}
    measured: dict[int, Series] = {}
    for figure in figures:
        for series in figure.series:
            metrics.setdefault(id(series), []).append(figure.metric.name)
            measured[id(series)] = series
    for identity, series in measured.items():
        reason = _impossible(series, bound_of(series), may_be_unknown)
        if reason:
            yield (
                f"Metric {listed(metrics[identity])}: {where_measured(document, (series,))} "
                f"reported {series['median']:g} {series['unit']}, {reason}."
            )


def _impossible(series: Series, bound: Bound | None, may_be_unknown: bool) -> str | None:
    value, unit = series["median"], series["unit"]
    if not math.isfinite(value) or value <= 0:
        return "which is not a measurement"
    if bound is None and may_be_unknown:
        return None
    if bound is None:
        return "but the partition states no physical bound in that unit"
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
