"""What users see: lines, tables and JSON on a terminal, tables of Markdown, first ones of many."""

from __future__ import annotations

import contextlib
import dataclasses
import html
import itertools
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from fabricheck.core.text import printable, printable_json, printable_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

#: More columns than any line has: in a pipe nothing is wrapped, unless COLUMNS says how wide it is.
_UNLIMITED = 100_000

#: The columns of a terminal that does not say how many it has.
_USUAL_COLUMNS = 80

#: Colours of a status.
STATUS_COLOURS = {
    "pass": "green",
    "demonstration": "yellow",
    "unstable": "yellow",
    "incomplete": "yellow",
}

#: Sentences shown for one failure; a scan on a bad device has hundreds of bad series.
MOST_SENTENCES = 8

#: What has a meaning in Markdown, and ends a line of it.
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]|#~!@$"} | {"\n": " "})


class Table(NamedTuple):
    """Rows below a header; one without rows is not shown.

    right: the columns that are right-aligned. widths: the greatest widths of the first columns.
    whole: the columns whose cells take one line, however narrow the terminal is. most: the rows
    that are shown; rest: the option that shows the others. above: the line above the table, which
    is only shown with it.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | Text]]
    right: Collection[str] = ()
    widths: Sequence[int] = ()
    whole: Collection[str] = ()
    most: int | None = None
    rest: str = "--json"
    above: str | Text | None = None


#: A cell of a table, and what a text is made of.
Cell: TypeAlias = "str | Text"
Block: TypeAlias = "Cell | Table"


def listed(items: Iterable[object], most: int | None = None, separator: str = ", ") -> str:
    """Join names by commas, and the number of those beyond the most: a, b and 5 more."""
    names = list(map(str, items))
    more = f" and {len(names[most:])} more" if most is not None and names[most:] else ""
    return separator.join(names[:most]) + more


def enumerated(items: Iterable[object], most: int | None = None, last: str = "and") -> str:
    """Join names by commas and a last word, at most some: a, b and c; a, b and 5 more."""
    names = list(map(str, items))
    if most is not None and len(names) > most:
        return listed(names, most)
    return f" {last} ".join(filter(None, [listed(names[:-1]), *names[-1:]]))


def numbered(noun: str, items: Iterable[object]) -> str:
    """Return names behind their noun: device 0; devices 0, 1 and 2."""
    names = list(items)
    return f"{noun}{'s' if len(names) > 1 else ''} {enumerated(names)}"


def first_of(sentences: Sequence[str], most: int = MOST_SENTENCES, what: str = "") -> list[str]:
    """Return the first sentences of a failure, and the number of further ones."""
    more = [f"And {len(sentences) - most} more{what}."] if sentences[most:] else []
    return [*sentences[:most], *more]


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


def _literal(text: str) -> str:
    """Return a text that Markdown, and HTML within it, shows as it is, in one line."""
    return html.escape(text, quote=False).translate(_MARKS)


def plain(text: str | Text, style: str = "") -> Text:
    """Return a text shown literally: one line, no markup, and no control characters."""
    from rich.text import Text

    return text if isinstance(text, Text) else Text(printable_line(text), style)


def status(label: str, badge: str) -> Text:
    """Return the status of a node or a check as coloured on a terminal.

    :param badge: pass, or another word of `STATUS_COLOURS`; all others fail.
    """
    return plain(label, f"bold {STATUS_COLOURS.get(badge, 'red')}")


def joined(*parts: str | Text) -> Text:
    """Return one line of several texts, some of them coloured."""
    whole = plain("")
    for part in parts:
        whole.append_text(plain(part))
    return whole


def line(text: object, to_stderr: bool = False) -> None:
    """Print a text as one line, whatever it has."""
    print(printable_line(str(text)), file=sys.stderr if to_stderr else sys.stdout, flush=True)


@contextlib.contextmanager
def working(doing: str) -> Iterator[None]:
    """Show on a terminal what a command is doing, in a line that is gone when it is done.

    Nothing is written where standard error is a file or a pipe.
    """
    if not sys.stderr.isatty():
        yield
        return
    # A line that continues on the next one could not be taken back.
    columns = os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_COLUMNS
    shown = cut(printable_line(f"{doing} ..."), max(columns - 1, 4))
    print(shown, end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(f"\r{' ' * len(shown)}\r", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def reader_may_stop() -> Iterator[None]:
    """Print to a reader that may stop early, as `head` does: what it does not read is lost."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()


