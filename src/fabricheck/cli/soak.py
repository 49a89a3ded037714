"""`fabricheck soak`: a node under load for hours, in rounds."""

from __future__ import annotations

import importlib
import os
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabricheck.cli import commands, drift, every_node, verdict
from fabricheck.cli.output import Notify
from fabricheck.core import show
from fabricheck.core.errors import UsageError
from fabricheck.core.vocabulary import ENV_RESULTS
from fabricheck.results import marking, soaks
from fabricheck.site import sets

if TYPE_CHECKING:
    from fabricheck.results.reading import Results
    from fabricheck.run.soak import Needs


@commands.command("soak")
def soak(
    hours: Annotated[float, typer.Option("--hours", min=0.001, help="Hours in all.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- REFRAME ARGUMENTS",
            help="Arguments of each session, such as --system=local:gpu.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Of the soak; one that is there goes on.")
    ] = "soak",
    round_minutes: Annotated[
        float, typer.Option("--round-minutes", min=0.01, help="Minutes of load in a round.")
    ] = 10.0,
    quiet_every: Annotated[
        int,
        typer.Option(
            "--quiet-every", min=0, help="Rounds between quiet sessions; 0: one at the start."
        ),
    ] = 36,
    quiet_set: Annotated[
        str, typer.Option("--quiet-set", metavar="SET", help="Of a quiet session; none: without.")
    ] = "node",
    goes_on: Annotated[
        bool, typer.Option("--keep-going", help="Go on where hardware is at fault by evidence.")
    ] = False,
    notify: Notify = None,
) -> int:
    """Measure this node under load in rounds, each a session, until some hours have passed.

    Started again with the same name it counts the rounds that are there. Exit status as for
    `fabricheck drift`, and 128 plus its number if a signal ended it.
    """
    # Without ReFrame, which each session needs, the sentence of a missing package is shown.
    importlib.import_module("reframe")
    from fabricheck.judge.drift import judging
    from fabricheck.rfm import host
    from fabricheck.run import soak as running

    if quiet_set != "none":
        sets.require(quiet_set)
    if not running.is_name(name):
        raise UsageError(
            f"{name!r} names no soak: write a letter, then letters, digits and dashes."
        )
    results = host.results_folder(Path("results").absolute())
    os.environ[ENV_RESULTS] = str(results)
    os.environ.pop(marking.ENV_SESSION, None)
    plan = soaks.Plan(
        hours=hours,
        round_minutes=round_minutes,
        quiet_every=quiet_every,
        quiet_set=None if quiet_set == "none" else quiet_set,
        arguments=tuple(arguments or ()),
    )
    begun = running.begun(results, name, plan)
    needs = running.needs(results, begun)
    until = running.end_of_allocation(os.environ)
    _require(needs, until)
    show.line(
        f"Soak {name}: {begun.hours:.2f} of {hours:g} h are there; rounds of {round_minutes:g} min "
        f"until {needs.ends:%Y-%m-%d %H:%M}, at most {needs.bytes / 1e6:.0f} MB in {results}"
    )
    loop = running.Loop(
        begun, results, every_node.reframe_command(), partial(_findings, notify=notify), show.line,
        goes_on=goes_on, until=until,
    )  # fmt: skip
    loop.run()
    code = drift.shown(judging.judge_all([loop.soak]), None, as_json=False)
    if loop.signal is not None:
        raise typer.Exit(128 + loop.signal)
    return code


def _require(needs: Needs, until: datetime | None) -> None:
    """Refuse a soak that goes beyond the allocation or the disk.

    :raises UsageError: for either.
    """
    if until is not None and needs.ends > until:
        raise UsageError(
            f"The allocation ends at {until:%Y-%m-%d %H:%M}, and the soak would at "
            f"{needs.ends:%Y-%m-%d %H:%M}: ask for fewer --hours; a later job goes on with it."
        )
    if needs.bytes > needs.free_bytes:
        raise UsageError(
            f"The soak takes up to {needs.bytes / 1e6:.0f} MB, and the disk has "
            f"{needs.free_bytes / 1e6:.0f} MB."
        )


def _findings(results: Results, notify: str | None = None) -> list[soaks.RoundFinding]:
    """Return what the verdict on a session has against its node, and tell a changed status."""
    from fabricheck.judge.drift.judging import of_verdicts
    from fabricheck.judge.verdict import evidence, judging

    verdicts = judging.judge(results)
    if notify is not None:
        verdict.tell(notify, evidence.session_verdict(results.name, verdicts))
    return list(of_verdicts(verdicts))
