"""`fabricheck node health`: whether this node is well, by a passive look in less than a second."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabricheck.cli import commands, output
from fabricheck.cli.output import AsJson, Devices, FabricName, Programs
from fabricheck.core import show
from fabricheck.core.errors import FabricheckError, UsageError
from fabricheck.core.whole_files import write_whole
from fabricheck.tools import look_begun

if TYPE_CHECKING:
    from fabricheck.tools.look import Look


@commands.command("node health")
def health_command(
    model: Annotated[
        str | None,
        typer.Argument(
            help="What the node should have: a node model, its name or a YAML file; default: what "
            "it has itself, compared with the look before."
        ),
    ] = None,
    fabric: FabricName = None,
    programs: Programs = None,
    devices: Devices = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            help="The file of the look before; default: /run/fabricheck/look.json, without root "
            "one of the user.",
        ),
    ] = None,
    root: Annotated[
        Path,
        typer.Option(
            "--root",
            metavar="DIR",
            help="The folder with sys, proc and dev of the node, as a container has them mounted.",
        ),
    ] = Path("/"),
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Begin anew: what was counted before this look is settled."),
    ] = False,
    prometheus: Annotated[
        Path | None,
        typer.Option(
            "--prometheus",
            metavar="FILE",
            help="Write status and counters for Prometheus' textfile collector (.prom).",
        ),
    ] = None,
    drain_lines: Annotated[
        bool,
        typer.Option(
            "--drain-lines",
            help="Print only the live command for the scheduler; with --json as a list of "
            "arguments.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Print one line on this node's health: for prologs, epilogs and health checks, beside a job.

    It measures nothing, opens no device and drains nothing. A fault that counters or logs show
    stays until the node is restarted or --forget. Exit status 0 if nothing is wrong, 12 if the
    hardware has a fault, 13 if a setting is wrong or the drivers do not answer, 3 if there is no
    GPU, 4 if an input cannot be read.
    """
    began = time.monotonic()
    if model is None and (fabric or devices):
        raise UsageError(f"--{'fabric' if fabric else 'devices'} requires a node model.")
    file = file or look_begun.default_file()
    if forget:
        file.unlink(missing_ok=True)
    begun = look_begun.Begun(programs, file, root)
    # The drivers answer meanwhile.
    from fabricheck.judge.verdict import health
    from fabricheck.node import load
    from fabricheck.node.fabric import load_fabric
    from fabricheck.report import look as lines
    from fabricheck.report import metrics, scheduler
    from fabricheck.tools import look
    from fabricheck.tools.runner import TimeLimit

    expected = None if model is None else load(model, devices=devices)
    network = None if fabric is None else load_fabric(fabric)
    try:
        this = look.look(begun, expected, network, root)
    except TimeLimit as error:
        result = health.unanswered(str(error), time.monotonic() - began)
    else:
        result = health.judge(this, expected, time.monotonic() - began)
        if this.before is None or not result.counts_on:
            _keep(this, file, root, settled=not result.counts_on)
    if prometheus is not None:
        write_whole(prometheus, metrics.of_health(result))
    if drain_lines:
        drains = [result.verdict]
        live = scheduler.live_lines(drains)
        show.result(scheduler.live_commands(drains), live, as_json, wrapped=False)
    else:
        show.result(result.model_dump(mode="json"), [lines.line(result)], as_json, wrapped=False)
    return result.exit_code


def _keep(this: Look, file: Path, root: Path, *, settled: bool) -> None:
    """Write the look for the next one; where that is not possible, the line comes all the same."""
    from fabricheck.tools import look

    try:
        look.write(this, file, root, settled=settled)
    except FabricheckError as error:
        output.say(error)
