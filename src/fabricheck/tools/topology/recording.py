"""The result document of a node's topology: differences from its node model (experiment E13)."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import fabricheck
from fabricheck.core import checkout
from fabricheck.core.errors import FabricheckError, InvalidInputError
from fabricheck.core.text import count
from fabricheck.core.vocabulary import ENV_SIMULATED_NODE, EXIT_CODE, STATUS_OF_EXIT, UNKNOWN
from fabricheck.core.whole_files import write_whole
from fabricheck.node import NodeModel, load
from fabricheck.results import document
from fabricheck.results.model import Device, ResultDocument
from fabricheck.results.other_devices import (
    GRANTING,
    divided_sentence,
    granting,
    mode_of_parts,
)
from fabricheck.tools.runner import recorded_code
from fabricheck.tools.topology.comparison import by_weight, compare, weighs
from fabricheck.tools.topology.detection import Detection, NoTools, detect, parse_files
from fabricheck.tools.topology.host import (
    balancing_setting,
    describe_host,
    driver_version,
    host_differences,
    partition_mode,
)
from fabricheck.tools.topology.reported import Reported
from fabricheck.tools.topology.simulated import ask_simulated, simulated_host

Runtime = Literal["rocm", "cuda", "sim"]

#: Facts without which a comparison is worthless: two kinds of node may differ only in them.
ESSENTIAL = ("links", "NUMA domains")

#: Variables that change which devices a tool or a runtime shows, and their numbers.
_ENVIRONMENT = (
    *GRANTING,
    "CUDA_DEVICE_ORDER",
    ENV_SIMULATED_NODE,
)


class PreventedBySetting(FabricheckError):
    """A setting of the node or the job is wrong, and nothing else differs."""

    exit_code = EXIT_CODE["setting"]


def record(
    model: str,
    runtime: Runtime,
    output: Path,
    *,
    simulated: Path | None = None,
    files: Sequence[Path] = (),
    devices: int | None = None,
    note_numa_balancing: bool = False,
    limit_s: float = 120,
    root: Path = Path("/"),
) -> ResultDocument:
    """Compare a node with its model and write the result document, also of a failed run.

    Differences are a result and not a failure of the run; the reader of the document judges them.

    :param runtime: the runtime of the programs of the same environment.
    :param simulated: the platform of a simulated node; by default this machine is examined.
    :param files: outputs of this machine's tools; without any, the tools are run.
    :param devices: the number of the model's devices that the node has; ``None`` is all of them.
    :param note_numa_balancing: whether NUMA balancing is a note, and does not end the run.
    :param limit_s: of the tools, in s.
    :param root: the folder with ``proc`` and ``sys``.
    :raises NotFoundError: when the document cannot be written.
    """
    started = time.monotonic()
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    content = empty("topology", runtime, simulated is not None, root, environment)
    if simulated is None:
        content["versions"]["driver"] = driver_version(root)
    content["options"] = {
        "node": model,
        "devices": devices,
        "simulated": None if simulated is None else str(simulated),
        "from": [str(path) for path in files],
        "time_limit_s": limit_s,
    }
    try:
        node = load(model)
        if devices is not None:
            node = node.part(devices)
        content["options"] |= {"node": node.name, "digest": node.sha256}
        mode = None if simulated else partition_mode(root)
        report, failed = _ask(simulated, files, limit_s, content)
        _compare(node, report, failed, mode, content, note_numa_balancing)
    except FabricheckError as error:
        fail(content, error)
    return finish(content, started, output)


def _ask(
    simulated: Path | None, files: Sequence[Path], limit_s: float, content: dict[str, Any]
) -> tuple[Reported, Sequence[str]]:
    """Add the node's report to the document; return it, and the sentences of failed calls."""
    if simulated is not None:
        report, fields = ask_simulated(simulated)
        content |= fields
        return report, ()
    try:
        found = Detection(parse_files(files)) if files else detect(limit_s=limit_s)
    except NoTools as error:
        raise InvalidInputError(str(error)) from None
    content["devices"] = _devices(found.report)
    content["notes"] = [f"not used: {sentence}" for sentence in found.failed]
    return found.report, found.failed


