"""Jobs over many nodes (`fabricheck every-node`): one results folder for each requested node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fabricheck.core.errors import InvalidInputError
from fabricheck.results import requested_nodes
from fabricheck.results.requested_nodes import RequestedNodes


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
