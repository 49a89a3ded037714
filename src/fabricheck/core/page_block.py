"""Parts of a page of Markdown that a command writes, between two lines that mark them."""

from __future__ import annotations

import re
from pathlib import Path

from fabricheck.core.errors import InvalidInputError
from fabricheck.core.text import read_text
from fabricheck.core.whole_files import write_whole


def rewrite(page: Path, name: str, content: str) -> None:
    """Replace what stands between ``<!-- NAME -->`` and ``<!-- end of NAME -->`` in a page.

    :raises NotFoundError: when there is no such page, or it cannot be written.
    :raises InvalidInputError: when it does not have each marker once.
    """
    first, last = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = read_text(page)
    parts = re.split(f"{re.escape(first)}|{re.escape(last)}", text)
    if len(parts) != 3 or text.index(first) > text.index(last):
        raise InvalidInputError(f"{page}: does not have the lines {first} and {last}, each once.")
    write_whole(page, f"{parts[0]}{first}\n{content}{last}{parts[2]}")
