"""Matrices between devices, or between NUMA domains and devices: one for each operation."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from fabricheck.cli import output
from fabricheck.core import amounts
from fabricheck.results.series import is_too_noisy
from fabricheck.results.table import Pair, Series

#: The most pairs of one operation that are listed; more become a matrix.
FEW_PAIRS = 3

#: The most devices of a matrix within 100 columns; of larger ones only the summary is shown.
MOST_COLUMNS = 10


@dataclass(frozen=True)
class Matrix:
    """One operation at its largest size between pairs of devices, with the best block size.

    ``cells`` are by row and column: source and destination, except for ``copy``: executing device,
    and the device of both arrays; a device with itself is on the diagonal. A sum of both directions
    is in both cells. With ``domains`` the rows are NUMA domains.
    """

    title: str
    cells: Mapping[Pair, Series]
    domains: bool = False

    @property
    def shown(self) -> int:
        """Number of series in the matrix."""
        return len({id(series) for series in self.cells.values()})

    @property
    def across(self) -> list[tuple[Pair, Series]]:
        """The pairs of the summary, worst first: each pair once, no device with itself."""
        if self.domains:
            found = list(self.cells.items())
        else:
            # Both cells of a sum are the same series, which names the pair in its own order.
            ordered = {id(one): one for pair, one in sorted(self.cells.items()) if len({*pair}) > 1}
            found = [((one.devices[0], one.devices[-1]), one) for one in ordered.values()]
        return sorted(found, key=lambda item: goodness(item[1]))


def split(all_series: Sequence[Series]) -> tuple[list[Matrix], list[Series]]:
    """Split the series of one unit into matrices and the remaining series.

    Smaller sizes and the shares of sums of a matrix's operation are in neither, unless their data
    is wrong or was not verified, or they are noisy beyond the caches. Variants of a kernel are in
    no matrix.
    """
    groups: dict[tuple[str, str], list[Series]] = {}
    for series in all_series:
        if series.variant:
            continue
        if _by_domain(series):
            groups.setdefault((series.operation, _memory(series)), []).append(series)
        elif series.device_count <= 2 and _memory(series) == "device":
            groups.setdefault((series.operation, series.engine), []).append(series)
    matrices: list[Matrix] = []
    taken: set[int] = set()
    for group in groups.values():
        make = _by_domains if _by_domain(group[0]) else _matrix
        matrix = make([series for series in group if series.role not in ("share", "beside")])
        if matrix is not None:
            matrices.append(matrix)
            cells = {id(series) for series in matrix.cells.values()}
            taken |= {id(one) for one in group if id(one) in cells or not is_remarkable(one)}
    return matrices, [series for series in all_series if id(series) not in taken]


def _matrix(group: Sequence[Series]) -> Matrix | None:
    between = [series for series in group if series.direction != "local"]
    if len({series.devices for series in between}) <= FEW_PAIRS:
        return None
    largest = max(series.bytes for series in between)
    cells: dict[Pair, Series] = {}
    for series in group:
        if series.bytes != largest:
            continue
        first, last = series.devices[0], series.devices[-1]
        both = series.role == "sum"
        for cell in {(first, last), (last, first)} if both else {(first, last)}:
            if cell not in cells or goodness(series) > goodness(cells[cell]):
                cells[cell] = series
    one = between[0]
    axes = "row: source, column: destination"
    if one.role == "sum":
        axes = "sum of both directions"
    elif one.operation == "copy":
        axes = "row: device that executes, column: device of both arrays"
    return Matrix(f"{one.operation}, {amounts.size(largest)} ({axes})", cells)


def _by_domain(series: Series) -> bool:
    return series.experiment == "E4"


def _memory(series: Series) -> str:
    """Return the kind of memory at the end that is not a device's; otherwise ``device``."""
    kinds = (series.source_memory, series.destination_memory)
    return next((kind for kind in kinds if kind not in ("device", "peer")), "device")


def _by_domains(group: Sequence[Series]) -> Matrix | None:
    if not group:
        return None
    largest = max(series.bytes for series in group)
    cells = {
        # A series of E4 without the domain of its host memory is invalid.
        (series.host_domain or 0, series.devices[0]): series
        for series in group
        if series.bytes == largest
    }
    memory = _memory(group[0]).removeprefix("host-")
    what = f"{group[0].operation}, {memory}, {amounts.size(largest)}"
    return Matrix(f"{what} (row: NUMA domain, column: device)", cells, domains=True)


def goodness(series: Series) -> float:
    """Return the median with the sign that makes larger values better."""
    return series.value if series.better == "higher" else -series.value


def is_remarkable(series: Series) -> bool:
    """Whether a series must be shown: its data is wrong or unverified, or it is too noisy."""
    if series.errors or not series.bytes_checked:
        return True
    return is_too_noisy(series.measured)


def show(console: Console, matrix: Matrix) -> None:
    """Print a matrix with its worst pair."""
    console.print(output.plain(matrix.title))
    rows = sorted({row for row, _ in matrix.cells})
    columns = sorted({column for _, column in matrix.cells})
    if not matrix.domains:
        rows = columns = sorted({*rows, *columns})
    if len(columns) <= MOST_COLUMNS:
        names = [str(device) for device in columns]
        table = output.table("", *names, right=tuple(names))
        for row in rows:
            cells = [matrix.cells.get((row, column)) for column in columns]
            name = f"N{row}" if matrix.domains else str(row)
            table.add_row(name, *("-" if cell is None else _cell(cell) for cell in cells))
        console.print(table)
    console.print(_summary(matrix))


def _cell(series: Series) -> str:
    text = amounts.number(series.value)
    if series.noisy:
        text += "~"
    if series.errors:
        text += "!"
    elif not series.bytes_checked:
        text += "?"
    return text


def _summary(matrix: Matrix) -> str:
    ordered = matrix.across
    medians = [series.value for _, series in ordered]
    says = [
        f"{len(ordered)} pairs: worst {_named(matrix, *ordered[0])}, best "
        f"{_named(matrix, *ordered[-1])}, median {amounts.number(statistics.median(medians))}"
    ]
    counts = (
        ("WRONG", sum(bool(one.errors) for _, one in ordered)),
        ("not verified", sum(not one.bytes_checked for _, one in ordered)),
        ("noisy", sum(one.noisy for _, one in ordered)),
        ("with clocks that differ", sum(one.host_clock_agrees is False for _, one in ordered)),
    )
    says += [f"{count} {what}" for what, count in counts if count]
    return "; ".join(says if len(says) > 1 else [*says, "all verified"])


def _named(matrix: Matrix, pair: Pair, series: Series) -> str:
    if matrix.domains:
        return f"N{pair[0]} and device {pair[1]} with {amounts.number(series.value)}"
    arrow = "and" if series.role == "sum" else "->"
    return f"{pair[0]} {arrow} {pair[-1]} with {amounts.number(series.value)}"
