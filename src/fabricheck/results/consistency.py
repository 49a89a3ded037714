"""Consistency of a result document beyond its schema: its parts must agree with each other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime

from fabricheck.core import statistics
from fabricheck.core.vocabulary import (
    BETTER,
    COMPUTE,
    JUDGED_BY_SUM,
    OF_HOST,
    OF_STREAM,
    REACHED_THE_END,
    STREAM_ARRAYS,
)
from fabricheck.results import between_nodes, host_copies, launches, other_tools
from fabricheck.results.model import Place, ResultDocument, Series

#: Largest relative difference between a stated and a recomputed statistic: decimal rounding only.
TOLERANCE = 1e-6

#: Largest difference from 1 of the host clock's ratio that counts as agreement.
HOST_CLOCK_AGREES = 0.02

_INTERVAL_RULE = f"an interval needs at least {statistics.FEWEST_FOR_INTERVAL} samples"


class Contradiction(Exception):
    """Two parts of a document contradict each other."""

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"{place}: {reason}")


def check_consistency(document: ResultDocument) -> None:
    """Check the consistency of a document that satisfies the schema.

    :raises Contradiction: for the first contradiction, with its place (a JSON path) and the reason.
    """
    for place, reason in _contradictions(document):
        raise Contradiction(place, reason)


Findings = Iterator[tuple[str, str]]


def _contradictions(document: ResultDocument) -> Findings:
    yield from _of_the_run(document)
    yield from _of_the_times(document)
    of_tool = other_tools.of_another_tool(document)
    if not of_tool:
        yield from launches.of_the_ranks(document)
    yield from between_nodes.of_the_rounds(document)
    devices = {device["index"] for device in document["devices"]}
    if len(devices) != len(document["devices"]):
        yield "$.devices", "two devices have the same index"
    yield from _of_the_state(document, devices)
    domains = {domain["index"] for domain in document["host"]["numa_domains"]}
    good = document["outcome"]["status"] == "good"
    simulated = document["clock"] == "simulated"
    for index, series in enumerate(document["series"]):
        for field, reason in (
            *_of_the_statistics(series),
            *(() if of_tool else launches.contradictions(series, document.get("ranks"))),
            *_of_the_units(series),
            *_of_the_devices(series, devices, domains),
            *host_copies.contradictions(series),
            *_of_a_computation(series),
            *other_tools.contradictions(series, of_tool),
            *_of_the_host_clock(series, simulated),
            *_of_the_verification(series, good),
        ):
            yield f"$.series[{index}].{field}", reason
    yield from _of_the_noise(document)


def _of_the_run(document: ResultDocument) -> Findings:
    status = document["outcome"]["status"]
    if document["complete"] != (status in REACHED_THE_END):
        said = "true" if document["complete"] else "false"
        yield "$.complete", f"is {said}, but the outcome's status is {status}"
    if (document["program"]["runtime"] == "sim") != (document["clock"] == "simulated"):
        runtime = document["program"]["runtime"]
        yield "$.clock", f"is {document['clock']}, but the runtime is {runtime}"
    node = document.get("node")
    if node is not None and document["clock"] == "measured":
        yield "$.node", "is set, but the clock is measured"
    if node is None and document["clock"] == "simulated" and status == "good":
        yield "$.node", "is missing, but the clock is simulated"
    if "simulated_s" in document and document["clock"] == "measured":
        yield "$.simulated_s", "is set, but the clock is measured"
    compared = document.get("differences") is not None
    told = document["program"]["name"] == "affinity" and document.get("ranks") is not None
    told = told or between_nodes.compared_data(document)
    if status == "good" and not document["series"] and not compared and not told:
        yield "$.series", "is empty, but the outcome is good: no data was compared"
    if compared and not document["complete"]:
        yield "$.differences", f"is set, but the outcome's status is {status}"
    errors = any(series["verification"]["errors"] for series in document["series"])
    errors = errors or between_nodes.has_wrong_data(document)
    # A third-party tool reports wrong data for the whole run, not for one series.
    if status == "wrong-data" and not errors and not other_tools.of_another_tool(document):
        yield "$.outcome.status", "is wrong-data, but no series has a verification error"


def _of_the_times(document: ResultDocument) -> Findings:
    started = _time(document["started"])
    if started is None:
        yield "$.started", f"{document['started']!r} is not a date and time with a time zone"
    if document["finished"] is None:
        if document["outcome"]["status"] != "running":
            yield "$.finished", "is null, but the run has ended"
        return
    finished = _time(document["finished"])
    if finished is None:
        yield "$.finished", f"{document['finished']!r} is not a date and time with a time zone"
    elif document["outcome"]["status"] == "running":
        yield "$.finished", "is set, but the outcome's status is running"
    elif started is not None and finished < started:
        yield "$.finished", "is before the start"


def _of_the_state(document: ResultDocument, devices: set[int]) -> Findings:
    state = document.get("state")
    if state is None:
        return
    if document["clock"] == "simulated":
        yield "$.state", "is set, but the clock is simulated"
    before, after = state["before"], state["after"]
    running = document["outcome"]["status"] == "running" and "aftermath" not in document
    if after is not None and running:
        yield "$.state.after", "is set, but the outcome's status is running"
    known, among = devices, "among the document's devices"
    for side, snapshot in (("before", before), ("after", after)):
        if snapshot is None:
            continue
        if _time(snapshot["at"]) is None:
            reason = f"{snapshot['at']!r} is not a date and time with a time zone"
            yield f"$.state.{side}.at", reason
        seen: set[int] = set()
        for number, one in enumerate(snapshot["devices"]):
            index = one["index"]
            if index not in known or index in seen:
                reason = "there twice" if index in seen else f"not {among}"
                yield f"$.state.{side}.devices[{number}].index", f"device {index} is {reason}"
            seen.add(index)
        known, among = seen, "in the snapshot before the run"
    # Counters may be lower after the run: a driver may have been reloaded.
    began, ended = _time(before["at"]), _time(after["at"]) if after is not None else None
    if began is not None and ended is not None and ended < began:
        yield "$.state.after.at", "is before the snapshot taken before the run"


def _time(text: str) -> datetime | None:
    # Before Python 3.11 fromisoformat does not take the Z of UTC.
    text = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _of_the_statistics(series: Series) -> Findings:
    samples = series["samples"]
    if min(samples) <= 0:
        index, sample = next(each for each in enumerate(samples) if each[1] <= 0)
        yield f"samples[{index}]", f"{sample:g} {series['unit']} is not positive"
        return
    # All of these sort the samples; sorting sorted samples takes no time.
    samples = sorted(samples)
    middle = statistics.median(samples)
    yield from _differs("median", series["median"], middle, middle)
    yield from _differs("mad", series["mad"], statistics.mad(samples), middle)
    interval = statistics.median_interval(samples)
    stated = series["ci95"]
    if stated is None or interval is None:
        if stated is not None or interval is not None:
            form = "null" if stated is None else "set"
            yield "ci95", f"is {form} with {len(samples)} samples; {_INTERVAL_RULE}"
    else:
        yield from _differs("ci95[0]", stated[0], interval[0], middle)
        yield from _differs("ci95[1]", stated[1], interval[1], middle)
    width = series["relative_half_width"]
    if width is None or interval is None:
        if width is not None or interval is not None:
            yield "relative_half_width", "must be null exactly when there is no interval"
    else:
        found = (interval[1] - interval[0]) / 2 / middle
        yield from _differs("relative_half_width", width, found, 1.0)


def _differs(field: str, said: float, found: float, scale: float) -> Findings:
    # The absolute tolerance is for differences of nearly equal samples, where the last digits
    # cancel.
    if not math.isclose(said, found, rel_tol=TOLERANCE, abs_tol=TOLERANCE * 1e-3 * scale):
        yield field, f"is {said:.9g}, but the samples give {found:.9g}"


def _of_the_units(series: Series) -> Findings:
    unit = series["unit"]
    if series["better"] != BETTER[unit]:
        yield "better", f"is {series['better']}, but the unit is {unit}"
    if series["block_size"] is not None and series["engine"] != "kernel":
        yield "block_size", f"is set, but the engine is {series['engine']}"
    if series.get("engines") is not None and series["engine"] != "copy-engine":
        yield "engines", f"is {series.get('engines')}, but the engine is {series['engine']}"
    for field in ("stores", "loads", "elements", "grid"):
        value = series.get(field)
        if value is not None and series["engine"] != "kernel":
            yield field, f"is {value}, but the engine is {series['engine']}"
    passes = series.get("passes")
    if passes is not None and series["engine"] != "kernel":
        yield "passes", f"is {passes}, but the engine is {series['engine']}"
    if passes is not None and series["batch"] % passes:
        yield "passes", f"is {passes}, but a batch of {series['batch']} is not a multiple of it"
    once = unit == "GB/s" and series["bytes_counted"] == "once"
    of_ranks = series.get("ranks") is not None
    counted = launches.messages(series) * series["bytes"] if of_ranks else series["bytes"]
    if once and (of_ranks or series["role"] != "sum") and series["bytes_moved"] != counted:
        yield (
            "bytes_moved",
            f"is {series['bytes_moved']}, but {counted} bytes are counted once",
        )
    arrays = STREAM_ARRAYS.get(series["operation"])
    if (
        arrays is not None
        and series["experiment"] in OF_STREAM
        and series["bytes_counted"] == "read+write"
    ):
        parts = len(series["device_set"]) if series["role"] == "sum" else 1
        moved = arrays * parts * series["bytes"]
        if series["bytes_moved"] != moved:
            yield (
                "bytes_moved",
                (
                    f"is {series['bytes_moved']}, but {series['operation']} of {series['bytes']} "
                    f"bytes on {parts} device(s) moves {moved}"
                ),
            )


def _of_a_computation(series: Series) -> Findings:
    if series["operation"] != COMPUTE:
        return
    name, places = series["operation"], (series["source"], series["destination"])
    for field, found, wanted in (
        ("engine", series["engine"], "kernel"),
        ("unit", series["unit"], "us"),
        ("direction", series["direction"], "local"),
    ):
        if found != wanted:
            yield field, f"is {found}, but {name} requires {wanted}"
    if any((one["memory"], one["device"]) != ("device", series["device"]) for one in places):
        yield "source", f"or destination is not the device's own memory, which {name} requires"


def _of_the_devices(series: Series, devices: set[int], domains: set[int]) -> Findings:
    active = series["device_set"]
    for index, member in enumerate(active):
        if member not in devices:
            yield f"device_set[{index}]", f"device {member} is not among the document's devices"
    if len(set(active)) != len(active):
        yield "device_set", "names a device twice"
    device = series["device"]
    role = series["role"]
    if not active and series.get("ranks") is None:
        yield "device_set", "is empty"
    if series.get("ranks") is not None:
        pass  # checked in launches
    elif role == "sum":
        if device is not None:
            yield "device", f"is {device}, but a sum has none"
    elif device is None:
        yield "device", f"is null, but the role is {role}"
    elif device not in active:
        yield "device", f"device {device} is not in the device set"
    elif role == "single":
        taking_part = {device, series["source"]["device"], series["destination"]["device"]}
        for index, member in enumerate(active):
            if member not in taking_part:
                yield f"device_set[{index}]", f"device {member} has no part in this single series"
    for side in ("source", "destination"):
        place = series["source"] if side == "source" else series["destination"]
        together = role == "sum" or series["direction"] == "collective"
        for field, reason in _of_a_place(place, together, devices, domains):
            yield f"{side}.{field}", reason


def _of_a_place(place: Place, together: bool, devices: set[int], domains: set[int]) -> Findings:
    memory, device, domain = place["memory"], place["device"], place["numa_domain"]
    if device is not None:
        if device not in devices:
            yield "device", f"device {device} is not among the document's devices"
        if memory in OF_HOST:
            yield "device", f"is {device}, but the memory is {memory}"
    elif memory in ("device", "peer") and not together:
        yield "device", f"is null, but the memory is {memory}"
    if domain is not None and domain not in domains:
        yield "numa_domain", f"NUMA domain {domain} is not among the host's"


def _of_the_host_clock(series: Series, simulated: bool) -> Findings:
    clock = series["host_clock"]
    if clock is None:
        return
    if simulated:
        yield "host_clock", "is set, but the clock is simulated"
        return
    if series["median"] == 0:
        return  # reported for the statistics already
    ratio = clock["median"] / series["median"]
    if not math.isclose(clock["ratio"], ratio, rel_tol=TOLERANCE):
        yield "host_clock.ratio", f"is {clock['ratio']:.9g}, but the medians give {ratio:.9g}"
    difference = abs(clock["ratio"] - 1)
    at_the_edge = math.isclose(difference, HOST_CLOCK_AGREES, rel_tol=TOLERANCE)
    if clock["agrees"] != (difference <= HOST_CLOCK_AGREES) and not at_the_edge:
        yield "host_clock.agrees", f"contradicts the ratio {clock['ratio']:.6g}"


def _of_the_verification(series: Series, good: bool) -> Findings:
    verification = series["verification"]
    places = {series["source"]["memory"], series["destination"]["memory"]}
    if (verification["errors"] > 0) != (verification["first_mismatch"] is not None):
        yield (
            "verification.first_mismatch",
            (f"must be set exactly when there are errors; there are {verification['errors']}"),
        )
    if good and verification["errors"]:
        yield "verification.errors", f"is {verification['errors']}, but the outcome is good"
    if verification["errors"] and not verification["bytes_checked"]:
        yield "verification.bytes_checked", "is 0, but there are errors"
    parts = len(series["device_set"]) if series["role"] == "sum" else 1
    parts *= host_copies.messages(series)
    if series.get("ranks") is not None:
        parts = launches.arrays(series)
    elif series["role"] == "sum" and "peer" in places:
        # Pairs, of which several can share a device.
        ways = 2 if series["bytes_counted"] == "read+write" else 1
        parts = series["bytes_moved"] // (ways * series["bytes"])
    if verification["bytes_checked"] > parts * series["bytes"]:
        yield (
            "verification.bytes_checked",
            (
                f"is {verification['bytes_checked']}, but {parts} array(s) of {series['bytes']} "
                "bytes have fewer"
            ),
        )
    if good and not verification["bytes_checked"]:
        yield "verification.bytes_checked", "is 0, but the outcome is good: no data was verified"


def is_judged_by_sum(series: Series) -> bool:
    """Whether the series is a share of which only the sum is judged."""
    return series["role"] == "share" and series["experiment"] in JUDGED_BY_SUM


def is_too_noisy(series: Series) -> bool:
    """Whether a run with this series must end as too noisy.

    Noise is only reported within caches, for a share whose sum is judged, and for work beside other
    work, where either may start first.
    """
    told_only = is_judged_by_sum(series) or series["role"] == "beside"
    return series["noisy"] and series["regime"] == "memory" and not told_only


def _of_the_noise(document: ResultDocument) -> Findings:
    # The noise limit is an option of the run, so noise can be recomputed from the document.
    option = document["options"].get("noise_limit")
    limit = option if isinstance(option, (int, float)) and not isinstance(option, bool) else None
    for index, series in enumerate(document["series"]):
        width = series["relative_half_width"]
        if width is None:
            if series["noisy"]:
                yield f"$.series[{index}].noisy", "is true without an interval"
        elif limit is not None and series["noisy"] != (width > limit):
            word = "true" if series["noisy"] else "false"
            yield f"$.series[{index}].noisy", f"is {word} at {width:.3g} with the limit {limit:g}"
    judged = [index for index, series in enumerate(document["series"]) if is_too_noisy(series)]
    status = document["outcome"]["status"]
    if status == "good" and judged:
        yield f"$.series[{judged[0]}].noisy", "is true beyond the caches, but the outcome is good"
    if status == "too-noisy":
        # Older programs judged every share.
        if not any(one["noisy"] and one["regime"] == "memory" for one in document["series"]):
            yield "$.outcome.status", "is too-noisy, but no series beyond the caches is noisy"
        if any(series["verification"]["errors"] for series in document["series"]):
            yield "$.outcome.status", "is too-noisy, but data was wrong, which outweighs noise"
