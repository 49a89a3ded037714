"""A session on all nodes of a partition (``--distribute``): which are requested, and recorded.

ReFrame creates each check once per node, as a job that requests its node, one at a time on each. A
node that is down or lost leaves failed cases, or none if ``--distribute=STATE`` excludes it. The
file of the requested nodes names it in either case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet
from reframe.core import runtime
from reframe.core.exceptions import ReframeError

from fabricheck.core import show
from fabricheck.core.errors import FabricheckError
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.results import requested_nodes
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes
from fabricheck.rfm import jobs, reframe_internals
from fabricheck.rfm.host import whole_number
from fabricheck.schedulers import table

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
    inside = jobs.of_the_allocation(partitions.values())
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
    unusable: set[str] = set()
    row = jobs.submitting(partition)
    if row is not None:
        described = dict.fromkeys(requested, "")
        if row.describes_nodes:
            described |= {
                node: description
                for node, description in reframe_internals.nodes_of(partition).items()
                if node in requested
            }
        try:
            reported = row.nodes_of(described, [*partition.access, *(options or ())])
        except LookupError as error:
            raise ReframeError(f"--distribute found no nodes of {name}: {error}.") from None
        requested = {
            each: RequestedNode(state=node.state, because=node.because)
            for each, node in reported.items()
        }
        unusable = {each for each, node in reported.items() if node.unusable is not None}
    if not requested:
        title = "its scheduler" if row is None else row.title
        raise ReframeError(
            f"--distribute found no node of {name}: {title} has none that "
            f"{' '.join([*partition.access, *(options or ())])} reaches."
        )
    usable = [node for node in find(state, options)[name] if node not in unusable]
    if not usable:
        raise ReframeError(
            f"--distribute={state} leaves no node of {name}: {_described(requested)}."
        )
    return {name: sorted(usable)}, {name: requested}


def allow_jobs(systems: Iterable[Mapping[str, Any]], arguments: Sequence[str]) -> None:
    """Let partitions have a job for each node where a session asks for all nodes.

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
            if table.submitting(partition["scheduler"]) is not None:
                partition["max_jobs"] = limit


def begin_distributed(node_map: NodeMap, chosen: Sequence[str], state: str) -> None:
    """Write the file of requested nodes.

    :raises ReframeError: when the file cannot be written.
    """
    measured, ((name, requested),) = node_map[0], node_map[1].items()
    (partition,) = (
        partition for partition in runtime.runtime().system.partitions if partition.fullname == name
    )
    row = jobs.submitting(partition)
    path = Path(runtime.runtime().output_prefix) / requested_nodes.NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        requested_nodes.write(
            path,
            RequestedNodes(
                partition=name,
                chosen=tuple(chosen),
                reached_by=row.name if row is not None else table.SLURM.name,
                started=requested_nodes.now(),
                nodes=requested,
            ),
        )
    except (FabricheckError, OSError) as error:
        raise ReframeError(f"The requested nodes cannot be recorded: {error}") from None
    if row is not None:
        most = min(len(measured[name]), partition.max_jobs)
        show.line(
            f"{count(len(requested), 'node')} of {name}, each with one exclusive job at a time, "
            f"at most {most} in the queue ({JOBS_LIMIT})."
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
