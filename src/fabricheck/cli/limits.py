"""`fabricheck limits noise` and `transfer`: how much repeated measurements differ, and a record
for a partition that was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson, partition_names
from fabricheck.cli.proposal import (
    REFERENCES,
    Folder,
    Looser,
    Pause,
    Sessions,
    System,
    Without,
    Write,
    end,
    require_partition,
    runs_of,
)
from fabricheck.core import show
from fabricheck.core.statistics import NORMAL
from fabricheck.judge.calibration import changes, record
from fabricheck.judge.calibration.gathering import PAUSE_MINUTES
from fabricheck.references.calibrated import Record, read_of


@commands.command("limits noise")
def noise_command(
    sessions: Sessions = None,
    system: System = "",
    output: Folder = REFERENCES,
    without: Without = "",
    pause: Pause = PAUSE_MINUTES,
    as_json: AsJson = False,
) -> None:
    """Show the noise of each check within a run, between sessions and between campaigns.

    Reads the partition's record, or the sessions that are named.
    """
    require_partition("--system", system)
    if sessions:
        calibration = record.build(runs_of(sessions, system, pause, without), system)
    else:
        calibration = read_of(output, system)
    rows = list(record.noises(calibration))
    show.result(
        {"partition": calibration.partition, "noise": rows}, _text(calibration, rows), as_json
    )


def _text(calibration: Record, rows: Sequence[record.Noise]) -> Iterator[show.Block]:
    cells = [
        (row.check, row.unit, str(row.metrics),
         *("-" if part is None else f"{100 * part:.2f} %"
           for part in (row.within_run, row.between_sessions, row.between_campaigns)))
        for row in rows
    ]  # fmt: skip
    right = ("Metrics", "Within a run", "Between sessions", "Between campaigns")
    yield show.Table(("Check", "Unit", *right), cells, right)
    number = len({session.campaign for session in calibration.sessions})
    yield (
        f"{calibration.partition}: {len(calibration.sessions)} sessions in {number} campaigns. "
        "Within a run: half of the 95 % interval over the median; between sessions of one "
        f"campaign: {NORMAL} MAD over the median; both the median over the metrics. Between "
        "campaigns: the largest difference of medians over the median of all sessions, the "
        "most of any metric."
    )


@commands.command("limits transfer")
def transfer(
    like: Annotated[
        str,
        typer.Argument(
            metavar="MEASURED", help="A calibrated partition.", autocompletion=partition_names
        ),
    ],
    other: Annotated[
        str,
        typer.Argument(
            metavar="OTHER",
            help="A partition that was not measured, with fewer or more such devices.",
            autocompletion=partition_names,
        ),
    ],
    output: Folder = REFERENCES,
    write: Write = False,
    accept_looser: Looser = False,
    as_json: AsJson = False,
) -> None:
    """Use the record of a calibrated partition for another one (docs/limits.md).

    Takes the metrics that mean the same with another number of devices. Without --write the changes
    are only shown.
    """
    require_partition("MEASURED", like)
    require_partition("OTHER", other)
    end(changes.transfer(output, like, other), write, accept_looser, as_json=as_json)
