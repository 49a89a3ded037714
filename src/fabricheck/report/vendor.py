"""What a vendor gets of a node: by a list of what is given, and without names of users and paths.

NVIDIA asks for what was observed, when, how often, on which parts, and what was ruled out (RMA
Process; GPU Debug Guidelines), Cray and HPE for diagnostics that show the fault to follow the part.
docs/run.md has the sources, and what each wants besides, which only its own tools write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fabricheck.core.errors import NotFoundError
from fabricheck.core.show import listed
from fabricheck.core.text import printable_json
from fabricheck.core.vocabulary import UNKNOWN
from fabricheck.judge.verdict import judging
from fabricheck.judge.verdict.model import NodeVerdict, Reason
from fabricheck.report import findings
from fabricheck.report.ticket import ticket
from fabricheck.results.model import ResultDocument
from fabricheck.results.reading import Results

#: The members of a result document that are given. Not: environment, arguments, settings, options,
#: ranks and notes, which may name users and paths.
_DOCUMENT = (
    "schema", "schema_version", "complete", "program", "clock", "node", "started", "finished",
    "duration_s", "devices", "versions", "outcome", "series", "differences", "nics",
)  # fmt: skip

_HOST = ("hostname", "scheduler_node", "kernel", "cpu_model", "numa_domains", "numa_balancing")

#: Of a snapshot, what is of the host.
_HOST_STATE = ("cores", "governor", "memory_errors", "pci_functions")

#: Members of a verdict that are not given: sentences on settings and other people's processes.
_NOT_OF_A_VERDICT = ("caveats", "settings")

#: Rules whose sentences name processes and users.
_OF_OTHERS = frozenset({"device-in-use", "host-busy"})

#: What NVIDIA's driver adds to a line of the log on the program that it concerns.
_PROCESS = re.compile(r"\b(pid|name)=[^,\s]+")


def files(results: Results, node: str, parts: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the texts of the files for a vendor, by name.

    :param results: those of the node alone; what their logs say of processes is taken out of them.
    :param parts: serial numbers and slots, where they could be read; None elsewhere.
    :raises NotFoundError: when there is no result of the node.
    """
    for document in _documents(results):
        _take_processes_out(document)
    judged = [_given(verdict) for verdict in judging.judge(results)]
    tickets = [
        ticket(findings.Partition(observed, findings.partition_verdict(judged, observed)))
        for observed in results.observed
    ]
    verdicts = [verdict for verdict in judged if verdict.node == node]
    if not verdicts:
        raise NotFoundError(f"There is no result of {node} in {results.title}.")
    # Of a machine before what it simulates.
    verdict = min(verdicts, key=lambda verdict: verdict.simulated is not None)
    texts = {
        "README.txt": "\n".join(_readme(verdict, parts)) + "\n",
        "ticket.txt": "\n\n".join(filter(None, tickets)) + "\n",
        "verdict.json": printable_json(verdict.model_dump(mode="json")) + "\n",
    }
    if parts is not None:
        texts["parts.json"] = json.dumps(parts, indent=1) + "\n"
    for number, entry in enumerate(results.entries):
        if entry.document is not None:
            name = entry.case.name.split()[0] if entry.case else entry.document["program"]["name"]
            content = json.dumps(_document(entry.document)) + "\n"
            texts[f"documents/{number:03}-{re.sub('[^A-Za-z0-9_.-]', '-', name)}.json"] = content
    return texts


def _documents(results: Results) -> Iterator[ResultDocument]:
    for entry in results.entries:
        if entry.document is not None:
            yield entry.document


def _take_processes_out(document: ResultDocument) -> None:
    """Leave out of the log of a document, which verdicts quote, which process a line is about."""
    aftermath = document.get("aftermath")
    if aftermath is None:
        return
    for line in (*(aftermath["kernel_log"] or ()), *(aftermath["runtime_log"] or ())):
        line["text"] = _PROCESS.sub(r"\1=...", line["text"])


def _given(verdict: NodeVerdict) -> NodeVerdict:
    """Return a verdict without what names users and folders."""
    update: dict[str, Any] = {name: [] for name in _NOT_OF_A_VERDICT}
    # Not the folders of results.
    update["sessions"] = [each.model_copy(update={"results": ""}) for each in verdict.sessions]
    update["reasons"] = [reason for reason in verdict.reasons if reason.rule not in _OF_OTHERS]
    if verdict.diagnosis is not None:
        degraded = [each.model_copy(update={"causes": []}) for each in verdict.diagnosis.degraded]
        update["diagnosis"] = verdict.diagnosis.model_copy(update={"degraded": degraded})
    return verdict.model_copy(update=update)


def _document(document: ResultDocument) -> dict[str, Any]:
    """Return the members of a document that are given."""
    content: Mapping[str, Any] = document
    given = {name: content[name] for name in _DOCUMENT if name in content}
    given["host"] = {name: content["host"].get(name) for name in _HOST}
    state = content.get("state")
    if state is not None:
        given["state"] = {name: _snapshot(state[name]) for name in ("before", "after")}
    aftermath = content.get("aftermath")
    if aftermath is not None:
        given["kernel_log"] = aftermath["kernel_log"] or []
    return given


def _snapshot(snapshot: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if snapshot is None:
        return None
    devices = [
        {name: value for name, value in device.items() if name != "processes"}
        for device in snapshot["devices"]
    ]
    host = {name: snapshot["host"].get(name) for name in _HOST_STATE}
    return {"at": snapshot["at"], "host": host, "devices": devices}


def _readme(verdict: NodeVerdict, parts: Mapping[str, Any] | None) -> Iterator[str]:
    yield f"Node {verdict.node}: {verdict.label}"
    if verdict.simulated is not None:
        yield "It is simulated: nothing here is of a machine."
    if verdict.start is not None:
        yield f"Measured from {verdict.start:%Y-%m-%d %H:%M} UTC"
    yield ""
    yield "What was found, the worst first:"
    for reason in verdict.reasons:
        yield from _reason(reason)
    yield ""
    yield "Devices:"
    known: Mapping[str, Any] = {} if parts is None else parts["devices"]
    for device in verdict.devices:
        facts = known.get(device.pci_address or "", {})
        serial = facts.get("serial_number") or "unknown"
        slot = facts.get("slot") or "unknown"
        yield (
            f"  {device.index}: {device.name}, PCI {device.pci_address}, unique id "
            f"{device.unique_id}, serial number {serial}, slot {slot}"
        )
    versions = verdict.versions
    yield f"Driver {listed(versions.driver) or UNKNOWN}; VBIOS {listed(versions.vbios) or UNKNOWN}"
    yield from (f"Firmware {name}: {listed(each)}" for name, each in versions.firmware.items())
    if parts is None:
        yield "Serial numbers and slots are unknown: this was packed on another machine."
    yield ""
    yield "ticket.txt: in words, and the commands that repeat it."
    yield "verdict.json: the same for programs. documents: every sample, with states of the devices"
    yield "before and after. No variables, command lines, processes or names of users are in here."


def _reason(reason: Reason) -> Iterator[str]:
    component = f", {reason.component}" if reason.component else ""
    yield f"  {reason.status} ({reason.rule}{component}): {reason.sentence}"
