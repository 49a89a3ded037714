"""Flux: its instances, the nodes of one, and its jobs.

An allocation (`flux alloc`, `flux batch`) is an instance of its own for the jobs of its user. The
session of a node is an allocation of that node within it, so that its checks are jobs again: a
job cannot share its node with the jobs that it submits. ReFrame's scheduler ``flux`` is not used:
it requests one core, no GPU and no time limit, and loses the exit status.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from fabricheck.core import nodelists
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.core.vocabulary import ENV_NODE_NAME
from fabricheck.schedulers.row import Allocation, Binding, Node, Scheduler, answer, ask

#: Seconds after which an instance is no longer waited for, and for calls whose answer is not
#: needed.
_PATIENCE_S, _SHORT_PATIENCE_S = 120.0, 10.0

#: The name of the job of a node's session.
SESSION = "fabricheck-every-node"

#: The settings that leave a task all cores, and all devices. By default it has the devices that its
#: job requested, which are none; and where LLNL's plug-in mpibind is on, that binds tasks in place
#: of Flux (github.com/LLNL/mpibind, flux/README.md). Without the plug-in its option does nothing.
ALL_CORES = "-o cpu-affinity=off"
ALL_DEVICES = "-o mpibind=off -o gpu-affinity=off"

#: The state of a node on which a job can start.
_USABLE = "avail"

#: What is after the state of a node that has lost its broker.
_LOST = "*"

#: A line of states: the state, whether the broker is there, the nodes, and the reason.
_STATE = re.compile(r"(?P<state>[a-z]+\*?) \S+ (?P<nodes>\S+) ?(?P<reason>.*)")

#: Nodes for the session of a network, in place of all nodes of the instance.
_NODES = "FABRICHECK_FLUX_NODES"

_CORES = Path("/sys/devices/system/cpu")


def parse_states(text: str) -> dict[str, Node]:
    """Return the nodes of an instance with their states.

    :param text: what `flux resource status` prints of state, broker, nodes and reason.
    :raises LookupError: when a line has no state, or a node stands in two.
    """
    nodes: dict[str, Node] = {}
    for line in text.splitlines():
        stated = _STATE.fullmatch(line.rstrip())
        if stated is None:
            raise LookupError(f"flux prints a damaged line of states: {line[:80]!r}")
        for name in nodelists.unfolded(stated["nodes"]):
            if name in nodes:
                raise LookupError(f"flux prints the node {name} twice")
            nodes[name] = _node(name, stated["state"], stated["reason"].strip() or None)
    return nodes


def _node(name: str, state: str, because: str | None) -> Node:
    node = Node(state=state, because=because)
    if state == _USABLE:
        return node
    lost = " (its broker is lost)" if state.endswith(_LOST) else ""
    unusable = f"{name} was {node.reported}{lost}, so nothing was started on it."
    return Node(state=state, because=because, unusable=unusable)


def _states() -> dict[str, Node]:
    return parse_states(_asked("resource", "status", "-no", "{state} {up} {nodelist} {reason}"))


def _asked(*arguments: str) -> str:
    # Without the last variable identifiers of jobs are not ASCII.
    return ask(["flux", *arguments], _PATIENCE_S, {**os.environ, "FLUX_F58_FORCE_ASCII": "1"})


@functools.cache
def _nodes_of(uri: str) -> tuple[str, ...]:
    """Return the nodes of an instance, in the order of its brokers.

    :raises LookupError: when it does not answer; it is asked again then.
    """
    names = _asked("resource", "list", "-s", "all", "-no", "{nodelist}").strip()
    return tuple(nodelists.unfolded(names)) if names else ()


@dataclass(frozen=True)
class Job:
    """A job of an instance: its identifier, its name, and its nodes."""

    id: str
    name: str
    nodes: Sequence[str]


def jobs() -> list[Job]:
    """Return the jobs of the instance that run; none where it does not answer in time."""
    command = ["flux", "jobs", "-no", "{id.f58plain}|{name}|{nodelist}"]
    try:
        text = answer(command, _SHORT_PATIENCE_S).stdout
    except LookupError:
        return []
    return list(_parsed(text))


def _parsed(text: str) -> Iterator[Job]:
    """Yield the jobs in complete lines: a line that is cut off may name another node."""
    for line in text.split("\n")[:-1]:
        id_, _, rest = line.strip().partition("|")
        name, _, nodes = rest.rpartition("|")
        if id_ and nodes:
            yield Job(id_, name, nodelists.unfolded(nodes))


def _call(*command: str) -> None:
    """Run a command whose answer is not needed: what it does not end, ends with the instance."""
    try:
        answer(command, _SHORT_PATIENCE_S)
    except LookupError:
        return


def cores_here(root: Path = _CORES) -> int:
    """Return the number of cores of this machine; 0 where Linux does not say."""
    names = ("core_cpus_list", "thread_siblings_list")
    cores = {
        file.read_text().strip()
        for name in names
        for file in root.glob(f"cpu[0-9]*/topology/{name}")
    }
    return len(cores)


class Flux(Scheduler):
    """Flux: tried with an instance of several brokers on one machine, on no site."""

    name = "flux"
    title = "Flux"
    variable = "FLUX_URI"
    node_variable = ENV_NODE_NAME
    launcher = "flux-run"
    step = "flux run"
    starter = "flux alloc"
    all_cores = ALL_CORES
    rank_variable = "FLUX_TASK_RANK"
    noise = ("flux-job: task(s) ", " broker.err[0]: rc2.0: ")
    commands = {"flux-run": ("flux",)}
    binding = {"flux-run": Binding("-o 'cpu-affinity=map:{}'", ";")}
    mask_binding = Binding("-o 'cpu-affinity=map:{}'", ";")

    def partition(
        self,
        queue: str,
        options: Sequence[str],
        environment: Mapping[str, str],
        backend: str = "",
    ) -> dict[str, Any]:
        """Return scheduler, launcher and access of a partition of a site file.

        Each check is a job in the allocation around the session, whose options are kept here for
        who reads the file.
        """
        access = [f"--queue={queue}", *options]
        return {"scheduler": "local", "launcher": "flux-run", "max_jobs": 1, "access": access}

    def allocated(self, environment: Mapping[str, str]) -> Sequence[str]:
        """Return the nodes of the instance around this process, in order.

        None without an instance, or where it does not answer.
        """
        if environment.get(_NODES):
            return nodelists.unfolded(environment[_NODES])
        uri = environment.get("FLUX_URI")
        if not uri:
            return []
        try:
            return _nodes_of(uri)
        except LookupError:
            return []

    def allocation(
        self, environment: Mapping[str, str], chosen: str | None = None, *, needs_end: bool = True
    ) -> Allocation:
        """Return the instance around a process, as an allocation.

        :param chosen: a list of hosts, as ``node[1-4],node7``: the selected nodes; by default all.
        :param needs_end: is not used: an instance without an end has none.
        :raises NotFoundError: outside an instance, or in one that does not answer.
        :raises UsageError: where others may use its nodes, or a selected node is not among them.
        """
        if not environment.get("FLUX_URI"):
            raise NotFoundError(
                "every-node measures the nodes of a Flux allocation, but this shell is in none "
                "(FLUX_URI is not set): start it by flux batch or flux alloc, with --nodes=N "
                "--exclusive."
            )
        try:
            states = _states()
            ends = parse_end(_asked("resource", "R"))
            job = _identifier()
        except LookupError as error:
            raise NotFoundError(
                f"The instance of Flux does not answer: {error}. If this shell is in none, the "
                "variable is left over: unset FLUX_URI."
            ) from None
        wanted = list(states) if chosen is None else nodelists.unfolded(chosen)
        strange = [name for name in wanted if name not in states]
        if strange:
            raise UsageError(
                f"The allocation {job} has no {nodelists.folded(strange)}: it has "
                f"{nodelists.folded(list(states))}."
            )
        why = self.why_not_alone(environment, "of every-node")
        if why is not None:
            raise UsageError(why)
        return Allocation(
            scheduler=self,
            job=job,
            nodes={name: states[name] for name in wanted},
            ends=ends,
            is_whole=len(wanted) == len(states),
        )

    def session(self, node: str, arguments: Sequence[str]) -> list[str]:
        """Return the command that starts a command on one node of the instance.

        It is an instance of its own, whose jobs the checks are.
        """
        return [
            "flux",
            "alloc",
            "--nodes=1",
            "--exclusive",
            f"--requires=host:{node}",
            f"--job-name={SESSION}",
            *ALL_DEVICES.split(),
            "env",
            f"{ENV_NODE_NAME}={node}",
            *arguments,
        ]

    def on_node(self, node: str) -> str:
        """Return how a person starts a command on a node of the instance."""
        return f"flux alloc --nodes=1 --exclusive --requires=host:{node} {ALL_DEVICES}"

    def of_nodes(self, nodes: Sequence[str]) -> dict[str, str]:
        """Return the variables of a session whose jobs are of some nodes of the instance."""
        return {_NODES: nodelists.folded(nodes)}

    def running_steps(self, job: str) -> set[str]:
        """Return the identifiers of the jobs that run."""
        return {each.id for each in jobs()}

    def end_sessions(self, job: str, nodes: Collection[str]) -> None:
        """Ask the sessions of nodes to end: they end their checks, and write what was measured.

        A cancelled job would be killed after some seconds. The broker of a session sends it SIGHUP.
        """
        for each in jobs():
            if each.name == SESSION and set(nodes).issuperset(each.nodes):
                _call("flux", "job", "kill", "--signal=TERM", each.id)

    def end_steps(self, job: str, nodes: Collection[str], spared: Collection[str]) -> None:
        """End all jobs of nodes except the given ones, by identifier."""
        ended = [
            each.id
            for each in jobs()
            if set(nodes).issuperset(each.nodes) and each.id not in spared
        ]
        if ended:
            _call("flux", "cancel", *ended)

    def end_steps_of_several(self, job: str) -> None:
        """End all jobs of several nodes."""
        ended = [each.id for each in jobs() if len(each.nodes) > 1]
        if ended:
            _call("flux", "cancel", *ended)

    def step_options(
        self, environment: Mapping[str, str], tasks: int, number: int = 1
    ) -> list[str]:
        """Return the launcher's options for a number of tasks on the nodes of a check.

        Ranks of a node have successive numbers.

        :param environment: of the session.
        :param tasks: on all nodes, the same number on each.
        :param number: of the nodes.
        :raises NotFoundError: where the instance does not answer which nodes it has.
        """
        options = [f"--nodes={number}", f"--ntasks={tasks}", "--exclusive", ALL_DEVICES]
        nodes = self.allocated(environment)
        if not nodes and environment.get("FLUX_URI"):
            raise NotFoundError(
                "The Flux instance does not answer which nodes it has (flux resource list), so a "
                "check could measure another node than that of the session."
            )
        if len(nodes) > number:
            measured = nodelists.folded(self.measured_nodes(environment, number))
            options.append(f"--requires={shlex.quote(f'host:{measured}')}")
        if tasks == number:
            options.append(ALL_CORES)
        return options

    def why_not_alone(self, environment: Mapping[str, str], partitions: str) -> str | None:
        """Return why a session has not the nodes of its instance for itself; None if it has."""
        if not environment.get("FLUX_URI"):
            return (
                f"Partition {partitions} runs the whole suite inside one allocation, but this "
                "session is in none (FLUX_URI is not set): start it by flux batch or flux alloc, "
                "with --nodes=1 --exclusive."
            )
        try:
            owner = _asked("getattr", "security.owner").strip()
            numbers = _asked("resource", "list", "-s", "all", "-no", "{nnodes} {ncores}")
            nodes, cores = map(int, numbers.split())
        except (LookupError, ValueError) as error:
            return (
                f"The instance of Flux does not answer: {error}. If this session is in none, the "
                "variable is left over: unset FLUX_URI."
            )
        if owner != str(os.getuid()):
            return (
                f"This instance of Flux has jobs of other users, but partition {partitions} "
                "measures its nodes: start the session by flux batch or flux alloc, with "
                "--exclusive."
            )
        here = cores_here()
        if cores < nodes * here:
            return (
                f"The allocation has {cores // nodes} of the {here} cores of a node, but partition "
                f"{partitions} measures it: add --exclusive to flux batch or flux alloc."
            )
        return None

    def why_refused(self, backend: str, access: Sequence[str]) -> str | None:
        """Return why a partition of ReFrame's scheduler ``flux`` cannot be measured."""
        if backend != "flux":
            return None
        return (
            "gets one core and no GPU of each job, as ReFrame asks Flux for no more: write "
            'clusters.reached(QUEUE, by="flux") in its place'
        )

    def drain(self, node: str, reason: str) -> list[str]:
        """Return the command that drains a node, as the arguments of a process.

        It is for the owner of the machine's instance; within an allocation it drains for that only.
        """
        return ["flux", "resource", "drain", node, reason]


def parse_end(text: str) -> datetime | None:
    """Return when the time of an instance ends; None without a limit.

    :param text: its resources, as `flux resource R` prints them.
    :raises LookupError: when no end can be read.
    """
    try:
        resources = json.loads(text)
        expiration = float(resources["execution"]["expiration"])
        return datetime.fromtimestamp(expiration) if expiration else None
    except (ValueError, TypeError, KeyError, OverflowError, OSError):
        raise LookupError(f"flux resource R prints no expiration: {text[:80]!r}") from None


def _identifier() -> str:
    """Return the identifier of the job that the instance is; of one that is none, a word."""
    try:
        return _asked("getattr", "jobid").strip().replace("ƒ", "f")
    except LookupError:
        return "instance"
