"""`fabricheck results export`: results as a table, as OpenMetrics and for Prometheus."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import Names, say
from fabricheck.core import show
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.whole_files import write_whole
from fabricheck.judge.verdict import history
from fabricheck.report.metrics import Worst, of_nodes, watch
from fabricheck.results.export import (
    Cells,
    ExportLog,
    OpenMetricsBuffer,
    require_format,
    stream,
    to_csv,
    to_file,
)
from fabricheck.results.folder import default_path
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
        if not verdicts.nodes:
            say(f"No node is in {prometheus}: {default_path()} has no verdict: fabricheck verdict.")
    say(*log.sentences)
    for written in (output, metrics, prometheus):
        if written is not None:
            show.line(f"Export: {written}")
    if log.problems:
        raise typer.Exit(InvalidInputError.exit_code)


def _to_stdout(rows: Iterable[Cells]) -> None:
    with show.reader_may_stop():
        to_csv(sys.stdout, rows)
