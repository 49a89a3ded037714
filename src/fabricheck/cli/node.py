"""The commands that read a node: ``fabricheck node show``, ``compare`` and ``best-gpus``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands, output
from fabricheck.cli.output import AsJson, Devices, Programs
from fabricheck.core import show
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.core.show import listed
from fabricheck.core.vocabulary import EXIT_DIFFERENT
from fabricheck.node import NodeModel, load
from fabricheck.tools.topology import inventory
from fabricheck.tools.topology.comparison import compare
from fabricheck.tools.topology.render import model_json, model_text, report_text
from fabricheck.tools.topology.reported import Reported
from fabricheck.tools.topology.texts import parse_files

_NodeOrMachine = Annotated[
    str | None,
    typer.Argument(help="A node model: its name, or a YAML file; default: this machine."),
]
Overlay = Annotated[
    Path | None, typer.Option("--overlay", help="An overlay: a YAML file that changes the node.")
]
From = Annotated[
    list[Path] | None,
    typer.Option(
        "--from",
        help="Output file of inventory, rocm-smi, amd-smi or nvidia-smi; may be repeated.",
    ),
]


def reported(files: list[Path] | None, programs: Path | None) -> Reported:
    """Return what outputs in files tell of a node, else the drivers of this machine."""
    if files:
        return parse_files(files)
    return inventory.reported(inventory.this_machine(programs))


def _described(
    node: str | None,
    files: list[Path] | None,
    programs: Path | None,
    overlay: Path | None,
    devices: int | None,
) -> NodeModel | Reported:
    """Return the named model, else what is told of a node."""
    if node is not None and files:
        raise UsageError("A node model and files cannot be combined.")
    if node is not None:
        return load(node, overlay, devices)
    if overlay is not None or devices is not None:
        raise UsageError(f"--{'overlay' if overlay else 'devices'} requires a node model.")
    try:
        return reported(files, programs)
    except NotFoundError as error:
        if files:
            raise
        raise NotFoundError(
            f"{error} Without GPUs, name a node model, such as mi250x, or outputs with --from."
        ) from None


@commands.command("node show")
def show_command(
    node: _NodeOrMachine = None,
    files: From = None,
    programs: Programs = None,
    overlay: Overlay = None,
    devices: Devices = None,
    as_json: AsJson = False,
) -> None:
    """Show a node: a model, or what outputs in files or the drivers of this machine tell of one.

    Of a model: devices, NUMA domains, links, classes, peaks, sources.
    """
    described = _described(node, files, programs, overlay, devices)
    if isinstance(described, Reported):
        show.result(described, report_text(described), as_json, wrapped=False)
    else:
        show.result(model_json(described), model_text(described), as_json, wrapped=False)


@commands.command("node compare")
def compare_command(
    node: Annotated[str, typer.Argument(help="A node model: its name, or a YAML file.")],
    files: From = None,
    programs: Programs = None,
    overlay: Overlay = None,
    devices: Devices = None,
    as_json: AsJson = False,
) -> None:
    """Compare a node model with the drivers of this machine, or with files.

    Prints one sentence per difference. Exit status 8 if there is one.
    """
    model = load(node, overlay, devices)
    report = reported(files, programs)
    outcome = compare(model, report)
    good = f"{report.origin} agrees with {model.name} ({listed(outcome.compared)})."
    text = [difference.sentence for difference in outcome.differences] or [good]
    show.result(outcome, text, as_json, wrapped=False)
    output.note(*(f"note: {note}" for note in outcome.notes))
    if outcome.differences:
        raise typer.Exit(EXIT_DIFFERENT)


@commands.command("node best-gpus")
def best_gpus(
    k: Annotated[int, typer.Option("-k", help="Number of devices to choose.")],
    node: _NodeOrMachine = None,
    files: From = None,
    programs: Programs = None,
    devices: Devices = None,
) -> None:
    """Print the best K devices of a node: a model, outputs in files, or this machine.

    To run a command on them: HIP_VISIBLE_DEVICES=$(fabricheck node best-gpus -k K) COMMAND.
    """
    described = _described(node, files, programs, None, devices)
    if isinstance(described, Reported) and described.numbered_by_tool:
        output.note("note: numbered as by rocm-smi; HIP may number differently")
    typer.echo(",".join(map(str, described.best_subsets(k)[0])))
