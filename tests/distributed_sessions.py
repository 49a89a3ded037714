"""Sessions of several nodes, as ReFrame leaves one that it distributed (--distribute)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import factories

PARTITION = "cluster:queue"


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
    """Build what ReFrame records of a bandwidth in GB/s, held against a reference within 10 %."""
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
            factories.write(folder / "result.json", document(node, value))
        cases.append(one)
    return factories.session(results, cases, **options)
