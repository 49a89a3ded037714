"""`fabricheck results record`: the third-party benchmarks of a check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands, output
from fabricheck.core.models import read_model
from fabricheck.tools.benchmarks import Plan
from fabricheck.tools.recording import record


@commands.command("results record")
def run_command(
    plan: Annotated[Path, typer.Argument(help="The plan of launches, as a check writes it.")],
    target: Annotated[Path, typer.Option("--output", help="The result document.")],
    limit_s: Annotated[float, typer.Option("--time-limit", min=0.001, help="In s.")] = 600,
) -> None:
    """Run each launch of a plan, and write a result document of the tool's output.

    The outputs are kept beside the document. Exit status as of the measuring programs: 3 not
    supported, 4 a launch failed or its output is unusable, 5 wrong data, 6 time limit.
    """
    output.end_by(record(read_model(plan, Plan), target, limit_s, output.note))
