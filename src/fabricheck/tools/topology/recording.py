"""The result document of a node's topology: differences from its node model (experiment E13)."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import fabricheck
from fabricheck.core import checkout
from fabricheck.core.errors import FabricheckError, InvalidInputError, PreventedBySetting
from fabricheck.core.show import enumerated, listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import ENV_SIMULATED_NODE, STATUS_OF_EXIT
from fabricheck.core.whole_files import write_whole
from fabricheck.node import NodeModel, load
from fabricheck.results import document
from fabricheck.results.model import Device, ResultDocument, node_name
from fabricheck.results.other_devices import GRANTING, divided_sentence, divides, granting
from fabricheck.results.settings import numa_balancing
from fabricheck.tools.runner import recorded_code
from fabricheck.tools.topology import inventory
from fabricheck.tools.topology.comparison import by_weight, compare, unlike_each_other, weighs
from fabricheck.tools.topology.host import (
    describe_host,
    host_differences,
    simulated_host,
)
from fabricheck.tools.topology.reported import Mismatch, Reported

Runtime = Literal["rocm", "cuda", "sim"]

#: Facts without which a comparison is worthless: two kinds of node may differ only in them.
ESSENTIAL = ("links", "NUMA domains")

#: Variables that change which devices a tool or a runtime shows, and their numbers.
_ENVIRONMENT = (
    *GRANTING,
    "CUDA_DEVICE_ORDER",
    ENV_SIMULATED_NODE,
)


def record(
    model: str | None,
    runtime: Runtime,
    programs: Path,
    output: Path,
    *,
    devices: int | None = None,
    results: Path | None = None,
    note_numa_balancing: bool = False,
    limit_s: float = 120,
) -> ResultDocument:
    """Compare a node with its model and write the result document, also of a failed run.

    Differences are a result and not a failure of the run; the reader of the document judges them.

    :param model: the node model; None where only what holds on any machine is examined.
    :param runtime: the runtime of the programs.
    :param programs: the folder of the programs, of which `inventory` describes the node.
    :param devices: the number of the model's devices that the node has; ``None`` is all of them.
    :param results: the folder of results, whose earlier sessions of this host are compared with.
    :param note_numa_balancing: whether NUMA balancing is a note, and does not end the run.
    :param limit_s: of the drivers' answer, in s.
    :raises NotFoundError: when the document cannot be written.
    """
    options = {
        "node": model,
        "devices": devices,
        "programs": str(programs),
        "time_limit_s": limit_s,
    }

    def examine(content: dict[str, Any]) -> None:
        node = None if model is None else load(model, devices=devices)
        if node is not None:
            content["options"] |= {"node": node.whole_name, "digest": node.sha256}
        description = inventory.ask(programs, limit_s)
        content |= {
            "node": description["node"],
            "host": inventory.host_of(description),
            "devices": inventory.devices_of(description),
            "versions": description["versions"] or content["versions"],
        }
        report = inventory.reported(description)
        _require_all_devices(node, description, report, content)
        differences = _on_any_machine(node, description, report, results, content)
        if node is not None:
            differences = [*_compare(node, report, differences, content), *differences]
        setting = numa_balancing(content["host"])
        if setting and not differences and not note_numa_balancing:
            raise PreventedBySetting(setting)
        if setting:
            content["notes"].append(setting)
        content["differences"] = list(map(asdict, differences))

    return recorded(
        "topology", runtime, _ENVIRONMENT, options, examine, output, simulated=runtime == "sim"
    )


def _require_all_devices(
    model: NodeModel | None,
    description: Mapping[str, Any],
    report: Reported,
    content: Mapping[str, Any],
) -> None:
    """Refuse a node whose devices a mode divides, or a setting hides.

    :raises PreventedBySetting: naming the mode or the setting.
    """
    node = node_name(content["host"])
    modes = [device["compute_partition"] for device in description["devices"]]
    mode = next(filter(divides, modes), None)
    if mode is not None and model is not None:
        sentence = divided_sentence(node, mode, report.count)
        # The parts of one package are functions of one PCI device.
        packages = {device["pci_address"].rpartition(".")[0] for device in description["devices"]
                    if device["pci_address"]}  # fmt: skip
        other = len(packages) not in (0, len(model.devices))
        beside = f" It shows {len(packages)} GPUs; {model.name} has {len(model.devices)}."
        raise PreventedBySetting(f"{sentence}{beside if other else ''}")
    if model is None or report.count >= len(model.devices):
        return
    shown = f"{count(report.count, 'device')} of the {len(model.devices)} in {model.name}"
    granted = granting(content["environment"], report.count)
    if granted is not None:
        raise PreventedBySetting(
            f"{granted} is {content['environment'][granted]} on node {node}, but its runtime shows "
            f"{shown}: request all of them."
        )
    hidden = inventory.hidden_functions(description)
    if hidden:
        raise PreventedBySetting(
            f"The runtime of node {node} shows {shown}: a setting or a control group hides "
            f"{listed(hidden, 4)}."
        )


def _on_any_machine(
    model: NodeModel | None,
    description: Mapping[str, Any],
    report: Reported,
    results: Path | None,
    content: dict[str, Any],
) -> list[Mismatch]:
    """Return the differences that need no node model: each is a loss."""
    sentences = [
        f"The driver lacks the device at {address}, which PCI shows."
        for address in inventory.lost_functions(description)
    ]
    if results is not None:
        hidden = inventory.hidden_functions(description)
        sentences += missing_devices(content, results, hidden, report.origin)
    if report.count > 1 and report.count % 2:
        content["notes"].append(f"{report.count} devices are an odd number")
    lost = [Mismatch(sentence, lost=True) for sentence in sentences]
    if model is None:
        content["notes"].append("no node model: compared with nothing but itself")
        lost += unlike_each_other(report)
    return lost


def _compare(
    model: NodeModel, report: Reported, mismatches: Sequence[Mismatch], content: dict[str, Any]
) -> list[Mismatch]:
    """Return the differences from the model.

    :param mismatches: the differences that need no model.
    :raises InvalidInputError: when nothing differs, and something essential is not reported.
    """
    host = content["host"]
    outcome = compare(model, report)
    of_host = {
        "NUMA domains and cores of the host": bool(host["numa_domains"]),
        "NUMA balancing": host["numa_balancing"] is not None,
    }
    compared = [*outcome.compared, *(what for what, known in of_host.items() if known)]
    content["notes"] = [
        f"compared with {model.name}: {listed(compared)}",
        *outcome.notes,
        *content["notes"],
        *(f"not reported: {what}" for what, known in of_host.items() if not known),
    ]
    differences = [*outcome.differences]
    of_host_itself = map(Mismatch, host_differences(model, host))
    by_weight(model, "domains", of_host_itself, differences, content["notes"])
    unknown = [what for what in ESSENTIAL if what not in outcome.compared]
    # With another number of devices, that is the only difference: nothing else can be compared.
    if unknown and report.count == len(model.devices) and report.vendor == model.vendor:
        why = inventory.reason(report.description, unknown[0])
        reason = f" ({why}; driver {content['versions']['driver']})" if why else ""
        sentence = (
            f"The {enumerated(unknown)} of node {host['hostname']} are not known to "
            f"{report.origin}{reason}, so they cannot be compared with {model.name}."
        )
        if not differences and not mismatches:
            raise InvalidInputError(sentence)
        content["notes"].append(sentence)
    domains = sum(bool(domain["cores"]) for domain in host["numa_domains"])
    is_gone = bool(mismatches) or any(difference.lost for difference in outcome.differences)
    as_cabled = not is_gone and report.links in (None, model.link_matrix)
    if domains not in (0, len(model.domains)) and weighs(model, "domains") and as_cabled:
        raise PreventedBySetting(
            f"Node {host['hostname']} has {count(domains, 'NUMA domain')} with cores, {model.name} "
            f"has {len(model.domains)}: the firmware's setting of NUMA nodes per socket (NPS) "
            "decides it."
        )
    return differences


def empty(
    program: str, runtime: str, simulated: bool, root: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the document of a run of this command line without results.

    :param program: the name that the document gives it.
    :param environment: the variables that change what it tells.
    """
    return {
        "schema": document.SCHEMA_NAME,
        "schema_version": document.SCHEMA_VERSION,
        "complete": True,
        "program": {
            "name": program,
            "version": fabricheck.__version__,
            "commit": checkout.commit(),
            "runtime": runtime,
            "compiler": "none",
        },
        "clock": "simulated" if simulated else "measured",
        "node": None,
        "started": now(),
        "host": simulated_host() if simulated else describe_host(root),
        "devices": [],
        "versions": {"runtime": "none", "driver": "none"},
        "environment": dict(environment),
        "arguments": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "options": {},
        "faults_injected": [],
        "outcome": {"exit_code": 0, "status": "good", "message": None},
        "series": [],
        "differences": None,
        "notes": [],
    }


