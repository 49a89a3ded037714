"""`fabricheck results export` and `pack`: results as a table, as OpenMetrics, as an archive."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import Names, archive_target, say
from fabricheck.core import show
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.whole_files import write_whole
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
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.reading import read


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
    if output is not None:
        to_file(output, rows)
    elif metrics is not None:
        deque(rows, maxlen=0)
    else:
        _to_stdout(rows)
    if metrics is not None:
        write_whole(metrics, buffer.text)
    say(*log.sentences)
    for written in (output, metrics):
        if written is not None:
            show.line(f"Export: {written}")
    if log.problems:
        raise typer.Exit(InvalidInputError.exit_code)


def _to_stdout(rows: Iterable[Cells]) -> None:
    with show.reader_may_stop():
        to_csv(sys.stdout, rows)


@commands.command("results pack")
def pack(
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The archive (.tar.gz); default: results-NODE-TIME.tar.gz."
        ),
    ] = None,
) -> None:
    """Pack all sessions and jobs of the results folder into one archive, to send.

    It has documents, run reports, outputs of checks and node models, and nothing else of the
    folder. The commands results show, verdict, limits calibrate and compare accept it like the
    folder. Exit status 3 if there is no session or the archive cannot be written.
    """
    folder = ResultsFolder.default()
    if not folder.sessions and not any(requested_nodes.jobs_of(folder.path)):
        raise folder.no_session()
    target = archive_target(output, "results", platform.node())
    inside = f"{archive.stem(target)}/{archive.RESULTS}"
    archive.pack(folder.path, target, archive.OF_RESULTS, inside)
    show.line(f"{shlex.quote(os.path.relpath(target))} ({target.stat().st_size / 1e3:.0f} kB)")
