"""What is exported: sessions, documents, and the nodes of which nothing came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.report import gather
from fabricheck.report.gather import Gathered
from fabricheck.results import jobs, meant, nodes_asked
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.jobs import Job
from fabricheck.results.nodes_asked import AskedNodes


@dataclass(frozen=True)
class Source:
    """A session, or documents outside of one; asked: the nodes that it was meant to measure."""

    gathered: Gathered
    asked: AskedNodes | None = None


@dataclass(frozen=True)
class Asked:
    """The nodes of a job over many nodes, whose sessions are sources of their own."""

    nodes: AskedNodes


@dataclass(frozen=True)
class Unreadable:
    """Something that is there and can not be read, in one sentence."""

    sentence: str


Found = Source | Asked | Unreadable


def find(what: Sequence[str], every: bool) -> Iterator[Found]:
    """Yield what some words stand for, each session once, read when it is its turn.

    :param what: as of `fabricheck report`, and jobs over many nodes by name or folder; what began
        last where there is none.
    :param every: all sessions of results folders, with those of their jobs over many nodes, and
        not the latest one.
    :raises UsageError: when ``every`` is asked of something else than a folder of results.
    :raises NotFoundError: when there is nothing.
    """
    seen: set[Path] = set()
    for word in what or ["latest"]:
        for one in _of(word, every) if len(what) < 2 else _one_of_several(word, every):
            session = one.gathered.session if isinstance(one, Source) else None
            if session is not None:
                place = session.report.resolve()
                if place in seen:
                    continue
                seen.add(place)
            yield one


def _one_of_several(word: str, every: bool) -> Iterator[Found]:
    """Yield what a word stands for; that it stands for nothing does not cost the others."""
    try:
        yield from _of(word, every)
    except (NotFoundError, InvalidInputError) as problem:
        yield Unreadable(str(problem))


def _of(word: str, every: bool) -> Iterator[Found]:
    path = Path(word)
    if jobs.is_job(path):
        yield from _job(jobs.read(path), every)
    elif any((path / name).is_dir() for name in ("reports", nodes_asked.FOLDER)):
        yield from _folder(ResultsFolder(path), every)
    elif word == "latest":
        yield from _folder(ResultsFolder.default(), every)
    elif every:
        raise UsageError(f"--all is of results folders, and {word} is none.")
    elif not path.exists() and (job := jobs.named(ResultsFolder.default().path, word)):
        yield from _job(job, every)
    else:
        yield _with_nodes(gather.gather(word))


def _folder(folder: ResultsFolder, every: bool) -> Iterator[Found]:
    """Yield what began last, or all: sessions, what killed ones left, and jobs."""
    if every:
        yield from (Unreadable(str(one)) for one in folder.problems)
        yield from map(_with_nodes, gather.every(folder))
        for path in jobs.under(folder.path):
            try:
                job = jobs.read(path)
            except InvalidInputError as problem:
                yield Unreadable(str(problem))
            else:
                yield from _job(job, every)
        return
    try:
        last = meant.latest(folder)
    except (NotFoundError, InvalidInputError):
        yield _with_nodes(gather.latest(folder))  # what is unreported, where there is any
        return
    if isinstance(last, Job):
        yield from _job(last, every)
    else:
        yield _with_nodes(gather.latest(folder))


def _job(job: Job, every: bool) -> Iterator[Found]:
    for asked in job.asked.nodes.values():
        if asked.results is None or not (job.path / asked.results).is_dir():
            continue
        folder = ResultsFolder(job.path / asked.results)
        if every:
            yield from (Unreadable(str(one)) for one in folder.problems)
            yield from map(Source, gather.every(folder))
            continue
        try:
            yield Source(gather.latest(folder))
        except NotFoundError:
            pass  # without a session, which the row of the node says
        except InvalidInputError as problem:
            yield Unreadable(str(problem))
    # Last: by then it is known which nodes left something.
    yield Asked(job.asked)


def _with_nodes(gathered: Gathered) -> Source:
    killed = (gathered.home / "output" / gathered.name,)
    for outputs in gathered.session.outputs if gathered.session else killed:
        file = outputs / nodes_asked.NAME
        if file.is_file():
            return Source(gathered, nodes_asked.read(file))
    return Source(gathered)
