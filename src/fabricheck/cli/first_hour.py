"""`fabricheck site first-hour`: ten commands on an unmeasured node, their output in one file."""

from __future__ import annotations

import importlib
import os
import platform
import re
import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import archive_target, partition_names
from fabricheck.core import show
from fabricheck.core.errors import FabricheckError, NotFoundError, UsageError
from fabricheck.judge.verdict.model import Verdict
from fabricheck.report import verdict_lines
from fabricheck.results import archive


@commands.command("site first-hour")
def first_hour(
    system: Annotated[
        str,
        typer.Argument(
            metavar="SYSTEM:PARTITION",
            help="A partition or system of config/sites.",
            autocompletion=partition_names,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The archive (.tar.gz); default: first-hour-NODE-TIME.tar.gz."
        ),
    ] = None,
    limit_s: Annotated[
        float | None,
        typer.Option("--time-limit", min=0.001, help="Time limit of each command in s."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the commands and their time limits.")
    ] = False,
) -> None:
    """Run the ten commands of docs/any-node.md, and write one archive of their output.

    Continues after a failed command. The commands results show, verdict, limits calibrate and
    compare accept the archive like a results folder. Exit status 4 if a command failed or reached
    its time limit, 3 if there are no devices or the archive cannot be written, and 128 plus its
    number if a signal ended it.
    """
    from fabricheck.run import first_hour as hour
    from fabricheck.tools.topology.host import scheduler_node

    place = hour.place(system)
    if dry_run:
        for number, step in enumerate(hour.STEPS, 1):
            lacks = place.lacks(step)
            show.line(f"{number}. {step.asks}")
            for which, line in enumerate(() if lacks else step.lines, 1):
                typed = place.fill(line, f"{number}-{step.name}-{which}.json")
                show.line(f"   {typed}   # within {step.limit_s:g} s")
            if lacks:
                show.line(f"   not possible here: {lacks}")
        return
    if place.has_devices:
        _require_node()
    node = re.sub(r"[^\w.-]", "-", scheduler_node() or platform.node())
    target = archive_target(output, "first-hour", node)
    folder = target.with_name(archive.stem(target))
    for path in (target, folder):
        if path.exists():
            raise UsageError(f"{path} already exists: name another --output.")
    run = hour.FirstHour(place, folder, limit_s, show.line, headline)
    show.line(f"The first hour of {place.target.name} on {platform.node()}, in {folder}")
    run.collect(target)
    shutil.rmtree(folder, ignore_errors=True)
    shown = shlex.quote(os.path.relpath(target))
    show.line(f"Archive: {shown} ({target.stat().st_size / 1e3:.0f} kB)")
    show.line(f"Read it with: fabricheck results show {shown}; fabricheck verdict {shown}")
    if run.signal is not None:
        raise typer.Exit(128 + run.signal)
    if any(ran.ending in ("failed", "time limit") for ran in run.ran):
        raise typer.Exit(FabricheckError.exit_code)


def headline(text: str) -> str:
    """Return the first line of a verdict.

    :raises ValueError: when the text is not the JSON of one.
    """
    return str(verdict_lines.headline(Verdict.model_validate_json(text)))


def _require_node() -> None:
    """Require that this process runs on a node with devices, of an allocation if there is one.

    :raises NotFoundError: outside an allocation, where no driver has devices.
    :raises UsageError: on a login node, with the command to run.
    """
    # Without ReFrame, which its commands need, the sentence of a missing package is shown.
    importlib.import_module("reframe")
    from fabricheck.run.site_check import Machine
    from fabricheck.schedulers import table

    if not Machine().is_compute:
        raise NotFoundError(
            f"No driver has devices here, and {table.SLURM.variable} is not set: run this on the "
            "node, inside an allocation (docs/any-node.md)."
        )
    row = table.around(os.environ)
    if row is None or row.is_inside(os.environ):
        return
    measured = row.measured_nodes(os.environ)
    if measured:
        raise UsageError(
            f"This shell is not on {measured[0]}, the node of the allocation: run "
            f"{row.on_node(measured[0])} fabricheck site first-hour ..."
        )
