"""The table of results: the rows of checks, of their metrics, series and states, and of nodes."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from fabricheck.core.text import moment
from fabricheck.core.vocabulary import BETTER
from fabricheck.node import NodeModel, products
from fabricheck.results import columns, energy
from fabricheck.results.entry import Entry
from fabricheck.results.model import Device, ResultDocument
from fabricheck.results.model import Series as Measured
from fabricheck.results.requested_nodes import RequestedNodes
from fabricheck.results.rows import Check, Metric, Node, Series, State
from fabricheck.results.run_report import MetricResult
from fabricheck.results.series import Noise, device_pair, noise
from fabricheck.results.session import REPETITION, Case, Session

#: The result of a requested node without any check in the table, and of one with checks.
LOST = "lost"
PRESENT = "present"
#: A metric without a limit: its value is recorded, and no value can miss it.
REPORT_ONLY = "report-only"

#: Experiments whose two devices are the ends of a transfer, so that they have a link class.
_OF_PAIRS = frozenset({"E7", "E8", "E9", "E14"})


def check_row(
    session: Session | None, case: Case | None, entry: Entry | None, node: str | None = None
) -> Check:
    """Return the row of one check, or of one document outside any session.

    :param node: its node, where more is known than case and document tell.
    """
    document = entry.document if entry is not None else None
    fields: dict[str, Any] = _of_session(session) | _of_run(document)
    if case is not None:
        repetition = REPETITION.search(case.name)
        fields |= {
            "system": case.system,
            "partition": case.partition,
            "environment": case.environ,
            "check": REPETITION.sub("", case.name),
            "repetition": int(repetition["number"]) if repetition else None,
            "result": case.result,
            "failed_attempts": case.failed_attempts,
            "phase": case.phase,
            "experiment": " ".join(sorted(case.experiments)),
            "reason": case.reason or (str(entry.problem) if entry and entry.problem else None),
        }
    elif entry is not None and entry.path is not None:
        fields["check"] = entry.path.resolve().parent.name
    recorded = entry or case
    # The scheduler's name of the node, else the host's own.
    named = node or (recorded and recorded.node) or fields.get("hostname")
    return Check(case=case, entry=entry, node=named, **fields)


def _of_session(session: Session | None) -> dict[str, Any]:
    if session is None:
        return {}
    return {
        "session": session.uuid,
        "session_id": session.id,
        "session_start": datetime.fromtimestamp(session.start, UTC),
    }


def _of_run(document: ResultDocument | None) -> dict[str, Any]:
    if document is None:
        return {}
    program, versions = document["program"], document["versions"]
    simulated: Mapping[str, Any] = document.get("node") or {}
    overlay: Mapping[str, Any] = simulated.get("overlay") or {}
    return {
        "hostname": document["host"]["hostname"],
        "measured_at": moment(document["started"]),
        "clock": document["clock"],
        "complete": document["complete"],
        "status": document["outcome"]["status"],
        "node_model": simulated.get("name"),
        "overlay": overlay.get("name"),
        "faults_injected": "; ".join(document["faults_injected"]),
        "program": program["name"],
        "program_version": program["version"],
        "commit": program["commit"],
        "runtime": program["runtime"],
        "runtime_version": versions["runtime"],
        "rocm_version": versions.get("rocm"),
        "driver": versions["driver"],
        "mpi": versions.get("mpi"),
        "rccl": versions.get("rccl"),
    }


def metrics(row: Check) -> Iterator[Metric]:
    """Yield the metrics of a check."""
    records = row.entry.metrics if row.entry is not None else {}
    document = row.document
    for name, recorded in row.case.metrics.items() if row.case is not None else ():
        record = records.get(name)
        yield Metric(
            check_row=row,
            recorded=recorded,
            record=record,
            metric=name,
            value=recorded.value,
            unit=recorded.unit,
            better=BETTER.get(recorded.unit),
            reference=recorded.reference if recorded.has_limit else None,
            least=recorded.least,
            most=recorded.most,
            judged=_judged(recorded),
            series=record.series if record is not None else None,
            reduce=record.reduce if record is not None else None,
            noise=_noise(document, document["series"][record.series[0]])
            if document is not None and record is not None and record.series
            else None,
        )


def _judged(recorded: MetricResult) -> str | None:
    """Return ReFrame's result, which is pass for a metric without a limit too."""
    if recorded.result == "pass" and not recorded.has_limit:
        return REPORT_ONLY
    return recorded.result


def _noise(document: ResultDocument, measured: Measured) -> Noise:
    return "host" if document["program"]["runtime"] == "host" else noise(measured)


#: The columns of a series that its document has as members of the same name.
_MEMBERS = tuple(
    field.name
    for field in dataclasses.fields(Series)
    if field.name in typing.get_type_hints(Measured) and field.name != "ranks"
)


