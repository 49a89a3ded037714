"""`fabricheck results join`: the sessions of several results folders as one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands, output
from fabricheck.core import show
from fabricheck.core.errors import InvalidInputError
from fabricheck.results import joined
from fabricheck.site import sets


@commands.command("results join")
def join_results(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER...", help="Results folders; the latest session of each is used."
        ),
    ],
    target: Annotated[Path, typer.Option("--output", metavar="DIR", help="A new results folder.")],
    whole: Annotated[
        str | None,
        typer.Option("--set", metavar="TAG", help="The set that all sessions together make."),
    ] = None,
) -> None:
    """Join the sessions of several results folders, such as those of a pipeline's jobs, into one.

    Exit status 4 if the session was written, but a folder has no usable session.
    """
    if whole is not None:
        sets.require(whole)
    report, lacking = joined.join(folders, target, whole)
    output.say(*lacking)
    show.line(f"Joined: {report}")
    if lacking:
        raise typer.Exit(InvalidInputError.exit_code)
