"""The figures of the report, of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fabricheck.observed import Observed
from fabricheck.report.figure import Figure
from fabricheck.report.figures import (
    collectives,
    host,
    matrices,
    node,
    peer_curves,
    peers,
    placement,
    rccl_curves,
    scaling,
    stream,
)
from fabricheck.report.figures.expected import fitted

#: By section of the page what draws its figures, in order; each yields those that it has data for.
SECTIONS: dict[str, tuple[Callable[[Observed], Iterator[Figure]], ...]] = {
    "The node": (node.figures, matrices.hops),
    "A device's own memory": (stream.figures,),
    "Between host and device": (host.figures, scaling.figures),
    "Host memory by NUMA domain": (matrices.host_memory,),
    "Placement of ranks": (placement.figures,),
    "Between devices": (matrices.figures, peers.figures, peer_curves.figures),
    "MPI between devices": (peers.messages, matrices.messages),
    "Collectives": (collectives.figures, rccl_curves.figures),
}


def sections(observed: Observed) -> dict[str, list[Figure]]:
    """Return the figures of a partition by section; sections without any are left out.

    Each says which of its published values the simulation was fitted to.
    """
    drawn = {
        title: [
            replace(figure, says=figure.says + fitted(observed, figure.rows))
            for draw in drawers
            for figure in draw(observed)
        ]
        for title, drawers in SECTIONS.items()
    }
    return {title: figures for title, figures in drawn.items() if figures}
