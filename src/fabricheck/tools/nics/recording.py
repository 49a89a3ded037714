"""The result document of a node's NICs: differences from its node model (experiment E16)."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricheck.core.errors import FabricheckError, InvalidInputError, PreventedBySetting
from fabricheck.core.vocabulary import ENV_SIMULATED_NODE, Runtime
from fabricheck.node import NodeModel, load
from fabricheck.node.fabric import Fabric, load_fabric
from fabricheck.results.model import ResultDocument, node_name
from fabricheck.tools.nics.comparison import (
    compare,
    described,
    new_errors,
    require_nics,
)
from fabricheck.tools.nics.libraries import Libraries, libraries
from fabricheck.tools.nics.loopback import loopback, require_installed
from fabricheck.tools.nics.reading import SeenNic, counters, read_nics
from fabricheck.tools.nics.simulated import simulated_nics
from fabricheck.tools.outputs.cxi_loopback import Loopback
from fabricheck.tools.topology.recording import empty, fail, finish

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
    simulated: Path | None = None,
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
    :param simulated: the platform of a simulated node; by default this machine is examined.
    :param devices: the number of the model's devices that the node has; ``None`` is all of them.
    :param tool: the loopback to run on each NIC of the model between both readings of the counters.
    :param limit_s: of everything, in s.
    :param root: the folder with ``sys``, ``run``, ``dev`` and ``usr``.
    :param interval_s: between both readings of the counters, in s.
    :raises NotFoundError: when the document cannot be written.
    """
    started = time.monotonic()
    environment = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(_ENVIRONMENT) or name == ENV_SIMULATED_NODE
    }
    content = empty("nics", runtime, simulated is not None, root, environment)
    content["options"] = {
        "node": model,
        "devices": devices,
        "fabric": fabric,
        "loopback": tool,
        "simulated": None if simulated is None else str(simulated),
        "time_limit_s": limit_s,
    }
    try:
        node = load(model)
        if devices is not None:
            node = node.part(devices)
        require_nics(node)
        content["options"] |= {"node": node.name, "digest": node.sha256}
        network = None if fabric is None else load_fabric(fabric)
        if simulated is not None:
            nics, fields = simulated_nics(simulated)
            content |= fields
            _compare(node, network, nics, {}, Libraries({}, (), ()), {}, content)
        else:
            end = started + limit_s
            _examine(node, network, tool, end, root, interval_s, content)
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
    """Read this machine's NICs, and their counters before and after what uses them."""
    node = node_name(content["host"])
    nics = read_nics(root)
    before = {nic.name: counters(nic, root) for nic in nics}
    began = time.monotonic()
    own = [nic for nic in nics if nic.name in {one.name for one in model.nics}]
    provider = None if fabric is None else fabric.file.provider
    found = libraries(node, own, provider, root)
    content["versions"] |= found.versions
    reached: dict[str, Loopback] = {}
    failure: FabricheckError | None = None
    try:
        if tool is not None:
            require_installed(tool)
            for nic in own:
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
    _compare(model, fabric, nics, errors, found, reached, content)
    if failure is not None:
        content["notes"] += [f"difference: {one}" for one in content["differences"]]
        content["differences"] = None
        raise failure


def _compare(
    model: NodeModel,
    fabric: Fabric | None,
    nics: Sequence[SeenNic],
    errors: Mapping[str, Mapping[str, tuple[int, int]]],
    found: Libraries,
    reached: Mapping[str, Loopback],
    content: dict[str, Any],
) -> None:
    """Add the NICs and their differences from the model to the document."""
    node = node_name(content["host"])
    content["nics"] = [
        described(node, nic, fabric, errors.get(nic.name, {}), reached.get(nic.name))
        for nic in nics
    ]
    own = {one.name for one in model.nics}
    outcome = compare(node, model, nics, fabric)
    failures, others = new_errors(node, {name: one for name, one in errors.items() if name in own})
    differences = [*outcome.differences, *failures]
    content["notes"] = [*outcome.notes, *found.notes, *others]
    if reached:
        content["notes"].append("the loopback compares no data")
    if outcome.unread and not differences:
        raise InvalidInputError(" ".join(outcome.unread))
    content["notes"] += outcome.unread
    if found.settings and not differences:
        raise PreventedBySetting(" ".join(found.settings))
    content["notes"] += found.settings
    content["differences"] = differences
    content["lost"] = list(outcome.lost)