def recorded(
    program: str,
    runtime: str,
    variables: Sequence[str],
    options: Mapping[str, Any],
    examine: Callable[[dict[str, Any]], None],
    output: Path,
    root: Path = Path("/"),
    *,
    simulated: bool = False,
) -> ResultDocument:
    """Write the document of a run of this command line, also of one that an error ended.

    :param program: the name that the document gives it.
    :param variables: prefixes of the variables that change what it tells.
    :param examine: adds to the content what it finds.
    :param root: the folder with ``proc`` and ``sys``.
    :param simulated: whether it examines a simulated node.
    :raises NotFoundError: when the document cannot be written.
    """
    started = time.monotonic()
    versions = {
        name: os.environ[name] for name in sorted(os.environ) if name.startswith(tuple(variables))
    }
    content = empty(program, runtime, simulated, root, versions) | {"options": {**options}}
    try:
        examine(content)
    except FabricheckError as error:
        message, code = " ".join(str(error).split()), recorded_code(error)
        outcome = {"exit_code": code, "status": STATUS_OF_EXIT[code], "message": message}
        content |= {"outcome": outcome, "complete": False}
    content |= {"finished": now(), "duration_s": time.monotonic() - started}
    text = json.dumps(content, indent=1) + "\n"
    checked = document.parse(text, output)
    write_whole(output, text)
    return checked


