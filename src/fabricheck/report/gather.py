"""What a page is made of: a session, or documents outside of one, and what is wrong with them."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.judge.verdict import sources
from fabricheck.judge.verdict.reservations import count
from fabricheck.results import jobs, meant
from fabricheck.results.folder import (
    UNREPORTED,
    Entry,
    ResultsFolder,
    find_documents,
    read_entry,
)
from fabricheck.results.killed import Killed
from fabricheck.results.observed import Observed, observe
from fabricheck.results.session import Session, together

#: Where pages are written in a results folder: a folder for each session.
PAGES = "reports-html"


@dataclass(frozen=True)
class Gathered:
    """What was asked for.

    name: of the folder that its page is written to. title: what it is, in a heading. session: None
    for documents outside of one, and for jobs of several. home: the results folder. warnings: why
    this is not all, or not what was asked for, in sentences. notes: what else there is to know;
    nothing is missing for it. judged: what the verdict on its nodes is of: the sessions, and the
    nodes that were asked for; None for documents outside of any.
    """

    name: str
    title: str
    session: Session | None
    entries: tuple[Entry, ...]
    home: Path
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    judged: sources.Gathered | None = None

    @cached_property
    def parts(self) -> tuple[Observed, ...]:
        """The partitions, of each node by itself, in the order of the cases."""
        if self.session is not None or self.judged is None:
            return tuple(observe(self.session, self.entries))
        return tuple(_of_sessions(self.judged.sources))

    @cached_property
    def sessions(self) -> tuple[Session, ...]:
        """The session, or those of a job, one a node."""
        found = [one.session for one in self.judged.sources] if self.judged else [self.session]
        return tuple(one for one in found if one is not None)

    @cached_property
    def _owners(self) -> dict[int, Session]:
        return {id(case): session for session in self.sessions for case in session.cases}

    def session_of(self, part: Observed) -> Session | None:
        """Return the session that a partition is of."""
        owners = (self._owners.get(id(case)) for case in part.cases)
        return next((one for one in owners if one is not None), None)

    @property
    def together(self) -> Session | None:
        """All sessions as one, for what is counted over all; None without any."""
        if self.session is not None or not self.sessions:
            return self.session
        return together(self.sessions, self.name)

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """What is missing, broken or not whole, each in one sentence."""
        return (*self.warnings, *(one for entry in self.entries for one in problems(entry)))

    @property
    def outputs(self) -> Path:
        """The folder that the page is written to where nobody names one."""
        return self.home / PAGES / self.name


def problems(entry: Entry) -> Iterator[str]:
    """Yield what is wrong with a document: none, not readable, or of a run that did not end."""
    if entry.problem is not None:
        yield str(entry.problem)
    elif entry.document is not None and not entry.document["complete"]:
        said = entry.document["outcome"]["message"]
        yield (
            f"{entry.path}: the run did not reach its end ({entry.document['outcome']['status']}"
            f"{f': {said}' if said else ''}); its series are those that were finished."
        )


def gather(what: str) -> Gathered:
    """Return a session, the documents of no session, those under a folder, or a single one.

    :param what: as of `fabricheck report`: ``latest``, an id, ``unreported``, a results folder
        (its latest session), a folder of documents, or a document.
    :raises NotFoundError: when there is nothing.
    :raises InvalidInputError: when the session's report can not be read and it left no documents.
    """
    path = Path(what)
    if jobs.is_job(path):
        return _job(jobs.read(path))
    if path.is_dir() and (path / "reports").is_dir():
        return latest(ResultsFolder(path))
    if path.is_dir():
        found = tuple(read_entry(one) for one in find_documents(path))
        if not found:
            raise NotFoundError(f"There is no result document under {what}.")
        return Gathered(_slug(path), f"documents under {what}", None, found, path)
    if path.is_file() or path.suffix in (".json", ".partial"):
        if not path.is_file():
            raise NotFoundError(f"There is no result document {what}.")
        return Gathered(_slug(path), f"document {what}", None, (read_entry(path),), path.parent)
    folder = ResultsFolder.default()
    if what == UNREPORTED:
        return _unreported(folder)
    if what == "latest":
        return latest(folder)
    return _of(folder, meant.named(folder, what))


def every(folder: ResultsFolder) -> Iterator[Gathered]:
    """Yield all sessions of a folder, the first one first, then what killed ones left.

    Each is read when it is its turn. That a session was killed is a note here.
    """
    for session in reversed(folder.sessions):
        yield _session(folder, session)
    for one in reversed(folder.killed()):
        found = _killed(folder, [one], f"session {one.name}")
        yield dataclasses.replace(found, warnings=(), notes=found.warnings)


def latest(folder: ResultsFolder) -> Gathered:
    """Return what began last, a session or a job over many nodes; without one what is unreported.

    :raises FabricheckError: as `gather`.
    """
    try:
        found = meant.latest(folder)
    except (InvalidInputError, NotFoundError) as error:
        try:
            return _unreported(folder, str(error))
        except NotFoundError:
            raise error from None
    made = _of(folder, found)
    if isinstance(found, Session):
        return dataclasses.replace(made, notes=tuple(_newer(folder, found)))
    return made


def _of(folder: ResultsFolder, found: meant.Meant) -> Gathered:
    match found:
        case jobs.Job():
            return _job(found)
        case Killed():
            return _killed(folder, [found], f"session {found.name}")
        case _:
            return _session(folder, found)


def _newer(folder: ResultsFolder, session: Session) -> Iterator[str]:
    """Say that documents came after the latest session, as a killed one leaves them."""
    newer = len(folder.newer_than(session))
    if newer:
        yield (
            f"{newer} result document(s) are newer than session {session.id} and belong to no "
            f"session, as a killed one leaves them: `fabricheck report {UNREPORTED}`."
        )


def _session(folder: ResultsFolder, session: Session) -> Gathered:
    judged = sources.of_session(folder, session)
    title = f"session {session.id}"
    return Gathered(
        session.id, title, session, _entries(judged), folder.path, session.lacking, judged=judged
    )


def _entries(judged: sources.Gathered) -> tuple[Entry, ...]:
    return tuple(entry for source in judged.sources for entry in source.every)


def _job(job: jobs.Job) -> Gathered:
    """Return the sessions of all nodes of a job."""
    judged = sources.of_job(job)
    title = f"job {job.name} over {count(len(job.asked.nodes), 'node')}"
    warnings = tuple(problem.sentence for problem in judged.problems)
    return Gathered(job.name, title, None, _entries(judged), job.path, warnings, judged=judged)


def _of_sessions(every: Sequence[sources.Source]) -> Iterator[Observed]:
    """Yield what several sessions have; partitions of the same name are told apart by the node."""
    found = [one for source in every for one in observe(source.session, source.every)]
    names = Counter((one.where, one.apart) for one in found)
    for one in found:
        if names[one.where, one.apart] > 1:
            words = filter(None, (one.on or "no node known", one.apart))
            yield dataclasses.replace(one, apart=", ".join(words))
        else:
            yield one


def _unreported(folder: ResultsFolder, why: str | None = None) -> Gathered:
    found = folder.killed()
    if not found:
        raise NotFoundError(f"There is no document of no session in {folder.path}.")
    if why is not None:
        # The last one that was killed is what `latest` would have been.
        return _killed(folder, found[:1], f"session {found[0].name}", why)
    return _killed(folder, found, "documents of no session")


def _killed(
    folder: ResultsFolder, found: Sequence[Killed], title: str, why: str | None = None
) -> Gathered:
    said = (
        "No run report names these documents, as a killed session leaves them, so nobody says "
        "which checks passed."
    )
    name = found[0].name if len(found) == 1 else UNREPORTED
    warnings = (said,) if why is None else (why, said)
    if name == UNREPORTED:
        entries = tuple(entry for one in found for entry in one.entries())
        return Gathered(name, title, None, entries, folder.path, warnings)
    judged = sources.of_killed(folder, found[0])
    return Gathered(name, title, None, _entries(judged), folder.path, warnings, judged=judged)


def _slug(path: Path) -> str:
    return slug(path.resolve().name) or "documents"


def slug(text: str) -> str:
    """Return a text as a part of file names and ids: letters, digits, and single dashes."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()
