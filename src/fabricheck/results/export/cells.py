"""The cells of a row: numbers, times, and one-line texts that are never formulas."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

from fabricheck.core.text import printable
from fabricheck.results.table import Row, values

Cells = dict[str, Any]

#: Characters at the start of a text that make a spreadsheet calculate it.
_FORMULA = re.compile(r"^[=+\-@]")


def of_row(row: Row) -> Cells:
    """Return a row as cells, by column."""
    return {name: _cell(value) for name, value in values(row).items()}


def _cell(value: Any) -> Any:
    match value:
        case str():
            return text(value)
        case float():
            return value if math.isfinite(value) else None
        case tuple():
            # As one text, which no reader takes for a number.
            return f"[{' '.join(map(str, value))}]"
        case _:
            return value


@functools.lru_cache(maxsize=4096)
def text(value: str) -> str | None:
    """Return the text of a cell: one line, without control characters, never a formula.

    An empty text is None. A text that a spreadsheet would calculate gets an apostrophe in front.
    """
    line = printable(" ".join(value.split()))
    return (f"'{line}" if _FORMULA.match(line) else line) or None
