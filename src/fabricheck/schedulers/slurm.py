"""Slurm: its jobs, its nodes, steps of a job, and the variables of its processes.

The controller keeps the record of a job for some minutes after its end (MinJobAge, 300 s unless a
site sets another value), and ``scontrol`` shows it without accounting.

A session that is itself a step (`fabricheck every-node`, or srun by hand) inherits Slurm's
variables of that step's tasks. srun reads many of them as options: one task, its binding, its MPI.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet

from fabricheck.core import nodelists
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.schedulers.row import Allocation, Binding, Node, Scheduler, answer, ask

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
LOST = {"DOWN", "DRAIN", "FAIL"}
RESERVED = {"MAINT", "MAINTENANCE", "RESERVED"}

#: What may follow a state: it does not answer, saves power, boots and so on.
_SUFFIXES = "*~#!%$@^-"

#: The states of a node, as ``DOWN*+DRAIN``.
_STATE = re.compile(rf"[A-Z_]+[{_SUFFIXES}]?(?:\+[A-Z_]+[{_SUFFIXES}]?)*")

#: Seconds after which the controller of a busy cluster is no longer waited for.
PATIENCE_S = 120

#: Seconds after which an unresponsive controller is left alone when steps are ended.
SHORT_PATIENCE_S = 20

#: The most steps that one scancel ends within that time.
_STEPS_AT_ONCE = 1000

#: The name of the step of a node's session.
SESSION = "fabricheck-every-node"

#: The word in a node's state with which Slurm starts nothing on it.
DOWN = "DOWN"

#: Slurm's end time of a job without a limit.
_NO_END = ("Unknown", "UNLIMITED", "NONE", "None", "N/A")


def record(job: str) -> Mapping[str, str]:
    """Return the controller's record of a job, by its own keys (``JobState``, ``ExitCode``).

    :raises LookupError: when it cannot be queried or no longer knows the job, with its first line.
    """
    # scontrol prints all parts of an array or a heterogeneous job.
    jobs = [words for words in map(_words, _lines(_shown("job", job))) if words["JobId"] == job]
    if len(jobs) != 1:
        raise LookupError("scontrol prints no record of the job, or several")
    return jobs[0]


def states(node: Node) -> list[str]:
    """Return the states of a node, the base state first, without the suffixes of older Slurm."""
    return [state.rstrip(_SUFFIXES) for state in (node.state or "").split("+")]


def is_lost(node: Node, options: Sequence[str]) -> bool:
    """Return whether a job that requests a node waits for its repair, or for a reservation's end.

    :param options: of the job.
    """
    of_node = set(states(node))
    reserved = any(option.startswith("--reservation") for option in options)
    return bool(of_node & LOST) or (bool(of_node & RESERVED) and not reserved)


def end_of(job: str) -> tuple[str, int, str]:
    """Return the state, the exit code and the nodes of a job that is no longer in the queue.

    A signal becomes 128 plus its number, as in a shell.

    :raises LookupError: when the end is unknown, in a sentence.
    """
    try:
        known = record(job)
        code, signal = known["ExitCode"].split(":")
        exit_code = 128 + int(signal) if int(signal) else int(code)
        return known["JobState"], exit_code, known["NodeList"]
    except (LookupError, ValueError) as error:
        raise LookupError(
            f"Slurm does not report how the job ended ({error}): the scheduler squeue needs its "
            "record in the controller (MinJobAge); with accounting use the scheduler slurm"
        ) from None


def parse_node(description: str) -> Node:
    """Parse a node with its state and the reason for it.

    :param description: one line of ``scontrol show nodes --oneliner``.
    :raises LookupError: without a state, or for several nodes.
    """
    words = _words(description)
    name = words["NodeName"]
    if not _STATE.fullmatch(words["State"]):
        raise LookupError(f"scontrol prints a damaged state of node {name}")
    reason = re.search(r" Reason=(.*?)(?: \[\S+@\S+\]| \w+=|$)", description)
    return Node(state=words["State"], because=reason[1].strip() if reason else None)


def query_nodes(names: str) -> dict[str, Node]:
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
    command = ["scontrol", "show", what, "--oneliner", name]
    return ask(command, PATIENCE_S, with_standard_formats(os.environ))


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


#: Prefixes of variables that are options of the commands whose text is read.
_OPTIONS = ("SACCT_", "SCANCEL_", "SCONTROL_", "SINFO_", "SQUEUE_")

#: Further variables that change a text, or where it goes. SLURM_CLUSTERS is none of them: it names
#: the cluster of a job.
_TEXTS = (
    "SLURM_BITSTR_LEN",
    "SLURM_JSON",
    "SLURM_LABELIO",
    "SLURM_STDERRMODE",
    "SLURM_STDOUTMODE",
    "SLURM_YAML",
)


def make_formats_standard(environment: MutableMapping[str, str]) -> None:
    """Let Slurm's commands print in their standard formats, and srun what its steps print."""
    for name in list(environment):
        if name.startswith(_OPTIONS) or name in _TEXTS:
            del environment[name]
    environment["SLURM_TIME_FORMAT"] = "standard"


