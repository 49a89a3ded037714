"""The command ``fabricheck papers fidelity``: a simulated node compared with published values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson
from fabricheck.core import show
from fabricheck.core.whole_files import write_whole
from fabricheck.node import load
from fabricheck.papers.fidelity import compare, render


@commands.command("papers fidelity")
def fidelity(
    node: Annotated[str, typer.Argument(help="A node model: its name, or a YAML file.")],
    programs: Annotated[
        Path | None,
        typer.Option(
            "--programs", help="Folder of the simulated programs; default: build/sim/bin."
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--output", help="Write the documentation page to this file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate a node and compare it with published values of real nodes.

    Runs the simulated programs. Nothing is measured: every printed number is either published or
    simulated.
    """
    found = compare(load(node), programs)
    if page is not None:
        write_whole(page, render.page(found))
        typer.echo(f"wrote {page}", err=True)
    if as_json or page is None:
        text = [render.text(found).rstrip("\n")]
        show.result(render.as_json(found), text, as_json, wrapped=False)
