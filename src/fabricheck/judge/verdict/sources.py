"""What a verdict is made of: sessions, killed ones, and the nodes that were to be measured."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.results import archive, jobs, nodes_asked
from fabricheck.results.entry import Entry
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.jobs import Job
from fabricheck.results.killed import Killed
from fabricheck.results.meant import Meant, began_last, named
from fabricheck.results.nodes_asked import AskedNode, AskedNodes
from fabricheck.results.session import Case, Session
from fabricheck.site import sets

#: The folder of verdicts in a results folder, or in that of a job over many nodes.
VERDICTS = "verdicts"


@dataclass(frozen=True)
class Source:
    """One session, or what a killed one left, in one results folder.

    name: its id, or that of its folders. session: None of a killed one. choice: what chose its
    checks, which of a killed one its file of nodes says, or nobody. entries: by the identity
    of the case its document, of cases that have one or should. loose: documents of no case.
    """

    results: Path
    name: str
    session: Session | None
    cases: tuple[Case, ...]
    entries: dict[int, Entry]
    choice: sets.Choice
    loose: tuple[Entry, ...] = ()

    @property
    def every(self) -> tuple[Entry, ...]:
        """All documents, and what is said of those that are not there."""
        return (*self.entries.values(), *self.loose)

    @property
    def start(self) -> float:
        """When it began, in s since 1970; 0 where nobody knows."""
        if self.session is not None:
            return self.session.start
        times = [_started(entry) for entry in self.every]
        return min((one for one in times if one is not None), default=0.0)


@dataclass(frozen=True)
class Problem:
    """Results that are not there or can not be read, and the node; None where nobody knows it."""

    node: str | None
    sentence: str


@dataclass(frozen=True)
class Gathered:
    """What was asked for.

    name: what it is called. home: the folder of its verdicts. asked: by node what is known of it
    from the start. partition: where all nodes were to be measured, if one was named. parts: what it
    was made of where several are taken together.
    """

    name: str
    home: Path
    sources: tuple[Source, ...]
    asked: Mapping[str, AskedNode] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    partition: str | None = None
    started: datetime | None = None
    parts: tuple[Gathered, ...] = ()

    @property
    def folder(self) -> Path:
        """The results folder, or that of a job over many nodes."""
        return self.home.parent if self.home.name == VERDICTS else self.home.parents[1]

    @property
    def began(self) -> list[datetime]:
        """When its sessions began, in local time and in order; of none who began them."""
        times = sorted(one.start for one in self.sources if one.start)
        if not times:
            return [self.started.astimezone()] if self.started is not None else []
        return [datetime.fromtimestamp(time).astimezone() for time in times]


def gather(what: Sequence[str]) -> Gathered:
    """Return the sessions that are meant.

    :param what: ``latest``, a session's id, a killed session's name, the number of a job over many
        nodes or its folder, or results folders; several of these are taken together.
    :raises UsageError: when several are named and one is no folder.
    :raises NotFoundError: when there is nothing.
    :raises InvalidInputError: when a report or ``nodes.json`` can not be read; of one of several
        folders that is a problem.
    """
    if len(what) > 1:
        return _several(what)
    (one,) = what
    path = archive.folder(Path(one))
    if path != Path(one):
        try:
            found = gather([str(path)])
        except NotFoundError:
            # What began and left no document is in it, as of a first hour that was interrupted.
            raise archive.no_session(Path(one)) from None
        # The folder of an archive is a temporary one: verdicts lie beside the archive.
        return replace(found, home=Path(one).parent / VERDICTS / archive.stem(Path(one)))
    if jobs.is_job(path):
        return of_job(jobs.read(path))
    if path.is_dir():
        folder = ResultsFolder(path)
        return _of_meant(folder, began_last(folder))
    folder = ResultsFolder.default()
    return _of_meant(folder, began_last(folder) if one == "latest" else named(folder, one))


def _several(what: Sequence[str]) -> Gathered:
    for one in what:
        if not Path(one).is_dir() and not archive.is_archive(Path(one)):
            raise UsageError(
                f"{one} is no folder, and several sessions are taken together by their folders."
            )
    parts: list[Gathered] = []
    problems: list[Problem] = []
    for one in what:
        try:
            parts.append(gather([one]))
        except (NotFoundError, InvalidInputError) as error:
            # It does not cost the others their verdict.
            problems.append(Problem(None, str(error)))
    if not parts:
        raise NotFoundError("\n".join(problem.sentence for problem in problems))
    started = [part.started for part in parts if part.started is not None]
    return Gathered(
        name=parts[-1].name,
        home=parts[-1].home,
        sources=tuple(source for part in parts for source in part.sources),
        asked={name: one for part in parts for name, one in part.asked.items()},
        problems=(*problems, *(one for part in parts for one in part.problems)),
        partition=next((part.partition for part in parts if part.partition), None),
        started=min(started, default=None),
        parts=tuple(parts),
    )


def _of_meant(folder: ResultsFolder, meant: Meant) -> Gathered:
    match meant:
        case Job():
            return of_job(meant)
        case Killed():
            return of_killed(folder, meant)
        case _:
            return of_session(folder, meant)


def of_session(folder: ResultsFolder, session: Session) -> Gathered:
    """Return one session, with its documents and the nodes that it was to measure."""
    source = _source(folder.path, session.id, session, folder.entries(session), session.choice)
    asked = next((found for path in session.outputs if (found := _asked(path)) is not None), None)
    problems = tuple(Problem(None, sentence) for sentence in session.lacking)
    return replace(_of(session.id, folder.path, source, asked), problems=problems)


def of_killed(folder: ResultsFolder, one: Killed, of: AskedNodes | None = None) -> Gathered:
    """Return what a killed session left, and the nodes that it was to measure.

    :param of: the job over many nodes that it is of.
    """
    asked = _asked(*one.outputs)
    known = of or asked
    choice = sets.Choice((), None)
    if known is not None:
        choice = sets.chosen(shlex.join(("reframe", *known.chosen)))
    source = _source(folder.path, one.name, None, one.entries(), choice)
    return _of(one.name, folder.path, source, asked)


def _source(
    results: Path,
    name: str,
    session: Session | None,
    entries: Sequence[Entry],
    choice: sets.Choice,
) -> Source:
    cases = session.cases if session else tuple(one.case for one in entries if one.case is not None)
    by_case = {id(one.case): one for one in entries if one.case is not None}
    loose = tuple(one for one in entries if one.case is None)
    return Source(results, name, session, tuple(cases), by_case, choice, loose)


def _asked(folder: Path) -> AskedNodes | None:
    path = folder / nodes_asked.NAME
    return nodes_asked.read(path) if path.is_file() else None


def _of(name: str, results: Path, source: Source, asked: AskedNodes | None) -> Gathered:
    return Gathered(
        name,
        results / VERDICTS / name,
        (source,),
        dict(asked.nodes) if asked else {},
        partition=asked.partition if asked else None,
        started=asked.started if asked else None,
    )


def of_job(job: Job) -> Gathered:
    """Return the sessions of a job over many nodes, one a node."""
    sources: list[Source] = []
    problems: list[Problem] = []
    for share in job.shares:
        if share.problem is not None:
            problems.append(Problem(share.node, str(share.problem)))
        if share.folder is not None and share.session is not None:
            sources += of_session(share.folder, share.session).sources
        if share.folder is not None and share.killed is not None:
            sources += of_killed(share.folder, share.killed, job.asked).sources
    return Gathered(
        name=job.name,
        home=job.path / VERDICTS,
        sources=tuple(sources),
        asked=dict(job.asked.nodes),
        problems=tuple(problems),
        partition=job.asked.partition,
        started=job.asked.started,
    )


def _started(entry: Entry) -> float | None:
    if entry.document is None:
        return None
    return datetime.fromisoformat(entry.document["started"]).timestamp()
