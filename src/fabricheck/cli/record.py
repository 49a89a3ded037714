"""The commands by which checks write a document: ``node``, ``network`` and ``results record``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands, output
from fabricheck.cli.nics import Model
from fabricheck.cli.output import Devices, FabricName
from fabricheck.core.models import read_model
from fabricheck.core.vocabulary import Runtime
from fabricheck.tools import nic_recording, recording
from fabricheck.tools.benchmarks import Plan
from fabricheck.tools.topology import recording as topology

_Target = Annotated[Path, typer.Option("--output", help="The result document.")]
_Limit = Annotated[float, typer.Option("--time-limit", min=0.001, help="In s.")]


@commands.command("node record")
def of_topology(
    target: _Target,
    runtime: Annotated[topology.Runtime, typer.Option(help="The runtime of the programs.")],
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
    limit_s: _Limit = 120,
) -> None:
    """Compare this node with a node model and write the differences to a result document (E13).

    The program inventory asks the drivers. Differences are in the document; exit status 0.
    """
    document = topology.record(
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


@commands.command("network record")
def of_nics(
    model: Model,
    target: _Target,
    fabric: FabricName = None,
    runtime: Annotated[
        Runtime, typer.Option(help="The runtime that this node's programs were built for.")
    ] = "host",
    devices: Devices = None,
    tool: Annotated[
        str | None,
        typer.Option(
            "--loopback",
            help="Run this on each NIC: cxi_gpu_loopback_bw or ib_write_bw, or its path.",
        ),
    ] = None,
    limit_s: _Limit = 120,
) -> None:
    """Compare this node's NICs with a node model and write a result document (E16).

    It judges nothing: differences are in the document, and the exit code is 0.
    """
    document = nic_recording.record(
        model, runtime, target, fabric=fabric, devices=devices, tool=tool, limit_s=limit_s
    )
    output.end_compared(document)


@commands.command("results record")
def of_benchmarks(
    plan: Annotated[Path, typer.Argument(help="The plan of launches, as a check writes it.")],
    target: _Target,
    limit_s: _Limit = 600,
) -> None:
    """Run each launch of a plan, and write a result document of the tool's output.

    The outputs are kept beside the document. Exit status as for the measuring programs: 3 not
    supported, 4 a launch failed or its output is unusable, 5 wrong data, 6 time limit.
    """
    output.end_by(recording.record(read_model(plan, Plan), target, limit_s, output.note))
