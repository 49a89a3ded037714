"""What a check will have on a partition, written down for `fabricheck references`.

Only a check knows its metrics, and only when its partition is known; only ReFrame knows which
references it will use. So a dry run writes both, one line for each check.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from fabricheck.core.vocabulary import ENV_METRICS
from fabricheck.references.entries import plain
from fabricheck.rfm.metrics import Metric
from fabricheck.rfm.predictions import Unpredicted


class Check(Protocol):
    """What is asked of a ReFrame check."""

    name: str
    tags: set[str]
    limit_s: int
    current_partition: Any
    current_environ: Any

    def predicted_s(self) -> float:
        """Return how many seconds the job will take."""
        ...


def write(check: Check, metrics: Sequence[Metric], entries: Mapping[str, Any]) -> None:
    """Add a line of JSON: check, tags, times, partition, environment, metrics with entries.

    :param entries: the check's references on the partition, by metric.
    """
    file = os.environ.get(ENV_METRICS)
    if not file:
        return
    partition = check.current_partition.fullname
    line = {
        "check": check.name,
        "tags": sorted(check.tags),
        "limit_s": check.limit_s,
        **_predicted(check),
        "partition": partition,
        "environment": check.current_environ.name,
        "metrics": {
            one.name: {"unit": one.unit, "entry": plain(entries.get(one.name))} for one in metrics
        },
    }
    with Path(file).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def _predicted(check: Check) -> dict[str, Any]:
    try:
        return {"predicted_s": check.predicted_s()}
    except Unpredicted as error:
        return {"predicted_s": None, "not_predicted": str(error)}
