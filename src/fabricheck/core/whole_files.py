"""Files replaced as a whole, and generated parts of Markdown pages, between two marker lines.

A reader, also after an error, finds the old file or the new one.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.text import read_text


def write_whole(path: Path, text: str) -> None:
    """Write one file; see `write_all`."""
    write_all({path: text})


def write_all(texts: Mapping[Path, str]) -> None:
    """Write each file beside its target, and replace the targets when all are complete.

    A symbolic link is kept: the file it leads to is replaced.

    :param texts: the new content of each file, in UTF-8.
    :raises NotFoundError: when one cannot be written; then none is changed.
    """
    partials: dict[Path, tuple[Path, Path]] = {}
    try:
        for path, text in texts.items():
            partial, target = partials[path] = _beside(path)
            partial.write_text(text, encoding="utf-8")
            if target.exists():
                shutil.copymode(target, partial)
        for path, (partial, target) in partials.items():  # noqa: B007
            partial.replace(target)
    except OSError as error:
        raise NotFoundError(f"{path} cannot be written ({error.strerror}).") from None
    finally:
        for partial, _ in partials.values():
            partial.unlink(missing_ok=True)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Give a file to write to; it replaces the target when the block ends without an error.

    For content that is too long to be kept as one text.

    :raises NotFoundError: when it cannot be written; then nothing is changed.
    """
    partial: Path | None = None
    try:
        partial, target = _beside(path)
        yield partial
        if target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)
    except OSError as error:
        raise NotFoundError(f"{path} cannot be written ({error.strerror or error}).") from None
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _beside(path: Path) -> tuple[Path, Path]:
    """Return the temporary path of a file, and the file it replaces.

    :raises OSError: when the target is not a regular file.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(None, "it is not a regular file")
    return target.with_name(f"{target.name}.partial"), target


def rewrite_block(page: Path, blocks: Mapping[str, str]) -> None:
    """Replace the text between the markers of each name; all of them, or none.

    :raises NotFoundError: when there is no such page, or it cannot be written.
    :raises InvalidInputError: when a marker is missing or occurs twice.
    """
    text = read_text(page)
    for name, content in blocks.items():
        before, _, after = _around(page, text, name)
        text = f"{before}<!-- {name} -->\n{content}<!-- end of {name} -->{after}"
    write_whole(page, text)


def _around(page: Path, text: str, name: str) -> list[str]:
    first, last = f"<!-- {name} -->", f"<!-- end of {name} -->"
    parts = re.split(f"{re.escape(first)}|{re.escape(last)}", text)
    if len(parts) != 3 or text.index(first) > text.index(last):
        raise InvalidInputError(f"{page}: the lines {first} and {last} must each occur once.")
    return parts
