"""`fabricheck verdict`: the status of each node of a session, and the commands for a scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands, output
from fabricheck.cli.output import AsJson, Names, Notify
from fabricheck.core import nodelists, show
from fabricheck.core.errors import FabricheckError
from fabricheck.judge.verdict import evidence, judging, model
from fabricheck.judge.verdict.model import Verdict
from fabricheck.report import notices, scheduler, verdict_lines
from fabricheck.results import marks, reading
from fabricheck.results.folder import default_path
from fabricheck.site import sets


@commands.command("verdict")
def verdict(
    what: Names = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Nodes that must have results, such as node[1-4]; one without is INCOMPLETE.",
        ),
    ] = None,
    set_tag: Annotated[
        str | None,
        typer.Option(
            "--set",
            metavar="TAG",
            help="The set that must be complete (smoke, node, full, network), where the sessions "
            "do not record it.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--output", metavar="DIR", help="The folder to write to."),
    ] = None,
    drain_lines: Annotated[
        bool,
        typer.Option(
            "--drain-lines",
            help="Print only the live commands for the scheduler; with --json as lists of "
            "arguments.",
        ),
    ] = False,
    notify: Notify = None,
    as_json: AsJson = False,
) -> int:
    """Judge each node PASS, PERF-FAIL, HW-FAIL, DATA-FAIL, UNSTABLE or INCOMPLETE, with reasons.

    Writes a document for each node and one of all. Commands for scontrol are printed, never run.
    Exit status 12 if a node or a network failed, 13 if none failed and one is UNSTABLE or
    INCOMPLETE.
    """
    if set_tag is not None:
        sets.require(set_tag)
    expected = nodelists.unfolded(nodes) if nodes is not None else []
    results = reading.read(what or ())
    if not what:
        marks.require_room(default_path())
    verdicts = judging.judge(results, expected, set_tag)
    total = evidence.session_verdict(results.name, verdicts)
    if folder is None:
        written = model.write_new(model.folder(results), verdicts, total)
    else:
        written = model.write(folder, verdicts, total)
    if drain_lines:
        commands_of_nodes = scheduler.live_commands(total.nodes)
        lines = scheduler.live_lines(total.nodes)
        show.result(commands_of_nodes, lines, as_json, wrapped=False)
    else:
        text = verdict_lines.text(total, judging.began(results), written)
        show.result(model.as_json(total), text, as_json, wrapped=False)
    if notify is not None:
        tell(notify, total)
    return total.exit_code


def tell(command: str, total: Verdict) -> None:
    """Tell what changed; a command that fails changes no exit code, and is tried again."""
    try:
        changes = notices.notify(command, total, default_path())
    except FabricheckError as error:
        output.say(error)
        return
    if changes:
        names = nodelists.folded(change.node for change in changes)
        output.note(f"note: notice on {names} by {command}")