def with_standard_formats(environment: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of an environment in which the formats are standard."""
    copy = dict(environment)
    make_formats_standard(copy)
    return copy


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


def forget_tasks(environment: MutableMapping[str, str]) -> None:
    """Remove srun's options of a new step, and the step's place, from an environment."""
    for name in [name for name in environment if name.startswith(_OF_A_STEP)]:
        del environment[name]


def _of_job(name: str, node: Node, in_job: bool) -> Node:
    """Return a node of a job with the reason for which nothing can be started on it."""
    down = states(node)[0] == DOWN
    unusable = None
    if down or not in_job:
        taken = "" if in_job else " and removed from the job"
        unusable = f"{name} was {node.reported}{taken}, so nothing was started on it."
    return replace(node, unusable=unusable)


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


@dataclass(frozen=True)
class Step:
    """A step: its number for scancel, its name, and its node."""

    id: str
    name: str
    node: str


def steps(job: str) -> Sequence[Step]:
    """Return the numbered steps of a job that run on one node; empty where Slurm does not report
    them.
    """
    listing = _called("squeue", "--noheader", "--steps", f"--jobs={job}", "--format=%i|%j|%N")
    return list(_parsed(listing or "", job))


def _parsed(text: str, job: str) -> Iterator[Step]:
    """Yield the steps in complete lines: a line that is cut off may name another node."""
    lines = [line.strip().split("|") for line in text.split("\n")[:-1]]
    twice = Counter(line[0] for line in lines)
    for id_, *rest in lines:
        whole = len(rest) == 2 and twice[id_] == 1
        if whole and re.fullmatch(rf"{re.escape(job)}\.[0-9]+", id_):
            yield Step(id_, *rest)


def _cancel(ids: Sequence[str], *options: str) -> None:
    for first in range(0, len(ids), _STEPS_AT_ONCE):
        # After one call that got no answer the next would not get one either.
        if _called("scancel", *options, *ids[first : first + _STEPS_AT_ONCE]) is None:
            return


def _called(*command: str) -> str | None:
    """Return what a command of Slurm printed; None where it did not answer in time.

    A step that is not ended here ends with the job.
    """
    try:
        return answer(command, SHORT_PATIENCE_S, with_standard_formats(os.environ)).stdout
    except LookupError:
        return None


class Slurm(Scheduler):
    """Slurm: everything was tried on a Slurm of one machine, on no site."""

    name = "slurm"
    title = "Slurm"
    variable = "SLURM_JOB_ID"
    node_variable = "SLURMD_NODENAME"
    backends = ("slurm", "squeue")
    launcher = "srun"
    starter = "srun"
    describes_nodes = True
    once = (ONCE,)
    all_cores = ALL_CORES
    step = "srun"
    mask_binding = Binding("--cpu-bind=mask_cpu:{}")
    cxi_service = (CXI_SERVICE,)
    rank_variable = "SLURM_PROCID"
    account_options = ("--account=", "-A")
    account_variables = ("SBATCH_ACCOUNT", "SLURM_ACCOUNT", "SALLOC_ACCOUNT")
    # The number may follow a type, as in h100:8.
    requested = re.compile(r"^#SBATCH --nodelist=(?P<node>[^\s,\[\]]+)$", re.MULTILINE)
    job_options = {
        "FABRICHECK_ACCOUNT": "--account={}",
        "FABRICHECK_RESERVATION": "--reservation={}",
        "FABRICHECK_QOS": "--qos={}",
    }
    granted = ("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", "SLURM_GPUS")
    commands = {
        "slurm": ("sbatch", "squeue", "sacct", "scancel"),
        "squeue": ("sbatch", "squeue", "scancel"),
        "srun": ("srun",),
    }
    binding = {"srun": Binding("--cpu-bind=map_cpu:{}")}

    def partition(
        self,
        queue: str,
        options: Sequence[str],
        environment: Mapping[str, str],
        backend: str = "",
    ) -> dict[str, Any]:
        """Return scheduler, launcher and access of a partition of a site file.

        On a login node each check is a job of its own. Inside an allocation the partition is the
        node of the session, each check is a step, and salloc received the options.

        :param backend: ``squeue`` for a Slurm without accounting.
        """
        access = [f"--partition={queue}", *options]
        if environment.get("SLURM_JOB_ID"):
            return {"scheduler": "local", "launcher": "srun", "max_jobs": 1, "access": access}
        return {
            "scheduler": backend or "slurm",
            "launcher": "srun",
            "max_jobs": 4,
            "access": access,
            # A site may refuse a job that does not request a number of nodes.
            "sched_options": {"use_nodes_option": True},
        }

    def queue_of_job(self, environment: Mapping[str, str]) -> str | None:
        """Return Slurm's partition of the allocation around a process."""
        return environment.get("SLURM_JOB_PARTITION")

    def allocated(self, environment: Mapping[str, str]) -> Sequence[str]:
        """Return the nodes of the allocation around this process, in order; none without one."""
        return list(NodeSet(environment.get("SLURM_JOB_NODELIST")))

    def allocation(
        self, environment: Mapping[str, str], chosen: str | None = None, *, needs_end: bool = True
    ) -> Allocation:
        """Return the allocation around a process.

        :param chosen: a list of hosts, as ``node[1-4],node7``: the selected nodes; by default all.
        :param needs_end: whether an end that Slurm does not report is an error; else it is None.
        :raises NotFoundError: outside an allocation, or in one that Slurm does not know.
        :raises UsageError: where its nodes may be shared, a selected node is not among them, or
            this is one of several tasks.
        """
        job, stated = environment.get("SLURM_JOB_ID"), environment.get("SLURM_JOB_NODELIST")
        if not job or not stated:
            raise NotFoundError(
                "every-node measures the nodes of a Slurm allocation, but this shell is in none "
                "(SLURM_JOB_ID is not set): start it by sbatch or salloc, with --nodes=N "
                "--exclusive."
            )
        tasks = environment.get("SLURM_STEP_NUM_TASKS", "1")
        if tasks != "1":
            raise UsageError(
                f"every-node starts a step on each node itself, but srun started it {tasks} "
                "times: start it without srun."
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
            known = record(job)
            # Slurm removes a failed node from the job, but leaves the variable unchanged.
            left = nodelists.unfolded(known["NodeList"])
            reported = query_nodes(nodelists.folded(wanted))
        except LookupError as error:
            raise NotFoundError(
                f"Slurm does not know the allocation {job}: {error}. If this shell is in none, "
                "the variable is left over: unset SLURM_JOB_ID."
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
            scheduler=self,
            job=job,
            nodes={
                name: _of_job(name, reported.get(name, Node()), name in still) for name in wanted
            },
            ends=_end(job, known.get("EndTime", ""), needs_end),
            is_whole=len(wanted) == len(nodes),
        )

    def session(self, node: str, arguments: Sequence[str]) -> list[str]:
        """Return the command that starts a command on one node of the job, beside its own steps.

        Without ``--overlap`` the steps that it starts would wait for its end.
        """
        return [
            "srun",
            "--overlap",
            "--nodes=1",
            "--ntasks=1",
            f"--nodelist={node}",
            f"--job-name={SESSION}",
            "--kill-on-bad-exit=0",
            "--cpu-bind=none",
            "--export=ALL",
            "--input=none",
            *arguments,
        ]

    def on_node(self, node: str) -> str:
        """Return how a person starts a command on a node of the allocation."""
        return f"srun --overlap --nodes=1 --ntasks=1 --cpu-bind=none --nodelist={node}"

    def make_of_session(self, environment: MutableMapping[str, str]) -> None:
        """Change the environment of a session that is started on a node."""
        make_formats_standard(environment)
        # The job's options are for as many tasks as it has nodes, or more.
        forget_tasks(environment)

    def of_nodes(self, nodes: Sequence[str]) -> dict[str, str]:
        """Return the variables of a session whose steps are of some nodes of the allocation."""
        return {"SLURM_JOB_NODELIST": nodelists.folded(nodes)}

    def running_steps(self, job: str) -> set[str]:
        """Return the numbers of the steps of a job that run."""
        return {step.id for step in steps(job)}

    def broadcast(self, file: Path, target: str) -> list[str]:
        """Return the command that copies a file to all nodes of the job."""
        return ["sbcast", "--force", str(file), target]

    def end_sessions(self, job: str, nodes: Collection[str]) -> None:
        """Ask the sessions of nodes to end: they end their checks, and write what was measured."""
        ids = [step.id for step in steps(job) if step.node in nodes and step.name == SESSION]
        _cancel(ids, "--signal=TERM")

    def end_steps(self, job: str, nodes: Collection[str], spared: Collection[str]) -> None:
        """End all steps of nodes except the given ones, by number."""
        ended = [step.id for step in steps(job) if step.node in nodes and step.id not in spared]
        _cancel(ended)

    def end_steps_of_several(self, job: str) -> None:
        """End all steps of several nodes."""
        left = {step.node for step in steps(job) if nodelists.is_several(step.node)}
        if left:
            self.end_steps(job, left, ())

    def step_options(
        self, environment: Mapping[str, str], tasks: int, number: int = 1
    ) -> list[str]:
        """Return the launcher's options for a number of tasks on the nodes of a check.

        :param environment: of the session if its checks are steps of the allocation around it;
            empty for a job of its own.
        :param tasks: on all nodes, the same number on each.
        :param number: of the nodes.
        """
        # In an allocation srun takes both from it; in one for eight ranks, it would start eight.
        options = [f"--nodes={number}", f"--ntasks={tasks}"]
        if number > 1:
            # The ranks of a node have successive numbers, whatever the job distributes.
            options += [f"--ntasks-per-node={tasks // number}", "--distribution=block"]
        there = len(self.allocated(environment))
        if there > number or there > 1:
            measured = self.measured_nodes(environment, number)
            options.append(f"--nodelist={nodelists.folded(measured)}")
        if tasks == number:
            options.append(ALL_CORES)
        return options

    def why_not_alone(self, environment: Mapping[str, str], partitions: str) -> str | None:
        """Return why a session has not the nodes of its allocation for itself; None if it has."""
        job = environment.get("SLURM_JOB_ID")
        if not job:
            return (
                f"Partition {partitions} runs the whole suite inside one allocation, but this "
                "session is in none (SLURM_JOB_ID is not set): start it by salloc or sbatch, with "
                "--exclusive."
            )
        try:
            shared = record(job)["OverSubscribe"]
        except LookupError as error:
            return (
                f"Slurm does not know the allocation {job}: {error}. If this session is in none, "
                "the variable is left over: unset SLURM_JOB_ID."
            )
        if shared != "NO":
            return (
                f"The allocation {job} may share its node (OverSubscribe={shared}), but partition "
                f"{partitions} measures it: add --exclusive to salloc or sbatch."
            )
        return None

    def why_shared(self, access: Sequence[str], partition: str) -> str | None:
        """Return why jobs share their nodes, whatever they request; None if they do not.

        With ``OverSubscribe=FORCE`` Slurm accepts ``--exclusive`` and still starts others' jobs on
        the node. If Slurm does not report it, a job will.
        """
        queue = self.queue(access)
        if queue is None:
            return None
        try:
            shared = _words(_shown("partition", queue)).get("OverSubscribe", "")
        except LookupError:
            return None
        if shared.startswith("FORCE"):
            return (
                f"Slurm's partition {queue} gives no job its node exclusively "
                f"(OverSubscribe={shared}), but {partition} measures it: another partition is "
                "needed."
            )
        return None

    def nodes_of(self, descriptions: Mapping[str, str], access: Sequence[str]) -> dict[str, Node]:
        """Return the nodes of a session of all nodes with their states."""
        return {name: parse_node(description) for name, description in descriptions.items()}

    def queue(self, access: Sequence[str]) -> str | None:
        """Return Slurm's partition in the options of a job; None without one."""
        queues = [
            option.partition("=")[2] for option in access if option.startswith("--partition=")
        ]
        return queues[-1] if queues else None

    def make_formats_standard(self, environment: MutableMapping[str, str]) -> None:
        """Let Slurm's commands print in their standard formats."""
        make_formats_standard(environment)

    def forget_own_step(self, environment: MutableMapping[str, str]) -> None:
        """Remove this process's own step from an environment; the job's variables stay.

        Outside a step nothing is removed: the options of a job apply to its steps.
        """
        if "SLURM_STEP_ID" in environment:
            forget_tasks(environment)

    def drain(self, node: str, reason: str) -> list[str]:
        """Return the command that drains a node, as the arguments of a process."""
        return ["scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}"]
