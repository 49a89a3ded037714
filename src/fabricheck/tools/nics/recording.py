"""The result document of a node's NICs: differences from its node model (experiment E16)."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fabricheck.core.errors import FabricheckError, InvalidInputError, PreventedBySetting
from fabricheck.core.vocabulary import Runtime
from fabricheck.node import NodeModel, load
from fabricheck.node.fabric import Fabric, load_fabric
from fabricheck.results.model import ResultDocument, node_name
from fabricheck.tools.nics.comparison import compare, described, new_errors, require_nics
from fabricheck.tools.nics.libraries import libraries
from fabricheck.tools.nics.loopback import loopback, require_installed
from fabricheck.tools.nics.reading import counters, read_nics
from fabricheck.tools.topology.recording import empty, fail, finish
from fabricheck.tools.topology.reported import Difference

#: Seconds between both readings of the counters, at least.
INTERVAL_S = 1.0

#: The time limit of the loopback of one NIC, in s.
LOOPBACK_S = 60.0

#: Variables that choose the network, or how messages use it.
_ENVIRONMENT = ("FI_", "MPICH_OFI_", "UCX_", "OMPI_MCA_", "NCCL_NET", "NCCL_IB_", "NCCL_SOCKET_")


def record(
    model: str,
    runtime: Runtime,
    output: Path,
    *,
    fabric: str | None = None,
    devices: int | None = None,
    tool: str | None = None,
    limit_s: float = 120,
    root: Path = Path("/"),
    interval_s: float = INTERVAL_S,
) -> ResultDocument:
    """Compare a node's NICs with its model and write the result document, also of a failed run.

    Differences are a result and not a failure of the run; the reader of the document judges them.

    :param runtime: of the programs of the same environment; it changes nothing here.
    :param fabric: the network that joins the nodes (config/fabrics); ``None`` for none.
    :param devices: the number of the model's devices that the node has; ``None`` is all of them.
    :param tool: the loopback to run on each NIC of the model between both readings of the counters.
    :param limit_s: of everything, in s.
    :param root: the folder with ``sys``, ``run``, ``dev`` and ``usr``.
    :param interval_s: between both readings of the counters, in s.
    :raises NotFoundError: when the document cannot be written.
    """
    started = time.monotonic()
    environment = {
        name: value for name, value in sorted(os.environ.items()) if name.startswith(_ENVIRONMENT)
    }
    content = empty("nics", runtime, False, root, environment)
    content["options"] = {
        "node": model,
        "devices": devices,
        "fabric": fabric,
        "loopback": tool,
        "time_limit_s": limit_s,
    }
    try:
        node = load(model)
        if devices is not None:
            node = node.part(devices)
        require_nics(node)
        content["options"] |= {"node": node.whole_name, "digest": node.sha256}
        network = None if fabric is None else load_fabric(fabric)
        _examine(node, network, tool, started + limit_s, root, interval_s, content)
    except FabricheckError as error:
        fail(content, error)
    return finish(content, started, output)


def _examine(
    model: NodeModel,
    fabric: Fabric | None,
    tool: str | None,
    end: float,
    root: Path,
    interval_s: float,
    content: dict[str, Any],
) -> None:
    """Add the NICs, what their counters counted meanwhile, and the differences from the model."""
    node = node_name(content["host"])
    nics = read_nics(root)
    before = {nic.name: counters(nic, root) for nic in nics}
    began = time.monotonic()
    names = {nic.name for nic in model.nics}
    modelled = [nic for nic in nics if nic.name in names]
    found = libraries(node, modelled, None if fabric is None else fabric.provider, root)
    content["versions"] |= found.versions
    reached: dict[str, float] = {}
    failure: FabricheckError | None = None
    try:
        if tool is not None:
            require_installed(tool)
            for nic in modelled:
                limit = min(LOOPBACK_S, max(end - time.monotonic(), 0.001))
                reached[nic.name] = loopback(tool, nic, limit)
    except FabricheckError as error:
        failure = error
    time.sleep(max(0.0, interval_s - (time.monotonic() - began)))
    after = {nic.name: counters(nic, root) for nic in nics}
    errors = {
        name: {key: (was[key], after[name][key]) for key in was if key in after[name]}
        for name, was in before.items()
    }
    content["nics"] = [
        described(node, nic, fabric, errors[nic.name], reached.get(nic.name)) for nic in nics
    ]
    outcome = compare(node, model, nics, fabric)
    failures, others = new_errors(node, {name: errors[name] for name in errors if name in names})
    differences = [*outcome.differences, *map(Difference, failures)]
    content["notes"] = [*outcome.notes, *found.notes, *others]
    if reached:
        content["notes"].append("the loopback compares no data")
    if outcome.unread and not differences:
        raise InvalidInputError(" ".join(outcome.unread))
    if found.settings and not differences:
        raise PreventedBySetting(" ".join(found.settings))
    content["notes"] += [*outcome.unread, *found.settings]
    if failure is not None:
        content["notes"] += [f"difference: {difference.sentence}" for difference in differences]
        raise failure
    content["differences"] = list(map(asdict, differences))
