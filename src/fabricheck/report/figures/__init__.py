"""The figures of the report, of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fabricheck.observed import Observed
from fabricheck.report.figure import Figure
from fabricheck.report.figures import collectives, matrices, node, peers

#: By section of the page what draws its figures, in order; each yields those that it has data for.
SECTIONS: dict[str, tuple[Callable[[Observed], Iterator[Figure]], ...]] = {
    "The node": (node.figures, matrices.hops),
    "Between devices": (matrices.figures, peers.figures),
    "Host memory by NUMA domain": (matrices.host_memory,),
    "MPI between devices": (peers.messages, matrices.messages),
    "Collectives": (collectives.figures,),
}


def sections(observed: Observed) -> dict[str, list[Figure]]:
    """Return the figures of a partition by section; sections without any are left out."""
    drawn = {
        title: [figure for draw in drawers for figure in draw(observed)]
        for title, drawers in SECTIONS.items()
    }
    return {title: figures for title, figures in drawn.items() if figures}
