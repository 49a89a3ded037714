"""The figures of one partition in the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fabricheck.core import show
from fabricheck.judge.diagnosis.model import Diagnosis
from fabricheck.report.figure import Figure, defect
from fabricheck.report.figures import (
    collectives,
    energy,
    host,
    matrices,
    node,
    peers,
    placement,
    stream,
)
from fabricheck.report.figures.rows import fitted
from fabricheck.results.observed import Observed

#: By section of the page, its drawers in order; each yields the figures for which it has data.
SECTIONS: dict[str, tuple[Callable[[Observed], Iterator[Figure]], ...]] = {
    "The node": (node.figures, matrices.hops),
    "A device's own memory": (stream.figures,),
    "Between host and device": (host.figures,),
    "Host memory by NUMA domain": (matrices.host_memory,),
    "Placement of ranks": (placement.figures,),
    "Between devices": (matrices.figures, peers.figures, peers.curves),
    "MPI between devices": (peers.messages, matrices.messages),
    "Collectives": (collectives.figures, collectives.bandwidths),
    "Energy": (energy.figures,),
}


def sections(
    observed: Observed, diagnosis: Diagnosis | None = None
) -> tuple[dict[str, list[Figure]], list[str]]:
    """Return the figures of a partition by section, and a sentence for each drawer with a defect.

    Each figure states which of its published values the simulation was fitted to. A drawer with a
    defect loses its own figures only.

    :param diagnosis: of the partition; the drawing of the node shows it.
    """
    figures: dict[str, list[Figure]] = {}
    failed = []
    for title, drawers in SECTIONS.items():
        for draw in drawers:
            try:
                with show.working(f"drawing the figures of {observed.where or title}: {title}"):
                    is_node = draw is node.figures
                    for figure in node.figures(observed, diagnosis) if is_node else draw(observed):
                        if any(
                            figure.id == each.id
                            for of_section in figures.values()
                            for each in of_section
                        ):
                            raise ValueError(f"another figure has the id {figure.id!r}")
                        says = figure.says + fitted(observed, figure.rows)
                        figures.setdefault(title, []).append(replace(figure, says=says))
            # Any exception: unexpected results must not hide all other figures.
            except Exception as error:
                where = f" of {observed.where}" if observed.where else ""
                failed.append(defect(f"{title}{where}: a figure could not be drawn", error))
    return figures, failed
