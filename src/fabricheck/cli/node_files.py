"""The commands that write a node: ``fabricheck node draft`` and ``node platform``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands, output
from fabricheck.cli.node import From, Overlay, reported
from fabricheck.cli.output import Programs
from fabricheck.node import load
from fabricheck.node.system import MOST_NODES, platform_json
from fabricheck.site import this_machine
from fabricheck.tools.topology import drafting
from fabricheck.tools.topology.drafting import drafted, write_draft


@commands.command("node draft")
def draft(
    name: Annotated[
        str | None,
        typer.Argument(
            help="The name of the new node model; default: this host's, in the results folder."
        ),
    ] = None,
    files: From = None,
    programs: Programs = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--output", help="Write NAME.yaml into this folder; default: standard output."
        ),
    ] = None,
) -> None:
    """Draft a node model from the drivers of this machine, or from files.

    What they do not tell is unknown, and not judged. Without a name it is that of this machine,
    which 'reframe --system=local:gpu' then measures.
    """
    if name is None:
        name, folder = this_machine.draft().stem, folder or this_machine.draft().parent
    report = reported(files, programs)
    text = drafted(report, name)
    output.note(*(f"note: {note}" for note in drafting.notes(report)))
    if folder is None:
        typer.echo(text, nl=False)
    else:
        output.note(f"wrote {write_draft(text, folder / f'{name}.yaml')}")


@commands.command("node platform")
def platform(
    node: Annotated[str, typer.Argument(help="A node model: its name, or a YAML file.")],
    overlay: Overlay = None,
    nodes: Annotated[
        int, typer.Option(help=f"Nodes of a simulated system: 1 to {MOST_NODES}.")
    ] = 1,
) -> None:
    """Print the platform of a node, or of a system of such nodes, for the sim runtime, which reads
    the file in FABRICHECK_SIMULATED_NODE."""
    typer.echo(platform_json(load(node, overlay), nodes), nl=False)
