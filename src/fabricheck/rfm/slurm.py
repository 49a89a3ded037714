"""Slurm beyond what ReFrame reads: how a job ended, whose its nodes are, steps of a job, all nodes.

ReFrame's scheduler ``squeue`` considers every job that left the queue completed, and knows no exit
code. The controller keeps the record of a job for some minutes after its end (MinJobAge, 300 s
unless a site sets another value), and ``scontrol`` shows it without accounting.

A session that is itself a step (`fabricheck every-node`, or srun by hand) inherits Slurm's
variables of that step's tasks. srun reads many of them as options: one task, its binding, its MPI.

In a session on all nodes (``--distribute``) ReFrame creates each check once per node, as a job that
requests its node, one at a time on each. A node that is down or lost leaves failed cases, or none
if ``--distribute=STATE`` excludes it. The file of the requested nodes names it in either case.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet
from reframe.core import runtime
from reframe.core.exceptions import JobBlockedError, JobError, ReframeError

from fabricheck.core import nodelists, processes, show
from fabricheck.core.errors import FabricheckError
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.results import requested_nodes
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes
from fabricheck.rfm import reframe_internals
from fabricheck.rfm.host import whole_number

#: The launcher of a partition whose ranks are steps of the allocation around it.
STEP_LAUNCHER = "srun"

#: ReFrame's schedulers that submit a job for each check.
SCHEDULERS = ("slurm", "squeue")

#: The setting that lets one process use all cores of its step. Sites bind a process to one core by
#: default (Frontier user guide, "Common srun options": --cpu-bind=threads), but the process serves
#: every device.
ALL_CORES = "--cpu-bind=none"

#: The setting that gives a step of one node a CXI service, which Slurm makes for several nodes only
#: (switch/hpe_slingshot; the manual of srun, --network).
CXI_SERVICE = "--network=single_node_vni"

#: The setting that ends a job whose node is lost. Slurm would requeue the job, which then waits for
#: a node that may never return, or starts again in a folder with leftovers.
ONCE = "--no-requeue"

#: States of a node in which a job that requests it waits for a repair, and states in which it waits
#: for the end of a reservation that the job does not name.
_LOST = {"DOWN", "DRAIN", "FAIL"}
_RESERVED = {"MAINT", "MAINTENANCE", "RESERVED"}

#: What may follow a state: it does not answer, saves power, boots and so on.
_SUFFIXES = "*~#!%$@^-"

#: The states of a node, as ``DOWN*+DRAIN``.
_STATE = re.compile(rf"[A-Z_]+[{_SUFFIXES}]?(?:\+[A-Z_]+[{_SUFFIXES}]?)*")

#: Seconds after which the controller of a busy cluster is no longer waited for.
PATIENCE_S = 120


def submits(partition: Any) -> bool:
    """Return whether the checks of a partition are jobs of Slurm."""
    return partition.scheduler.registered_name in SCHEDULERS


def of_the_allocation(partitions: Iterable[Any]) -> list[str]:
    """Return the partitions whose checks are steps of the allocation around the session."""
    return sorted(
        partition.fullname
        for partition in partitions
        if partition.scheduler.registered_name == "local"
        and partition.launcher_type.registered_name == STEP_LAUNCHER
    )


def record(job: str) -> Mapping[str, str]:
    """Return the controller's record of a job, by its own keys (``JobState``, ``ExitCode``).

    :raises LookupError: when it cannot be queried or no longer knows the job, with its first line.
    """
    # scontrol prints all parts of an array or a heterogeneous job.
    jobs = [words for words in map(_words, _lines(_shown("job", job))) if words["JobId"] == job]
    if len(jobs) != 1:
        raise LookupError("scontrol prints no record of the job, or several")
    return jobs[0]


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
    states_of: dict[str, RequestedNode] = {}
    if names:
        with contextlib.suppress(LookupError):
            states_of = query_nodes(",".join(names))
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


def _is_lost(nodes: Mapping[str, RequestedNode], name: str, job: Any) -> bool:
    """Return whether a job waits for a lost node; for an unknown node ReFrame decides."""
    if name not in nodes:
        return True
    states_of_node = set(states(nodes[name]))
    options = (*job.sched_access, *job.options, *job.cli_options)
    reserved = any(option.startswith("--reservation") for option in options)
    return bool(states_of_node & _LOST) or (bool(states_of_node & _RESERVED) and not reserved)


def states(node: RequestedNode) -> list[str]:
    """Return the states of a node, the base state first, without the suffixes of older Slurm."""
    return [state.rstrip(_SUFFIXES) for state in (node.state or "").split("+")]


def parse_node(description: str) -> RequestedNode:
    """Parse a node with its state and the reason for it.

    :param description: one line of ``scontrol show nodes --oneliner``.
    :raises LookupError: without a state, or for several nodes.
    """
    words = _words(description)
    name = words["NodeName"]
    if not _STATE.fullmatch(words["State"]):
        raise LookupError(f"scontrol prints a damaged state of node {name}")
    reason = re.search(r" Reason=(.*?)(?: \[\S+@\S+\]| \w+=|$)", description)
    return RequestedNode(state=words["State"], because=reason[1].strip() if reason else None)


def query_nodes(names: str) -> dict[str, RequestedNode]:
    """Return nodes by name, each with its state and the reason for it.

    :param names: a list of hosts, as ``node[1-4]``.
    :raises LookupError: as `record`.
    """
    lines = _lines(_shown("nodes", names))
    nodes = {_words(line)["NodeName"]: parse_node(line) for line in lines}
    if len(nodes) != len(lines) or not set(nodelists.unfolded(names)).issuperset(nodes):
        raise LookupError("scontrol prints a node twice, or one that it was not asked for")
    return nodes


def _shown(what: str, name: str) -> str:
    try:
        ended = subprocess.run(
            ["scontrol", "show", what, "--oneliner", name],
            env=processes.with_standard_slurm(os.environ),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LookupError(str(error)) from None
    if ended.returncode != 0:
        # The first line is the reason; the others advise the user of the option.
        errors = ended.stderr.strip().splitlines() or [f"scontrol ended with {ended.returncode}"]
        raise LookupError(errors[0].strip())
    return ended.stdout


class _Words(dict[str, str]):
    """The key-value pairs of a line."""

    def __missing__(self, word: str) -> str:
        raise LookupError(f"scontrol reports no {word}, or reports it twice")


#: Prefixes of a path or a comment, which may contain anything.
_FREE = re.compile(r"\s(?:Command|WorkDir|Comment|Extra)=")


def _words(line: str) -> _Words:
    pairs = _pairs(line)
    # The first of each name counts; later ones may be free text.
    words = _Words(reversed(pairs))
    counts = Counter(word for word, _ in {*_pairs(_FREE.split(line)[0])})
    for word, number in counts.items():
        if number > 1:
            del words[word]
    return words


def _pairs(text: str) -> list[tuple[str, str]]:
    return re.findall(r"(?:^|\s)(\w+)=(\S*)", text)


def _lines(shown: str) -> list[str]:
    """Return the non-empty lines.

    :raises LookupError: when the output is cut off, because its last word may be incomplete.
    """
    if not shown.endswith("\n"):
        raise LookupError("the output of scontrol is cut off")
    return [line for line in shown.split("\n") if line.strip()]


def complete(job: Any) -> None:
    """Complete a job that is no longer in the queue: state, exit code and nodes.

    A signal becomes 128 plus its number, as in a shell. If the end is unknown, the job fails with
    that sentence; considered completed, it would pass.
    """
    try:
        known = record(job.jobid)
        code, signal = known["ExitCode"].split(":")
        exit_code = 128 + int(signal) if int(signal) else int(code)
        state, nodes = known["JobState"], known["NodeList"]
    except (LookupError, ValueError) as error:
        sentence = (
            f"Slurm does not report how the job ended ({error}): the scheduler squeue needs its "
            "record in the controller (MinJobAge); with accounting use the scheduler slurm"
        )
        reframe_internals.set_failed(job, JobError(sentence, job.jobid))
    else:
        reframe_internals.set_ended(job, state, exit_code, nodes)


def require_allocation(partitions: Sequence[str]) -> None:
    """Refuse a session outside an allocation that has its node exclusively.

    :param partitions: those of the local scheduler that start their programs by srun.
    :raises ReframeError: if srun would wait in the queue for each check, or share its node.
    """
    if not partitions:
        return
    named = listed(partitions)
    job = os.environ.get("SLURM_JOB_ID")
    if not job:
        raise ReframeError(
            f"Partition {named} runs the whole suite inside one allocation, but this session is "
            "in none (SLURM_JOB_ID is not set): start it by salloc or sbatch, with --exclusive."
        )
    try:
        shared = record(job)["OverSubscribe"]
    except LookupError as error:
        raise ReframeError(
            f"Slurm does not know the allocation {job}: {error}. If this session is in none, the "
            "variable is left over: unset SLURM_JOB_ID."
        ) from None
    if shared != "NO":
        raise ReframeError(
            f"The allocation {job} may share its node (OverSubscribe={shared}), but partition "
            f"{named} measures it: add --exclusive to salloc or sbatch."
        )


def require_own_nodes(partitions: Iterable[Any]) -> None:
    """Refuse a queue that gives no job its node exclusively, whatever the job requests.

    With ``OverSubscribe=FORCE`` Slurm accepts ``--exclusive`` and still starts others' jobs on the
    node.

    :raises ReframeError: naming the queue; if Slurm does not report its setting, a job will.
    """
    for partition in filter(submits, partitions):
        queue = _queue(partition)
        if queue is None:
            continue
        try:
            shared = _words(_shown("partition", queue)).get("OverSubscribe", "")
        except LookupError:
            continue
        if shared.startswith("FORCE"):
            raise ReframeError(
                f"Slurm's partition {queue} gives no job its node exclusively "
                f"(OverSubscribe={shared}), but {partition.fullname} measures it: another "
                "partition is needed."
            )


def _queue(partition: Any) -> str | None:
    """Return Slurm's partition in the access options of a ReFrame partition."""
    queues = [
        option.partition("=")[2] for option in partition.access if option.startswith("--partition=")
    ]
    return queues[-1] if queues else None


