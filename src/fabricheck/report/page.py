"""Write the files of a report: the page, and each figure with its data; all or none."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import fabricheck
from fabricheck.core.documents import documents
from fabricheck.core.errors import NotFoundError
from fabricheck.core.show import listed
from fabricheck.core.text import count, printable
from fabricheck.core.whole_files import write_all
from fabricheck.judge.verdict.rules import FAILED
from fabricheck.report import environment, experiments, findings, identity, ticket
from fabricheck.report.contents import Contents
from fabricheck.report.rendering import KINDS, PAGE, PAGES, templates
from fabricheck.results import archive
from fabricheck.results.reading import Results

#: The folder of the figures.
FIGURES = "figures"

#: The folder of files that a page links and nothing reads, in a session's output folder or in that
#: of a job: outputs of amd-node-scraper, DCGM or a site's own tools.
ATTACHED = "attached"

#: The links of a page to the files beside it.
_LINK = re.compile(rf'href="({FIGURES}/[A-Za-z0-9.-]+\.(?:svg|csv))"')

#: The number of findings of a partition before the folded sections.
MOST_AT_A_GLANCE = 5

#: The most names of measurements, components or causes in a cell of the diagnosis.
_MOST_NAMES = 6

#: The mark of each kind of reference.
REFERENCE_KINDS: Mapping[str, str] = {
    "published": "published",
    "published elsewhere": "published",
    "derived": "derived",
    "calibration": "calibrated",
    "simulated": "simulated",
}


def files(contents: Contents, folder: Path | None = None) -> dict[str, str]:
    """Return the files of a report by their path in its folder.

    :param folder: the folder from which links to attached files start; the default is `folder`.
    """
    figures = [*contents.overview, *(shown for part in contents.parts for shown in part.shown)]
    return {
        PAGE: render(contents, folder),
        **{f"{FIGURES}/{figure.name}.svg": printable(figure.figure.svg) for figure in figures},
        **{f"{FIGURES}/{figure.name}.csv": printable(figure.csv) for figure in figures},
    }


def render(contents: Contents, at: Path | None = None) -> str:
    """Return the page; HTML markup in values is escaped.

    :param at: the folder of the page, as in `files`.
    """
    at = at or folder(contents.results)
    says, lock_files = environment.software(contents.results.sessions)
    return templates().get_template("page.html.j2").render(
        page=contents,
        results=contents.results,
        session_facts=environment.of_sessions(contents.results),
        software=says,
        lock_files=lock_files,
        attached={os.path.relpath(path, at): path for path in _attached(contents.results)},
        environment=environment,
        few=lambda names: listed(names, _MOST_NAMES, "; ") or "none",
        sources_of=experiments.sources,
        findings=findings,
        identity=identity.identity,
        ticket=ticket.ticket,
        command=ticket.command,
        documents=documents(),
        most=MOST_AT_A_GLANCE,
        failed_statuses=FAILED,
        count=count,
        kinds=KINDS,
        reference_kinds=REFERENCE_KINDS,
        version=fabricheck.__version__,
    )  # fmt: skip


def _attached(results: Results) -> list[Path]:
    """Return the files attached to sessions, and to jobs over many nodes, by name."""
    folders = [path for session in results.sessions for path in session.outputs]
    folders += [job.folder for job in results.jobs]
    paths = {path for folder in folders for path in (folder / ATTACHED).rglob("*")}
    return sorted(path for path in paths if path.is_file())


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
