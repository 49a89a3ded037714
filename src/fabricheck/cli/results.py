"""`fabricheck results`: list sessions, show and validate their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from fabricheck.cli import commands, output, series_tables
from fabricheck.cli.output import AsJson, Name, OnNodes
from fabricheck.core import amounts, show
from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.core.nodelists import unfolded
from fabricheck.core.show import listed
from fabricheck.core.text import capitalized, count
from fabricheck.core.vocabulary import EXIT_GOOD
from fabricheck.results import archive, joined, osu_comparison
from fabricheck.results.entry import Entry, read_entry
from fabricheck.results.folder import find_documents
from fabricheck.results.reading import Results, read
from fabricheck.site import sets
from fabricheck.site.software import record

#: The heading of a session without a run report.
_KILLED = "without a readable run report: it was killed, or is still running"


def choose(name: str, on: Sequence[str] | None = None) -> Results:
    """Return what a name resolves to, or some of its nodes; for an archive all its sessions.

    :param on: the nodes to select; all if none are named.
    :raises FabricheckError: when the name or node does not exist, or cannot be read.
    """
    found = read([name], every=archive.is_archive(Path(name)))
    return found.only(on=unfolded(",".join(on)) if on else [])


def heading(found: Results) -> str:
    """Return the heading of results: a session with its counts, or the title of anything else."""
    if found.archive is not None:
        return f"{capitalized(found.title)}: {_in_archive(found)}"
    if found.session is None:
        killed = any(source.killed for source in found.sources if found.job is None)
        return capitalized(found.title) + f", {_KILLED}" * killed
    session = found.session
    said = (
        f"Session {session.id} of {session.date:%Y-%m-%d %H:%M:%S} on {session.hostname}: "
        f"{len(session.cases)} checks, {session.passed} passed, {session.failed} failed"
    )
    if session.retried:
        said += f", {session.retried} retried"
    if session.skipped:
        said += f", {session.skipped} skipped"
    return "\n".join([said, *record.sentences(session.outputs, session.start, session.end)])


def _in_archive(found: Results) -> str:
    sessions = (
        f"session {session.id} ({session.passed}/{len(session.cases)} passed)"
        for session in found.sessions
    )
    outside = sum(len(source.session.paths) for source in found.sources if source.folder is None)
    return f"{listed(sessions) or 'no session'}, {count(outside, 'document')} outside any session"


def entries_of(found: Results) -> list[Entry]:
    """Return the documents, and an entry with the reason for each node without any."""
    unread = {problem.node for problem in found.problems}
    silent = (
        NotFoundError(f"There is no result of node {name}.")
        for name in found.silent
        if name not in unread
    )
    return [*found.entries, *(Entry(None, None, None, problem) for problem in silent)]


def say_problems(found: Results, entries: Sequence[Entry]) -> int:
    """Print missing or unreadable results to standard error, and return their exit code."""
    problems = [problem for entry in entries for problem in entry.problems]
    output.say(*(problem.sentence for problem in found.problems), *map(str, problems), *found.notes)
    codes = (
        *(problem.exit_code for problem in found.problems),
        *(problem.exit_code for problem in problems),
    )
    return max(codes, default=EXIT_GOOD)


@commands.command("results show")
def show_results(
    what: Name = "latest",
    show_all: Annotated[
        bool, typer.Option("--all", help="Show every series; scans are not summarised.")
    ] = False,
    on: OnNodes = None,
    as_json: AsJson = False,
) -> int:
    """Show what was measured."""
    found = choose(what, on)
    plain = (
        Entry(row.case, None, None, None)
        for row in found.checks
        if row.entry is None and row.case is not None and row.case.metrics and not row.case.skipped
    )
    entries = [*entries_of(found), *plain]
    text = series_tables.blocks(heading(found), found.checks, show_all)
    result = {"title": heading(found), "checks": [_entry(entry) for entry in entries]}
    show.result(result, text, as_json)
    code = say_problems(found, entries)
    if not entries and code == EXIT_GOOD:
        raise NotFoundError(f"There is no result document in {found.title}.")
    return code


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "case": entry.case.name if entry.case else None,
        "where": entry.case.where if entry.case else None,
        "node": entry.node,
        "result": entry.case.result if entry.case else None,
        "reason": entry.case.reason if entry.case else None,
        "earlier": [
            {"result": case.result, "reason": case.reason, "path": case.document_path}
            for case in (entry.case.earlier if entry.case else ())
        ],
        "metrics": {name: one._asdict() for name, one in entry.case.metrics.items()}
        if entry.case
        else {},
        "failed_attempts": entry.case.failed_attempts if entry.case else None,
        "path": entry.path,
        "problem": " ".join(map(str, entry.problems)) or None,
        "document": entry.document,
    }


@commands.command("results osu")
def mpi_beside_osu(
    what: Name = "latest",
    on: OnNodes = None,
    as_json: AsJson = False,
) -> int:
    """Show the program mpi beside OSU Micro-Benchmarks, where both measured the same ranks."""
    found = choose(what, on)
    rows = osu_comparison.compare(found.series)
    if not rows and not as_json:
        if code := say_problems(found, entries_of(found)):
            return code
        raise NotFoundError(
            f"{what} has no measurement by both mpi and OSU between the same ranks."
        )
    right = ("mpi", "OSU", "mpi/OSU")
    columns = ("Where", "Op", "Between", "Size", "Buffers", "SDMA", "Unit", *right)
    cells = [
        (
            row.where,
            row.operation,
            "-".join(map(str, row.members)),
            amounts.size(row.bytes),
            row.buffers,
            "on" if row.engines else "off",
            row.unit,
            amounts.number(row.mpi),
            amounts.number(row.osu),
            f"{row.ratio:.3f}",
        )
        for row in rows
    ]
    compared = [asdict(row) | {"ratio": row.ratio} for row in rows]
    show.result(compared, [show.Table(columns, cells, right)], as_json)
    return EXIT_GOOD


@commands.command("results validate")
def validate(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|FOLDER|SESSION]...",
            help="Documents, folders (all documents below them), or as for show; default: the "
            "latest.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Report for each document whether it is valid and complete, in one sentence.

    Exit status 4 if one is invalid or incomplete, 3 if one is missing or there is none.
    """
    if names:
        entries = [entry for name in names for entry in _to_validate(name)]
    else:
        entries = entries_of(read())
    verdicts = [_verdict(entry) for entry in entries]
    rows = [
        {"path": entry.path, "exit_code": code, "says": says}
        for entry, (code, says) in zip(entries, verdicts, strict=True)
    ]
    show.result(rows, (says for _, says in verdicts), as_json, wrapped=False)
    if not entries:
        raise NotFoundError("There is no result document in the latest session.")
    return max(code for code, _ in verdicts)


