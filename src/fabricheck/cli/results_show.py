"""`fabricheck results show`: what was measured."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fabricheck.cli import commands, series_tables
from fabricheck.cli.output import AsJson, Name, OnNodes
from fabricheck.cli.results import choose, end, entries_of, heading
from fabricheck.core import show
from fabricheck.results.entry import Entry


@commands.command("results show")
def show_results(
    what: Name = "latest",
    show_all: Annotated[
        bool, typer.Option("--all", help="Show every series; scans are not summarised.")
    ] = False,
    matrix: Annotated[
        bool,
        typer.Option(
            "--matrix", help="Show between which devices each rate was: from rows to columns."
        ),
    ] = False,
    on: OnNodes = None,
    as_json: AsJson = False,
) -> int:
    """Show what was measured.

    A row has all devices or pairs of a kind of transfer; --matrix has each pair by itself.
    """
    results = choose(what, on)
    plain = (
        Entry(row.case, None, None, None)
        for row in results.checks
        if row.entry is None and row.case is not None and row.case.metrics and not row.case.skipped
    )
    entries = [*entries_of(results), *plain]
    text = (
        series_tables.matrices(heading(results), results.checks)
        if matrix
        else series_tables.blocks(heading(results), results.checks, show_all)
    )
    result = {"title": "\n".join(heading(results)), "checks": [_entry(entry) for entry in entries]}
    show.result(result, text, as_json)
    nothing = f"There is no result document in {results.title}."
    return end(results, entries, None if entries else nothing)


def _entry(entry: Entry) -> dict[str, Any]:
    case = entry.case
    return {
        "case": case and case.name,
        "where": case and case.where,
        "node": entry.node,
        "result": case and case.result,
        "reason": case and case.reason,
        "earlier": [
            {"result": earlier.result, "reason": earlier.reason, "path": earlier.document_path}
            for earlier in (case.earlier if case else ())
        ],
        "metrics": {name: recorded._asdict() for name, recorded in case.metrics.items()}
        if case
        else {},
        "failed_attempts": case and case.failed_attempts,
        "path": entry.path,
        "problem": " ".join(map(str, entry.problems)) or None,
        "document": entry.document,
    }
