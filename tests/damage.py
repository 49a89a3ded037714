"""What can happen to a text between the tool and its reader."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

# Not digits inside words such as H200, nor the suffix of a version (6.2.0-66), which may be a word.
_NUMBER = re.compile(r"(?<![A-Za-z\d.])(?<!\d-)-?\d+(?:\.\d+)*(?:e[+-]\d+)?|(?<=\bv)\d+(?:\.\d+)*")


def cuts(text: str, end: int) -> Iterator[str]:
    """Yield every text that stops before position ``end``."""
    yield from (text[:length] for length in range(end))


def replaced(text: str, by: str) -> Iterator[str]:
    """Yield the text with each of its numbers, one at a time, replaced."""
    for match in _NUMBER.finditer(text):
        yield text[: match.start()] + by + text[match.end() :]


def rearranged(text: str, rows: list[int]) -> Iterator[str]:
    """Yield the text with rows doubled, missing, and in another order.

    :param rows: the indices of the rows among the lines.
    """
    lines = text.splitlines(keepends=True)
    for row in rows:
        yield "".join([*lines[: row + 1], *lines[row:]])
        yield "".join([*lines[:row], *lines[row + 1 :]])
    for one, other in pairwise(rows):
        swapped = [*lines]
        swapped[one], swapped[other] = lines[other], lines[one]
        yield "".join(swapped)


def cells(text: str, rows: list[int], by: str) -> Iterator[str]:
    """Yield the text with each cell of each row, one at a time, replaced."""
    lines = text.splitlines(keepends=True)
    for row in rows:
        for match in re.finditer(r"\S+", lines[row]):
            line = lines[row][: match.start()] + by + lines[row][match.end() :]
            yield "".join([*lines[:row], line, *lines[row + 1 :]])


def rows_of(text: str) -> list[int]:
    """Return the indices of the lines that begin with a number."""
    return [i for i, line in enumerate(text.splitlines()) if re.match(r"\s*\d", line)]
