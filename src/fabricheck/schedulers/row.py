"""The form of a row of the table: what each way to reach nodes answers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Node:
    """A node as it was reported.

    state, because: its state, in the scheduler's word, and the reason for it. unusable: why nothing
    can be started on it, in a sentence that names it; None for a usable one.
    """

    state: str | None = None
    because: str | None = None
    unusable: str | None = None

    @property
    def reported(self) -> str:
        """The state that was reported, with its reason."""
        return f"{self.state} ({self.because})" if self.because else str(self.state)


@dataclass(frozen=True)
class Allocation:
    """The nodes of a job that are to be measured.

    scheduler: its row. job: its number. nodes: each as it was reported, by name and in order. ends:
    the end of the job's time; None without a limit. is_whole: whether they are all nodes of the
    job.
    """

    scheduler: Scheduler
    job: str
    nodes: Mapping[str, Node]
    ends: datetime | None
    is_whole: bool = False


@dataclass(frozen=True)
class Binding:
    """A launcher's option that binds rank i to the i-th of some cores, or masks of cores.

    option: with ``{}`` in place of them. separator: what is between two of them.
    """

    option: str
    separator: str = ","

    def to(self, cores: Iterable[int | str]) -> str:
        """Return the option for the cores, or the masks, of the ranks in order."""
        return self.option.format(self.separator.join(map(str, cores)))


class Scheduler:
    """A way to reach nodes: a row of the table.

    Below are what it is called, how its jobs and steps are started, and what else is known of it;
    then what each way answers in its own manner.
    """

    #: By which the table knows it.
    name: str
    #: Its name in sentences.
    title: str

    #: The variable that it sets inside an allocation; None without allocations.
    variable: str | None = None
    #: The variable that it sets to its name of the node on which a process runs.
    node_variable: str | None = None
    #: The variable that it sets to the number of a rank.
    rank_variable: str | None = None
    #: The variables with the number of GPUs that a job has on a node, the exact one first.
    granted: tuple[str, ...] = ()

    #: ReFrame's schedulers that submit a job for each check.
    backends: tuple[str, ...] = ()
    #: ReFrame's launcher of ranks as a step of the allocation around a session.
    launcher: str | None = None
    #: The words with which that launcher starts.
    step: str = ""
    #: The command that starts a session on a node.
    starter: str = ""
    #: By ReFrame's scheduler or launcher, the commands that it starts.
    commands: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    #: By launcher, the option that binds rank i to the i-th of some cores, and to no other.
    binding: Mapping[str, Binding] = MappingProxyType({})
    #: The same of `launcher`, with masks of cores.
    mask_binding: Binding | None = None
    #: The option of `launcher` that lets one process use all cores.
    all_cores: str = ""
    #: The options of `launcher` that give a step of one node a CXI service.
    cxi_service: tuple[str, ...] = ()

    #: How an option begins that names the account of a job.
    account_options: tuple[str, ...] = ()
    #: The scheduler's own variables for the account.
    account_variables: tuple[str, ...] = ()
    #: By our variable, the option of a job that it sets (docs/reference/site-file.md).
    job_options: Mapping[str, str] = MappingProxyType({})
    #: The options of a job that is not repeated when its node is lost.
    once: tuple[str, ...] = ()
    #: The line of a job script with the one node that it requests.
    requested: re.Pattern[str] | None = None

    #: Whether a job may wait before it starts.
    has_queue: bool = True
    #: Whether an exclusive job has only the cores that it requests.
    counts_cores: bool = False
    #: Whether ReFrame has the scheduler's description of each node.
    describes_nodes: bool = False
    #: What is to be done in place of draining a node, a clause, where no command does it.
    no_drain: str = ""
    #: Parts of lines of its commands that say nothing of why a session ended.
    noise: tuple[str, ...] = ()

    def partition(
        self,
        queue: str,
        options: Sequence[str],
        environment: Mapping[str, str],
        backend: str = "",
    ) -> dict[str, Any]:
        """Return scheduler, launcher and access of a partition of a site file.

        :param queue: of the jobs.
        :param options: the other options of a job.
        :param environment: of the session.
        :param backend: one of the row's own, where it is not the first.
        """
        raise NotImplementedError

    def queue_of_job(self, environment: Mapping[str, str]) -> str | None:
        """Return the queue of the allocation around a process; None if it is not stated."""
        return None

    def allocated(self, environment: Mapping[str, str]) -> Sequence[str]:
        """Return the nodes of the allocation around this process, in order; none without one."""
        return []

    def is_inside(self, environment: Mapping[str, str]) -> bool:
        """Whether a session runs on a node of its allocation."""
        return environment.get(self.node_variable or "") in self.allocated(environment)

    def measured_nodes(self, environment: Mapping[str, str], number: int = 1) -> Sequence[str]:
        """Return the nodes of the allocation that a check measures; of several the first ones.

        A check of one node measures the one that the session runs on. That may be a login node,
        which does not belong to the job: then the first node of the job is measured.

        :param number: of the nodes; 0 means all.
        """
        if number == 1 and self.is_inside(environment):
            return [environment[self.node_variable or ""]]
        return self.allocated(environment)[: number or None]

    def allocation(
        self, environment: Mapping[str, str], chosen: str | None = None, *, needs_end: bool = True
    ) -> Allocation:
        """Return the allocation around a process.

        :param chosen: a list of hosts, as ``node[1-4],node7``: the selected nodes; by default all.
        :param needs_end: whether an end that is not reported is an error; else it is None.
        :raises NotFoundError: outside an allocation, or in one that is not known.
        :raises UsageError: where its nodes may be shared, a selected node is not among them, or
            this is one of several tasks.
        """
        raise NotImplementedError

    def ends(self, environment: Mapping[str, str]) -> datetime | None:
        """Return when the allocation around a process ends; None without an end.

        :raises FabricheckError: as `allocation`.
        """
        return self.allocation(environment, needs_end=False).ends

    def session(self, node: str, arguments: Sequence[str]) -> list[str]:
        """Return the command that starts a command on one node of the job, beside its own steps."""
        raise NotImplementedError

    def on_node(self, node: str) -> str:
        """Return how a person starts a command on a node of the allocation."""
        raise NotImplementedError

    def make_of_session(self, environment: MutableMapping[str, str]) -> None:
        """Change an environment to that of a session which is started on a node."""

    def of_nodes(self, nodes: Sequence[str]) -> dict[str, str]:
        """Return the variables of a session whose steps are of some nodes of the allocation."""
        return {}

    def running_steps(self, job: str) -> set[str]:
        """Return the numbers of the steps of a job that run."""
        return set()

    def broadcast(self, file: Path, target: str) -> list[str]:
        """Return the command that copies a file to all nodes of the job; empty without one."""
        return []

    def end_sessions(self, job: str, nodes: Collection[str]) -> None:
        """Ask the sessions of nodes to end: they end their checks, and write what was measured."""

    def end_steps(self, job: str, nodes: Collection[str], spared: Collection[str]) -> None:
        """End all steps of nodes except the given ones, by number."""

    def end_steps_of_several(self, job: str) -> None:
        """End all steps of several nodes."""

    def step_options(
        self, environment: Mapping[str, str], tasks: int, number: int = 1
    ) -> list[str]:
        """Return the launcher's options for a number of tasks on the nodes of a check.

        :param environment: of the session if its checks are steps of the allocation around it;
            empty for a job of its own.
        :param tasks: on all nodes, the same number on each.
        :param number: of the nodes.
        """
        return []

    def why_not_alone(self, environment: Mapping[str, str], partitions: str) -> str | None:
        """Return why a session has not the nodes of its allocation for itself; None if it has.

        :param partitions: those that it measures, as a sentence names them.
        """
        return None

    def why_shared(self, access: Sequence[str], partition: str) -> str | None:
        """Return why jobs share their nodes, whatever they request; None if they do not."""
        return None

    def why_refused(self, backend: str, access: Sequence[str]) -> str | None:
        """Return why a partition of one of ReFrame's schedulers cannot be measured; None if it can.

        :param backend: that of the partition, of this row or of another one.
        :param access: the partition's options of a job.
        """
        return None

    def nodes_of(self, descriptions: Mapping[str, str], access: Sequence[str]) -> dict[str, Node]:
        """Return the nodes of a session of all nodes with their states.

        :param descriptions: ReFrame's, by name.
        :param access: the options of the partition's jobs.
        :raises LookupError: when a description has no state.
        """
        return {name: Node() for name in descriptions}

    def why_not_distributed(self, partition: str) -> str | None:
        """Return why a session of a partition needs ``--distribute``; None if it does not."""
        return None

    def of_script(self, node: str | None, output: str, errors: str) -> list[str]:
        """Return the first lines of the script of a job.

        :param node: that it requests; None for any.
        :param output: the file with its standard output.
        :param errors: that of its errors.
        """
        return []

    def queue(self, access: Sequence[str]) -> str | None:
        """Return the queue in the options of a job; None without one."""
        return None

    def make_formats_standard(self, environment: MutableMapping[str, str]) -> None:
        """Let the commands of this scheduler print in their standard formats."""

    def forget_own_step(self, environment: MutableMapping[str, str]) -> None:
        """Remove the step that a process is from an environment; the job's variables stay."""

    def drain(self, node: str, reason: str) -> list[str]:
        """Return the command that drains a node, as the arguments of a process; empty without one.

        :param reason: without characters that a shell interprets.
        """
        return []


def answer(
    command: Sequence[str], patience_s: float, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Return how a command of a scheduler ended.

    :raises LookupError: when it cannot be started, or does not answer in time.
    """
    try:
        return subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LookupError(str(error)) from None


def ask(
    command: Sequence[str], patience_s: float, environment: Mapping[str, str] | None = None
) -> str:
    """Return what a command of a scheduler printed.

    :raises LookupError: as `answer`, and when it fails, with its first line.
    """
    ended = answer(command, patience_s, environment)
    if ended.returncode != 0:
        # The first line is the reason; the others advise the user of the option.
        errors = ended.stderr.strip().splitlines()
        errors = errors or [f"{command[0]} ended with {ended.returncode}"]
        raise LookupError(errors[0].strip())
    return ended.stdout
