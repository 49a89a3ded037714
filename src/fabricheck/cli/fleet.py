"""`fabricheck fleet`: which of many nodes is odd, and what a maintenance changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands, output
from fabricheck.core.text import printable
from fabricheck.core.vocabulary import EXIT_GOOD
from fabricheck.core.whole_files import write_whole


@commands.command("fleet")
def fleet(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Tables of `fabricheck export` (.parquet, .csv), folders and globs of them, a "
            "file of names (.txt), and names of results as for `fabricheck export` (default: the "
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
    every: Annotated[
        bool, typer.Option("--all", help="All sessions of results folders, not only the latest.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of text.")] = False,
) -> None:
    """Show which of many nodes stand out, and what changed on them (docs/fleet.md).

    Ends with 14 when a node stands out, 10 when something is worse after, 4 when something cannot
    be read, 11 when nodes or metrics are missing; 0 otherwise.
    """
    from fabricheck.judge.fleet import changes, reading, text

    later = reading.read(list(after), every) if after else None
    earlier = reading.read(list(what or []), every)
    changed = changes.compare(earlier, later) if later is not None else None
    found = text.findings(later or earlier, changed)
    if page is not None:
        from fabricheck.report import fleet as pages

        page.parent.mkdir(parents=True, exist_ok=True)
        write_whole(page, pages.html(found, page))
    if as_json:
        output.write_json(text.as_json(found))
    else:
        for line in text.lines(found):
            typer.echo(printable(line))
        if page is not None:
            typer.echo(f"Page: {page}")
    for sentence in (*found.fleet.problems, *(earlier.problems if later else ())):
        output.say(sentence)
    for note in found.fleet.notes:
        output.say(note)
    if found.exit_code != EXIT_GOOD:
        raise typer.Exit(found.exit_code)
