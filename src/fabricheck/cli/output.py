"""How the command line writes: tables that fit 100 columns, numbers, and JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fabricheck.core.text import printable

#: Columns of a table when the output is no terminal.
PIPED_WIDTH = 100


def console() -> Console:
    """Return the console of standard output; without colours and 100 wide when it is a pipe."""
    width = None if sys.stdout.isatty() else PIPED_WIDTH
    return Console(width=width, highlight=False, soft_wrap=False, emoji=False, markup=False)


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return an empty table with one line under its head; ``right`` are aligned to the right."""
    result = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    for column in columns:
        result.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return result


def plain(text: str) -> Text:
    """Return text that is shown as it is: no markup, and nothing that controls a terminal."""
    return Text(printable(text))


def write_json(value: Any) -> None:
    """Write a value to standard output as JSON."""
    json.dump(value, sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")
