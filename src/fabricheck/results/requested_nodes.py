"""The nodes that a session, or a job of sessions, was to measure, and how its part ended on each.

A node that is down, hangs or dies leaves no result. So whoever starts a session of several nodes
writes their names beside the results, before anything is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import AfterValidator, AliasChoices, AwareDatetime, BeforeValidator, Field

from fabricheck.core import nodelists
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.forms import NodeName
from fabricheck.core.models import StrictModel, read_model
from fabricheck.core.text import moment
from fabricheck.core.whole_files import write_whole

#: The file, in the folder of a session's outputs or in that of a job over many nodes.
NAME = "nodes.json"

#: The folder in a results folder with one folder for each job over many nodes.
FOLDER = "every-node"

#: What selects the checks of a network.
CHOSEN_OF_NETWORK = ("-t", "^network$")


def _written_out(given: Any) -> Any:
    # Pydantic takes a number as seconds since 1970, even the rest of a cut date.
    time = moment(given) if isinstance(given, str) else given
    if not isinstance(time, datetime):
        raise ValueError("it is not a date and time")
    return time


class _Begun(Protocol):
    @property
    def start(self) -> float: ...


_T = TypeVar("_T", bound=_Begun)

#: A file that cannot be read: when it was written, in s since 1970, and the reason.
Unreadable = tuple[float, InvalidInputError]

#: A date and time of ISO 8601, with its time zone.
Moment = Annotated[AwareDatetime, BeforeValidator(_written_out)]


def _beside(given: str) -> str:
    # Another folder's sessions would be taken for those of the node.
    path = Path(given)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError("it is no folder beside this file")
    return given


class RequestedNode(StrictModel):
    """One node.

    results: its own results folder beside the file; None where all nodes share the session's.
    state, because: the state that the scheduler reported when the session began (``IDLE``,
    ``DOWN+DRAIN``), and its reason. ended: when its part ended; None while it runs, and for a node
    that never answered. status: the exit status of its session; None without one. how_ended:
    how its part ended where it was stopped, in one sentence that names it; ``said`` in older files.
    """

    results: Annotated[str, AfterValidator(_beside)] | None = None
    state: str | None = None
    because: str | None = None
    ended: Moment | None = None
    status: int | None = None
    how_ended: str | None = Field(default=None, validation_alias=AliasChoices("how_ended", "said"))

    @property
    def reported(self) -> str:
        """The state that the scheduler reported, with its reason."""
        return f"{self.state} ({self.because})" if self.because else str(self.state)


class RequestedNodes(StrictModel):
    """All nodes of a session, by the scheduler's name.

    partition: ``system:partition``; None where the session chooses it on each node. chosen: the
    options that selected the checks (``-t smoke``). reached_by: the row of the table of ways to
    reach nodes. job: the scheduler's number of the job over all nodes; None where each check is a
    job. network: the session over all of them that measured what joins them; None without one.
    network_only: whether there was no other session. path: the file that it was read from; not
    stored in the file.
    """

    form: Literal["fabricheck-nodes-1"] = "fabricheck-nodes-1"
    partition: str | None
    chosen: tuple[str, ...] = ()
    reached_by: str = "slurm"
    started: Moment
    job: str | None = None
    nodes: dict[NodeName, RequestedNode] = Field(min_length=1)
    network: RequestedNode | None = None
    network_only: bool = False
    path: Path | None = Field(default=None, exclude=True)

    @property
    def folder(self) -> Path:
        """The folder of the file; that of a job over many nodes has its number as its name."""
        assert self.path is not None
        return self.path.parent

    @property
    def name(self) -> str:
        """The folder's name: of a job the scheduler's number."""
        return self.folder.resolve().name

    @property
    def start(self) -> float:
        """The start, in s since 1970."""
        return self.started.timestamp()

    @property
    def measured(self) -> dict[str, RequestedNode]:
        """The nodes that were to have results of their own, or that could not be used."""
        if not self.network_only:
            return self.nodes
        return {name: node for name, node in self.nodes.items() if node.how_ended is not None}

    @property
    def with_network(self) -> dict[str, RequestedNode]:
        """The nodes, and behind them the network under the host list of all nodes."""
        if self.network is None:
            return self.measured
        return {**self.measured, nodelists.folded(self.nodes): self.network}

    def only(self, names: Collection[str]) -> RequestedNodes:
        """Return some of the nodes, without what joins them; without names all."""
        chosen = {name: node for name, node in self.nodes.items() if name in names}
        return self.model_copy(update={"nodes": chosen, "network": None}) if names else self


def now() -> datetime:
    """Return the present time with its time zone."""
    return datetime.now().astimezone()


def write(path: Path, requested: RequestedNodes) -> None:
    """Write the file, completely or not at all.

    :raises NotFoundError: when it cannot be written.
    """
    write_whole(path, requested.model_dump_json(indent=1) + "\n")


def read(path: Path) -> RequestedNodes:
    """Read the file.

    :raises NotFoundError: when it is not there.
    :raises InvalidInputError: when it cannot be read or has another form.
    """
    return read_model(path, RequestedNodes).model_copy(update={"path": path})


def is_job(path: Path) -> bool:
    """Whether a folder is that of a job over many nodes."""
    return (path / NAME).is_file() and not (path / "reports").is_dir()


def jobs_of(results: Path) -> tuple[list[RequestedNodes], list[Unreadable]]:
    """Return the jobs in a results folder, the last one first, and those that cannot be read."""
    folders = sorted(filter(is_job, results.glob(f"{FOLDER}/*")))
    return latest_first((path / NAME for path in folders), read)


def job_named(results: Path, name: str) -> RequestedNodes | None:
    """Return the job of a name (``17``, ``every-node/17``) in a results folder, if there is one."""
    path = results / FOLDER / name.removeprefix(f"{FOLDER}/")
    return read(path / NAME) if name and path.parent.name == FOLDER and is_job(path) else None


def latest_first(
    paths: Iterable[Path], read_one: Callable[[Path], _T]
) -> tuple[list[_T], list[Unreadable]]:
    """Return what files describe, the last one first, and those that cannot be read."""
    jobs, unreadable = [], []
    for path in paths:
        try:
            jobs.append(read_one(path))
        except InvalidInputError as problem:
            unreadable.append((path.lstat().st_mtime, problem))
    return sorted(jobs, key=lambda requested: requested.start, reverse=True), unreadable
