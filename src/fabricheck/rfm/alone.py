"""One check at a time where ReFrame would start several on the node that they measure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fabricheck.rfm import seams


def one_check_at_a_time(runner: Any, testcases: Any) -> None:
    """Let a runner start one check after the other where several would measure this node."""
    # max_jobs holds within one partition; local partitions share the node they measure.
    local = local_partitions(testcases)
    together = sum(partition.max_jobs for partition in local.values())
    if together > 1 and seams.run_serially(runner):
        seams.say(f"One check at a time: {', '.join(sorted(local))} measure the same node.")


def local_partitions(testcases: Iterable[Any]) -> dict[str, Any]:
    """Return the partitions of the local scheduler by name."""
    return {
        case.partition.fullname: case.partition
        for case in testcases
        if case.partition.scheduler.registered_name == "local"
    }
