"""`fabricheck beside`: third-party tools and our programs in rounds, and their comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fabricheck.beside import record as rounds
from fabricheck.beside import table
from fabricheck.cli import commands, output
from fabricheck.core import whole_files
from fabricheck.core.text import printable


@commands.command("beside rounds")
def rounds_command(
    folder: Annotated[Path, typer.Argument(help="The folder to record in; new, or empty.")],
    programs: Annotated[Path, typer.Option("--programs", help="Folder of stream, memcpy and p2p.")],
    nvbandwidth: Annotated[
        Path | None,
        typer.Option("--nvbandwidth", help="Path of nvbandwidth 0.8; left out without it."),
    ] = None,
    babelstream: Annotated[
        Path | None,
        typer.Option("--babelstream", help="BabelStream 5 (CUDA, HIP); else left out."),
    ] = None,
    p2p_test: Annotated[
        Path | None,
        typer.Option(
            "--p2p-test", help="Path of CUDA's p2pBandwidthLatencyTest; left out without it."
        ),
    ] = None,
    transferbench: Annotated[
        Path | None,
        typer.Option("--transferbench", help="TransferBench from 1.52 on; else left out."),
    ] = None,
    rocm_bandwidth_test: Annotated[
        Path | None,
        typer.Option(
            "--rocm-bandwidth-test", help="rocm-bandwidth-test of ROCm 5.2 to 6.3; else left out."
        ),
    ] = None,
    number: Annotated[int, typer.Option("--rounds", min=1, help="Number of rounds.")] = 5,
    limit_s: Annotated[
        float,
        typer.Option("--time-limit", min=0.001, help="Time limit of all rounds together in s."),
    ] = 900,
) -> None:
    """Run our programs and third-party benchmarks alternately, and keep all their output.

    A failed launch is recorded and the others go on. The worst failure decides the exit status: 5
    wrong data, 9 a device error, 6 time limit, 3 not supported, 8 a setting of the node, 7 too
    noisy, 4 otherwise; 3 also if the record cannot be written, and 128 + n if signal n ended the
    rounds.
    """
    given = {
        "nvbandwidth": nvbandwidth,
        "babelstream": babelstream,
        "p2p-test": p2p_test,
        "transferbench": transferbench,
        "rocm-bandwidth-test": rocm_bandwidth_test,
    }
    tools = {tool: path for tool, path in given.items() if path is not None}
    try:
        manifest = rounds.record(folder, programs, tools, number, limit_s, output.note)
    except rounds.NotKept as error:
        output.say(*(failure.sentence for failure in error.failures))
        raise
    output.say(*(failure.sentence for failure in manifest.failures))
    raise typer.Exit(rounds.exit_code(manifest))


@commands.command("beside table")
def table_command(
    folders: Annotated[list[Path], typer.Argument(help="Folders of fabricheck beside rounds.")],
    page: Annotated[
        Path | None,
        typer.Option("--page", help="Write the tables between their markers in this page."),
    ] = None,
) -> None:
    """Compare recorded rounds, one table for each folder.

    The verdict compares the ratio of medians with the row's target and judges nothing else: exit
    status 0 also where a target is missed.
    """
    text = table.section(table.read_all(folders))
    if page is None:
        print(printable(text), end="")
        return
    whole_files.rewrite_block(page, {table.BLOCK: f"\n{text}\n"})
    output.note(f"wrote {page}")
