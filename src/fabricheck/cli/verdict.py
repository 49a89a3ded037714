"""`fabricheck verdict`: one word for each node of a session, and what to do with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fabricheck import nodelists
from fabricheck.cli import output
from fabricheck.errors import GOOD
from fabricheck.verdict import documents, judging, names, sources
from fabricheck.verdict.model import Row, Verdict
from fabricheck.verdict.rules import FAILED, WORDS

#: Up to so many nodes that passed have a row of their own.
MOST_ROWS = 8

#: Reasons of one node that are printed; its document has all.
MOST_REASONS = 10


def verdict(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SESSION|JOB|FOLDER...]",
            help="A session's id (the latest by default), the name of one that was killed, the "
            "number of a job over many nodes, or results folders, which are taken together.",
        ),
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Nodes that must be there, as node[1-4]; INCOMPLETE without."
        ),
    ] = None,
    set_tag: Annotated[
        str | None,
        typer.Option(
            "--set",
            metavar="TAG",
            help="The set that must be whole (smoke, node, full), where the sessions do not say.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--output", metavar="DIR", help="The folder to write to."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print verdict.json instead of a table.")
    ] = False,
) -> None:
    """Say of each node PASS, PERF-FAIL, HW-FAIL, DATA-FAIL, UNSTABLE or INCOMPLETE, and why.

    Writes a document for each node and one of all. Lines for scontrol are printed, never run. Ends
    with 12 when a node failed, with 13 when none failed and one is UNSTABLE or INCOMPLETE.
    """
    expected = nodelists.unfolded(nodes) if nodes is not None else []
    gathered = sources.gather(what or ["latest"])
    verdicts = judging.judge(gathered, expected, set_tag)
    total = documents.whole(gathered.name, verdicts)
    written = documents.write(folder or gathered.home, verdicts, total)
    if as_json:
        output.write_json(documents.as_json(total))
    else:
        _show(total)
        typer.echo(f"Verdict: {written}")
    if total.exit_code != GOOD:
        raise typer.Exit(total.exit_code)


def _show(total: Verdict) -> None:
    console = output.console()
    console.print(output.plain(f"Verdict on {total.of}: {_counts(total)}"))
    passed = [row for row in total.nodes if row.word == "PASS"]
    folded = [row for row in passed if not row.simulated] if len(passed) > MOST_ROWS else []
    table = output.table(
        "Node", "Word", "Set", "Checks", "Time", "First reason", right=("Checks", "Time")
    )
    for row in total.nodes:
        if row in folded:
            continue
        table.add_row(*map(output.plain, _cells(row)))
    if table.row_count:
        console.print(table)
    if folded:
        console.print(
            output.plain(f"PASS ({len(folded)}): {nodelists.folded(r.node for r in folded)}")
        )
    for row in total.nodes:
        _show_reasons(row)
    _show_lists(total.nodes)


def _counts(total: Verdict) -> str:
    told = [f"{number} {word}" for word, number in total.counts.items() if number]
    return ", ".join(told) or "no node"


def _name(row: Row) -> str:
    return f"{row.node} (simulated {row.simulated})" if row.simulated else row.node


def _cells(row: Row) -> tuple[str, ...]:
    ran = row.passed + row.failed
    less = ((row.skipped, "skipped"), (row.missing, "missing"))
    more = "".join(f", {number} {what}" for number, what in less if number)
    time = "-" if row.duration_s is None else f"{row.duration_s:.0f} s"
    first = row.reasons[0].sentence if row.reasons else "; ".join(row.reservations[:1])
    return _name(row), row.word, row.set or "-", f"{row.passed}/{ran}{more}", time, first or ""


def _show_reasons(row: Row) -> None:
    if len(row.reasons) < 2 and len(row.reservations) < 2:
        return
    typer.echo(output.plain(f"{_name(row)}: {row.word}").plain)
    for reason in row.reasons[:MOST_REASONS]:
        typer.echo(output.plain(f"  {reason.word} ({reason.rule}): {reason.sentence}").plain)
    if len(row.reasons) > MOST_REASONS:
        typer.echo(f"  and {len(row.reasons) - MOST_REASONS} more in {row.file}")
    if row.word == "PASS":
        for said in row.reservations:
            typer.echo(output.plain(f"  {said}").plain)


def _show_lists(rows: Sequence[Row]) -> None:
    for word in WORDS:
        there = [row.node for row in rows if row.word == word and row.kind != "simulated"]
        simulated = [row.node for row in rows if row.word == word and row.kind == "simulated"]
        for which, who in (("", there), (" simulated", simulated)):
            if who:
                typer.echo(output.plain(f"{word}{which}: {nodelists.folded(who)}").plain)
    again = [row.node for row in rows if row.word not in FAILED and row.word != "PASS"]
    if again:
        typer.echo(output.plain(f"Run again: {nodelists.folded(again)}").plain)
    for line in names.drain_lines(rows):
        typer.echo(line)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("verdict")(verdict)
