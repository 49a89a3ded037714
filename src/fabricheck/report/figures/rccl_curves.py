"""Bus bandwidth of RCCL's (or NCCL's) collectives over size."""

from __future__ import annotations

from collections.abc import Iterator

from fabricheck.report.figure import Figure
from fabricheck.report.figures import words
from fabricheck.report.figures.lines import curves
from fabricheck.report.figures.rows import Row, of_point, scan
from fabricheck.results.observed import Observed

_COLLECTIVES = ("allreduce", "bcast", "reduce", "reduce_scatter", "allgather")

#: What the tools are called that measured.
_LIBRARIES = {"rccl-tests": "RCCL", "nccl-tests": "NCCL"}


def figures(observed: Observed) -> Iterator[Figure]:
    """Yield the curves of all devices together, each rank receiving elsewhere than it sends."""
    found = [
        point
        for point in observed.select(experiment="E11", unit="GB/s", role="single")
        if not point.series.get("in_place")
    ]
    most = max((len(point.devices) for point in found), default=0)
    rows: list[Row] = []
    told = []
    library = ""
    for name in _COLLECTIVES:
        here = [one for one in found if one.operation == name and len(one.devices) == most]
        line = [of_point(name, point) for point in scan(here)]
        if line:
            library = _LIBRARIES.get(here[0].program, here[0].program)
            rows += line
            told.append(words.of_curve(line))
    if rows:
        yield Figure(
            id="collectives-bus-bandwidth",
            title=f"{library}'s bus bandwidth over size, {most} devices",
            kind=observed.kind,
            says=" ".join(told) + words.of_noise(rows),
            rows=rows,
            drawing=curves(rows, title="GB/s, bus bandwidth", known=_COLLECTIVES),
        )
