"""The tables of measured values, and their matrices: one for each operation between devices, or
between NUMA domains and devices.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabricheck.core import amounts, show
from fabricheck.core.text import ranges
from fabricheck.results import table
from fabricheck.results.model import ResultDocument, describe_ranks
from fabricheck.results.series import is_too_noisy
from fabricheck.results.session import Case
from fabricheck.results.table import Check, Pair, Series

#: The most series that differ only in size, block and variant and are all shown without --all.
SHORT_SCAN = 3

#: The most pairs of one operation that are listed; more become a matrix.
FEW_PAIRS = 3

#: The most devices of a matrix within 100 columns; of larger ones only the summary is shown.
MOST_COLUMNS = 10

_NUMERIC = ("Size", "Block", "Median", "95 % interval", "n")


def blocks(heading: str, checks: Iterable[Check], show_all: bool) -> Iterator[str | show.Table]:
    """Yield the lines and tables of all checks that have a document."""
    yield heading
    hidden = 0
    in_matrices = joined = False
    for check in checks:
        if check.document is None:
            continue
        yield ""
        yield from _about(check, check.document)
        every = table.series(check, None)
        for (experiment, unit, counted, movement), series in _by_unit(every).items():
            matrices, others = ([], series) if show_all else matrices_of(series)
            chosen = others if show_all else summarise(list(filter(_is_row, others)))
            rows = [[one] for one in chosen] if show_all else alike(chosen)
            hidden += len(series) - len(chosen) - sum(matrix.shown for matrix in matrices)
            in_matrices = in_matrices or bool(matrices)
            joined = joined or any(len(row) > 1 for row in rows)
            yield (
                f"{experiment}, {check.clock}, in {_UNITS[unit]}; bytes counted "
                f"{counted}{f'; by {movement}' if movement else ''}"
            )
            for matrix in matrices:
                yield from _matrix_blocks(matrix)
            if chosen:
                yield _row_table(rows, show_all)
            domains = [one for row in chosen for one in _domains(row) if one is not None]
            if domains:
                yield (f"N{domains[0]}: host memory that was proved to lie in that NUMA domain")
    if joined:
        yield ""
        yield ("Devices share a row where their intervals have a value in common.")
    if in_matrices:
        yield ""
        yield (
            "In a matrix: the medians at the largest size; ~ noisy, ! wrong data, ? not "
            "verified. Every series with its interval: --all."
        )
    if hidden:
        yield ""
        yield (
            "Of each scan the largest size is shown, with its best block size or variant, and of "
            "both directions of one device their sum; "
            f"{hidden} more series: --all."
        )


_UNITS = {"GB/s": "GB/s (1e9 bytes per second)", "us": "us"}


def _about(check: Check, document: ResultDocument) -> Iterator[str]:
    program, outcome, case = document["program"], document["outcome"], check.case
    of = f"{case.name} @{case.place} ({case.outcome}): " if case is not None else ""
    yield (
        f"{of}{program['name']} {program['version']} on {document['host']['hostname']}, runtime "
        f"{program['runtime']}, {len(document['devices'])} device(s), clock {document['clock']}"
    )
    if case is not None:
        yield from _earlier_attempts(case)
    if outcome["status"] != "good":
        said = f": {outcome['message']}" if outcome["message"] else ""
        yield f"  outcome {outcome['status']}{said}"
    if case is not None and not case.passed and case.reason:
        reason = " ".join(case.reason.split())
        # A check mostly repeats the program's message, which is in the line above.
        if outcome["message"] is None or outcome["message"] not in reason:
            yield f"  check: {reason}"
    if not document["complete"]:
        yield "  incomplete: the series are only those finished"
    if document["faults_injected"]:
        yield f"  injected faults: {show.listed(document['faults_injected'])}"
    differences = document.get("differences")
    if differences is not None:
        yield f"  differences from the node model: {len(differences) or 'none'}"
        yield from (f"    {one['sentence']}" for one in differences)
    if not document["series"]:
        for line in describe_ranks(document):
            yield f"  {line}"
    for note in document["notes"]:
        yield f"  note: {note}"


def _earlier_attempts(case: Case) -> Iterator[str]:
    for number, attempt in enumerate(case.earlier, 1):
        if attempt.passed:
            continue
        reason = f": {' '.join(attempt.reason.split())}" if attempt.reason else ""
        yield f"  attempt {number} ({attempt.result}){reason}"
        if attempt.document_path is not None:
            yield f"  attempt {number} left {attempt.document_path}"


def _by_unit(all_series: Iterable[Series]) -> dict[tuple[str, str, str, str], list[Series]]:
    groups: dict[tuple[str, str, str, str], list[Series]] = {}
    for series in all_series:
        convention = (series.unit, series.bytes_counted, series.movement or "")
        groups.setdefault((series.experiment, *convention), []).append(series)
    return groups


def _is_row(series: Series) -> bool:
    """Whether a series is shown in a table: for both directions of one device, only the sum is.

    Shares of ranks have no sum, even if all ranks use one device.
    """
    on_one = series.device_count == 1 and not series.ranks
    return not (series.role == "share" and on_one) or is_remarkable(series)


def summarise(all_series: Sequence[Series]) -> list[Series]:
    """Choose the series to show: of each long scan the best at its largest size.

    Series that failed their verification, and what is noisy, are always among them.
    """
    scans: dict[tuple[object, ...], list[Series]] = {}
    for series in all_series:
        # All that distinguishes two series of a table, but size, block and variant.
        what = (*series.subject, series.in_place, *_domains(series))
        scans.setdefault(what, []).append(series)
    chosen: list[Series] = []
    for scan in scans.values():
        if len(scan) <= SHORT_SCAN:
            chosen += scan
            continue
        size = max(series.bytes for series in scan)
        best = max((one for one in scan if one.bytes == size), key=goodness)
        chosen += [series for series in scan if series is best or is_remarkable(series)]
    return chosen


def alike(all_series: Sequence[Series]) -> list[list[Series]]:
    """Return series in rows; single devices whose intervals have a value in common share a row.

    A remarkable series has a row of its own.
    """
    rows: dict[tuple[object, ...], list[list[Series]]] = {}
    for series in all_series:
        alone = series.role != "single" or series.device_count != 1 or series.ranks
        if alone or is_remarkable(series):
            rows[(id(series),)] = [[series]]
            continue
        convention = (series.bytes, series.block_size, series.variant, series.regime)
        places = _ends(series, with_device=False)
        key = (series.operation, series.in_place, *places, series.engine, series.direction)
        rows.setdefault((*key, *convention), []).append([series])
    return [row for group in rows.values() for row in _common(group)]


def _common(group: list[list[Series]]) -> list[list[Series]]:
    """Join the rows of a group: first as many as have one value in common, then of the rest."""
    left, found = [one for row in group for one in row], []
    while left:
        sharing = [[one for one in left if _has(one, _interval(top)[0])] for top in left]
        row = max(sharing, key=len)
        found.append(row)
        left = [one for one in left if one not in row]
    return sorted(found, key=lambda row: row[0].devices)


def _interval(series: Series) -> tuple[float, float]:
    """Return the interval; without one, all values with the same three digits."""
    if series.interval is not None:
        low, high = series.interval
        return low, high
    half = series.value * 0.0005
    return series.value - half, series.value + half


def _has(series: Series, value: float) -> bool:
    low, high = _interval(series)
    return low <= value <= high


def _row_table(rows: Sequence[Sequence[Series]], in_full: bool) -> show.Table:
    """Return the table of rows of series; with all digits if `in_full`."""
    varied = any(row[0].variant for row in rows)
    columns = ("Op", "Device", "Source -> destination", *_NUMERIC, "Data", *["Kernel"] * varied)
    shown: list[Sequence[Any]] = []
    number = amounts.number if in_full else amounts.short
    for row in rows:
        series = row[0]
        many = len(row) > 1
        intervals = [one.interval for one in row if one.interval is not None]
        ends = (min(low for low, _ in intervals), max(high for _, high in intervals)) if (
            intervals) else None  # fmt: skip
        source, destination = _ends(series, with_device=not many)
        values = [one.value for one in row]
        cells = (
            series.operation + (" in place" if series.in_place else ""),
            ranges(one.devices[0] for one in row) if many else _members(series),
            f"{source} -> {destination}",
            amounts.size(series.bytes),
            "-" if series.block_size is None else str(series.block_size),
            number(statistics.median(values)),
            "-" if ends is None else " - ".join(map(number, ends)),
            str(min(one.n for one in row)),
        )
        marks = show.plain(show.listed(_marks(series)))
        marks.highlight_words(["WRONG", "not verified"], "bold red")
        marks.highlight_words(["noisy", "clocks differ"], "yellow")
        shown.append((*cells, marks, *([series.variant or ""] if varied else [])))
    return show.Table(columns, shown, _NUMERIC)


def _ends(series: Series, with_device: bool) -> tuple[str, str]:
    """Return the memory at both ends, by its name in tables."""
    places = (
        (series.source_memory, series.source_device, series.source_domain),
        (series.destination_memory, series.destination_device, series.destination_domain),
    )
    source, destination = (
        _place(memory, device if with_device else None, domain) for memory, device, domain in places
    )
    return source, destination


def _members(series: Series) -> str:
    _, numbers = series.members
    return {"sum": f"sum {numbers}", "beside": f"{numbers}, beside"}.get(series.role, numbers)


def _domains(series: Series) -> tuple[int | None, int | None]:
    return series.source_domain, series.destination_domain


def _place(memory: str, device: int | None, domain: int | None) -> str:
    text = memory.removeprefix("host-")
    if text in ("peer", "managed") and device is not None:
        text += f" {device}"
    return text if domain is None else f"{text} N{domain}"


def _marks(series: Series) -> list[str]:
    if series.errors:
        marks = [f"{series.errors} WRONG"]
    elif series.bytes_checked:
        marks = ["verified"]
    else:
        marks = ["not verified"]
    if series.noisy:
        marks.append("noisy")
    if series.regime == "cache":
        marks.append("cache")
    if series.host_clock_agrees is False:
        marks.append("clocks differ")
    return marks


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


def matrices_of(all_series: Sequence[Series]) -> tuple[list[Matrix], list[Series]]:
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


def _matrix_blocks(matrix: Matrix) -> Iterator[str | show.Table]:
    """Yield a matrix with its worst pair."""
    yield matrix.title
    rows = sorted({row for row, _ in matrix.cells})
    columns = sorted({column for _, column in matrix.cells})
    if not matrix.domains:
        rows = columns = sorted({*rows, *columns})
    if len(columns) <= MOST_COLUMNS:
        names = [str(device) for device in columns]
        lines = [
            (f"N{row}" if matrix.domains else str(row),
             *(_cell(matrix.cells.get((row, column))) for column in columns))
            for row in rows
        ]  # fmt: skip
        yield show.Table(("", *names), lines, names)
    yield _summary(matrix)


def _cell(series: Series | None) -> str:
    if series is None:
        return "-"
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
