"""ReFrame's jobs by the table of ways to reach nodes: how a job ended, whose its nodes are.

ReFrame's scheduler ``squeue`` considers every job that left the queue completed, and knows no exit
code: the record of the controller has it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reframe.core.exceptions import JobBlockedError, JobError, ReframeError

from fabricheck.core.show import listed
from fabricheck.rfm import reframe_internals
from fabricheck.schedulers import slurm, table
from fabricheck.schedulers.row import Node, Scheduler


def submitting(partition: Any) -> Scheduler | None:
    """Return the row whose jobs the checks of a partition are; None where they are none."""
    return table.submitting(partition.scheduler.registered_name)


def stepping(partition: Any) -> Scheduler | None:
    """Return the row in whose allocation the checks of a partition are steps; None in none."""
    return table.stepping(
        partition.scheduler.registered_name, partition.launcher_type.registered_name
    )


def starting(launcher: Any) -> Scheduler | None:
    """Return the row whose launcher this is; None for one that knows of no allocation."""
    return table.starting(launcher.registered_name)


def step_options(job: Any, launcher: Any, tasks: int, number: int = 1) -> list[str]:
    """Return a launcher's options for a number of tasks on the nodes of a job; none for others.

    :param tasks: on all nodes, the same number on each.
    :param number: of the nodes.
    """
    row = starting(launcher)
    if row is None:
        return []
    is_step = job.scheduler.registered_name == "local"
    return row.step_options(os.environ if is_step else {}, tasks, number)


def ranks_of_others(launcher: Any) -> list[str]:
    """Return the variables with the rank of a process by a scheduler that has not started it."""
    starts = starting(launcher)
    return [row.rank_variable for row in table.TABLE if row.rank_variable and row is not starts]


def of_the_allocation(partitions: Iterable[Any]) -> list[str]:
    """Return the partitions whose checks are steps of the allocation around the session."""
    return sorted(partition.fullname for partition in partitions if stepping(partition) is not None)


def cancel_if_blocked(
    cancel: Any, scheduler: Any, jobs: Sequence[Any], reasons: Any = None
) -> None:
    """Let ReFrame cancel blocked jobs, but none that will start later.

    Slurm gives the reason ``ReqNodeNotAvail`` to every job whose node another job waits for,
    healthy or not, and ReFrame considers such a job blocked: a second session would make the first
    lose its jobs. A job that requests a node is therefore blocked only by the state of the node.
    """
    asking = [job for job in jobs if job.pin_nodes and reframe_internals.is_pending(job)]
    names = sorted({name for check in asking for name in check.pin_nodes})
    states_of: dict[str, Node] = {}
    if names:
        with contextlib.suppress(LookupError):
            states_of = slurm.query_nodes(",".join(names))
    lost = {
        check: [name for name in check.pin_nodes if _is_lost(states_of, name, check)]
        for check in asking
    }
    cancel(scheduler, [job for job in jobs if lost.get(job, True)], reasons)
    for check, nodes in lost.items():
        if isinstance(check.exception, JobBlockedError) and nodes[0] in states_of:
            node = states_of[nodes[0]]
            sentence = (
                f"node {nodes[0]} is {node.reported}: the job would have waited for it and "
                "was cancelled"
            )
            reframe_internals.set_failed(check, JobBlockedError(sentence, check.jobid))


def _is_lost(nodes: Mapping[str, Node], name: str, job: Any) -> bool:
    """Return whether a job waits for a lost node; for an unknown node ReFrame decides."""
    if name not in nodes:
        return True
    return slurm.is_lost(nodes[name], (*job.sched_access, *job.options, *job.cli_options))


def complete(job: Any) -> None:
    """Complete a job that is no longer in the queue: state, exit code and nodes.

    If the end is unknown, the job fails with that sentence; considered completed, it would pass.
    """
    try:
        state, exit_code, nodes = slurm.end_of(job.jobid)
    except LookupError as error:
        reframe_internals.set_failed(job, JobError(str(error), job.jobid))
    else:
        reframe_internals.set_ended(job, state, exit_code, nodes)


def require_allocation(partitions: Sequence[Any]) -> None:
    """Refuse a session outside an allocation that has its nodes exclusively.

    :param partitions: those whose checks are steps of it.
    :raises ReframeError: if a step would wait in the queue for each check, or share its node.
    """
    rows = [row for row in map(stepping, partitions) if row is not None]
    names = listed(of_the_allocation(partitions))
    for row in dict.fromkeys(rows):
        sentence = row.why_not_alone(os.environ, names)
        if sentence is not None:
            raise ReframeError(sentence)


def require_own_nodes(partitions: Iterable[Any]) -> None:
    """Refuse a queue that gives no job its node exclusively, whatever the job requests.

    :raises ReframeError: naming the queue.
    """
    for partition in partitions:
        row = submitting(partition)
        sentence = None if row is None else row.why_shared(partition.access, partition.fullname)
        if sentence is not None:
            raise ReframeError(sentence)


def require_any_node(partitions: Iterable[Any]) -> None:
    """Refuse a session that would spread its checks over several nodes.

    :raises ReframeError: naming the partition.
    """
    for partition in partitions:
        row = submitting(partition)
        sentence = None if row is None else row.why_not_distributed(partition.fullname)
        if sentence is not None:
            raise ReframeError(sentence)


def require_nodes_of_one_kind(partitions: Iterable[Any]) -> None:
    """Refuse partitions of different node models that would run on the same nodes.

    :raises ReframeError: when these are the allocation around the session, or one queue.
    """
    nodes_of: dict[str, dict[str, str]] = {}
    for partition in partitions:
        node = partition.extras.get("node")
        row = table.starting(partition.launcher_type.registered_name)
        if node is None or row is None:
            continue
        where = "the allocation around this session"
        if partition.scheduler.registered_name != "local":
            queue = row.queue(partition.access)
            where = f"the nodes of {f'--partition={queue}' if queue else partition.fullname}"
        nodes_of.setdefault(where, {})[partition.fullname] = node
    for where, nodes in nodes_of.items():
        if len(set(nodes.values())) > 1:
            raise ReframeError(
                f"The partitions {listed(nodes)} have different nodes "
                f"({listed(nodes.values())}), but all of them would run on {where}: choose "
                f"one of them, as by --system={next(iter(nodes))}."
            )
