"""Sessions on all nodes (``--distribute``): the requested nodes, and one job at a time on each.

ReFrame creates each check once per node. Each case is a job that requests its node. A node that is
down or lost leaves failed cases, or none if ``--distribute=STATE`` excludes it. The file of the
requested nodes names it in either case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet
from reframe.core import runtime
from reframe.core.exceptions import ReframeError

from fabricheck.core.errors import FabricheckError
from fabricheck.core.text import count
from fabricheck.results import requested_nodes
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes
from fabricheck.rfm import reframe_internals, slurm
from fabricheck.rfm.host import whole_number

#: The variable with the most jobs of such a session in the queue, for sites with a limit.
LIMIT = "FABRICHECK_MAX_JOBS"

#: Its default. Sites refuse jobs beyond a number per user.
MOST_JOBS = 100


#: Nodes by partition: those to measure, and all requested ones with their states.
NodeMap = tuple[dict[str, list[str]], dict[str, dict[str, RequestedNode]]]


def nodes(find: Any, state: str, options: Sequence[str] | None) -> NodeMap:
    """Return the nodes of this system's partitions in a given state, and all of their nodes.

    Both lists contain the nodes that the partition's access options and the session's job options
    reach. Other nodes are not requested.

    :raises ReframeError: for several partitions, inside an allocation, or without a node.
    """
    partitions = {one.fullname: one for one in runtime.runtime().system.partitions}
    inside = slurm.of_the_allocation(partitions.values())
    if inside:
        raise ReframeError(
            f"--distribute submits jobs to all nodes of {', '.join(inside)}, but this session is "
            "inside an allocation: run it on a login node, or measure the nodes of the "
            "allocation with fabricheck every-node."
        )
    reached = find("all", options)
    if len(reached) > 1:
        raise ReframeError(
            "--distribute measures the nodes of one partition, but there are "
            f"{', '.join(reached)}: choose one, as by --system={next(iter(reached))}."
        )
    ((name, names),) = reached.items()
    partition = partitions[name]
    requested = {one: RequestedNode() for one in sorted(names)}
    if slurm.submits(partition):
        described = sorted(reframe_internals.nodes_of(partition).items())
        try:
            requested = {
                one: slurm.parse_node(description)
                for one, description in described
                if one in requested
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
    limit = whole_number(LIMIT, default=MOST_JOBS, least=1)
    for system in systems:
        for partition in system["partitions"]:
            if partition["scheduler"] in slurm.SCHEDULERS:
                partition["max_jobs"] = limit


def begin(node_map: NodeMap, chosen: Sequence[str], state: str) -> None:
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
    (partition,) = (one for one in runtime.runtime().system.partitions if one.fullname == name)
    if slurm.submits(partition):
        jobs = min(len(measured[name]), partition.max_jobs)
        print(
            f"{count(len(requested), 'node')} of {name}, each with one exclusive job at a time, "
            f"at most {jobs} in the queue ({LIMIT})."
        )
    out = {one: requested[one] for one in requested if one not in measured[name]}
    if out:
        print(f"--distribute={state} leaves out {_described(out)}; {path} names them.")


def _described(requested: Mapping[str, RequestedNode]) -> str:
    """Describe nodes with their state and reason; nodes with equal text are grouped."""
    alike: dict[str, list[str]] = {}
    for name, node in requested.items():
        because = f" ({node.because})" if node.because else ""
        alike.setdefault(f"{node.state}{because}", []).append(name)
    return ", ".join(f"{NodeSet.fromlist(names)} {state}" for state, names in alike.items())