def series(row: Check, model: NodeModel | None) -> Iterator[Series]:
    """Yield the series of a check's document.

    :param model: the healthy node model, for link classes.
    """
    document = row.document
    if document is None:
        return
    devices = {device["index"]: device for device in document["devices"]}
    for index in range(len(document["series"])):
        yield _series(row, document, index, model, devices)


def _series(
    row: Check,
    document: ResultDocument,
    index: int,
    model: NodeModel | None,
    devices: Mapping[int, Device],
) -> Series:
    measured = document["series"][index]
    ranks, host_clock = measured.get("ranks"), measured["host_clock"]
    verification = measured["verification"]
    source, destination = measured["source"], measured["destination"]
    low, high = measured["ci95"] or (None, None)
    members: dict[str, Any] = {name: measured.get(name) for name in _MEMBERS}
    device = devices.get(measured["device"]) if measured["device"] is not None else None
    return Series(
        **members,
        check_row=row,
        document=document,
        measured=measured,
        index=index,
        value=measured["median"],
        link_class=link_class(measured, model),
        devices=tuple(measured["device_set"]),
        device_count=len(measured["device_set"]),
        device_name=products.label(device) if device else None,
        device_arch=device["arch"] if device else None,
        pci_address=device["pci_address"] if device else None,
        unique_id=device["unique_id"] if device else None,
        source_memory=source["memory"],
        source_device=source["device"],
        source_domain=source["numa_domain"],
        destination_memory=destination["memory"],
        destination_device=destination["device"],
        destination_domain=destination["numa_domain"],
        ranks=None if ranks is None else tuple(ranks),
        rank_count=None if ranks is None else len(ranks),
        n=len(measured["samples"]),
        ci_low=low,
        ci_high=high,
        noise=_noise(document, measured),
        host_clock_agrees=None if host_clock is None else host_clock["agrees"],
        bytes_checked=verification["bytes_checked"],
        errors=verification["errors"],
        verified_by=verification.get("by", "program"),
        **_energy_columns(measured),
    )


def _energy_columns(measured: Measured) -> dict[str, Any]:
    per_bit = energy.of_series(measured)
    if per_bit is None:
        return {}
    gross, net = per_bit.gross, per_bit.net
    return {
        "pj_per_bit": gross.value,
        "pj_per_bit_low": gross.low,
        "pj_per_bit_high": gross.high,
        "net_pj_per_bit": net.value if net else None,
        "net_pj_per_bit_low": net.low if net else None,
        "net_pj_per_bit_high": net.high if net else None,
        "energy_by_package": per_bit.packages,
        "energy_same_clock": per_bit.same_clock,
        "node_pj_per_bit": per_bit.node.value if per_bit.node else None,
        "held_j": per_bit.joules,
        "idle_devices_j": per_bit.idle_joules,
    }


def link_class(measured: Measured, model: NodeModel | None) -> str | None:
    """Return the link class of a transfer between two devices; None of all else."""
    pair = device_pair(measured)
    if model is None or len(pair) != 2 or measured["experiment"] not in _OF_PAIRS:
        return None
    if max(pair) >= len(model.devices) or pair[0] == pair[1]:
        return None
    return model.link_class(pair[0], pair[1]).name


def states(row: Check) -> Iterator[State]:
    """Yield the states of host and devices before the check's program, then those after it."""
    document = row.document
    state = document.get("state") if document is not None else None
    if document is None or state is None:
        return
    devices = {device["index"]: device for device in document["devices"]}
    for when, snapshot in (("before", state["before"]), ("after", state["after"])):
        if snapshot is None:
            continue
        taken = {
            "moment": when,
            "taken_at": moment(snapshot["at"]),
            "taken_s": snapshot["seconds"],
        }
        yield State(check_row=row, values=taken | columns.of_host(snapshot["host"]))
        for device_state in snapshot["devices"]:
            described = devices[device_state["index"]]
            named = {
                "device": device_state["index"],
                "device_name": products.label(described),
                "device_arch": described["arch"],
                "pci_address": described["pci_address"],
                "unique_id": described["unique_id"],
            }
            members = columns.of_device(device_state)
            yield State(check_row=row, values=taken | named | members)


def nodes(
    requested: RequestedNodes, present: Iterable[str | None], session: Session | None = None
) -> Iterator[Node]:
    """Yield a row for each requested node.

    :param present: the nodes with checks.
    :param session: the session that was to measure them; None for a job over many nodes.
    """
    there = set(present)
    system, _, partition = (requested.partition or "").partition(":")
    common = {"session_start": requested.started} | _of_session(session)
    for name, node in requested.measured.items():
        state = node.state and node.reported
        yield Node(
            **common,
            node=name,
            system=system,
            partition=partition,
            result=PRESENT if name in there else LOST,
            reason="; ".join(filter(None, [state, node.how_ended])),
        )
