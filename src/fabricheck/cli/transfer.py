"""`fabricheck limits transfer`: a measured partition's record for one that was not measured."""

from __future__ import annotations

from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson, partition_names
from fabricheck.cli.proposal import REFERENCES, Folder, Looser, Write, end, require_partition
from fabricheck.judge.calibration import changes


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
