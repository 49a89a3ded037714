"""Strict parsing of the square tables that the tools print; damage is always an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fabricheck.core.lines import Line
from fabricheck.tools.topology.reported import Matrix

T = TypeVar("T")


@dataclass(frozen=True)
class Table:
    """A square table: its cells, and the labels of its rows, which its columns share."""

    labels: tuple[str, ...]
    cells: Matrix[str]
    first: Line
    rows: tuple[Line, ...]

    def read(self, cell: Callable[[str], T]) -> Matrix[T]:
        """Convert every cell.

        :param cell: converts one; its ``ValueError`` becomes the reason.
        :raises GarbledOutput: for the first cell that cannot be converted.
        """
        rows: list[tuple[T, ...]] = []
        for a, texts in enumerate(self.cells):
            row: list[T] = []
            for b, text in enumerate(texts):
                try:
                    row.append(cell(text))
                except ValueError as error:
                    place = f"{self.labels[a]} to {self.labels[b]}"
                    raise self.rows[a].garbled(f"'{text}' ({place}) is not {error}") from None
            rows.append(tuple(row))
        return tuple(rows)

    def symmetric(self, values: Matrix[T], zero: T | None = None) -> None:
        """Check that both directions of each pair agree, and the diagonal if ``zero`` is given.

        :raises GarbledOutput: naming the pair and the line of its second direction.
        """
        for a, label in enumerate(self.labels):
            if zero is not None and values[a][a] != zero:
                raise self.rows[a].garbled(
                    f"'{self.cells[a][a]}' ({label} to itself) is out of place"
                )
            for b in range(a):
                if values[a][b] != values[b][a]:
                    raise self.rows[a].garbled(
                        f"{label} to {self.labels[b]} is '{self.cells[a][b]}', "
                        f"the way back is '{self.cells[b][a]}'"
                    )


def read_table(
    lines: Sequence[Line], name: str, title: Line, label: Callable[[int, str], bool]
) -> Table:
    """Parse a square table: a row of labels, then a row for each label, with a cell for each.

    :param lines: what follows the title; lines after the table's last row are left alone.
    :param name: the table's name in an error.
    :param title: the line that announced it.
    :param label: whether a text can be the label of column i.
    :raises GarbledOutput: naming the line, when a row or a cell is missing or misplaced.
    """
    if not lines:
        raise title.garbled(f"the text ends before the table '{name}'")
    header, labels = lines[0], lines[0].words
    for column, text in enumerate(labels):
        if not label(column, text):
            raise header.garbled(
                f"'{text}' is not a label of column {column} of the table '{name}'"
            )
    if len(set(labels)) != len(labels):
        raise header.garbled(f"the table '{name}' names a device twice")
    rows = list(_rows(lines[1:], name, header, labels))
    return Table(tuple(labels), tuple(tuple(row.words[1:]) for row in rows), header, tuple(rows))


def _rows(lines: Sequence[Line], name: str, header: Line, labels: Sequence[str]) -> Iterator[Line]:
    last = header
    for position, label in enumerate(labels):
        if position >= len(lines):
            raise last.garbled(f"the text ends here, the table '{name}' lacks the row of {label}")
        last = lines[position]
        if last.words[0] != label:
            raise last.garbled(
                f"'{last.words[0]}' is in the place of {label} in the table '{name}'"
            )
        cells = len(last.words) - 1
        if cells != len(labels):
            raise last.garbled(
                f"{label} has {cells} cells in the table '{name}', but {len(labels)} are required"
            )
        yield last


def bandwidth_range(text: str) -> tuple[int, int] | None:
    """Parse a cell such as ``50000-200000``: bandwidth of one link and of all, in MB/s.

    :returns: ``None`` for ``N/A``; (0, 0) where there is no direct link.
    :raises ValueError: stating what the cell should be.
    """
    if text == "N/A":
        return None
    match = re.fullmatch(r"(\d+)-(\d+)", text)
    if match is None:
        raise ValueError("a bandwidth range such as 50000-200000")
    low, high = int(match[1]), int(match[2])
    if (low == 0) != (high == 0) or (low and high % low):
        raise ValueError("the bandwidth of one link and a multiple of it")
    return low, high


def links_of(table: Table, *, unsupported: bool) -> tuple[Matrix[int], float | None]:
    """Convert a table of bandwidth ranges to counts of links and the peak of one, in GB/s.

    The kernel reports the bandwidth of one link as the minimum and that of all links as the
    maximum.

    :param unsupported: whether ``N/A`` is allowed for a pair without a link of this kind.
    :raises GarbledOutput: when a cell is damaged, or the two directions of a pair differ.
    """
    ranges = table.read(bandwidth_range)
    table.symmetric(ranges)
    peaks: set[int] = set()
    for a, row in enumerate(ranges):
        for b, cell in enumerate(row):
            if (cell is None) != (a == b) and not (cell is None and unsupported):
                place = f"{table.labels[a]} to {table.labels[b]}"
                raise table.rows[a].garbled(f"'{table.cells[a][b]}' ({place}) is out of place")
            if cell is not None and cell[0]:
                peaks.add(cell[0])
    if len(peaks) > 1:
        listed = " and ".join(str(peak) for peak in sorted(peaks))
        raise table.first.garbled(f"one link has {listed} MB/s")
    links = tuple(
        tuple(cell[1] // cell[0] if cell and cell[0] else 0 for cell in row) for row in ranges
    )
    return links, (peaks.pop() / 1000 if peaks else None)
