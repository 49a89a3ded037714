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

if TYPE_CHECKING:
    from fabricheck.judge.drift.model import Soaks


@commands.command("drift")
def drift(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Soaks by their names, records of them, results folders, or jobs of `fabricheck "
            "every-node --soak` (default: the soak that was written last).",
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
    paths = list(_paths(what or []))
    return shown(judging.judge_all(soaks.read(path) for path in paths), page, as_json)


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


def _paths(names: list[str]) -> Iterator[Path]:
    """Yield the records that names mean.

    :raises NotFoundError: for a name that means none.
    """
    results = default_path()
    if not names:
        there = sorted(
            results.glob(f"{soaks.FOLDER}/*.json"), key=lambda path: path.stat().st_mtime
        )
        if not there:
            raise NotFoundError(f"There is no soak in {results}: fabricheck soak makes one.")
        yield there[-1]
    for name in names:
        job = results / requested_nodes.FOLDER / name
        folder = job if job.is_dir() else Path(name)
        meant = [soaks.path_of(results, name), Path(name)]
        of_folder = sorted(folder.glob(f"{soaks.FOLDER}/*.json")) if folder.is_dir() else []
        of_folder += sorted(folder.glob(f"*/{soaks.FOLDER}/*.json")) if folder.is_dir() else []
        files = [path for path in meant if path.is_file()][:1]
        if not files and not of_folder:
            raise NotFoundError(
                f"There is no soak {name} in {results}, and no record of one there."
            )
        yield from files or of_folder
