"""The allocation of Slurm around this process: its nodes, how they are, and when it ends."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ClusterShell.NodeSet import NodeSet, NodeSetException

from fabricheck.errors import NotFoundError, UsageError
from fabricheck.nodes_asked import AskedNode
from fabricheck.rfm import slurm

#: The word of a node's state with which Slurm starts nothing on it.
DOWN = "DOWN"


@dataclass(frozen=True)
class Allocation:
    """A job's nodes that are to be measured.

    job: its number. nodes: what Slurm says of each, by name and in order; one that Slurm has taken
    out of the job, as it failed, is told as down. ends: when the job's time is over; None for a
    job without a limit.
    """

    job: str
    nodes: Mapping[str, AskedNode]
    ends: datetime | None


def around(chosen: str | None = None, environment: Mapping[str, str] | None = None) -> Allocation:
    """Return the allocation that this process is in.

    :param chosen: a list of hosts, as ``node[1-4],node7``: these of its nodes; by default all.
    :param environment: by default that of this process.
    :raises NotFoundError: outside an allocation, or in one that Slurm does not know.
    :raises UsageError: where its nodes may be shared, a chosen one is none of them, or this is one
        of several tasks.
    """
    found = os.environ if environment is None else environment
    job, list_of_nodes = found.get("SLURM_JOB_ID"), found.get("SLURM_JOB_NODELIST")
    if not job or not list_of_nodes:
        raise NotFoundError(
            "every-node measures the nodes of an allocation of Slurm, and this shell is in none "
            "(SLURM_JOB_ID is not set): start it by sbatch or salloc, with --nodes=N --exclusive."
        )
    tasks = found.get("SLURM_STEP_NUM_TASKS", "1")
    if tasks != "1":
        raise UsageError(
            f"every-node starts a step on each node by itself, and srun started it {tasks} times: "
            "start it without srun."
        )
    try:
        known = slurm.record(job)
        shared, left = known["OverSubscribe"], NodeSet(known["NodeList"])
    except (LookupError, NodeSetException) as error:
        raise NotFoundError(f"Slurm does not know the allocation {job}: {error}.") from None
    if shared != "NO":
        raise UsageError(
            f"The allocation {job} may share its nodes (OverSubscribe={shared}), and they are "
            "measured: add --exclusive to sbatch or salloc."
        )
    all_nodes = NodeSet(list_of_nodes)
    nodes = _chosen(chosen, all_nodes, job)
    states = _states(nodes)
    return Allocation(
        job=job,
        nodes={name: _asked(name, states, name in left) for name in nodes},
        ends=_time(known.get("EndTime", "")),
    )


def _chosen(text: str | None, nodes: NodeSet, job: str) -> NodeSet:
    if text is None:
        return nodes
    try:
        chosen = NodeSet(text)
    except NodeSetException as error:
        raise UsageError(f"--nodes={text} is no list of hosts: {error}.") from None
    if not chosen:
        raise UsageError(f"--nodes={text} names no node.")
    if chosen - nodes:
        raise UsageError(f"The allocation {job} has no {chosen - nodes}: it has {nodes}.")
    return chosen


def _states(nodes: NodeSet) -> Mapping[str, Mapping[str, Any]]:
    command = ["scontrol", "show", "nodes", "--oneliner", str(nodes)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = {}
    for line in said.splitlines():
        words = dict(re.findall(r"(?:^|\s)(\w+)=(\S*)", line))
        reason = re.search(r" Reason=(.*?)(?: \[\S+@\S+\]| \w+=|$)", line)
        found[words["NodeName"]] = {
            "state": words.get("State"),
            "because": reason[1].strip() if reason else None,
        }
    return found


def _asked(name: str, states: Mapping[str, Mapping[str, Any]], left: bool) -> AskedNode:
    found = AskedNode(results=name, **states.get(name, {}))
    if left and DOWN not in (found.state or "").replace("*", "").split("+"):
        return found
    because = f": {found.because}" if found.because else ""
    if left:
        said = f"{name} was {found.state} when the run began{because}; nothing was started on it."
    else:
        said = (
            f"{name} had failed and Slurm had taken it out of the job when the run began{because}; "
            "nothing was started on it."
        )
    return found.model_copy(update={"said": said})


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
