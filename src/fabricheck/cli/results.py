"""What commands that show results have: what a name is, its heading, its documents and the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from fabricheck.cli import output
from fabricheck.core.errors import NotFoundError
from fabricheck.core.nodelists import folded, unfolded
from fabricheck.core.show import listed
from fabricheck.core.text import capitalized, count
from fabricheck.core.vocabulary import EXIT_GOOD
from fabricheck.results import archive
from fabricheck.results.entry import Entry
from fabricheck.results.reading import Results, read
from fabricheck.site import software


def choose(name: str, on: Sequence[str] | None = None) -> Results:
    """Return what a name resolves to, or some of its nodes; for an archive all its sessions.

    :param on: the nodes to select; all if none are named.
    :raises FabricheckError: when the name or node does not exist, or cannot be read.
    """
    results = read([name], all_sessions=archive.is_archive(Path(name)))
    return results.only(on=unfolded(",".join(on)) if on else [])


def heading(results: Results) -> list[str]:
    """Return the heading of results, and sentences on what software a session had."""
    session = None if results.archive is not None else results.session
    outputs = software.sentences(session.outputs, session.start, session.end) if session else ()
    return [capitalized(titled(results)), *outputs]


def titled(results: Results) -> str:
    """Return what results are of: a session with its counts, or the title of anything else."""
    session = results.session
    if results.title == f"archive {results.archive}":
        sessions = (
            f"session {session.id} ({session.passed}/{len(session.cases)} passed)"
            for session in results.sessions
        )
        outside = (source.session.paths for source in results.sources if not source.name)
        alone = count(sum(map(len, outside)), "document")
        return f"{results.title}: {listed(sessions) or 'no session'}, {alone} outside any session"
    if results.job is not None and not any(source.where or source.on for source in results.sources):
        ran = sum(bool(session.cases) for session in results.sessions)
        return f"{results.title}, {ran} of them with a session"
    if session is None:
        if results.job is None and any(source.killed for source in results.sources):
            return (
                f"{results.title}, without a readable run report: it was killed, or is still "
                "running"
            )
        return results.title
    text = (
        f"session {session.id} of {session.date:%Y-%m-%d %H:%M:%S} on "
        f"{folded(session.nodes) or session.hostname}: "
        f"{count(len(session.cases), 'check')}, {session.passed} passed, {session.failed} failed"
    )
    rare = ((session.retried, "retried"), (session.skipped, "skipped"))
    return text + "".join(f", {number} {what}" for number, what in rare if number)


def entries_of(results: Results) -> list[Entry]:
    """Return the documents, and an entry with the reason for each node without any."""
    unread = {problem.node for problem in results.problems}
    silent = (
        NotFoundError(f"There is no result of node {name}.")
        for name in results.silent
        if name not in unread
    )
    return [*results.entries, *(Entry(None, None, None, problem) for problem in silent)]


def exit_code(results: Results, entries: Iterable[Entry]) -> int:
    """Return the exit code of missing or unreadable results."""
    codes = [problem.exit_code for problem in results.problems]
    codes += [problem.exit_code for entry in entries for problem in entry.problems]
    return max(codes, default=EXIT_GOOD)


def end(results: Results, entries: Sequence[Entry], nothing: str | None) -> int:
    """Print missing or unreadable results to standard error, and return their exit code.

    :param nothing: the sentence for no result at all; None where there is one.
    :raises NotFoundError: with that sentence, where no result is missing or unreadable.
    """
    problems = [problem for entry in entries for problem in entry.problems]
    output.say(*(problem.sentence for problem in results.problems), *problems, *results.notes)
    code = exit_code(results, entries)
    if nothing is not None and code == EXIT_GOOD:
        raise NotFoundError(nothing)
    return code
