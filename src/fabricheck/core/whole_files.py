"""Files replaced as a whole, and generated parts of Markdown pages, between two marker lines.

A reader, also after an error, finds the old file or the new one. No link is followed: who may write
to a folder could otherwise plant one there that leads to a file of the user.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.text import read_text


def write_whole(path: Path, text: str) -> None:
    """Write one file; see `write_all`."""
    write_all({path: text})


def write_all(texts: Mapping[Path, str]) -> None:
    """Write each file beside its target, and replace the targets when all are complete.

    :param texts: the new content of each file, in UTF-8.
    :raises NotFoundError: when one cannot be written, or is not a regular file, such as a symbolic
        link; then none is changed.
    """
    partials: dict[Path, Path] = {}
    try:
        for path, text in texts.items():
            with _beside(path) as out:
                partials[path] = Path(out.name)
                out.write(text.encode())
        for path, partial in partials.items():
            partial.replace(path)
    except OSError as error:
        raise NotFoundError(f"{path} cannot be written ({error.strerror}).") from None
    finally:
        for partial in partials.values():
            partial.unlink(missing_ok=True)


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write to; it replaces the target when the block ends without an error.

    For content that is too long to be kept as one text.

    :raises NotFoundError: as `write_all`; then nothing is changed.
    """
    partial: Path | None = None
    try:
        with _beside(path) as out:
            partial = Path(out.name)
            yield out
        partial.replace(path)
    except OSError as error:
        raise NotFoundError(f"{path} cannot be written ({error.strerror or error}).") from None
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _beside(path: Path) -> IO[bytes]:
    """Create a file in the folder of a target, with the permissions of the target if there is one.

    Its name is random, and nothing has that name before.

    :raises OSError: when it cannot be created, or the target is not a regular file.
    """
    mode: int | None = None
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
    if mode is not None and stat.S_ISLNK(mode):
        raise OSError(None, f"it is a symbolic link; name the file it leads to, {path.readlink()}")
    if mode is not None and not stat.S_ISREG(mode):
        raise OSError(None, "it is not a regular file")
    partial = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}.new")
    out = partial.open("xb")  # which fails on a link, too
    if mode is not None:
        os.fchmod(out.fileno(), stat.S_IMODE(mode))
    return out


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
