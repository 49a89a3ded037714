"""What is exported: sessions, documents, and the nodes of which nothing came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricheck import nodes_asked
from fabricheck.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.nodes_asked import AskedNodes
from fabricheck.report import gather
from fabricheck.report.gather import Gathered
from fabricheck.results.folder import ResultsFolder

#: Where jobs over many nodes leave their results, in a results folder: a folder for each job.
JOBS = "every-node"


@dataclass(frozen=True)
class Source:
    """A session, or documents outside of one.

    node: the node whose results folder it is, by the scheduler's name, where that is known.
    asked: the nodes that it was meant to measure, where a file says so.
    """

    gathered: Gathered
    node: str | None = None
    asked: AskedNodes | None = None


@dataclass(frozen=True)
class Job:
    """A job over many nodes; the sessions of its nodes are sources of their own."""

    asked: AskedNodes


@dataclass(frozen=True)
class Unreadable:
    """Something that is there and can not be read, in one sentence."""

    sentence: str


Found = Source | Job | Unreadable


def find(what: Sequence[str], every: bool) -> Iterator[Found]:
    """Yield what some words stand for, each session once, read when it is its turn.

    :param what: as of `fabricheck report`, and folders of jobs over many nodes; the latest session
        where there is none.
    :param every: all sessions of results folders, with those of their jobs over many nodes, and
        not the latest one.
    :raises UsageError: when ``every`` is asked of something else than a folder of results.
    :raises NotFoundError: when there is nothing.
    """
    seen: set[Path] = set()
    for word in what or [""]:
        for one in _of(word, every):
            if isinstance(one, Source):
                session = one.gathered.session
                place = session.report.resolve() if session else None
                if place in seen:
                    continue
                if place is not None:
                    seen.add(place)
            yield one


def _of(word: str, every: bool) -> Iterator[Found]:
    path = Path(word)
    if word and (path / nodes_asked.NAME).is_file() and not (path / "reports").is_dir():
        yield from _job(path, every)
    elif every:
        if word and not (path / "reports").is_dir():
            raise UsageError(f"--all is of results folders, and {word} is none.")
        yield from _folder(ResultsFolder(path) if word else ResultsFolder.default())
    else:
        yield _with_nodes(gather.gather(word or "latest"))


def _folder(folder: ResultsFolder) -> Iterator[Found]:
    """Yield all sessions, the first one first, what killed ones left, and its jobs."""
    yield from (Unreadable(str(one)) for one in folder.problems)
    yield from map(_with_nodes, gather.every(folder))
    for file in sorted(folder.path.glob(f"{JOBS}/*/{nodes_asked.NAME}")):
        yield from _job(file.parent, every=True)


def _job(path: Path, every: bool) -> Iterator[Found]:
    try:
        asked = nodes_asked.read(path / nodes_asked.NAME)
    except InvalidInputError as problem:
        yield Unreadable(str(problem))
        return
    for name, node in asked.nodes.items():
        if node.results is not None and (path / node.results / "reports").is_dir():
            yield from _of_node(path / node.results, name, every)
    # Last: by then it is known which nodes left something.
    yield Job(asked)


def _of_node(path: Path, node: str, every: bool) -> Iterator[Found]:
    if not every:
        try:
            yield Source(gather.gather(str(path)), node)
        except NotFoundError:
            return  # without a session, which the row of the node says
        except InvalidInputError as problem:
            yield Unreadable(str(problem))
        return
    folder = ResultsFolder(path)
    yield from (Unreadable(str(one)) for one in folder.problems)
    yield from (Source(one, node) for one in gather.every(folder))


def _with_nodes(gathered: Gathered) -> Source:
    for outputs in gathered.session.outputs if gathered.session else ():
        file = outputs / nodes_asked.NAME
        if file.is_file():
            return Source(gathered, asked=nodes_asked.read(file))
    return Source(gathered)
