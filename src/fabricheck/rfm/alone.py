"""One check at a time where ReFrame would start several on the node that they measure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reframe.core.logging import getlogger
from reframe.frontend.executors import policies


def one_check_at_a_time(runner: Any, testcases: Any) -> None:
    """Let a runner start one check after the other where several would measure this node."""
    # max_jobs holds within one partition; local partitions share the node they measure.
    local = local_partitions(testcases)
    parallel = runner.policy
    together = sum(partition.max_jobs for partition in local.values())
    if together < 2 or isinstance(parallel, policies.SerialExecutionPolicy):
        return
    serial = policies.SerialExecutionPolicy()
    own = ("task_listeners", "local_scheduler")
    for name in [name for name in vars(serial) if name not in own and hasattr(parallel, name)]:
        setattr(serial, name, getattr(parallel, name))
    # The runner has handed it these two, which a policy does not have of its own.
    serial.max_failures = parallel.max_failures
    runner._policy = serial
    getlogger().info(f"One check at a time: {', '.join(sorted(local))} measure the same node.")


def local_partitions(testcases: Iterable[Any]) -> dict[str, Any]:
    """Return the partitions of the local scheduler by name."""
    return {
        case.partition.fullname: case.partition
        for case in testcases
        if case.partition.scheduler.registered_name == "local"
    }
