"""The command that runs another tool and tells what it found: ``fabricheck tools run``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.errors import FabricheckError
from fabricheck.tools import plan as plans
from fabricheck.tools.recording import record

tools_app = typer.Typer(
    name="tools", help="Run OSU, rccl-tests or nccl-tests as a check does.", no_args_is_help=True
)


@tools_app.callback()
def _tools() -> None:
    """Run OSU, rccl-tests or nccl-tests as a check does."""


@tools_app.command("run")
def run_command(
    plan: Annotated[Path, typer.Argument(help="The launches, as a check writes them.")],
    output: Annotated[Path, typer.Option("--output", help="The result document.")],
    limit_s: Annotated[float, typer.Option("--time-limit", min=0.001, help="In s.")] = 600,
) -> None:
    """Run each launch of a plan, and write a result document of what the tool printed.

    The outputs are kept beside the document. Exit codes are those of the measuring programs:
    3 not supported, 4 a launch failed or can not be believed, 5 wrong data, 6 time limit.
    """
    found = record(plans.read(plan), output, limit_s, lambda said: typer.echo(said, err=True))
    outcome = found["outcome"]
    if outcome["message"] is not None:
        typer.echo(f"fabricheck: {outcome['message']}", err=True)
        raise typer.Exit(outcome["exit_code"] or FabricheckError.exit_code)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.add_typer(tools_app)
