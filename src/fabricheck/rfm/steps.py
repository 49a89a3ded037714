"""The steps of a session: each on one node, with its own options, independent of other steps.

A session that is itself a step (`fabricheck every-node`, or srun by hand) inherits Slurm's
variables of that step's tasks. srun reads many of them as options: one task, its binding, its MPI.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from typing import Any

from ClusterShell.NodeSet import NodeSet

from fabricheck.rfm import slurm

#: Prefixes of variables that srun sets for the tasks of a step: those that srun reads as options,
#: and those that locate a process in a step.
_OF_A_STEP = (
    "PMI",
    "SLURM_CPU_BIND",
    "SLURM_DISTRIBUTION",
    "SLURM_DIST_",
    "SLURM_EXPORT_ENV",
    "SLURM_GTIDS",
    "SLURM_LAUNCH_NODE_IPADDR",
    "SLURM_LOCALID",
    "SLURM_MPI_TYPE",
    "SLURM_NNODES",
    "SLURM_NODEID",
    "SLURM_NODELIST",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_PROCID",
    "SLURM_SRUN_",
    "SLURM_STEP",
    "SLURM_TASKS_PER_NODE",
    "SLURM_TASK_PID",
    "SRUN_DEBUG",
)


def options(job: Any, tasks: int) -> list[str]:
    """Return the options of srun for a number of tasks on the one node of a ReFrame job."""
    # In an allocation srun takes both from it; in one for eight ranks, it would start eight.
    found = ["--nodes=1", f"--ntasks={tasks}"]
    if job.scheduler.registered_name == "local":
        found += _on_this_node(os.environ)
    if tasks == 1:
        found.append(slurm.ALL_CORES)
    return found


def node(environment: Mapping[str, str]) -> tuple[str | None, bool]:
    """Return the node of the allocation that a session measures, and whether it runs there.

    Under salloc the session may run on a login node, which does not belong to the job: then the
    first node of the job is measured. None if Slurm names no nodes.
    """
    nodes = NodeSet(environment.get("SLURM_JOB_NODELIST"))
    own = environment.get("SLURMD_NODENAME")
    if own and own in nodes:
        return own, True
    return (nodes[0] if nodes else None), False


def _on_this_node(environment: Mapping[str, str]) -> list[str]:
    several = len(NodeSet(environment.get("SLURM_JOB_NODELIST"))) > 1
    return [f"--nodelist={node(environment)[0]}"] if several else []


def forget_own_step(environment: MutableMapping[str, str]) -> None:
    """Remove this process's own step from an environment; the job's variables stay.

    Outside a step nothing is removed: the options of a job apply to its steps.
    """
    if "SLURM_STEP_ID" in environment:
        forget_tasks(environment)


def forget_tasks(environment: MutableMapping[str, str]) -> None:
    """Remove srun's options of a new step, and the step's place, from an environment."""
    for name in [name for name in environment if name.startswith(_OF_A_STEP)]:
        del environment[name]
