"""What users see: lines, tables and JSON on a terminal, tables of Markdown, first ones of many."""

from __future__ import annotations

import dataclasses
import html
import json
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fabricheck.core.text import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

#: Columns of a table when the output is not a terminal.
PIPED_WIDTH = 100

#: Sentences shown for one failure; a scan on a bad device has hundreds of bad series.
MOST_SENTENCES = 8

#: What has a meaning in Markdown, and ends a line of it.
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]|#~!@$"} | {"\n": " "})


def listed(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Join the first names, and the number of further ones: a, b and 5 more."""
    more = len(names) - most
    return separator.join(names[:most]) + (f" and {more} more" if more > 0 else "")


def first_of(sentences: Sequence[str], most: int = MOST_SENTENCES) -> list[str]:
    """Return the first sentences of a failure, and the number of further ones."""
    more = len(sentences) - most
    return [*sentences[:most], *([f"And {more} more."] if more > 0 else [])]


def cut(text: str, longest: int) -> str:
    """Return the beginning of a text that is longer than a number of characters."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def markdown(
    columns: Sequence[str], rows: Iterable[Iterable[str]], right: Collection[str] = ()
) -> Iterator[str]:
    """Yield the lines of a table in Markdown; cells may have marks of their own.

    :param right: the columns that are right-aligned.
    """
    yield f"| {' | '.join(columns)} |"
    yield f"|{'|'.join('---:' if column in right else '---' for column in columns)}|"
    for cells in rows:
        yield f"| {' | '.join(cells)} |"


def literal(text: str) -> str:
    """Return a text that Markdown, and HTML within it, shows as it is, in one line."""
    return html.escape(text, quote=False).translate(_MARKS)


def plain(text: str | Text, style: str = "") -> Text:
    """Return a text shown literally: no markup, and no control characters."""
    from rich.text import Text

    return text if isinstance(text, Text) else Text(printable(text), style)


def echo(text: str) -> None:
    """Print a text literally, in one line whatever its length."""
    print(printable(text))


def line(text: str | Text = "", style: str = "") -> None:
    """Print a text literally, in lines of the terminal's width."""
    _print(plain(text), style)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    right: Collection[str] = (),
    widths: Sequence[int | None] = (),
    whole: Collection[str] = (),
    cut_cells: bool = False,
) -> None:
    """Print a table, with every cell as it is, and one line below its header.

    :param right: the columns that are right-aligned. widths: the greatest widths of the first
        columns. whole: the columns whose cells take one line, however narrow the terminal is.
        cut_cells: a cell that is wider than its column ends with an ellipsis.
    """
    from rich.table import Table

    shown = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    for column in columns:
        shown.add_column(
            column,
            justify="right" if column in right else "left",
            overflow="ellipsis" if cut_cells else "fold",
            no_wrap=cut_cells or column in whole,
        )
    for shown_column, width in zip(shown.columns, widths, strict=False):
        shown_column.max_width = width
    for row in rows:
        shown.add_row(*map(plain, row))
    _print(shown)


def write_json(value: Any) -> None:
    """Print a value to standard output as JSON; a dataclass by its fields."""
    json.dump(value, sys.stdout, indent=1, ensure_ascii=False, default=dataclasses.asdict)
    sys.stdout.write("\n")


def _print(shown: RenderableType, style: str = "") -> None:
    """Print to standard output; in a pipe without colours and 100 columns wide."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPED_WIDTH
    console = Console(width=width, highlight=False, soft_wrap=False, emoji=False, markup=False)
    console.print(shown, style=style)
