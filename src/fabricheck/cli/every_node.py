"""`fabricheck every-node`: one job over many nodes, each measured for itself."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands, verdict
from fabricheck.core.errors import NotFoundError, UsageError

#: What is measured where nothing is said.
CHOSEN = ("-t", "smoke")

SETTINGS = "RFM_CONFIG_FILES"


@commands.command("every-node")
def every_node(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- REFRAME ARGUMENTS",
            help="What each session is given beside -r; by default -t smoke.",
            show_default=False,
        ),
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option("--nodes", metavar="LIST", help="Of the allocation, as node[1-4,7]; all."),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes", min=0.001, help="The most a session may take; what the job has left."
        ),
    ] = None,
    at_once: Annotated[
        int,
        typer.Option(
            "--at-once", min=1, help="So many sessions read their files from a file system at once."
        ),
    ] = 32,
) -> None:
    """Run a session on each node of the allocation, all at the same time, each for itself.

    Inside sbatch or salloc, with --nodes=N --exclusive. Ends as `fabricheck verdict` does: with 12
    when a node failed, 13 when one is unstable or incomplete; and with 128 and its number when a
    signal ended the run.
    """
    from fabricheck.rfm import host
    from fabricheck.run.every_node import allocation, driver

    found = allocation.around(nodes)
    reframe = shutil.which("reframe")
    if reframe is None:
        raise NotFoundError("There is no command reframe on the PATH: source env.sh first.")
    if not os.environ.get(SETTINGS):
        raise UsageError(f"{SETTINGS} is not set, so ReFrame has no checks: source env.sh first.")
    results = host.results_folder(default=Path("results").absolute())
    chosen = tuple(arguments or CHOSEN)
    request = driver.Request((reframe, "--nocolor", "-r", *chosen), chosen, minutes, at_once)
    run = driver.Driver(request, found, results, typer.echo)
    typer.echo(
        f"{len(found.nodes)} nodes of job {found.job}, each by `reframe -r {shlex.join(chosen)}`; "
        f"results in {run.folder}"
    )
    number = run.run()
    if number is not None:
        raise typer.Exit(128 + number)
    verdict.verdict([str(run.folder)])
