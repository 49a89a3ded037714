"""`fabricheck results pack`: all sessions of the results folder in one archive, to send."""

from __future__ import annotations

import os
import platform
import shlex
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import archive_target
from fabricheck.results import packing, requested_nodes
from fabricheck.results.folder import ResultsFolder


@commands.command("results pack")
def pack(
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The archive (.tar.gz); default: results-NODE-TIME.tar.gz."
        ),
    ] = None,
) -> None:
    """Pack all sessions and jobs of the results folder into one archive, to send.

    It has documents, run reports, outputs of checks and node models, and nothing else of the
    folder. The commands results show, verdict, limits calibrate and compare accept it like the
    folder. Exit status 3 if there is no session or the archive cannot be written.
    """
    folder = ResultsFolder.default()
    if not folder.sessions and not any(requested_nodes.jobs_under(folder.path)):
        raise folder.no_session()
    target = archive_target(output, "results", platform.node())
    packing.results(folder.path, target)
    typer.echo(f"{shlex.quote(os.path.relpath(target))} ({target.stat().st_size / 1e3:.0f} kB)")