def discard_output() -> None:
    """Discard what nobody reads: at its end Python would write it once more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def result(
    document: Any,
    text: Iterable[Block],
    as_json: bool = False,
    as_markdown: bool = False,
    wrapped: bool = True,
) -> None:
    """Show the result of a command: by its text and tables, or the object itself as JSON.

    A text is one line: a line feed in it is shown as an escape, so that it cannot forge a line.

    :param text: not asked where the result is shown as JSON.
    :param wrapped: whether a line longer than the terminal is wide is continued on the next one.
    """
    with reader_may_stop():
        if as_json:
            _write_json(document)
        else:
            _show(text, as_markdown, wrapped)


def _show(text: Iterable[Block], as_markdown: bool, wrapped: bool) -> None:
    for block in itertools.chain.from_iterable(map(_shown, text)):
        if as_markdown and str(block):
            print(printable(_markdown_of(block)))
        elif isinstance(block, Table):
            _table(block)
        elif isinstance(block, str) and not wrapped:
            print(printable_line(block))
        elif isinstance(block, str) and not as_markdown:
            print(_wrapped(printable_line(block)))
        elif not as_markdown:
            _print(block)


def _width() -> int:
    """Return the columns of the terminal; in a pipe those of COLUMNS, or no limit."""
    columns = shutil.get_terminal_size(fallback=(0, 0)).columns
    if sys.stdout.isatty():
        return columns or shutil.get_terminal_size().columns
    return columns or _UNLIMITED


def _wrapped(text: str) -> str:
    """Return a text in lines as wide as the output.

    All but the first are indented, so that none of them looks like a line of its own.
    """
    width = _width()
    indent = " " * (len(text) - len(text.lstrip(" ")) + 2)
    return textwrap.fill(
        text,
        max(width, len(indent) + 20),
        subsequent_indent=indent,
        break_on_hyphens=False,
        replace_whitespace=False,
        expand_tabs=False,
    )


def _shown(block: Block) -> Iterator[Block]:
    """Yield a line, or the first rows of a table and the number of the others."""
    if not isinstance(block, Table):
        yield block
    elif block.rows:
        yield from [] if block.above is None else [block.above]
        yield block._replace(rows=block.rows[: block.most])
        if block.most is not None and len(block.rows) > block.most:
            yield f"and {len(block.rows) - block.most} more: {block.rest}"


def _markdown_of(block: Block) -> str:
    if not isinstance(block, Table):
        return f"{_literal(str(block).strip())}\n"
    cells = ([_literal(str(cell)) for cell in row] for row in block.rows)
    return "\n".join([*markdown(block.columns, cells, block.right), ""])


def _table(table: Table) -> None:
    """Print a table, with every cell as it is, and one line below its header."""
    from rich.table import Table as RichTable

    shown = RichTable(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    for column, width in itertools.zip_longest(table.columns, table.widths):
        shown.add_column(
            column,
            max_width=width,
            justify="right" if column in table.right else "left",
            overflow="fold",
            no_wrap=column in table.whole,
        )
    for row in table.rows:
        shown.add_row(*map(plain, row))
    _print(shown)


def _write_json(value: Any) -> None:
    """Print a value to standard output as JSON, with null for what is no number."""
    finite = json.loads(json.dumps(value, default=_members), parse_constant=lambda _: None)
    print(printable_json(finite))


def _members(value: Any) -> Any:
    """Return what JSON has for a record (what its `repr` has), a time, a path or a set."""
    if dataclasses.is_dataclass(value):
        return {
            field.name: getattr(value, field.name)
            for field in dataclasses.fields(value)
            if field.repr
        }
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return sorted(value)
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


def _print(shown: RenderableType) -> None:
    """Print to standard output, as wide as it is; in a pipe without colours."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            # Rich would end the process with 1.
            raise BrokenPipeError

    console = Output(width=_width(), highlight=False, emoji=False, markup=False)
    if console.is_terminal:
        console.print(shown)
        return
    # Rich fills each cell of the last column up to the longest one.
    with console.capture() as captured:
        console.print(shown)
    for text in captured.get().removesuffix("\n").split("\n"):
        print(text.rstrip())
