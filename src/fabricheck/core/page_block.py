"""Generated parts of Markdown pages, between two marker lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from fabricheck.core.errors import InvalidInputError
from fabricheck.core.text import read_text
from fabricheck.core.whole_files import write_whole


def read(page: Path, name: str) -> str:
    """Return the text between ``<!-- NAME -->`` and ``<!-- end of NAME -->`` of a page.

    :raises NotFoundError: when there is no such page.
    :raises InvalidInputError: when a marker is missing or occurs twice.
    """
    return _parts(page, read_text(page), name)[1]


def rewrite(page: Path, blocks: Mapping[str, str]) -> None:
    """Replace the text between the markers of each name; all of them, or none.

    :raises NotFoundError: when there is no such page, or it cannot be written.
    :raises InvalidInputError: when a marker is missing or occurs twice.
    """
    text = read_text(page)
    for name, content in blocks.items():
        before, _, after = _parts(page, text, name)
        text = f"{before}<!-- {name} -->\n{content}<!-- end of {name} -->{after}"
    write_whole(page, text)


def _parts(page: Path, text: str, name: str) -> list[str]:
    first, last = f"<!-- {name} -->", f"<!-- end of {name} -->"
    parts = re.split(f"{re.escape(first)}|{re.escape(last)}", text)
    if len(parts) != 3 or text.index(first) > text.index(last):
        raise InvalidInputError(f"{page}: the lines {first} and {last} must each occur once.")
    return parts