def _to_validate(name: str) -> list[Entry]:
    path = Path(name)
    try:
        if not path.is_dir():
            return entries_of(choose(name))
        found = [read_entry(document) for document in find_documents(path)]
        return found or entries_of(choose(name))
    except FabricheckError as problem:
        return [Entry(None, path, None, problem)]


def _verdict(entry: Entry) -> tuple[int, str]:
    document = entry.document
    if entry.problems or document is None:
        problem = next(iter(entry.problems), FabricheckError(f"{entry.path}: cannot be read."))
        return problem.exit_code, str(problem)
    outcome = document["outcome"]
    differences = document.get("differences")
    if differences is None:
        found = f"{len(document['series'])} series"
    else:
        plural = "" if len(differences) == 1 else "s"
        found = f"{len(differences) or 'no'} difference{plural} from the node model"
    text = (
        f"{document['program']['name']}, {found}, {document['clock']}, outcome {outcome['status']}"
    )
    if document["faults_injected"]:
        text += f", with injected faults ({listed(document['faults_injected'])})"
    if document["complete"]:
        return EXIT_GOOD, f"{entry.path}: valid ({text})."
    return InvalidInputError.exit_code, f"{entry.path}: valid but incomplete ({text})."


@commands.command("results join")
def join_results(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER...", help="Results folders; the latest session of each is used."
        ),
    ],
    target: Annotated[Path, typer.Option("--output", metavar="DIR", help="A new results folder.")],
    whole: Annotated[
        str | None,
        typer.Option("--set", metavar="TAG", help="The set that all sessions together make."),
    ] = None,
) -> None:
    """Join the sessions of several results folders, such as those of a pipeline's jobs, into one.

    Exit status 4 if the session was written, but a folder has no usable session.
    """
    if whole is not None:
        sets.require(whole)
    report, lacking = joined.join(folders, target, whole)
    output.say(*lacking)
    typer.echo(f"Joined: {report}")
    if lacking:
        raise typer.Exit(InvalidInputError.exit_code)
