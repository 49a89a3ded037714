"""`fabricheck results export` and `pack`: results as a table, as OpenMetrics, as an archive."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import tempfile
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import Names, archive_target, say
from fabricheck.core import show
from fabricheck.core.errors import InvalidInputError, UsageError
from fabricheck.core.whole_files import write_whole
from fabricheck.judge.verdict import history
from fabricheck.report.metrics import Worst, of_nodes, watch
from fabricheck.report.vendor import files as vendor_files
from fabricheck.results import archive, requested_nodes
from fabricheck.results.export import (
    Cells,
    ExportLog,
    OpenMetricsBuffer,
    require_format,
    stream,
    to_csv,
    to_file,
)
from fabricheck.results.folder import ResultsFolder, default_path
from fabricheck.results.reading import read
from fabricheck.tools.parts import parts
from fabricheck.tools.topology.host import scheduler_node


@commands.command("results export")
def export(
    what: Names = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A .csv or .parquet file; default: CSV to standard output."
        ),
    ] = None,
    metrics: Annotated[
        Path | None,
        typer.Option("--openmetrics", metavar="FILE", help="Write the metrics as OpenMetrics."),
    ] = None,
    prometheus: Annotated[
        Path | None,
        typer.Option(
            "--prometheus",
            metavar="FILE",
            help="Write each node's status, ages and worst metric for Prometheus' textfile "
            "collector (.prom); by the verdicts in the results folder.",
        ),
    ] = None,
    samples: Annotated[bool, typer.Option("--samples", help="Add a row for each sample.")] = False,
    all_sessions: Annotated[
        bool, typer.Option("--all", help="All sessions of results folders, not only the latest.")
    ] = False,
) -> None:
    """Write results as one table: a row is one value, a column one variable (docs/result.md).

    Exit status 4 if the table was written but lacks something that cannot be read.
    """
    if output is not None:
        require_format(output)
    log = ExportLog()
    rows = stream(read(what or [], all_sessions), log, samples)
    buffer = OpenMetricsBuffer()
    if metrics is not None:
        rows = buffer.watch(rows)
    worst: Worst = {}
    if prometheus is not None:
        rows = watch(rows, worst)
    if output is not None:
        to_file(output, rows)
    elif metrics is not None or prometheus is not None:
        deque(rows, maxlen=0)
    else:
        _to_stdout(rows)
    if metrics is not None:
        write_whole(metrics, buffer.text)
    if prometheus is not None:
        verdicts = history.read(default_path())
        write_whole(prometheus, of_nodes(verdicts.nodes, worst))
        log.problems += verdicts.problems
    say(*log.sentences)
    for written in (output, metrics, prometheus):
        if written is not None:
            show.line(f"Export: {written}")
    if log.problems:
        raise typer.Exit(InvalidInputError.exit_code)


def _to_stdout(rows: Iterable[Cells]) -> None:
    with show.reader_may_stop():
        to_csv(sys.stdout, rows)


@commands.command("results pack")
def pack(
    what: Names = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The archive (.tar.gz); default: results-NODE-TIME.tar.gz."
        ),
    ] = None,
    vendor: Annotated[
        str | None,
        typer.Option(
            "--vendor",
            metavar="NODE",
            help="Pack instead what a vendor needs of a node: verdict, ticket, parts, documents "
            "without names of users and paths.",
        ),
    ] = None,
) -> None:
    """Pack all sessions and jobs of the results folder into one archive, to send.

    It has documents, run reports, outputs of checks and node models, and nothing else of the
    folder. The commands results show, verdict, limits calibrate and compare accept it like the
    folder. Exit status 3 if there is no session or the archive cannot be written.
    """
    if vendor is not None:
        _for_vendor(what or [], vendor, archive_target(output, "vendor", vendor))
        return
    if what:
        raise UsageError("Names of results require --vendor: all sessions are packed otherwise.")
    folder = ResultsFolder.default()
    if not folder.sessions and not any(requested_nodes.jobs_of(folder.path)):
        raise folder.no_session()
    target = archive_target(output, "results", platform.node())
    inside = f"{archive.stem(target)}/{archive.RESULTS}"
    archive.pack(folder.path, target, archive.OF_RESULTS, inside)
    show.line(f"{shlex.quote(os.path.relpath(target))} ({target.stat().st_size / 1e3:.0f} kB)")


def _for_vendor(what: list[str], node: str, target: Path) -> None:
    """Pack what a vendor needs of a node; serial numbers only where this machine is that node."""
    results = read(what)
    if any(observed.on for observed in results.observed):
        results = results.only(on=[node])
    documents = [entry.document for entry in results.entries if entry.document is not None]
    devices = [device for document in documents for device in document["devices"]]
    addresses = {device["pci_address"] for device in devices if device["pci_address"] is not None}
    here = node in (scheduler_node(), platform.node())
    texts = vendor_files(results, node, parts(sorted(addresses)) if here else None)
    with tempfile.TemporaryDirectory(prefix="fabricheck-") as folder:
        for name, text in texts.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        archive.pack(Path(folder), target, ("*", "documents/*"), archive.stem(target))
    if not here:
        say(f"Serial numbers and slots are missing: this machine is not {node}.")
    show.line(f"{shlex.quote(os.path.relpath(target))} ({target.stat().st_size / 1e3:.0f} kB)")
