"""The result document of a node's NICs (E16): compared, with what was counted meanwhile."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fabricheck.core.errors import FabricheckError, InvalidInputError, PreventedBySetting
from fabricheck.core.vocabulary import Runtime
from fabricheck.node import load
from fabricheck.node.fabric import load_fabric
from fabricheck.results.model import ResultDocument, node_name
from fabricheck.tools.nic_comparison import compare, new_errors, require_nics
from fabricheck.tools.nic_loopback import loopbacks
from fabricheck.tools.nics import counters, read_nics
from fabricheck.tools.topology.recording import recorded
from fabricheck.tools.topology.reported import Mismatch

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
    interval_s: float = 1.0,
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
    end = time.monotonic() + limit_s
    options = {
        "node": model,
        "devices": devices,
        "fabric": fabric,
        "loopback": tool,
        "time_limit_s": limit_s,
    }

    def examine(content: dict[str, Any]) -> None:
        expected = load(model, devices=devices)
        require_nics(expected)
        content["options"] |= {"node": expected.whole_name, "digest": expected.sha256}
        network = None if fabric is None else load_fabric(fabric)
        node = node_name(content["host"])
        nics = read_nics(node, network, root)
        before = {nic["name"]: counters(nic, root) for nic in nics}
        began = time.monotonic()
        comparison = compare(node, expected, nics, network, root)
        modelled = [pair.nic for pair in comparison.pairs]
        content["versions"] |= comparison.versions
        reached: dict[str, float] = {}
        failure: FabricheckError | None = None
        try:
            if tool is not None:
                reached = loopbacks(tool, modelled, end)
        except FabricheckError as error:
            failure = error
        time.sleep(max(0.0, interval_s - (time.monotonic() - began)))
        for nic in nics:
            was, now = before[nic["name"]], counters(nic, root)
            nic["errors"] = {
                counter: [was[counter], now[counter]] for counter in was if counter in now
            }
            if nic["name"] in reached:
                nic["loopback_gbs"] = reached[nic["name"]] / 8
        content["nics"] = nics
        failures, others = new_errors(modelled)
        differences = [*comparison.differences, *map(Mismatch, failures)]
        content["notes"] = [*comparison.notes, *others]
        if reached:
            content["notes"].append("the loopback compares no data")
        if comparison.unread and not differences:
            raise InvalidInputError(" ".join(comparison.unread))
        if comparison.settings and not differences:
            raise PreventedBySetting(" ".join(comparison.settings))
        content["notes"] += [*comparison.unread, *comparison.settings]
        if failure is not None:
            content["notes"] += [f"difference: {difference.sentence}" for difference in differences]
            raise failure
        content["differences"] = list(map(asdict, differences))

    return recorded("nics", runtime, _ENVIRONMENT, options, examine, output, root)
