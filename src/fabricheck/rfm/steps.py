"""The steps of a session: each on the nodes of its check, with its own options, independent of
other steps.

A session that is itself a step (`fabricheck every-node`, or srun by hand) inherits Slurm's
variables of that step's tasks. srun reads many of them as options: one task, its binding, its MPI.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from ClusterShell.NodeSet import NodeSet

from fabricheck.core import nodelists
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


def options(job: Any, tasks: int, number: int = 1) -> list[str]:
    """Return the options of srun for a number of tasks on the nodes of a ReFrame job.

    :param tasks: on all nodes, the same number on each.
    :param number: of the nodes.
    """
    # In an allocation srun takes both from it; in one for eight ranks, it would start eight.
    found = [f"--nodes={number}", f"--ntasks={tasks}"]
    if number > 1:
        # The ranks of a node have successive numbers, whatever the job distributes.
        found += [f"--ntasks-per-node={tasks // number}", "--distribution=block"]
    there = len(allocated(os.environ)) if job.scheduler.registered_name == "local" else 0
    if there > number or there > 1:
        found.append(f"--nodelist={nodelists.folded(nodes(os.environ, number))}")
    if tasks == number:
        found.append(slurm.ALL_CORES)
    return found


def allocated(environment: Mapping[str, str]) -> Sequence[str]:
    """Return the nodes of the allocation around this process, in order; none without one."""
    return list(NodeSet(environment.get("SLURM_JOB_NODELIST")))


def nodes(environment: Mapping[str, str], number: int = 1) -> Sequence[str]:
    """Return the nodes of the allocation that a check measures; of several nodes the first ones.

    A check of one node measures the one that the session runs on. Under salloc that may be a login
    node, which does not belong to the job: then the first node of the job is measured.

    :param number: of the nodes; 0 means all.
    """
    if number == 1 and is_inside(environment):
        return [environment["SLURMD_NODENAME"]]
    return allocated(environment)[: number or None]


def is_inside(environment: Mapping[str, str]) -> bool:
    """Whether a session runs on a node of its allocation."""
    return environment.get("SLURMD_NODENAME") in allocated(environment)


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
