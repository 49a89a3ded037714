"""`fabricheck node health`: whether this node is well, by a passive look in less than a second."""

from __future__ import annotations

import platform
import time
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands, output
from fabricheck.cli.nics import FabricName
from fabricheck.cli.node import Programs
from fabricheck.cli.output import AsJson, Devices
from fabricheck.core import show
from fabricheck.core.errors import FabricheckError, UsageError
from fabricheck.core.show import cut
from fabricheck.core.text import count
from fabricheck.core.whole_files import write_whole
from fabricheck.judge.verdict import health
from fabricheck.node import load
from fabricheck.node.fabric import load_fabric
from fabricheck.report import metrics, scheduler
from fabricheck.tools import look
from fabricheck.tools.runner import TimeLimit
from fabricheck.tools.topology.host import scheduler_node

#: The longest sentence in the line; the JSON has all of it.
LONGEST = 300


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
    expected = None if model is None else load(model, devices=devices)
    network = None if fabric is None else load_fabric(fabric)
    file = file or look.default_file()
    if forget:
        file.unlink(missing_ok=True)
    try:
        this = look.look(expected, network, programs, file, root)
    except TimeLimit as error:
        node = scheduler_node() or platform.node()
        result = health.unanswered(node, str(error), time.monotonic() - began)
    else:
        result = health.judge(this, expected, time.monotonic() - began)
        if this.before is None or not result.counts_on:
            _keep(this, file, root, settled=not result.counts_on)
    if prometheus is not None:
        write_whole(prometheus, metrics.of_health(result))
    if drain_lines:
        drains = [result.verdict]
        lines = scheduler.live_lines(drains)
        show.result(scheduler.live_commands(drains), lines, as_json, wrapped=False)
    else:
        show.result(result.model_dump(mode="json"), [_line(result)], as_json, wrapped=False)
    return result.exit_code


def _keep(this: look.Look, file: Path, root: Path, *, settled: bool) -> None:
    """Write the look for the next one; where that is not possible, the line comes all the same."""
    try:
        look.write(this, file, root, settled=settled)
    except FabricheckError as error:
        output.say(error)


def _line(result: health.Health) -> str:
    """Return the health of a node in one line."""
    verdict = result.verdict
    title = f"{verdict.node}, simulated" if verdict.simulated is not None else verdict.node
    if not verdict.reasons:
        since = "" if result.since is None else f" since {result.since:%Y-%m-%d %H:%M:%S} UTC"
        seen = show.listed(result.compared) or "nothing"
        notes = [cut(note.rstrip("."), LONGEST) for note in result.notes]
        more = f"; {count(len(notes), 'note')}: {show.listed(notes, 2)}" if notes else ""
        return f"{title}: no fault of {seen}{since}{more}"
    first, number = verdict.reasons[0], len(verdict.reasons)
    component = f", {first.component}" if first.component else ""
    more = f" (1 of {number} findings)" if number > 1 else ""
    sentence = cut(first.sentence, LONGEST)
    return (
        f"{title}: {verdict.status} ({first.rule}{component}): {sentence}{more} {first.next_step}"
    )