def require_nodes_of_one_kind(partitions: Iterable[Any]) -> None:
    """Refuse partitions of different node models that would run on the same nodes.

    :raises ReframeError: when these are the allocation around the session, or one queue.
    """
    nodes_of: dict[str, dict[str, str]] = {}
    for partition in partitions:
        node = partition.extras.get("node")
        if node is None or partition.launcher_type.registered_name != STEP_LAUNCHER:
            continue
        where = "the allocation around this session"
        if partition.scheduler.registered_name != "local":
            queue = _queue(partition)
            where = f"the nodes of {f'--partition={queue}' if queue else partition.fullname}"
        nodes_of.setdefault(where, {})[partition.fullname] = node
    for where, nodes in nodes_of.items():
        if len(set(nodes.values())) > 1:
            raise ReframeError(
                f"The partitions {listed(nodes)} have different nodes "
                f"({listed(nodes.values())}), but all of them would run on {where}: choose "
                f"one of them, as by --system={next(iter(nodes))}."
            )


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


def step_options(job: Any, tasks: int, number: int = 1) -> list[str]:
    """Return the options of srun for a number of tasks on the nodes of a ReFrame job.

    :param tasks: on all nodes, the same number on each.
    :param number: of the nodes.
    """
    # In an allocation srun takes both from it; in one for eight ranks, it would start eight.
    options = [f"--nodes={number}", f"--ntasks={tasks}"]
    if number > 1:
        # The ranks of a node have successive numbers, whatever the job distributes.
        options += [f"--ntasks-per-node={tasks // number}", "--distribution=block"]
    there = len(allocated(os.environ)) if job.scheduler.registered_name == "local" else 0
    if there > number or there > 1:
        options.append(f"--nodelist={nodelists.folded(measured_nodes(os.environ, number))}")
    if tasks == number:
        options.append(ALL_CORES)
    return options


