"""`fabricheck drift`: what changed on a node, or on many, under hours of load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson
from fabricheck.core import show
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.core.whole_files import write_whole
from fabricheck.results import requested_nodes, soaks
from fabricheck.results.folder import default_path
from fabricheck.results.soaks import Soak

if TYPE_CHECKING:
    from fabricheck.judge.drift.model import Soaks


@commands.command("drift")
def drift(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Soaks by their names, results folders, or jobs of `fabricheck every-node --soak` "
            "(default: the soak that was written last).",
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write an HTML page (.html)."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Judge the rounds of a soak: drift, steps, stragglers, counters of errors, wrong data.

    Exit status 12 if a node failed, 13 if none failed and one is UNSTABLE or INCOMPLETE, or is
    behind others.
    """
    from fabricheck.judge.drift import judging

    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{page}: the page is HTML; the name must end with .html or .htm.")
    return shown(judging.judge_all(list(_named(what or []))), page, as_json)


def shown(result: Soaks, page: Path | None, as_json: bool) -> int:
    """Show what is judged, and write the page; return the exit code."""
    from fabricheck.report import soak as report

    show.result(result, report.lines(result), as_json, wrapped=False)
    if page is not None:
        try:
            page.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NotFoundError(f"{page} cannot be written ({error.strerror}).") from None
        write_whole(page, report.html(result))
        if not as_json:
            show.line(f"Page: {page}")
    return result.exit_code


def _named(names: list[str]) -> Iterator[Soak]:
    """Yield the soaks that names mean.

    :raises NotFoundError: for a name that means none.
    """
    results = default_path()
    if not names:
        there = soaks.read(results)
        if not there:
            raise NotFoundError(f"There is no soak in {results}: fabricheck soak makes one.")
        yield there[-1]
    for name in names:
        meant = [soak for soak in soaks.read(results) if soak.name == name]
        job = results / requested_nodes.FOLDER / name
        for folder in (job, Path(name)):
            if not meant:
                meant = _of_folder(folder)
        if not meant:
            raise NotFoundError(f"There is no soak {name} in {results}, nor a folder with one.")
        yield from meant


def _of_folder(folder: Path) -> list[Soak]:
    """Return the soaks of a results folder, or of those in the folder of a job over many nodes."""
    inside = [path for path in sorted(folder.glob("*")) if path.is_dir()]
    return [soak for results in (folder, *inside) for soak in soaks.read(results)]
