"""Write the files of a report: page, summary, and each figure with its data; all or none."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import fabricheck
from fabricheck.core.amounts import number, short, size
from fabricheck.core.documents import documents
from fabricheck.core.errors import NotFoundError
from fabricheck.core.text import count, printable
from fabricheck.core.whole_files import write_all
from fabricheck.judge.verdict.rules import FAILED
from fabricheck.report import environment, rests_on, states
from fabricheck.report.contents import Contents
from fabricheck.results import archive, attached
from fabricheck.results.reading import Results

#: The folder of pages in a results folder, with one folder for each session.
PAGES = "reports-html"

#: The page, the summary, and the folder of the figures.
PAGE, SUMMARY, FIGURES = "index.html", "summary.md", "figures"

#: The links of a page to the files beside it.
_LINK = re.compile(rf'href="({FIGURES}/[A-Za-z0-9.-]+\.(?:svg|csv))"')

#: The number of findings of a partition before the folded sections.
MOST_AT_A_GLANCE = 5

#: The most names of measurements, components or causes in a cell of the diagnosis.
_MOST_NAMES = 6

#: Kinds of numbers, each with a shape, a word and a colour, which the end of the page explains.
KINDS: Mapping[str, str] = {
    "measured": "timed by a clock while hardware moved the data",
    "simulated": (
        "computed by SimGrid from a node model, not measured on hardware: it shows how the "
        "model behaves"
    ),
    "published": "taken from a document, for its machine and software",
    "secondary": "taken from a document that cites another document, which was not checked",
    "theoretical": "a peak that follows from clocks and widths, not from a measurement",
    "derived": "computed from other values, such as a peak times an efficiency, or by definition",
    "fitted": (
        "a parameter of the simulated node, set to reproduce a published value; "
        "agreement with that value is no evidence"
    ),
    "calibrated": "a reference computed from repeated sessions of the same machine",
}

#: The mark of each kind of reference.
REFERENCE_KINDS: Mapping[str, str] = {
    "published": "published",
    "published elsewhere": "published",
    "derived": "derived",
    "calibration": "calibrated",
    "simulated": "simulated",
}


def files(found: Contents, folder: Path | None = None) -> dict[str, str]:
    """Return the files of a report by their path in its folder.

    :param folder: the folder from which links to attached files start; the default is `folder`.
    """
    page = render("page.html.j2", found, folder)
    figures = [*found.overview, *(one for part in found.parts for one in part.shown)]
    return {
        PAGE: page,
        SUMMARY: render("summary.md.j2", found),
        **{f"{FIGURES}/{one.name}.svg": printable(one.figure.svg) for one in figures},
        **{f"{FIGURES}/{one.name}.csv": printable(one.csv) for one in figures},
    }


def render(template: str, found: Contents, at: Path | None = None) -> str:
    """Return a filled template; HTML and Markdown markup in values is escaped.

    :param at: the folder of the page, as in `files`.
    """
    at = at or folder(found.results)
    says, kept = environment.software(found.results.sessions)
    return templates(template.endswith(".html.j2")).get_template(template).render(
        page=found,
        results=found.results,
        session_facts=environment.of_sessions(found.results),
        software=says,
        kept=kept,
        attached={os.path.relpath(one, at): one for one in attached.files(found.results)},
        devices=environment.devices,
        state_columns=states.COLUMNS,
        few=_few,
        sources_of=rests_on.sources,
        documents=documents(),
        most=MOST_AT_A_GLANCE,
        failed_statuses=FAILED,
        count=count,
        kinds=KINDS,
        reference_kinds=REFERENCE_KINDS,
        version=fabricheck.__version__,
    )  # fmt: skip


@functools.cache
def templates(html: bool) -> jinja2.Environment:
    """Return the templates, which escape the markup of HTML or of Markdown in values."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("fabricheck.report"),
        autoescape=html,
        undefined=jinja2.StrictUndefined,
        finalize=_printable if html else _markdown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": cell,
        "size": size,
        "cell": cell,
        "percent": _percent,
        "short": short,
    }
    return made


def cell(value: Any) -> str:
    """Format a value for a table: a number with five digits, an empty text for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and math.isfinite(value):
        return number(value) if isinstance(value, float) else str(value)
    return str(value)


def _few(names: Sequence[str]) -> str:
    """Return the first of some names."""
    shown = names[:_MOST_NAMES]
    return "; ".join([*shown, *(["..."] if len(names) > len(shown) else [])]) or "none"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} %"


def _printable(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


#: Characters that have a meaning in Markdown, or in HTML within it.
_MARKS = str.maketrans(
    {mark: f"\\{mark}" for mark in "\\`*_[]<>|#~!@$"} | {"&": "&amp;", "\n": " "}
)


def _markdown(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value).translate(_MARKS)
    return value


def folder(results: Results) -> Path:
    """Return the default folder of a page.

    For an archive it lies beside the archive.
    """
    if results.archive is not None:
        return results.archive.parent / PAGES / archive.stem(results.archive)
    return results.home / PAGES / results.name


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a report and return its page; figures that only the previous page had are removed.

    The links of the previous page name them, so other files in the folder stay.

    :param files: the texts by path in the folder, such as ``figures/NAME.svg``.
    :raises NotFoundError: when it cannot be written; an earlier report then stays complete.
    """
    try:
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotFoundError(f"{folder} cannot be written ({error.strerror}).") from None
    before = _linked(folder / PAGE)
    write_all({folder / name: text for name, text in files.items()})
    for name in before - files.keys():
        # A file that cannot be removed is not part of the page.
        with contextlib.suppress(OSError):
            (folder / name).unlink()
    return folder / PAGE


def _linked(page: Path) -> set[str]:
    try:
        return set(_LINK.findall(page.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return set()
