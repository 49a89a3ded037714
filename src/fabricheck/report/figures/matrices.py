"""Matrices of the node: hops, transfers of all pairs (the paper's figure 6), and host memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, permutations, product
from typing import Any

from fabricheck.core.amounts import about
from fabricheck.core.show import enumerated
from fabricheck.references.published import Record
from fabricheck.report.figure import Figure
from fabricheck.report.figures.heat_map import heat_map, top
from fabricheck.report.figures.rows import (
    amount,
    beside,
    expected_by,
    fitted,
    is_behind_peers,
    of_point,
    of_value,
)
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Metric, Pair, Series, largest

_SENDER, _RECEIVER = "from device", "to device"


@dataclass(frozen=True)
class Matrix:
    """A heat map of all pairs of devices.

    select: the properties of its series. row, column: the meaning of the first and the second
    device of a pair. records: of the published data set, each of a pair, shown
    beside. once: whether a pair has one value instead of one per direction.
    """

    id: str
    title: str
    select: Mapping[str, Any]
    row: str = _SENDER
    column: str = _RECEIVER
    records: str = ""
    published: str = ""
    once: bool = False


_ENGINE = {"experiment": "E7", "role": "single", "by_engines": True, "ganged": False}
_KERNEL = {"experiment": "E8", "role": "single"}
_MPI = {"experiment": "E9", "role": "single", "program": "mpi"}

_OF_TRANSFERS = (
    Matrix(
        "peer-latency",
        "Latency of copy-engine transfers between devices",
        {**_ENGINE, "operation": "latency"},
        records="kth-lat-??",
        published="Published: latency of copy-engine transfers (the paper's figure 6b)",
    ),
    Matrix(
        "peer-engine",
        "Copy-engine transfers between devices",
        {**_ENGINE, "operation": "engine"},
        records="kth-bw-??",
        published="Published: copy-engine transfers (the paper's figure 6c)",
    ),
    Matrix(
        "peer-engine-both",
        "Copy-engine transfers both ways at once, sum of both directions",
        {**_ENGINE, "operation": "engine-both", "role": "sum"},
        "first device",
        "second device",
        once=True,
    ),
    Matrix(
        "peer-engine-off",
        "Copies between devices with copy engines disabled",
        # Series with only the peer engines off are another measurement.
        {**_ENGINE, "by_engines": False, "by_peer_switch_alone": False, "operation": "engine"},
    ),
    Matrix(
        "peer-read",
        "Kernels that read from a peer",
        {**_KERNEL, "operation": "read"},
        "device that reads",
        "device that is read",
    ),
    Matrix(
        "peer-write",
        "Kernels that write to a peer",
        {**_KERNEL, "operation": "write"},
        "device that writes",
        "device written to",
        records="rocmdocs-mi200-uni-??",
        published="Published: kernel copies between devices (ROCm's documentation)",
    ),
    Matrix(
        "peer-copy",
        "Kernels that copy within a peer's memory, reads and writes counted",
        {**_KERNEL, "operation": "copy"},
        "device that copies",
        "device with both arrays",
    ),
)

_OF_MPI = (
    Matrix(
        "mpi-bandwidth",
        "MPI bandwidth between ranks",
        {**_MPI, "operation": "bandwidth", "by_engines": True},
    ),
    Matrix(
        "mpi-bandwidth-engine-off",
        "MPI bandwidth with copy engines disabled",
        {**_MPI, "operation": "bandwidth", "by_engines": False},
    ),
    Matrix("mpi-latency", "MPI latency between ranks", {**_MPI, "operation": "latency"}),
)


#: Kinds of host memory and directions of E4, by their names in figures.
_MEMORY = {"host-pinned": "pinned", "host-pageable": "pageable"}
_WAYS = {"h2d": "to the device", "d2h": "to the host"}


def hops(observed: Observed) -> Iterator[Figure]:
    """Yield the lengths of the shortest paths, which follow from the node model (figure 6a).

    A node with direct links between all devices has no such figure.
    """
    node = observed.node
    if node is None or len(node.devices) < 2:
        return
    devices = range(len(node.devices))
    cells = {
        (a, b): float(node.hop_matrix[a][b])
        for a, b in permutations(devices, 2)
        if node.hop_matrix[a][b]
    }
    most = max(cells.values(), default=0.0)
    if most < 2:
        return
    far = sum(value == most for value in cells.values()) // 2
    says = (
        f"Shortest paths of {node.name} by its node model: {most:.0f} hops at most, "
        f"between {far} of {len(cells) // 2} pairs."
    )
    if node.detour_pairs:
        detours = enumerated(f"{a}-{b}" for a, b in node.detour_pairs)
        says += f" The widest path is longer than the shortest one for {detours}."
    rows = [
        {"row": a, "column": b, "kind": "derived", "value": int(cells[a, b]), "unit": "hops"}
        for a, b in cells
    ]
    axes = (_SENDER, devices), (_RECEIVER, devices)
    drawing = heat_map(cells, *axes, _of_numbers("hops"), (0, most), counted=True, blank="no path")
    yield Figure("hops", "Shortest path between devices", "derived", says, rows, drawing)


def figures(observed: Observed) -> Iterator[Figure]:
    """Yield the matrices of copy-engine transfers and of accesses by kernel."""
    return chain.from_iterable(_of_pairs(observed, matrix) for matrix in _OF_TRANSFERS)


def messages(observed: Observed) -> Iterator[Figure]:
    """Yield the matrices of MPI."""
    return chain.from_iterable(_of_pairs(observed, matrix) for matrix in _OF_MPI)


def host_memory(observed: Observed) -> Iterator[Figure]:
    """Yield the bandwidth between every NUMA domain and every device (E4).

    A figure for each kind of memory and direction.
    """
    for (memory, kind), (operation, way) in product(_MEMORY.items(), _WAYS.items()):
        points = observed.select(
            experiment="E4", role="single", operation=operation, host_memory=memory
        )
        placed = (p for p in points if p.host_domain is not None and p.device is not None)
        by_place = largest(placed, lambda point: (point.host_domain or 0, point.device or 0))
        if not by_place:
            continue
        domains, devices = (sorted({place[end] for place in by_place}) for end in (0, 1))
        axes = ("NUMA domain", domains), ("device", devices)
        highest = top(point.value for point in by_place.values())
        title = f"Every NUMA domain with every device, {kind} memory, {way}"
        says = "{size}, NUMA domain first, device second. {values}"
        figure = f"numa-{kind}-{operation}", title, says
        yield _figure(observed, by_place, *figure, axes, highest, blank_diagonal=False)


def of_one_size(points: Iterable[Series]) -> dict[Pair, Series]:
    """Return a point of each pair, of the most frequent size if possible, else of the largest size.

    A session may have other sizes of a few pairs, which are not comparable with the rest.
    """
    by_size: dict[int, dict[Pair, Series]] = {}
    for point in points:
        if point.pair is not None and point.pair[0] != point.pair[1]:
            by_size.setdefault(point.bytes, {}).setdefault(point.pair, point)
    return max(by_size.items(), key=lambda of_size: (len(of_size[1]), of_size[0]), default=(0, {}))[
        1
    ]


def _figure(
    observed: Observed,
    points: Mapping[Pair, Series],
    name: str,
    title: str,
    says: str,
    axes: tuple[tuple[str, Sequence[int]], tuple[str, Sequence[int]]],
    highest: float,
    **look: Any,
) -> Figure:
    """Return the figure of some series by row and column, each with its expected value.

    :param says: with ``{size}``, and ``{values}`` for the lowest and the highest one; what is
        beyond its limits follows.
    :param highest: the end of the colour scale.
    :param look: options of `heat_map`.
    """
    first = next(iter(points.values()))
    cells = {place: point.value for place, point in points.items()}
    expected = {place: expected_by(observed, point) for place, point in points.items()}
    missed = [
        place for place, point in points.items() if _is_outside(observed, point, expected[place])
    ]
    rows = [
        of_point(
            title, point, row=place[0], column=place[1],
            reference=wanted.reference if wanted else None,
            limit=wanted.limit if wanted else None,
        )
        for place, point in points.items()
        for wanted in [expected[place]]
    ]  # fmt: skip
    says = says.format(size=about(first.bytes), values=ends(cells, first.unit))
    have = sum(wanted is not None for wanted in expected.values())
    if missed:
        named = (f"{a}-{b}" for a, b in missed)
        says += f" Framed, since outside of the limits: {enumerated(named, 6)}."
    elif have:
        says += f" All {have} that have a reference are within its limits."
    else:
        says += " No reference judges them."
    drawing = heat_map(cells, *axes, _of_numbers(first.unit), (0, highest), missed=missed, **look)
    return Figure(name, title, observed.clock, says, rows, drawing)


def _is_outside(observed: Observed, point: Series, expected: Metric | None) -> bool:
    """Whether a value is beyond the limits of its own reference, or of those among its peers."""
    beyond = expected is not None and expected.is_beyond(point.value)
    return beyond or is_behind_peers(observed, point)


def _of_pairs(observed: Observed, matrix: Matrix) -> Iterator[Figure]:
    points = of_one_size(observed.select(**matrix.select))
    if not points:
        return
    others = _others(observed, matrix)
    published = {pair: value.value for pair, value in others.items()}
    cells = {pair: point.value for pair, point in points.items()}
    count = max(max(pair) for pair in [*cells, *others]) + 1
    devices = range(max(count, len(observed.node.devices) if observed.node else 0))
    axes = (matrix.row, devices), (matrix.column, devices)
    highest = top([*cells.values(), *published.values()])
    lacking = len(devices) * (len(devices) - 1) // (2 if matrix.once else 1) - len(cells)
    says = "{size}. {values}"
    if lacking > 0:
        says += f" {lacking} {'pair has' if lacking == 1 else 'pairs have'} no value."
    theirs = [
        of_value(matrix.published, value, row=pair[0], column=pair[1], reference=None, limit=None)
        for pair, value in others.items()
    ]
    figure = _figure(
        observed, points, matrix.id, matrix.title, says, axes, highest,
        blank="" if matrix.once else "none",
    )  # fmt: skip
    # Stated here too for readers who see only this figure.
    yield replace(figure, says=figure.says + fitted(observed, theirs))
    if theirs:
        unit = next(iter(points.values())).unit
        system = next(iter(others.values())).system
        says = f"Of {system}. {ends(published, unit)}{farthest(cells, published)}"
        drawing = heat_map(published, *axes, _of_numbers(unit), (0, highest))
        yield Figure(f"{matrix.id}-published", matrix.published, "published", says, theirs, drawing)


def _others(observed: Observed, matrix: Matrix) -> dict[Pair, Record]:
    """Return the published values of the pairs, without those within a device."""
    return {
        (record.pair[0], record.pair[1]): record
        for record in beside(observed.node, matrix.records)
        if record.pair and record.pair[0] != record.pair[1]
    }


def _of_numbers(unit: str) -> str:
    return f"colour of the numbers, in {unit}"


def ends(cells: Mapping[Pair, float], unit: str) -> str:
    """Return the lowest and the highest value, and their places."""
    low, high = min(cells.values()), max(cells.values())
    if len(cells) == 1:
        return f"The only value is {low:.4g} {unit} at {_where(cells, low)}."
    if f"{low:.4g}" == f"{high:.4g}":
        return f"All {len(cells)} values are {low:.4g} {unit}."
    if high - low <= 0.005 * high:
        return f"All {len(cells)} values lie between {low:.4g} and {high:.4g} {unit}."
    return (
        f"Lowest {amount(low, unit)} at {_where(cells, low)}; "
        f"highest {amount(high, unit)} at {_where(cells, high)}."
    )


def _where(cells: Mapping[Pair, float], extreme: float, most: int = 2) -> str:
    """Return the places with an extreme value or a value within 0.5 % of it."""
    near = [pair for pair, value in cells.items() if abs(value - extreme) <= 0.005 * abs(extreme)]
    return enumerated([f"{a}-{b}" for a, b in near], most)


def farthest(cells: Mapping[Pair, float], theirs: Mapping[Pair, float]) -> str:
    """Return the pair at which this session differs most from the published value."""
    apart = {pair: cells[pair] / theirs[pair] - 1 for pair in cells if pair in theirs}
    if not apart:
        return ""
    pair = max(apart, key=lambda name: abs(apart[name]))
    return (
        f" This session is farthest from what was published at {pair[0]}-{pair[1]}, by "
        f"{100 * apart[pair]:+.1f} %."
    )
