"""Sessions of several nodes, as ReFrame leaves one that it distributed (--distribute)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import factories

PARTITION = "cluster:queue"

#: What is simulated on the nodes of a job.
SIMULATED = "cluster:model"


def case(node: str, check: str = "stream_local", **changes: Any) -> dict[str, Any]:
    """Build the case of a check that ReFrame distributed to a node."""
    return (
        factories.case(
            f"{check}_{node}",
            display_name=f"{check} %.part={PARTITION} %.nid={node}",
            scheduler="squeue",
            job_nodelist=[node],
        )
        | {"name": check}
        | dict(zip(("system", "partition"), PARTITION.split(":"), strict=True))
        | changes
    )


def document(node: str, value: float = 10.0, **changes: Any) -> dict[str, Any]:
    """Build the document of a node whose copies have this bandwidth, in GB/s, and little noise."""
    samples = [value * (1 + step / 1000) for step in range(-4, 5)]
    series = [factories.series(samples, host_clock=None)]
    content = factories.document(series=series, **changes)
    content["host"] = content["host"] | {"hostname": f"{node}.cluster", "scheduler_node": node}
    return content


def perfvalues(value: float, reference: float = 10.0, metric: str = "copy_worst") -> dict[str, Any]:
    """Build what ReFrame records of a bandwidth in GB/s, compared with a reference within 10 %."""
    result = "pass" if value >= 0.9 * reference else "fail"
    return {f"{PARTITION}:{metric}": [value, reference, -0.1, None, "GB/s", result]}


def session(results: Path, values: Mapping[str, float | None], **options: Any) -> Path:
    """Write a session of one check on nodes; a node without a value left no document."""
    cases = []
    for node, value in values.items():
        if value is None:
            reason = "job killed because max_pending_time was exceeded"
            one = case(node, result="fail", fail_reason=reason, job_nodelist=[])
        else:
            recorded = perfvalues(value)
            failed = any(entry[5] == "fail" for entry in recorded.values())
            one = case(node, perfvalues=recorded, result="fail" if failed else "pass")
            kind = "stage" if failed else "output"
            folder = factories.case_folder(results, one["unique_name"], kind)
            path = factories.write(folder / "result.json", document(node, value))
            factories.write_metrics(path, recorded)
        cases.append(one)
    return factories.session(results, cases, **options)


def _step(
    results: Path, node: str, check: str, content: dict[str, Any], value: float
) -> dict[str, Any]:
    """Write the document of a check that ran as a step of the allocation; return its case."""
    recorded = perfvalues(value)
    failed = any(entry[5] == "fail" for entry in recorded.values())
    kind = "stage" if failed else "output"
    path = factories.write(factories.case_folder(results, check, kind) / "result.json", content)
    factories.write_metrics(path, recorded)
    # To ReFrame on the node the scheduler is the local one.
    return case(node, check, display_name=check, unique_name=check, scheduler="local",
                job_nodelist=["login"], perfvalues=recorded,
                result="fail" if failed else "pass")  # fmt: skip


def job(
    results: Path,
    values: Mapping[str, float | None],
    name: str = "17",
    simulated: Mapping[str, float] | None = None,
    **requested: dict[str, Any],
) -> Path:
    """Write a job over many nodes with a session a node; returns its folder.

    A node without a value has no results folder. simulated: by node the value of a partition that
    is simulated there. requested: by node what else is known of it.
    """
    folder = results / "every-node" / name
    folder.mkdir(parents=True)
    shares = {}
    for node, value in values.items():
        shares[node] = {"results": node if value is not None else None} | requested.get(node, {})
        if value is not None:
            # As steps of the allocation: ReFrame's scheduler is the local one.
            cases = [_step(folder / node, node, "stream_local", document(node, value), value)]
            if simulated is not None:
                told = factories.simulated_document()
                of_model = document(node, simulated[node])
                of_model |= {key: told[key] for key in ("clock", "node", "program")}
                cases.append(
                    _step(folder / node, node, "stream_scan", of_model, simulated[node])
                    | {"partition": SIMULATED.split(":")[1]}
                )
            factories.session(folder / node, cases)
    content = {"partition": None, "started": "2026-01-02T03:04:00Z", "job": name, "nodes": shares}
    factories.write(folder / "nodes.json", {"form": "fabricheck-nodes-1"} | content)
    return folder
