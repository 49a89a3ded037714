"""`fabricheck report`: the HTML page of a session."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import Name, OnNodes, say
from fabricheck.core import show
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.nodelists import unfolded
from fabricheck.results import reading


@commands.command("report")
def report(
    what: Name = "latest",
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder to write to; default: reports-html/SESSION."),
    ] = None,
    on: OnNodes = None,
) -> None:
    """Write the HTML page of a session: what it reproduces, and where the node is slow.

    Exit status 4 if the page was written but some of its data is missing or damaged.
    """
    # The drawing libraries take a second to import, and no other command needs them.
    from fabricheck.report import contents, page

    results = reading.read([what])
    shown = contents.page_contents(results, unfolded(",".join(on)) if on else [])
    folder = output or page.folder(results)
    written = page.write(folder, page.files(shown, folder))
    problems = tuple(shown.problems)
    say(*problems, *results.notes)
    show.line(f"Report: {written}")
    if problems:
        raise typer.Exit(InvalidInputError.exit_code)
