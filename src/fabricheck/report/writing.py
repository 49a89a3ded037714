"""The files of a report: all of them are written, or none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fabricheck.errors import NotFoundError
from fabricheck.whole_files import write_all

#: The page, the summary, and the folder of the figures.
PAGE, SUMMARY, FIGURES = "index.html", "summary.md", "figures"


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a report and return its page.

    :param files: by path in the folder, as ``figures/NAME.svg``, the text.
    :raises NotFoundError: when it can not be written; an earlier report is then still there, whole.
    """
    try:
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotFoundError(f"{folder} can not be written ({error.strerror}).") from None
    write_all({folder / name: text for name, text in files.items()})
    return folder / PAGE