def now() -> str:
    """Return the present time in UTC, as documents have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


#: Below the folder of results: documents of passed checks, and of others, by session.
_KEPT = ("output", "stage")

#: System, partition, environment and check below the folder of a session.
_DOCUMENTS = "*/*/*/node_topology*/result.json"


def missing_devices(
    content: Mapping[str, Any], results: Path, hidden: Sequence[str], origin: str
) -> list[str]:
    """Return the sentence on devices that an earlier session of this host had; none without.

    A job that was granted fewer devices misses none. A session that found a loss is passed over, so
    that the loss stays a finding until it is mended.

    :param content: the document of this run.
    :param results: the folder of results.
    :param hidden: the addresses of devices that a setting hides.
    :param origin: what tells the devices of this run.
    """
    devices: Sequence[Device] = content["devices"]
    whole = (
        (session, document)
        for session, document in _newest_first(results)
        if _is_earlier(document, content)
        and not any(difference["lost"] for difference in document.get("differences") or ())
    )
    session, earlier = next(whole, (None, None))
    if earlier is None or granting(content["environment"], len(devices)):
        return []
    before, now = _cards(earlier["devices"]), _cards(devices)
    absent = [address for card, address in before.items() if card not in now]
    if len(now) >= len(before) or set(absent) <= {*hidden}:
        return []
    gone = listed(absent)
    return [
        f"The node has {count(len(now), 'device')} in {origin}, and had {len(before)} in session "
        f"{session}: without {gone}."
    ]


def _cards(devices: Sequence[Device]) -> dict[str, str]:
    """Return the address of each card, whose partitions differ in the function at most."""
    named = [device["pci_address"] or f"device {device['index']}" for device in devices]
    return {name.partition(".")[0]: name for name in reversed(named)}


def _newest_first(results: Path) -> Iterator[tuple[str, ResultDocument]]:
    """Yield each session and its documents, the newest first: names begin with their time."""
    names = {path.name for folder in _KEPT for path in (results / folder).glob("*/")}
    for session in sorted(names, reverse=True):
        for folder in _KEPT:
            for path in sorted((results / folder / session).glob(_DOCUMENTS)):
                with contextlib.suppress(FabricheckError):
                    yield session, document.load(path)


def _is_earlier(document: ResultDocument, content: Mapping[str, Any]) -> bool:
    return (
        document["program"]["name"] == "topology"
        and node_name(document["host"]) == node_name(content["host"])
        and document["clock"] == content["clock"]
        and document["options"].get("devices") == content["options"]["devices"]
        and bool(document["devices"])
        and document["started"] < content["started"]
    )
