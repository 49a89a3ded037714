"""The Slurm allocation around this process: its nodes, their states, and its end."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from fabricheck.core import nodelists
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.results.requested_nodes import RequestedNode
from fabricheck.rfm import slurm

#: The word in a node's state with which Slurm starts nothing on it.
DOWN = "DOWN"

#: Slurm's end time of a job without a limit.
_NO_END = ("Unknown", "UNLIMITED", "NONE", "None", "N/A")


@dataclass(frozen=True)
class Allocation:
    """The nodes of a job that are to be measured.

    job: its number. nodes: Slurm's description of each, by name and in order; one on which nothing
    can be started has a sentence about it. ends: the end of the job's time; None without a limit.
    is_whole: whether they are all nodes of the job.
    """

    job: str
    nodes: Mapping[str, RequestedNode]
    ends: datetime | None
    is_whole: bool = False


def around(
    chosen: str | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    needs_end: bool = True,
) -> Allocation:
    """Return the allocation that this process is in.

    :param chosen: a list of hosts, as ``node[1-4],node7``: the selected nodes; by default all.
    :param environment: by default that of this process.
    :param needs_end: whether an end that Slurm does not report is an error; else it is None.
    :raises NotFoundError: outside an allocation, or in one that Slurm does not know.
    :raises UsageError: where its nodes may be shared, a selected node is not among them, or this is
        one of several tasks.
    """
    found = os.environ if environment is None else environment
    job, stated = found.get("SLURM_JOB_ID"), found.get("SLURM_JOB_NODELIST")
    if not job or not stated:
        raise NotFoundError(
            "every-node measures the nodes of a Slurm allocation, but this shell is in none "
            "(SLURM_JOB_ID is not set): start it by sbatch or salloc, with --nodes=N "
            "--exclusive."
        )
    tasks = found.get("SLURM_STEP_NUM_TASKS", "1")
    if tasks != "1":
        raise UsageError(
            f"every-node starts a step on each node itself, but srun started it {tasks} times: "
            "start it without srun."
        )
    nodes = nodelists.unfolded(stated)
    wanted = nodes if chosen is None else nodelists.unfolded(chosen)
    named = set(nodes)
    strange = [name for name in wanted if name not in named]
    if strange:
        raise UsageError(
            f"The allocation {job} has no {nodelists.folded(strange)}: it has {stated}."
        )
    try:
        known = slurm.record(job)
        # Slurm removes a failed node from the job, but leaves the variable unchanged.
        left = nodelists.unfolded(known["NodeList"])
        states = slurm.query_nodes(nodelists.folded(wanted))
    except LookupError as error:
        raise NotFoundError(
            f"Slurm does not know the allocation {job}: {error}. If this shell is in none, the "
            "variable is left over: unset SLURM_JOB_ID."
        ) from None
    added = [name for name in left if name not in named]
    if added:
        raise NotFoundError(
            f"Slurm reports {nodelists.folded(added)[:200]} in allocation {job}, which "
            f"SLURM_JOB_NODELIST ({stated}) does not have."
        )
    if known.get("OverSubscribe") != "NO":
        raise UsageError(
            f"The allocation {job} may share its nodes "
            f"(OverSubscribe={known.get('OverSubscribe')}), which are to be measured: add "
            "--exclusive to sbatch or salloc."
        )
    still = set(left)
    return Allocation(
        job=job,
        nodes={
            name: _requested(name, states.get(name, RequestedNode()), name in still)
            for name in wanted
        },
        ends=_end(job, known.get("EndTime", ""), needs_end),
        is_whole=len(wanted) == len(nodes),
    )


def _requested(name: str, node: RequestedNode, in_job: bool) -> RequestedNode:
    down = slurm.states(node)[0] == DOWN
    said = None
    if down or not in_job:
        taken = "" if in_job else " and removed from the job"
        because = f" ({node.because})" if node.because else ""
        said = f"{name} was {node.state}{taken}{because}, so nothing was started on it."
    return node.model_copy(update={"results": name, "said": said})


def _end(job: str, text: str, is_needed: bool) -> datetime | None:
    if text in _NO_END:
        return None
    try:
        if re.fullmatch(r"[0-9-]{10}T[0-9:]{8}", text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    if not is_needed:
        return None
    raise NotFoundError(
        f"Slurm does not report when allocation {job} ends: {text[:40]!r} is not a time (EndTime)."
    )
