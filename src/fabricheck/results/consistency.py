"""Consistency of a result document beyond its schema.

The programs that write documents are tested with the suite, so their form is not checked again.
Checked is what a wrong machine, a damaged file or a document of another run would show: clocks,
medians, noise, that data was verified, and that what a document refers to is in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime

from fabricheck.core import statistics
from fabricheck.core.vocabulary import REACHED_THE_END
from fabricheck.results.model import ResultDocument, RoundsMember, Series
from fabricheck.results.series import is_from_tool, is_too_noisy

#: Largest relative difference between a stated and a recomputed value: decimal rounding only.
TOLERANCE = 1e-6

#: Largest difference from 1 of the host clock's ratio that counts as agreement.
HOST_CLOCK_AGREES = 0.02


#: Places, as JSON paths, and reasons.
Findings = Iterator[tuple[str, str]]


def contradictions(document: ResultDocument) -> Findings:
    """Yield what contradicts itself in a document that satisfies the schema."""
    yield from _run(document)
    yield from _devices_and_ranks(document)
    yield from _state(document)
    if (rounds := document.get("rounds")) is not None:
        yield from _rounds(rounds, len(document.get("ranks") or ()))
    good = document["outcome"]["status"] == "good"
    simulated = document["clock"] == "simulated"
    for index, series in enumerate(document["series"]):
        for field, reason in (
            *_references(series, document),
            *_statistics(series),
            *_host_clock(series, simulated),
            *_verification(series, good),
        ):
            yield f"$.series[{index}].{field}", reason
    yield from _noise(document)


def _run(document: ResultDocument) -> Findings:
    status, rounds = document["outcome"]["status"], document.get("rounds")
    if document["complete"] != (status in REACHED_THE_END):
        complete = "true" if document["complete"] else "false"
        yield "$.complete", f"is {complete}, but the outcome's status is {status}"
    if status == "good" and document["outcome"]["exit_code"] != 0:
        code = document["outcome"]["exit_code"]
        yield "$.outcome.exit_code", f"is {code}, but the outcome is good"
    if (document["program"]["runtime"] == "sim") != (document["clock"] == "simulated"):
        runtime = document["program"]["runtime"]
        yield "$.clock", f"is {document['clock']}, but the runtime is {runtime}"
    node = document.get("node")
    if node is not None and document["clock"] == "measured":
        yield "$.node", "is set, but the clock is measured"
    if node is None and document["clock"] == "simulated" and status == "good":
        yield "$.node", "is missing, but the clock is simulated"
    for field, time in (("started", document["started"]), ("finished", document["finished"])):
        if time is not None and not _is_time(time):
            yield f"$.{field}", f"{time!r} is not a date and time with a time zone"
    if status == "good" and not _has_results(document):
        yield "$.series", "is empty, but the outcome is good: no data was compared"
    wrong = any(series["verification"]["errors"] for series in document["series"])
    wrong = wrong or (rounds is not None and bool(rounds["wrong"]))
    # A third-party tool reports wrong data for the whole run, not for one series.
    if status == "wrong-data" and not wrong and not is_from_tool(document):
        yield "$.outcome.status", "is wrong-data, but no series has a verification error"
    if status == "good" and rounds is not None and rounds["wrong"]:
        yield "$.rounds.wrong", "is not empty, but the outcome is good"


def _has_results(document: ResultDocument) -> bool:
    """Whether a document has what a good outcome is about: series, rounds, a comparison, ranks."""
    rounds = document.get("rounds")
    return bool(
        document["series"]
        or document.get("differences") is not None
        or (rounds is not None and rounds["bytes_checked"])
        or (document["program"]["name"] == "affinity" and document.get("ranks") is not None)
    )


def _is_time(text: str) -> bool:
    # Before Python 3.11 fromisoformat does not take the Z of UTC.
    text = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _devices_and_ranks(document: ResultDocument) -> Findings:
    devices = {device["index"] for device in document["devices"]}
    if len(devices) != len(document["devices"]):
        yield "$.devices", "two devices have the same index"
    for index, rank in enumerate(document.get("ranks") or ()):
        if rank["rank"] != index:
            yield f"$.ranks[{index}].rank", f"is {rank['rank']}, but ranks are in order from 0"
        if rank["device"] not in (None, *devices):
            reason = f"device {rank['device']} is not among the document's devices"
            yield f"$.ranks[{index}].device", reason


def _state(document: ResultDocument) -> Findings:
    state = document.get("state")
    if state is None:
        return
    known, among = {one["index"] for one in document["devices"]}, "among the document's devices"
    for side, snapshot in (("before", state["before"]), ("after", state["after"])):
        if snapshot is None:
            continue
        if not _is_time(snapshot["at"]):
            reason = f"{snapshot['at']!r} is not a date and time with a time zone"
            yield f"$.state.{side}.at", reason
        seen: set[int] = set()
        for number, device in enumerate(snapshot["devices"]):
            index = device["index"]
            if index not in known or index in seen:
                reason = "there twice" if index in seen else f"not {among}"
                yield f"$.state.{side}.devices[{number}].index", f"device {index} is {reason}"
            seen.add(index)
        known, among = seen, "in the snapshot before the run"


def _references(series: Series, document: ResultDocument) -> Findings:
    """Yield devices, NUMA domains and ranks of a series that the document does not have."""
    devices = {device["index"] for device in document["devices"]}
    domains = {domain["index"] for domain in document["host"]["numa_domains"]}
    named = [(f"device_set[{index}]", device) for index, device in enumerate(series["device_set"])]
    named += [("device", device) for device in [series["device"]] if device is not None]
    places = (("source", series["source"]), ("destination", series["destination"]))
    for side, place in places:
        if place["device"] is not None:
            named.append((f"{side}.device", place["device"]))
        if place["numa_domain"] is not None and place["numa_domain"] not in domains:
            reason = f"NUMA domain {place['numa_domain']} is not among the host's"
            yield f"{side}.numa_domain", reason
    for field, device in named:
        if device not in devices:
            yield field, f"device {device} is not among the document's devices"
    ranks = series.get("ranks") or ()
    for field, members in (("device_set", series["device_set"]), ("ranks", ranks)):
        if len(set(members)) != len(members):
            yield field, "names a member twice"
    # Each launch of a third-party tool has its own ranks, which no list has.
    for rank in () if is_from_tool(document) else ranks:
        if rank >= len(document.get("ranks") or ()):
            yield "ranks", f"rank {rank} is not among the document's ranks"


def _rounds(rounds: RoundsMember, ranks: int) -> Findings:
    """Yield ranks, nodes and NICs of the rounds between nodes that the document does not have."""
    nics = [len(node["nics"]) for node in rounds["nodes"]]
    for number, node in enumerate(rounds["nodes"]):
        for rank in node["ranks"]:
            if rank >= ranks:
                reason = f"rank {rank} is not among the document's ranks"
                yield f"$.rounds.nodes[{number}].ranks", reason
    for number, measured in enumerate(rounds["rounds"]):
        for index, pair in enumerate(measured["pairs"]):
            for node_index in pair:
                if node_index >= len(nics):
                    reason = f"node {node_index} is not among the nodes"
                    yield f"$.rounds.rounds[{number}].pairs[{index}]", reason
    named = [("suspects", n, [one["node"]], one["nic"]) for n, one in enumerate(rounds["suspects"])]
    named += [("low_pairs", n, pair, None) for n, pair in enumerate(rounds["low_pairs"])]
    named += [("failed", n, one["nodes"], one["nic"]) for n, one in enumerate(rounds["failed"])]
    named += [
        ("wrong", n, [one["from"], one["to"]], one["nic"]) for n, one in enumerate(rounds["wrong"])
    ]
    for member, number, nodes, nic in named:
        if any(one >= len(nics) or (nic is not None and nic >= nics[one]) for one in nodes):
            yield f"$.rounds.{member}[{number}]", "is not among the nodes and their NICs"


def _statistics(series: Series) -> Findings:
    samples = series["samples"]
    if min(samples) <= 0:
        index, sample = next(each for each in enumerate(samples) if each[1] <= 0)
        yield f"samples[{index}]", f"{sample:g} {series['unit']} is not positive"
        return
    median = statistics.median(samples)
    if not math.isclose(series["median"], median, rel_tol=TOLERANCE):
        yield "median", f"is {series['median']:.9g}, but the samples give {median:.9g}"


def _host_clock(series: Series, simulated: bool) -> Findings:
    clock = series["host_clock"]
    if clock is None:
        return
    if simulated:
        yield "host_clock", "is set, but the clock is simulated"
        return
    ratio = clock["median"] / series["median"]
    if not math.isclose(clock["ratio"], ratio, rel_tol=TOLERANCE):
        yield "host_clock.ratio", f"is {clock['ratio']:.9g}, but the medians give {ratio:.9g}"
    difference = abs(clock["ratio"] - 1)
    at_the_edge = math.isclose(difference, HOST_CLOCK_AGREES, rel_tol=TOLERANCE)
    if clock["agrees"] != (difference <= HOST_CLOCK_AGREES) and not at_the_edge:
        yield "host_clock.agrees", f"contradicts the ratio {clock['ratio']:.6g}"


def _verification(series: Series, good: bool) -> Findings:
    verification = series["verification"]
    if good and verification["errors"]:
        yield "verification.errors", f"is {verification['errors']}, but the outcome is good"
    if good and not verification["bytes_checked"]:
        yield "verification.bytes_checked", "is 0, but the outcome is good: no data was verified"


def _noise(document: ResultDocument) -> Findings:
    # The noise limit is an option of the run, so noise can be recomputed from the document.
    limit = document["options"].get("noise_limit")
    for index, series in enumerate(document["series"]):
        width = series["relative_half_width"]
        if width is None or not isinstance(limit, (int, float)):
            continue
        if series["noisy"] != (width > limit):
            noisy = str(series["noisy"]).lower()
            yield f"$.series[{index}].noisy", f"is {noisy} at {width:.3g} with the limit {limit:g}"
    judged = [index for index, series in enumerate(document["series"]) if is_too_noisy(series)]
    status = document["outcome"]["status"]
    if status == "good" and judged:
        yield f"$.series[{judged[0]}].noisy", "is true beyond the caches, but the outcome is good"
    # Older programs judged every share.
    noisy_series = any(one["noisy"] and one["regime"] == "memory" for one in document["series"])
    if status == "too-noisy" and not noisy_series:
        yield "$.outcome.status", "is too-noisy, but no series beyond the caches is noisy"
