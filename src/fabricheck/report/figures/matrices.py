"""Matrices of the node: hops, transfers of all pairs (the paper's figure 6), and host memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

from fabricheck.core.amounts import about
from fabricheck.core.show import enumerated
from fabricheck.references.published import Record
from fabricheck.report.figure import Figure
from fabricheck.report.figures.charts import heat_map, top
from fabricheck.report.figures.rows import amount, beside, expected_by, fitted, of_point, of_value
from fabricheck.results.observed import Observed
from fabricheck.results.table import Pair, Series, largest

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
        for a in devices
        for b in devices
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
        found = largest(placed, lambda point: (point.host_domain or 0, point.device or 0))
        if not found:
            continue
        values = _Values(observed, found)
        domains, devices = (sorted({place[end] for place in found}) for end in (0, 1))
        colours = (_of_numbers(values.unit), (0, top(values.cells.values())))
        title = f"Every NUMA domain with every device, {kind} memory, {way}"
        says = (
            f"{title}: {about(values.size)}, {observed.kind}, NUMA domain first, device second. "
            f"{ends(values.cells, values.unit)}{values.judged}"
        )
        axes = ("NUMA domain", domains), ("device", devices)
        drawing = heat_map(values.cells, *axes, *colours, own=False, missed=values.missed)
        name = f"numa-{kind}-{operation}"
        yield Figure(name, title, observed.kind, says, values.rows(title), drawing)


def of_one_size(points: Iterable[Series]) -> dict[Pair, Series]:
    """Return a point of each pair, of the most frequent size if possible, else of the largest size.

    A session may have other sizes of a few pairs, which are not comparable with the rest.
    """
    by_size: dict[int, dict[Pair, Series]] = {}
    for point in points:
        if point.pair is not None and point.pair[0] != point.pair[1]:
            by_size.setdefault(point.bytes, {}).setdefault(point.pair, point)
    return max(by_size.items(), key=lambda one: (len(one[1]), one[0]), default=(0, {}))[1]


class _Values:
    """The values of a matrix by row and column, and the expected value of each."""

    def __init__(self, observed: Observed, found: Mapping[Pair, Series]) -> None:
        self.found = found
        self.cells = {place: point.value for place, point in found.items()}
        first = next(iter(found.values()))
        self.unit, self.size = first.unit, first.bytes
        self.expected = {place: expected_by(observed, point) for place, point in found.items()}
        self.missed = [
            place
            for place, wanted in self.expected.items()
            if wanted and wanted.is_beyond(self.cells[place])
        ]

    def rows(self, label: str) -> list[dict[str, Any]]:
        """Return the data."""
        return [
            of_point(
                label, point, row=place[0], column=place[1],
                reference=wanted.reference if wanted else None,
                limit=wanted.limit if wanted else None,
            )
            for place, point in self.found.items()
            for wanted in [self.expected[place]]
        ]  # fmt: skip

    @property
    def judged(self) -> str:
        """Describe in words which values are beyond their limits."""
        have = sum(wanted is not None for wanted in self.expected.values())
        if not self.missed:
            within = f"All {have} that have a reference are within its limits."
            return f" {within if have else 'No reference judges them.'}"
        named = [
            f"{place[0]}-{place[1]} with {amount(self.cells[place], self.unit)} "
            f"(reference {amount(wanted.reference or 0, '')})"
            for place in self.missed
            if (wanted := self.expected[place])
        ]
        return f" Framed, since outside of the limits: {enumerated(named, 6)}."


def _of_pairs(observed: Observed, matrix: Matrix) -> Iterator[Figure]:
    found = of_one_size(observed.select(**matrix.select))
    if not found:
        return
    values = _Values(observed, found)
    cells, unit = values.cells, values.unit
    others = _others(observed, matrix)
    published = {pair: value.value for pair, value in others.items()}
    count = max(max(pair) for pair in [*cells, *others]) + 1
    devices = range(max(count, len(observed.node.devices) if observed.node else 0))
    limits = (0, top([*cells.values(), *published.values()]))
    axes = (matrix.row, devices), (matrix.column, devices)
    colours = _of_numbers(unit), limits
    lacking = len(devices) * (len(devices) - 1) // (2 if matrix.once else 1) - len(cells)
    says = f"{matrix.title}, {about(values.size)}, {observed.kind}. {ends(cells, unit)}"
    if lacking > 0:
        says += f" {lacking} {'pair has' if lacking == 1 else 'pairs have'} no value."
    theirs = [
        of_value(matrix.published, value, row=pair[0], column=pair[1], reference=None, limit=None)
        for pair, value in others.items()
    ]
    # Stated here too for readers who see only this figure.
    says += values.judged + fitted(observed, theirs)
    blank = "" if matrix.once else "none"
    drawing = heat_map(cells, *axes, *colours, missed=values.missed, blank=blank)
    rows = values.rows(matrix.title)
    yield Figure(matrix.id, matrix.title, observed.kind, says, rows, drawing)
    if theirs:
        says = (
            f"{matrix.published}, {next(iter(others.values())).system}. "
            f"{ends(published, unit)}{farthest(cells, published)}"
        )
        drawing = heat_map(published, *axes, *colours)
        yield Figure(f"{matrix.id}-published", matrix.published, "published", says, theirs, drawing)


def _others(observed: Observed, matrix: Matrix) -> dict[Pair, Record]:
    """Return the published values of the pairs, without those within a device."""
    return {
        (pair[0], pair[1]): record
        for record in beside(observed.node, matrix.records)
        if (pair := record.conditions.get("pair")) and pair[0] != pair[1]
    }


def _of_numbers(unit: str) -> str:
    return f"colour of the numbers, in {unit}"


def ends(cells: Mapping[Pair, float], unit: str) -> str:
    """Return the lowest and the highest value, and their places."""
    low, high = min(cells.values()), max(cells.values())
    if len(cells) == 1:
        return f"The only value is {low:.4g} {unit}."
    if high - low <= 0.005 * high:
        return f"All {len(cells)} values lie between {low:.4g} and {high:.4g} {unit}."
    return (
        f"Lowest {amount(low, unit)} at {_where(cells, low)}; "
        f"highest {amount(high, unit)} at {_where(cells, high)}."
    )


def _where(cells: Mapping[Pair, float], extreme: float, most: int = 4) -> str:
    """Return the places with an extreme value or a value within 0.5 % of it."""
    near = [pair for pair, value in cells.items() if abs(value - extreme) <= 0.005 * abs(extreme)]
    return enumerated([f"{a}-{b}" for a, b in near], most)


def farthest(cells: Mapping[Pair, float], theirs: Mapping[Pair, float]) -> str:
    """Return the pair at which this session differs most from the published value."""
    apart = {pair: cells[pair] / theirs[pair] - 1 for pair in cells if pair in theirs}
    if not apart:
        return ""
    pair = max(apart, key=lambda one: abs(apart[one]))
    return (
        f" This session is farthest from what was published at {pair[0]}-{pair[1]}, by "
        f"{100 * apart[pair]:+.1f} %."
    )
