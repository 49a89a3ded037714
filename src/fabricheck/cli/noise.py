"""`fabricheck limits noise`: how much repeated measurements of a partition differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.proposal import (
    REFERENCES,
    Folder,
    Pause,
    Sessions,
    System,
    Without,
    require_partition,
    runs_of,
)
from fabricheck.core import page_block
from fabricheck.judge.calibration import noise, record
from fabricheck.judge.calibration.gathering import PAUSE_MINUTES
from fabricheck.references.calibrated import read_of


@commands.command("limits noise")
def noise_command(
    sessions: Sessions = None,
    system: System = "",
    output: Folder = REFERENCES,
    without: Without = "",
    pause: Pause = PAUSE_MINUTES,
    page: Annotated[
        Path | None, typer.Option("--page", help="Write between its markers in this page.")
    ] = None,
) -> None:
    """Show the noise of each metric between sessions, nodes and campaigns, as Markdown.

    Of the partition's record, or of the sessions that are named.
    """
    require_partition("--system", system)
    if sessions:
        found = record.build(runs_of(sessions, system, pause, without), system)
    else:
        found = read_of(output, system)
    text = noise.table(found)
    if page is None:
        typer.echo(text, nl=False)
    else:
        page_block.rewrite(page, {f"noise of {found.partition}": text})
        typer.echo(f"wrote {page}", err=True)
