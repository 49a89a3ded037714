"""The table of the lines of logs: what each says of a device, and what its vendor tells to do.

``core/log_lines.json`` has it. The program `aftermath` reads the same file and records by which row
it kept a line; the first row that a line matches decides.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fabricheck.core import vocabulary
from fabricheck.core.show import markdown
from fabricheck.core.text import read_text

_FILE = Path(vocabulary.__file__).with_name("log_lines.json")


@dataclass(frozen=True)
class LogRow:
    """One row of the table.

    kind: what its lines are (`LogKind`), and where they name an accelerator. meaning: what they
    report; None where that is unknown. vendor, action: who tells to do what (`LogAction`); None
    where it is not published. source: the title and the address of the document.
    """

    name: str
    pattern: str
    registers: Mapping[str, list[int]]
    kind: str
    of_accelerator: str
    meaning: str | None
    vendor: str | None
    action: str | None
    source: tuple[str, str]

    @property
    def advice(self) -> str | None:
        """The vendor's action in words: ``NVIDIA's action: reset the device``."""
        if self.action is None:
            return None
        return f"{self.vendor}'s action: {vocabulary.LOG_ACTIONS[self.action]}"


@functools.cache
def rows() -> Mapping[str, LogRow]:
    """Return the rows by name, in the order in which a line is compared with them."""
    table = json.loads(read_text(_FILE))
    by_name = {}
    for row in (*table["kernel"], *table["runtime"]):
        source = table["sources"][row["source"]]
        by_name[row["name"]] = LogRow(
            name=row["name"],
            pattern=row["pattern"],
            registers=row.get("registers", {}),
            kind=row["kind"],
            of_accelerator=row.get("of_accelerator", row["kind"]),
            meaning=row.get("meaning"),
            vendor=source.get("vendor"),
            action=row.get("action"),
            source=(source["title"], source["url"]),
        )
    return by_name


def table() -> list[str]:
    """Return the rows as the lines of a table in Markdown."""
    lines = []
    for row in rows().values():
        title, url = row.source
        kind = row.kind
        if row.of_accelerator != row.kind:
            kind += f"; {row.of_accelerator} where it names an accelerator"
        lines.append(
            (
                f"`{row.name}`",
                row.meaning or "any other Xid: its meaning is unknown",
                _match(row),
                kind,
                row.advice or "none published",
                f"[{title}]({url})",
            )
        )
    return list(markdown(("row", "reports", "lines", "kind", "action", "source"), lines))


def _match(row: LogRow) -> str:
    """Return the pattern of a row, and its bits, as Markdown."""
    escaped = row.pattern.replace("|", "\\|")
    shown = f"`{escaped}`"
    for register, bits in row.registers.items():
        shown += f"; register {register}: bit {', '.join(map(str, bits))}"
    return shown
