"""`fabricheck results`: list sessions, show and validate their results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fabricheck.cli import commands, output, series_tables
from fabricheck.cli.output import AsJson, Name, OnNodes
from fabricheck.core import show
from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.core.nodelists import unfolded
from fabricheck.core.show import listed
from fabricheck.core.text import capitalized, count
from fabricheck.core.vocabulary import EXIT_GOOD
from fabricheck.results import archive, joined
from fabricheck.results.entry import Entry, read_entry
from fabricheck.results.folder import find_documents
from fabricheck.results.reading import Results, read
from fabricheck.site import sets, software

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
    title, session = capitalized(found.title), found.session
    if found.archive is not None:
        sessions = (
            f"session {one.id} ({one.passed}/{len(one.cases)} passed)" for one in found.sessions
        )
        outside = (source.session.paths for source in found.sources if not source.name)
        alone = count(sum(map(len, outside)), "document")
        return f"{title}: {listed(sessions) or 'no session'}, {alone} outside any session"
    if session is None:
        killed = found.job is None and any(source.killed for source in found.sources)
        return title + f", {_KILLED}" * killed
    said = (
        f"Session {session.id} of {session.date:%Y-%m-%d %H:%M:%S} on {session.hostname}: "
        f"{len(session.cases)} checks, {session.passed} passed, {session.failed} failed"
    )
    rare = ((session.retried, "retried"), (session.skipped, "skipped"))
    said += "".join(f", {number} {what}" for number, what in rare if number)
    return "\n".join([said, *software.sentences(session.outputs, session.start, session.end)])


def entries_of(found: Results) -> list[Entry]:
    """Return the documents, and an entry with the reason for each node without any."""
    unread = {problem.node for problem in found.problems}
    silent = (
        NotFoundError(f"There is no result of node {name}.")
        for name in found.silent
        if name not in unread
    )
    return [*found.entries, *(Entry(None, None, None, problem) for problem in silent)]


def end(found: Results, entries: Sequence[Entry], nothing: str | None) -> int:
    """Print missing or unreadable results to standard error, and return their exit code.

    :param nothing: the sentence for no result at all; None where there is one.
    :raises NotFoundError: with that sentence, where no result is missing or unreadable.
    """
    problems = [problem for entry in entries for problem in entry.problems]
    output.say(*(problem.sentence for problem in found.problems), *problems, *found.notes)
    code = max(
        (
            *(problem.exit_code for problem in found.problems),
            *(problem.exit_code for problem in problems),
        ),
        default=EXIT_GOOD,
    )
    if nothing is not None and code == EXIT_GOOD:
        raise NotFoundError(nothing)
    return code


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
    nothing = f"There is no result document in {found.title}."
    return end(found, entries, None if entries else nothing)


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
    differences, faults = document.get("differences"), listed(document["faults_injected"])
    found = f"{len(document['series'])} series"
    if differences is not None:
        number = count(len(differences), "difference") if differences else "no differences"
        found = f"{number} from the node model"
    text = (
        f"{document['program']['name']}, {found}, {document['clock']}, outcome "
        f"{document['outcome']['status']}{f', with injected faults ({faults})' if faults else ''}"
    )
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