def allocated(environment: Mapping[str, str]) -> Sequence[str]:
    """Return the nodes of the allocation around this process, in order; none without one."""
    return list(NodeSet(environment.get("SLURM_JOB_NODELIST")))


def measured_nodes(environment: Mapping[str, str], number: int = 1) -> Sequence[str]:
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


#: The variable with the most jobs of such a session in the queue, for sites with a limit.
JOBS_LIMIT = "FABRICHECK_MAX_JOBS"

#: Its default. Sites refuse jobs beyond a number per user.
MOST_JOBS = 100


#: Nodes by partition: those to measure, and all requested ones with their states.
NodeMap = tuple[dict[str, list[str]], dict[str, dict[str, RequestedNode]]]


def distributed_nodes(find: Any, state: str, options: Sequence[str] | None) -> NodeMap:
    """Return the nodes of this system's partitions in a given state, and all of their nodes.

    Both lists contain the nodes that the partition's access options and the session's job options
    reach. Other nodes are not requested.

    :raises ReframeError: for several partitions, inside an allocation, or without a node.
    """
    partitions = {
        partition.fullname: partition for partition in runtime.runtime().system.partitions
    }
    inside = of_the_allocation(partitions.values())
    if inside:
        raise ReframeError(
            f"--distribute submits jobs to all nodes of {listed(inside)}, but this session is "
            "inside an allocation: run it on a login node, or measure the nodes of the "
            "allocation with fabricheck every-node."
        )
    reached = find("all", options)
    if len(reached) > 1:
        raise ReframeError(
            "--distribute measures the nodes of one partition, but there are "
            f"{listed(reached)}: choose one, as by --system={next(iter(reached))}."
        )
    ((name, names),) = reached.items()
    partition = partitions[name]
    requested = {node: RequestedNode() for node in sorted(names)}
    if submits(partition):
        described = sorted(reframe_internals.nodes_of(partition).items())
        try:
            requested = {
                each: parse_node(description)
                for each, description in described
                if each in requested
            }
        except LookupError as error:
            raise ReframeError(f"--distribute found no nodes of {name}: {error}.") from None
    if not requested:
        raise ReframeError(
            f"--distribute found no node of {name}: Slurm has none that "
            f"{' '.join([*partition.access, *(options or ())])} reaches."
        )
    chosen = find(state, options)
    if not chosen[name]:
        raise ReframeError(
            f"--distribute={state} leaves no node of {name}: {_described(requested)}."
        )
    return {name: sorted(chosen[name])}, {name: requested}


