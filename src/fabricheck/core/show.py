"""Lists and tables as text: the first of many names, and tables of Markdown."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Iterator, Sequence

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
