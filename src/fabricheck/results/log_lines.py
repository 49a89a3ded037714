"""The table of the lines of logs: what each says of a device, and what its vendor tells to do.

``core/log_lines.json`` has it. The program `aftermath` reads the same file and records by which row
it kept a line; the first row that a line matches decides.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricheck.core import vocabulary
from fabricheck.core.show import listed, markdown
from fabricheck.core.text import read_text
from fabricheck.results.model import LogLine

_FILE = Path(vocabulary.__file__).with_name("log_lines.json")


@dataclass(frozen=True)
class LogRow:
    """One row of the table.

    kind: what its lines are (`LogKind`), and where they name an accelerator. least: the number of
    lines on a device from which they are; fewer are unclear. meaning: what they report; None where
    that is unknown. source: the title and the address of the document. vendor, action: who tells to
    do what (`LogAction`); None where nobody does. action_source: the document that has it.
    looked_at: the documents in which no action was found.
    """

    name: str
    pattern: str
    registers: Mapping[str, list[int]]
    kind: str
    of_accelerator: str
    least: int
    meaning: str | None
    source: tuple[str, str]
    vendor: str | None
    action: str | None
    action_source: tuple[str, str]
    looked_at: tuple[tuple[str, str], ...]

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
    sources = {name: (source["title"], source["url"]) for name, source in table["sources"].items()}
    by_name = {}
    for row in (*table["kernel"], *table["runtime"]):
        tells = row.get("action_source", row["source"])
        by_name[row["name"]] = LogRow(
            name=row["name"],
            pattern=row["pattern"],
            registers=row.get("registers", {}),
            kind=row["kind"],
            of_accelerator=row.get("of_accelerator", row["kind"]),
            least=row.get("least", 1),
            meaning=row.get("meaning"),
            source=sources[row["source"]],
            vendor=table["sources"][tells].get("vendor"),
            action=row.get("action"),
            action_source=sources[tells],
            looked_at=tuple(sources[name] for name in row.get("looked_at", ())),
        )
    return by_name


def weighed(lines: Sequence[LogLine]) -> list[LogLine]:
    """Return lines of logs with the kind that so many of a row on a device have.

    A line that its vendor reports from the third one on is no evidence where there are two.
    """
    numbers = Counter((line.get("row"), line["pci_address"]) for line in lines)
    kinds: list[LogLine] = []
    for line in lines:
        row = rows().get(line.get("row") or "")
        if row is not None and numbers[row.name, line["pci_address"]] < row.least:
            line = {**line, "kind": "unclear"}
        kinds.append(line)
    return kinds


def table() -> list[str]:
    """Return the rows as the lines of a table in Markdown."""
    lines = []
    for row in rows().values():
        kind = row.kind
        if row.least > 1:
            kind += f" from {row.least} lines on a device on, unclear before"
        if row.of_accelerator != row.kind:
            kind += f"; {row.of_accelerator} where it names an accelerator"
        lines.append(
            (
                f"`{row.name}`",
                row.meaning or "any other Xid: its meaning is unknown",
                _match(row),
                kind,
                row.advice or f"none stated; looked at: {', '.join(map(_link, row.looked_at))}",
                listed(dict.fromkeys(map(_link, (row.source, row.action_source)))),
            )
        )
    return list(markdown(("row", "reports", "lines", "kind", "action", "source"), lines))


def _link(source: tuple[str, str]) -> str:
    title, url = source
    return f"[{title}]({url})"


def _match(row: LogRow) -> str:
    """Return the pattern of a row, and its bits, as Markdown."""
    escaped = row.pattern.replace("|", "\\|")
    shown = f"`{escaped}`"
    for register, bits in row.registers.items():
        shown += f"; register {register}: bit {', '.join(map(str, bits))}"
    return shown