def _compare(
    model: NodeModel,
    report: Reported,
    failed: Sequence[str],
    mode: str | None,
    content: dict[str, Any],
    note_numa_balancing: bool,
) -> None:
    """Add the differences from the model to the document.

    :param failed: why tools could not be used.
    :param mode: the mode that divides devices; None where they are whole, or none tells.
    :raises InvalidInputError: when nothing differs, and something essential is not reported.
    """
    host, not_used = content["host"], content["notes"]
    fewer = report.count < len(model.devices)
    granted = granting(content["environment"], report.count) if fewer else None
    if granted is not None:
        raise PreventedBySetting(
            f"{granted} is {content['environment'][granted]} on node {host['hostname']}, but its "
            f"tools show {report.count} devices of the {len(model.devices)} in {model.name}: "
            "request all of them."
        )
    if model.vendor == report.vendor == "amd":
        # The parts of one package are functions of one PCI device.
        packages = len({address.rpartition(".")[0] for address in report.pci or ()})
        mode = mode or mode_of_parts(report.count, packages or len(model.devices))
        if mode is not None:
            said = divided_sentence(host["hostname"], mode, report.count)
            other = packages not in (0, len(model.devices))
            beside = f" It shows {packages} GPUs; {model.name} has {len(model.devices)}."
            raise PreventedBySetting(f"{said}{beside if other else ''}")
    outcome = compare(model, report)
    of_host = {
        "NUMA domains and cores of the host": bool(host["numa_domains"]),
        "NUMA balancing": host["numa_balancing"] is not None,
    }
    compared = [*outcome.compared, *(what for what, told in of_host.items() if told)]
    content["notes"] = [
        f"compared with {model.name}: {', '.join(compared)}",
        *outcome.notes,
        *not_used,
        *(f"not reported: {what}" for what, told in of_host.items() if not told),
    ]
    differences = [*outcome.differences]
    by_weight(model, host_differences(model, host), differences, content["notes"])
    untold = [what for what in ESSENTIAL if what not in outcome.compared]
    # With another number of devices, that is the only difference: nothing else can be compared.
    if untold and report.count == len(model.devices) and report.vendor == model.vendor:
        silent = f" ({report.silent}; {content['versions']['driver']})" if report.silent else ""
        said = (
            f"The {' and '.join(untold)} of node {host['hostname']} are not reported in "
            f"{report.origin}{silent}, so they cannot be compared with {model.name}."
        )
        if not differences:
            raise InvalidInputError(" ".join([*failed[:1], said]))
        content["notes"].append(said)
    domains = sum(bool(one["cores"]) for one in host["numa_domains"])
    as_cabled = not outcome.lost and report.links in (None, model.link_matrix)
    if domains not in (0, len(model.domains)) and weighs(model, "domains") and as_cabled:
        raise PreventedBySetting(
            f"Node {host['hostname']} has {count(domains, 'NUMA domain')} with cores, {model.name} "
            f"has {len(model.domains)}: the firmware's setting of NUMA nodes per socket (NPS) "
            "decides it."
        )
    setting = balancing_setting(host)
    if setting and not differences and not note_numa_balancing:
        raise PreventedBySetting(setting)
    if setting:
        content["notes"].append(setting)
    content["differences"] = differences
    content["lost"] = list(outcome.lost)


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
        "host": simulated_host(UNKNOWN, []) if simulated else describe_host(root),
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


def fail(content: dict[str, Any], error: FabricheckError) -> None:
    """Make an error the outcome of a document."""
    message = " ".join(str(error).split())
    code = recorded_code(error)
    content["outcome"] = {"exit_code": code, "status": STATUS_OF_EXIT[code], "message": message}
    content["complete"] = False


def finish(content: dict[str, Any], started: float, output: Path) -> ResultDocument:
    """Add the end of a run to its document; check and write it.

    :param started: when it began on the monotonic clock, in s.
    :raises NotFoundError: when it cannot be written.
    """
    content["finished"] = now()
    content["duration_s"] = time.monotonic() - started
    text = json.dumps(content, indent=1) + "\n"
    checked = document.parse(text, output)
    write_whole(output, text)
    return checked


def _devices(report: Reported) -> list[Device]:
    """Return the devices as far as topology tools report them; no runtime is used."""
    return [
        {
            "index": index,
            "name": f"{report.vendor} device",
            "arch": UNKNOWN,
            "pci_address": report.pci[index] if report.pci else None,
            "unique_id": None,
            "memory_bytes": None,
            "compute_units": None,
            "last_level_cache_bytes": None,
            "numa_domain": report.numa[index] if report.numa else None,
        }
        for index in range(report.count)
    ]


def now() -> str:
    """Return the present time in UTC, as documents have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
