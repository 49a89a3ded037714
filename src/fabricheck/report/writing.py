"""The files of a report: all of them are written, or none."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path

from fabricheck.core.errors import NotFoundError
from fabricheck.core.whole_files import write_all
from fabricheck.results import archive
from fabricheck.results.reading import Results

#: Where pages are written in a results folder: a folder for each session.
PAGES = "reports-html"

#: The page, the summary, and the folder of the figures.
PAGE, SUMMARY, FIGURES = "index.html", "summary.md", "figures"

#: How a page links to what is beside it.
_LINK = re.compile(rf'href="({FIGURES}/[A-Za-z0-9.-]+\.(?:svg|csv))"')


def folder(results: Results) -> Path:
    """Return the folder that a page is written to where nobody names one.

    Of an archive it lies beside the archive.
    """
    if results.archive is not None:
        return results.archive.parent / PAGES / archive.stem(results.archive)
    return results.home / PAGES / results.name


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a report and return its page; figures that only the page of before had are removed.

    Which these are its links say: other files that somebody keeps there stay.

    :param files: by path in the folder, as ``figures/NAME.svg``, the text.
    :raises NotFoundError: when it cannot be written; an earlier report is then still there, whole.
    """
    try:
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotFoundError(f"{folder} cannot be written ({error.strerror}).") from None
    before = _linked(folder / PAGE)
    write_all({folder / name: text for name, text in files.items()})
    for name in before - files.keys():
        # What cannot be removed is no part of the page.
        with contextlib.suppress(OSError):
            (folder / name).unlink()
    return folder / PAGE


def _linked(page: Path) -> set[str]:
    try:
        return set(_LINK.findall(page.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return set()
