"""`fabricheck limits noise`: how much repeated measurements of a partition differ."""

from __future__ import annotations

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
) -> None:
    """Show the noise of each metric between sessions, nodes and campaigns, as Markdown.

    Of the partition's record, or of the sessions that are named.
    """
    require_partition("--system", system)
    if sessions:
        found = record.build(runs_of(sessions, system, pause, without), system)
    else:
        found = read_of(output, system)
    typer.echo(noise.table(found), nl=False)
