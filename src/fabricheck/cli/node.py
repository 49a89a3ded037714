"""The commands about nodes: ``fabricheck node ...``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands, output
from fabricheck.cli.output import AsJson, Devices, load_part
from fabricheck.core import show
from fabricheck.core.errors import NotFoundError, UsageError
from fabricheck.core.show import listed
from fabricheck.core.vocabulary import EXIT_DIFFERENT
from fabricheck.node import best_subsets, load
from fabricheck.node.platform import platform_json
from fabricheck.node.system import MOST_NODES, system_json
from fabricheck.site import this_machine
from fabricheck.tools.topology import inventory
from fabricheck.tools.topology.comparison import compare
from fabricheck.tools.topology.drafting import write_draft
from fabricheck.tools.topology.recording import Runtime, record
from fabricheck.tools.topology.render import model_json, model_text, report_text
from fabricheck.tools.topology.reported import Reported
from fabricheck.tools.topology.texts import parse_files

Node = Annotated[str, typer.Argument(help="A node model: its name, or a YAML file.")]
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
Programs = Annotated[
    Path | None,
    typer.Option(
        "--programs", help="Folder of the programs; default: build/rocm/bin or build/cuda/bin."
    ),
]


def _report(files: list[Path] | None, programs: Path | None) -> Reported:
    """Parse files, or ask the drivers of this machine if there are none."""
    if files:
        return parse_files(files)
    return inventory.reported(inventory.this_machine(programs))


@commands.command("node show")
def show_command(
    node: Node,
    overlay: Overlay = None,
    devices: Devices = None,
    as_json: AsJson = False,
) -> None:
    """Show a node model: devices, NUMA domains, links, classes, peaks, sources."""
    model = load_part(node, overlay, devices)
    show.result(model_json(model), model_text(model), as_json, wrapped=False)


@commands.command("node parse")
def parse(
    files: Annotated[list[Path], typer.Argument(help="Output files of one node.")],
    as_json: AsJson = False,
) -> None:
    """Show the topology in outputs of inventory, rocm-smi, amd-smi or nvidia-smi."""
    found = parse_files(files)
    show.result(found, report_text(found), as_json, wrapped=False)


@commands.command("node compare")
def compare_command(
    node: Node,
    files: From = None,
    programs: Programs = None,
    overlay: Overlay = None,
    devices: Devices = None,
    as_json: AsJson = False,
) -> None:
    """Compare a node model with the drivers of this machine, or with files.

    Prints one sentence per difference. Exit status 8 if there is one.
    """
    model = load_part(node, overlay, devices)
    report = _report(files, programs)
    outcome = compare(model, report)
    good = f"{report.origin} agrees with {model.name} ({listed(outcome.compared)})."
    text = [difference.sentence for difference in outcome.differences] or [good]
    show.result(outcome, text, as_json, wrapped=False)
    output.note(*(f"note: {note}" for note in outcome.notes))
    if outcome.differences:
        raise typer.Exit(EXIT_DIFFERENT)


@commands.command("node record")
def record_command(
    target: Annotated[Path, typer.Option("--output", help="The result document.")],
    runtime: Annotated[Runtime, typer.Option(help="The runtime of the programs.")],
    programs: Annotated[Path, typer.Option("--programs", help="Folder of the programs.")],
    node: Annotated[
        str | None, typer.Argument(help="A node model: its name, or a YAML file; default: none.")
    ] = None,
    devices: Devices = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", help="Folder of results: earlier sessions of this host count."),
    ] = None,
    note_numa_balancing: Annotated[
        bool,
        typer.Option(
            "--note-numa-balancing",
            help="NUMA balancing is a note, and does not end the run with 8.",
        ),
    ] = False,
    limit_s: Annotated[float, typer.Option("--time-limit", min=0.001, help="In s.")] = 120,
) -> None:
    """Compare this node with a node model and write the differences to a result document (E13).

    The program inventory asks the drivers. Differences are in the document; exit status 0.
    """
    document = record(
        node,
        runtime,
        programs,
        target,
        devices=devices,
        results=results,
        note_numa_balancing=note_numa_balancing,
        limit_s=limit_s,
    )
    output.end_compared(document)


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
    text = write_draft(_report(files, programs), name)
    if folder is None:
        typer.echo(text, nl=False)
    else:
        path = folder / f"{name}.yaml"
        try:
            if path == this_machine.draft():
                folder.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise UsageError(f"{path} already exists.") from None
        except OSError as error:
            raise NotFoundError(f"{path} cannot be written ({error.strerror}).") from None
        typer.echo(f"wrote {path}", err=True)


@commands.command("node platform")
def platform(
    node: Node,
    overlay: Overlay = None,
    nodes: Annotated[
        int, typer.Option(help=f"Nodes of a simulated system: 1 to {MOST_NODES}.")
    ] = 1,
) -> None:
    """Print the platform of a node, or of a system of such nodes, for the sim runtime, which reads
    the file in FABRICHECK_SIMULATED_NODE."""
    model = load(node, overlay)
    typer.echo(platform_json(model) if nodes == 1 else system_json(model, nodes), nl=False)


@commands.command("node best-gpus")
def best_gpus(
    k: Annotated[int, typer.Option("-k", help="Number of devices to choose.")],
    node: Annotated[str | None, typer.Argument(help="A node model; default: this machine.")] = None,
    files: From = None,
    programs: Programs = None,
    devices: Devices = None,
) -> None:
    """Print the best K devices of a node: a model, outputs in files, or this machine.

    To run a command on them: HIP_VISIBLE_DEVICES=$(fabricheck node best-gpus -k K) COMMAND.
    """
    if node is not None and files:
        raise UsageError("A node model and files cannot be combined.")
    if node is None and devices is not None:
        raise UsageError("--devices requires a node model.")
    if node is not None:
        chosen = load_part(node, None, devices).best_subsets(k)[0]
    else:
        report = _report(files, programs)
        peaks = report.direct_peaks_gbs
        if peaks is None:
            raise UsageError(f"The number of links is not reported in {report.origin}.")
        if report.description is None and report.pci is None and report.vendor == "amd":
            typer.echo("note: numbered as by rocm-smi; HIP may number differently", err=True)
        chosen = best_subsets(peaks, k, report.origin)[0]
    typer.echo(",".join(map(str, chosen)))
