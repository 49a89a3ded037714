"""`fabricheck fleet`: which of many nodes is odd, and what a maintenance changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands, output
from fabricheck.cli.output import AsJson
from fabricheck.core import show
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.core.whole_files import write_whole


@commands.command("fleet")
def fleet(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Tables of `fabricheck results export` (.parquet, .csv), folders and globs of "
            "them, a file of names (.txt), and names of results as for that command (default: the "
            "latest). With --after, what was before.",
        ),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(
            "--after",
            metavar="NAME",
            help="The same nodes later, such as after a maintenance; may be repeated.",
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write an HTML page (.html)."),
    ] = None,
    all_sessions: Annotated[
        bool, typer.Option("--all", help="All sessions of results folders, not only the latest.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Show which of many nodes stand out, and what changed on them (docs/network.md).

    Exit status 14 if a node stands out, 10 if something is worse after, 4 if something cannot be
    read, 11 if nodes or metrics are missing; 0 otherwise.
    """
    from fabricheck.judge.fleet import findings, reading
    from fabricheck.report import fleet as shown

    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{page}: the page is HTML; the name must end with .html or .htm.")
    later = reading.read(after, all_sessions) if after else None
    first = reading.read(what or [], all_sessions)
    result = findings.findings(later or first, first if later else None)
    show.result(findings.as_json(result), shown.lines(result), as_json, wrapped=False)
    earlier = result.changes.before.problems if result.changes is not None else ()
    output.say(*dict.fromkeys((*result.fleet.problems, *earlier)))
    output.say(*result.fleet.notes)
    if page is not None:
        # Last of all, so that no finding is lost where it cannot be written.
        try:
            page.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NotFoundError(f"{page} cannot be written ({error.strerror}).") from None
        write_whole(page, shown.html(result, page))
        if not as_json:
            show.line(f"Page: {page}")
    return result.exit_code
