"""Collectives over the number of partners: MPI beside RCCL (the paper's figures 11 and 12); and
their bus bandwidth over size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from fabricheck.core.amounts import about
from fabricheck.core.grouping import grouped
from fabricheck.core.show import enumerated
from fabricheck.report.figure import Figure
from fabricheck.report.figures.bars import bars
from fabricheck.report.figures.charts import GREYS, cell
from fabricheck.report.figures.curves import curve_figure, curves
from fabricheck.report.figures.rows import Row, amount, beside, of_point, of_value, scan
from fabricheck.results.observed import Observed

#: The collectives in the paper's order, and the record that bounds each from below there.
COLLECTIVES = {
    "reduce": "paper-coll-bound-1",
    "bcast": "paper-coll-bound-1",
    "allreduce": "paper-coll-bound-2",
    "reduce_scatter": "paper-coll-bound-2",
    "allgather": "paper-coll-bound-2",
}

#: The size of a message in the paper's figure 11, in bytes.
SIZE = 1 << 20

#: The library behind a collective, by program.
MPI, OSU, RCCL = "MPI (mpi)", "MPI (OSU)", "RCCL or NCCL"
_PROGRAMS = {"mpi": MPI, "osu": OSU, "rccl": RCCL, "rccl-tests": RCCL, "nccl-tests": RCCL}
_CARRIERS = (MPI, OSU, RCCL)

#: The lower bound of all: a dotted line, by its place among the series.
_BOUND = "lower bound"
_KNOWN = (MPI, RCCL, _BOUND, OSU)

#: The order of the curves over size.
_IN_ORDER = ("allreduce", "bcast", "reduce", "reduce_scatter", "allgather")

#: The names of the measuring tools.
_LIBRARIES = {"rccl-tests": "RCCL", "nccl-tests": "NCCL"}


def figures(observed: Observed) -> Iterator[Figure]:
    """Yield the figures of all libraries side by side, and of RCCL alone."""
    rows = _rows(observed)
    if not rows:
        return
    if {row["series"] for row in rows} != {RCCL}:
        yield _all(observed, rows)
    mine = [row for row in _rows(observed, in_threads=True) if row["series"] == RCCL]
    # For a single number of partners, the first figure already has all values.
    if len({row["partners"] for row in mine}) > 1 or (mine and len(mine) == len(rows)):
        yield _rccl(observed, mine)


def _rows(observed: Observed, in_threads: bool = False) -> list[dict[str, Any]]:
    """Return a row for each collective, library and number of partners.

    Of several sets with the same number of devices, the set that most checks measure is used.

    :param in_threads: whether one thread per device takes precedence over one thread for all.
    """
    best = set(observed.node.growing_subsets) if observed.node is not None else set()
    points = sorted(
        observed.select(experiment={"E10", "E11"}, unit="us", bytes=SIZE, by_engines=True),
        key=lambda point: (
            point.in_threads != in_threads,
            tuple(sorted(point.devices)) not in best,
        ),
    )
    chosen = grouped(
        ((point.operation, _PROGRAMS[point.program], point.taking_part), point)
        for point in points
        if point.program in _PROGRAMS
        and point.operation in COLLECTIVES
        and point.taking_part
        # RCCL has both; MPI moves data from one buffer to another.
        and not point.in_place
    )
    order = list(COLLECTIVES)
    ordered = sorted(chosen, key=lambda key: (order.index(key[0]), _CARRIERS.index(key[1]), key[2]))
    return [
        of_point(label, chosen[name, label, count][0], collective=name, partners=count)
        for name, label, count in ordered
    ]


def _all(observed: Observed, rows: Sequence[Row]) -> Figure:
    has_rccl = any(row["series"] == RCCL for row in rows)
    title = f"Collectives of 1 MiB: MPI{' beside RCCL or NCCL' if has_rccl else ''}"
    says = f"Latency of collectives, {about(SIZE)}, {observed.clock}; less is better."
    there = [name for name in COLLECTIVES if _of(rows, name)]
    says += " " + " ".join(_in_words(rows, name) for name in there)
    if not has_rccl:
        says += " The session has no RCCL or NCCL to stand beside MPI."
    bounds = {value.id: value for value in beside(observed.node, "paper-coll-bound-*")}
    theirs = [
        of_value(_BOUND, bounds[record], collective=name, partners=None)
        for name, record in COLLECTIVES.items()
        if record in bounds and name in there
    ]
    over_partners = len({row["partners"] for row in rows}) > 1
    if theirs:
        bounds_text = enumerated(dict.fromkeys(amount(r["value"], "us") for r in theirs))
        says += (
            f" {'Dotted lines are l' if over_partners else 'L'}ower bounds that the paper states, "
            f"of one and of two rounds over the fastest pair: {bounds_text}."
        )
    if not over_partners:
        # A curve of one number of partners would be a single dot.
        count = rows[0]["partners"]
        says += f" All are of {count} partners."
        drawing = bars(
            [{**row, "text": cell(row["value"])} for row in rows],
            bar="collective",
            within="series",
            colours=dict(zip(_CARRIERS, GREYS, strict=True)),
            unit=f"us, with {count} partners",
            thick=14,
        )
    else:
        bound_lines = [{**row, "kind": _BOUND} for row in theirs]
        drawing = curves(
            [*rows, *bound_lines], unit="us", known=_KNOWN, x="partners", x_title="partners",
            panels=there,
        )  # fmt: skip
    return Figure("collectives", title, observed.clock, says, [*rows, *theirs], drawing)


def _of(rows: Sequence[Row], name: str) -> list[Row]:
    return [row for row in rows if row["collective"] == name]


def _in_words(rows: Sequence[Row], name: str) -> str:
    carriers = grouped((row["series"], row) for row in _of(rows, name))
    parts = (f"{label} {_ends(carriers[label])}" for label in _CARRIERS if label in carriers)
    return f"{name}: {'; '.join(parts)}."


def _ends(rows: Sequence[Row]) -> str:
    """Return the values for the fewest and most partners, and where the latency falls with one
    more.
    """
    first, last = rows[0], rows[-1]
    text = f"{amount(first['value'], 'us')} with {first['partners']}"
    if len(rows) > 1:
        text += f", {amount(last['value'], 'us')} with {last['partners']}"
        falls = [b["partners"] for a, b in pairwise(rows) if b["value"] < 0.99 * a["value"]]
        text += f", falling at {enumerated(falls)}" if falls else ""
    return text


def _rccl(observed: Observed, rows: Sequence[Row]) -> Figure:
    there = [name for name in COLLECTIVES if _of(rows, name)]
    ends = " ".join(f"{name}: {_ends(_of(rows, name))}." for name in there)
    in_threads = {series.check for series in observed.select(experiment="E11") if series.in_threads}
    threads = " Each device has a thread." if {row["check"] for row in rows} <= in_threads else ""
    return Figure(
        id="collectives-rccl",
        title="Collectives of 1 MiB by RCCL or NCCL",
        kind=observed.clock,
        says=f"Latency, {about(SIZE)}, {observed.clock}; less is better.{threads} {ends}",
        rows=rows,
        drawing=curves(
            [{**row, "series": row["collective"]} for row in rows],
            unit="us",
            known=tuple(COLLECTIVES),
            x="partners",
            x_title="partners",
        ),
    )


def bandwidths(observed: Observed) -> Iterator[Figure]:
    """Yield the bus bandwidth of all devices together, each rank receiving elsewhere than it
    sends.
    """
    rates = observed.select(experiment="E11", unit="GB/s", role="single")
    apart = [point for point in rates if not point.in_place]
    most = max((len(point.devices) for point in apart), default=0)
    rows: list[Row] = []
    library = ""
    for name in _IN_ORDER:
        here = [
            series for series in apart if series.operation == name and len(series.devices) == most
        ]
        line = scan(here)
        if line:
            library = _LIBRARIES.get(here[0].program, here[0].program)
            rows += [of_point(name, point) for point in line]
    if rows:
        yield curve_figure(
            "collectives-bus-bandwidth", f"{library}'s bus bandwidth over size, {most} devices",
            observed.clock, rows, unit="GB/s, bus bandwidth", known=_IN_ORDER,
        )  # fmt: skip