def allow_jobs(systems: Iterable[Mapping[str, Any]], arguments: Sequence[str]) -> None:
    """Let the partitions of Slurm have a job for each node where a session asks for all nodes.

    ReFrame reads the number before it knows the nodes.

    :param systems: those of the settings, changed in place.
    :param arguments: of ReFrame's command line.
    :raises InvalidInputError: when ``FABRICHECK_MAX_JOBS`` is not a number.
    """
    if not any(argument.partition("=")[0] == "--distribute" for argument in arguments):
        return
    limit = whole_number(JOBS_LIMIT, default=MOST_JOBS, least=1)
    for system in systems:
        for partition in system["partitions"]:
            if partition["scheduler"] in SCHEDULERS:
                partition["max_jobs"] = limit


def begin_distributed(node_map: NodeMap, chosen: Sequence[str], state: str) -> None:
    """Write the file of requested nodes.

    :raises ReframeError: when the file cannot be written.
    """
    measured, ((name, requested),) = node_map[0], node_map[1].items()
    path = Path(runtime.runtime().output_prefix) / requested_nodes.NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        requested_nodes.write(
            path,
            RequestedNodes(
                partition=name, chosen=tuple(chosen), started=requested_nodes.now(), nodes=requested
            ),
        )
    except (FabricheckError, OSError) as error:
        raise ReframeError(f"The requested nodes cannot be recorded: {error}") from None
    (partition,) = (
        partition for partition in runtime.runtime().system.partitions if partition.fullname == name
    )
    if submits(partition):
        jobs = min(len(measured[name]), partition.max_jobs)
        show.line(
            f"{count(len(requested), 'node')} of {name}, each with one exclusive job at a time, "
            f"at most {jobs} in the queue ({JOBS_LIMIT})."
        )
    out = {node: requested[node] for node in requested if node not in measured[name]}
    if out:
        show.line(f"--distribute={state} leaves out {_described(out)}; {path} names them.")


def _described(requested: Mapping[str, RequestedNode]) -> str:
    """Describe nodes with their state and reason; nodes with equal text are grouped."""
    alike: dict[str, list[str]] = {}
    for name, node in requested.items():
        alike.setdefault(node.reported, []).append(name)
    return listed(f"{NodeSet.fromlist(names)} {state}" for state, names in alike.items())
