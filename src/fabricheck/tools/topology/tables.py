"""Square tables of devices, as vendors' tools print them; damage is always an error."""

from __future__ import annotations

from dataclasses import dataclass

from fabricheck.core.lines import Line
from fabricheck.tools.topology.reported import Matrix


@dataclass(frozen=True)
class Table:
    """A square table: the labels that rows and columns share, its cells, and its lines."""

    labels: tuple[str, ...]
    cells: Matrix[str]
    rows: tuple[Line, ...]

    def place(self, a: int, b: int) -> str:
        """Describe a cell in a sentence."""
        return f"'{self.cells[a][b]}' ({self.labels[a]} to {self.labels[b]})"

    def require_symmetry(self, diagonal: str) -> None:
        """Check that both directions of each pair agree, and that each device has the diagonal.

        :raises GarbledOutput: naming the pair and the line of its second direction.
        """
        for a, label in enumerate(self.labels):
            if self.cells[a][a] != diagonal:
                raise self.rows[a].garbled(
                    f"'{self.cells[a][a]}' ({label} to itself) is out of place"
                )
            for b in range(a):
                if self.cells[a][b] != self.cells[b][a]:
                    raise self.rows[a].garbled(
                        f"{label} to {self.labels[b]} is '{self.cells[a][b]}', "
                        f"the way back is '{self.cells[b][a]}'"
                    )
