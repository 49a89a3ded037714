"""Jobs over many nodes (`fabricheck every-node`): one results folder for each requested node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.results import requested_nodes
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.killed import Killed
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes
from fabricheck.results.session import Session


@dataclass(frozen=True)
class JobNode:
    """The results of one node in a job.

    folder: its results folder; None without one. session: the latest one, None without one; killed:
    the last session without a report. problem: why its reports cannot be read.
    """

    node: str
    requested: RequestedNode
    folder: ResultsFolder | None = None
    session: Session | None = None
    killed: Killed | None = None
    problem: FabricheckError | None = None


@dataclass(frozen=True)
class Job:
    """One job. path: its folder, named by the scheduler's job number."""

    path: Path
    requested: RequestedNodes

    @property
    def name(self) -> str:
        """The scheduler's job number, which is the folder's name."""
        return self.path.resolve().name

    @property
    def start(self) -> float:
        """The start, in s since 1970."""
        return self.requested.started.timestamp()

    @cached_property
    def job_nodes(self) -> tuple[JobNode, ...]:
        """The requested nodes in their order, including those without any result.

        Behind them what joins the nodes, where it was to be measured.
        """
        return tuple(
            _job_node(self.path, node, requested)
            for node, requested in self.requested.every.items()
        )


def is_job(path: Path) -> bool:
    """Whether a folder is that of a job over many nodes."""
    return (path / requested_nodes.NAME).is_file() and not (path / "reports").is_dir()


def read(path: Path) -> Job:
    """Return the job in a folder.

    :raises FabricheckError: when its ``nodes.json`` cannot be read.
    """
    return Job(path, requested_nodes.read(path / requested_nodes.NAME))


def under(results: Path) -> Iterator[Path]:
    """Yield the folders of the jobs in a results folder, by name."""
    yield from sorted(filter(is_job, results.glob(f"{requested_nodes.FOLDER}/*")))


def all_of(results: Path) -> tuple[list[Job], list[tuple[float, InvalidInputError]]]:
    """Return the jobs in a results folder, the last one first, and those that cannot be read.

    The latter by the time in s since 1970 at which their ``nodes.json`` was written, with the
    reason.
    """
    found, problems = [], []
    for path in under(results):
        try:
            found.append(read(path))
        except InvalidInputError as problem:
            problems.append(((path / requested_nodes.NAME).lstat().st_mtime, problem))
    return sorted(found, key=lambda job: job.start, reverse=True), problems


def named(results: Path, name: str) -> Job | None:
    """Return the job of a name (``17``, ``every-node/17``) in a results folder, if there is one."""
    path = results / requested_nodes.FOLDER / name.removeprefix(f"{requested_nodes.FOLDER}/")
    return (
        read(path) if name and path.parent.name == requested_nodes.FOLDER and is_job(path) else None
    )


def _job_node(path: Path, node: str, requested: RequestedNode) -> JobNode:
    if requested.results is None or not (path / requested.results).is_dir():
        return JobNode(node, requested)
    folder = ResultsFolder(path / requested.results, node)
    killed = next(iter(folder.unreported()[0]), None)
    try:
        return JobNode(node, requested, folder, folder.latest(), killed)
    except NotFoundError:
        return JobNode(node, requested, folder, None, killed)
    except FabricheckError as problem:
        return JobNode(node, requested, folder, None, killed, problem)
