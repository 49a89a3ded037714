"""Output of the command line: tables of 100 columns, numbers, and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fabricheck.core.errors import FabricheckError
from fabricheck.core.text import printable
from fabricheck.results.archive import naming_archives

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fabricheck.results.model import ResultDocument

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON instead of text.")]

#: Columns of a table when the output is not a terminal.
PIPED_WIDTH = 100


def console() -> Console:
    """Return the console of standard output; in a pipe without colours and 100 columns wide."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPED_WIDTH
    return Console(width=width, highlight=False, soft_wrap=False, emoji=False, markup=False)


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return an empty table with one line below its header; ``right`` columns are right-aligned."""
    from rich.table import Table

    result = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    for column in columns:
        result.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return result


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Sequence[str] = (),
    widths: Sequence[int | None] = (),
) -> None:
    """Print a table, with every cell as it is.

    :param right: the columns that are right-aligned. widths: the greatest widths of the first
        columns.
    """
    shown = table(*columns, right=tuple(right))
    for column, width in zip(shown.columns, widths, strict=False):
        column.max_width = width
    for row in rows:
        shown.add_row(*map(plain, row))
    console().print(shown)


def plain(text: str) -> Text:
    """Return a text shown literally: no markup, and no control characters."""
    from rich.text import Text

    return Text(printable(text))


def line(text: str = "", style: str = "") -> None:
    """Print a text literally, in lines of the console's width."""
    console().print(plain(text), style=style)


def echo(text: str) -> None:
    """Print a text literally, in one line whatever its length."""
    typer.echo(printable(text))


def say(sentence: str) -> None:
    """Print a sentence to standard error, in one line."""
    said = naming_archives(" ".join(sentence.split()))
    print(f"fabricheck: {printable(said)}", file=sys.stderr)


def write_json(value: Any) -> None:
    """Print a value to standard output as JSON."""
    json.dump(value, sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")


def say_differences(document: ResultDocument) -> None:
    """Print a line for each difference of a document, and its notes as errors."""
    for one in document.get("differences") or ():
        typer.echo(one["sentence"])
    for note in document["notes"]:
        typer.echo(f"note: {note}", err=True)


def end_by(document: ResultDocument) -> None:
    """End the command as the run of a document ended, unless that was well.

    :raises Exit: with the exit code of the outcome, whose message is printed.
    """
    outcome = document["outcome"]
    if outcome["message"] is not None:
        say(outcome["message"])
        raise typer.Exit(outcome["exit_code"] or FabricheckError.exit_code)
