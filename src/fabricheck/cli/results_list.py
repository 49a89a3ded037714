"""`fabricheck results list`: the sessions of the results folder, and its jobs over many nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from fabricheck.cli import commands, output
from fabricheck.cli.output import AsJson
from fabricheck.core import show
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.nodelists import folded
from fabricheck.core.text import count
from fabricheck.results import requested_nodes
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.session import Session

#: The latest sessions and jobs that are listed without --all.
MOST = 20

_RIGHT = ("Checks", "Passed", "Failed", "Retried")


@commands.command("results list")
def list_sessions(
    all_sessions: Annotated[
        bool, typer.Option("--all", help="All sessions, not the latest 20.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the sessions, latest first, also those that were killed or are still running."""
    folder = ResultsFolder.default()
    jobs, unreadable = requested_nodes.jobs_of(folder.path)
    without_report, outside = folder.unreported()
    most = None if all_sessions else MOST
    sessions = sorted([*folder.sessions, *without_report], key=folder.order, reverse=True)
    rows = [_row(folder, session) for session in sessions[:most]]
    problems = [*map(str, folder.problems), *(str(problem) for _, problem in unreadable)]
    result = {
        "sessions": rows,
        "jobs": [job.name for job in jobs],
        "documents_outside": outside,
        "problems": problems,
    }
    of_jobs = (
        f"Job {job.name} of {job.started.astimezone():%Y-%m-%d %H:%M:%S}, each "
        f"node a session: {folded(job.nodes)}; fabricheck results show {job.name}"
        for job in jobs[:most]
    )
    older = len(sessions) - len(rows)
    more = [f"and {older} more: --all"] if older else []
    show.result(result, [*_text(rows), *more, *of_jobs], as_json)
    output.say(*problems)
    if outside:
        documents = count(len(outside), "result document")
        output.say(f"Outside any session: {documents}, such as {outside[0]}.")
    if problems:
        raise typer.Exit(InvalidInputError.exit_code)
    if not sessions and not outside and not jobs:
        raise folder.no_session()


def _row(folder: ResultsFolder, session: Session) -> dict[str, Any]:
    """Return the row of a session; what its checks did is unknown without a run report."""
    clocks = folder.clocks(session)
    mark = folder.mark(session)
    counts = ("passed", "failed", "skipped", "retried")
    return {
        "session": session.id,
        "name": mark and mark.name,
        "uuid": session.uuid or None,
        "date": f"{session.date:%Y-%m-%d %H:%M:%S}" if session.start else None,
        "partitions": sorted({case.where for case in session.cases}),
        "nodes": [name for name in session.nodes if name is not None],
        "checks": len(session.cases),
        **{name: getattr(session, name) if session.report else None for name in counts},
        "clock": sorted(set(clocks)) or ["-"],
        "documents": len(clocks),
    }


def _text(rows: Sequence[Mapping[str, Any]]) -> Iterator[show.Block]:
    on = ("Nodes",) if any(row["nodes"] for row in rows) else ()
    named = ("Name",) if any(row["name"] for row in rows) else ()
    columns = ("Session", *named, "Date", "Partitions", *on, *_RIGHT, "Clock")
    cells = [[_cell(name, row[name.lower()]) for name in columns] for row in rows]
    yield show.Table(columns, cells, _RIGHT, whole=("Session", "Date"))
    if any(row["retried"] for row in rows):
        yield "Retried: checks that failed at an earlier attempt; see `fabricheck results show`."
    if any(row["passed"] is None for row in rows):
        yield "Sessions without a number of passed checks were killed, or are still running."
    if any(row["passed"] is None and not row["checks"] for row in rows):
        yield (
            "Sessions of no check could not start, were killed at once or wrote elsewhere; see "
            "`fabricheck verdict SESSION`."
        )


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name == "Nodes":
        return folded(value) or "-"
    return show.listed(value) if isinstance(value, list) else str(value)
