"""The rows of the table: of each check, each metric that was judged, and each series.

A row has a value for some of the columns; all others are null. A check that left no value still has
its row, of the kind ``check``, and a node that left no check one of the kind ``node``.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from fabricheck.core.text import printable
from fabricheck.node import NodeModel
from fabricheck.results.entry import Entry
from fabricheck.results.model import Device, Place, ResultDocument
from fabricheck.results.observed import Point
from fabricheck.results.observed.partition import node_of
from fabricheck.results.session import REPETITION, Case, Session

Row = dict[str, Any]

#: Experiments whose two devices are the ends of a transfer, so that they have a link class.
_OF_PAIRS = frozenset({"E7", "E8", "E9", "E14"})

#: What a spreadsheet takes for a formula when a text begins with it.
_FORMULA = re.compile(r"^[=+\-@]")

_BETTER = {"GB/s": "higher", "us": "lower"}


@functools.lru_cache(maxsize=4096)
def text(value: str) -> str | None:
    """Return a text for one cell: one line, nothing that controls a terminal, never a formula.

    An empty one is None. One that a spreadsheet would calculate gets an apostrophe before it.
    """
    line = printable(" ".join(value.split()))
    return (f"'{line}" if _FORMULA.match(line) else line) or None


def number(value: float | None) -> float | None:
    """Return a finite number as one with a fraction; None for any other."""
    return float(value) if value is not None and math.isfinite(value) else None


def time(value: str | float) -> datetime | None:
    """Return a time in UTC, from RFC 3339 or seconds since the epoch; None where it is neither."""
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone(UTC)
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError):
        return None


def of_session(session: Session | None) -> Row:
    """Return what all rows of a session have."""
    if session is None:
        return {}
    return {
        "session": text(session.uuid),
        "session_id": text(session.id),
        "session_start": time(session.start),
    }


def of_case(
    common: Row, case: Case | None, entry: Entry | None, node: str | None, samples: bool = False
) -> Iterator[Row]:
    """Yield the row of a check, those of its metrics, and those of its series.

    :param common: what its session gives.
    :param node: its node where neither scheduler nor document names one.
    :param samples: whether each sample has a row, too.
    """
    document = entry.document if entry is not None else None
    row = common | _of_check(case, entry) | _of_run(document)
    row["node"] = text(_node(case, document) or node or "")
    if case is not None:
        yield {
            **row,
            "kind": "check",
            "reason": text(case.reason or _problem(entry)),
        }
        for metric in _metrics(case):
            yield row | metric
    if document is not None:
        for one in _series(case, document, samples):
            yield row | one


def _problem(entry: Entry | None) -> str:
    return str(entry.problem) if entry is not None and entry.problem is not None else ""


def _node(case: Case | None, document: ResultDocument | None) -> str | None:
    """Return the scheduler's name of the node, else the host's own."""
    if case is not None and case.node is not None:
        return case.node
    if document is None:
        return None
    host = document["host"]
    return host.get("scheduler_node") or host["hostname"]


def _of_check(case: Case | None, entry: Entry | None) -> Row:
    if case is None:
        path = entry.path if entry is not None else None
        return {"check": text(path.resolve().parent.name) if path is not None else None}
    repetition = REPETITION.search(case.name)
    return {
        "system": text(case.system),
        "partition": text(case.partition),
        "environment": text(case.environ),
        "check": text(REPETITION.sub("", case.name)),
        "repetition": int(repetition["number"]) if repetition else None,
        "result": text(case.result),
        "failed_attempts": case.failed_attempts,
        "phase": text(case.phase or ""),
        "experiment": text(" ".join(sorted(case.experiments))),
    }


def _of_run(document: ResultDocument | None) -> Row:
    if document is None:
        return {}
    program, versions = document["program"], document["versions"]
    simulated: Mapping[str, Any] = document.get("node") or {}
    overlay: Mapping[str, Any] = simulated.get("overlay") or {}
    return {
        "hostname": text(document["host"]["hostname"]),
        "measured_at": time(document["started"]),
        "clock": document["clock"],
        "complete": document["complete"],
        "status": document["outcome"]["status"],
        "node_model": text(simulated.get("name", "")),
        "overlay": text(overlay.get("name", "")),
        "faults_injected": text("; ".join(document["faults_injected"])),
        "program": text(program["name"]),
        "program_version": text(program["version"]),
        "commit": text(program["commit"]),
        "runtime": program["runtime"],
        "runtime_version": text(versions["runtime"]),
        "driver": text(versions["driver"]),
        "mpi": text(versions.get("mpi", "")),
        "rccl": text(versions.get("rccl", "")),
    }


def _metrics(case: Case) -> Iterator[Row]:
    for name, judged in case.judged.items():
        value, unit = case.values.get(name, (None, ""))
        yield {
            "kind": "metric",
            "metric": text(name),
            "value": number(value),
            "unit": text(unit),
            "better": _BETTER.get(unit),
            "reference": number(judged.reference),
            "least": number(judged.least),
            "most": number(judged.most),
            "judged": text(judged.result or ""),
        }


def _series(case: Case | None, document: ResultDocument, samples: bool) -> Iterator[Row]:
    model = node_of(case.where if case is not None else "", [document])
    devices = {device["index"]: device for device in document["devices"]}
    for series in document["series"]:
        point = Point("", document, series)
        interval = point.interval
        shared = _of_series(point, model, devices)
        yield {
            **shared,
            "kind": "series",
            "value": number(point.median),
            "mad": number(series["mad"]),
            "ci_low": number(interval[0]) if interval else None,
            "ci_high": number(interval[1]) if interval else None,
        }
        if samples:
            for index, sample in enumerate(series["samples"]):
                yield {**shared, "kind": "sample", "value": number(sample), "sample": index}


def _of_series(point: Point, model: NodeModel | None, devices: Mapping[int, Device]) -> Row:
    series, verification = point.series, point.series["verification"]
    ranks, clock = series.get("ranks"), series["host_clock"]
    own = devices.get(point.device) if point.device is not None else None
    return {
        "experiment": point.experiment,
        "unit": point.unit,
        "better": series["better"],
        "operation": text(point.operation),
        "role": point.role,
        "direction": series["direction"],
        "engine": point.engine,
        "engines": series.get("engines"),
        "stores": series.get("stores"),
        "movement": point.movement,
        "placement": text(point.placement or ""),
        "datatype": series.get("datatype"),
        "in_place": series.get("in_place"),
        "link_class": _link_class(point, model),
        "devices": numbers(point.devices),
        "device_count": len(point.devices),
        "device": point.device,
        **_of_device(own),
        **_of_place("source", series["source"]),
        **_of_place("destination", series["destination"]),
        "ranks": None if ranks is None else numbers(ranks),
        "rank_count": None if ranks is None else len(ranks),
        "bytes": point.bytes,
        "bytes_moved": series["bytes_moved"],
        "bytes_counted": series["bytes_counted"],
        "regime": series["regime"],
        "block_size": point.block,
        "batch": series["batch"],
        "passes": series.get("passes"),
        "n": len(series["samples"]),
        "noisy": series["noisy"],
        "host_clock_agrees": None if clock is None else clock["agrees"],
        "bytes_checked": verification["bytes_checked"],
        "errors": verification["errors"],
        "verified_by": verification.get("by", "program"),
    }


def numbers(values: tuple[int, ...] | list[int]) -> str:
    """Return several numbers as one text, which no reader takes for a number: ``[0 1]``."""
    return f"[{' '.join(map(str, values))}]"


def _of_device(device: Device | None) -> Row:
    if device is None:
        return {}
    return {
        "device_name": text(device["name"]),
        "device_arch": text(device["arch"]),
        "pci_address": text(device["pci_address"] or ""),
        "unique_id": text(device["unique_id"] or ""),
    }


def _of_place(end: str, place: Place) -> Row:
    return {
        f"{end}_memory": place["memory"],
        f"{end}_device": place["device"],
        f"{end}_domain": place["numa_domain"],
    }


def _link_class(point: Point, model: NodeModel | None) -> str | None:
    pair = point.pair
    if model is None or pair is None or point.experiment not in _OF_PAIRS:
        return None
    if max(pair) >= len(model.devices) or pair[0] == pair[1]:
        return None
    return model.link_class(*pair).name
