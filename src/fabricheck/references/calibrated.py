"""Calibration records: the only place of calibrated entries, where the checks read them.

`fabricheck limits calibrate` writes them. A partition's record contains every value of every
session, so that each entry can be traced, and no host names: nodes have letters and the unique ids
of their devices. A partition may take listed metrics from the record of another one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationInfo, field_validator

from fabricheck.core import models, yaml_files
from fabricheck.core.errors import InvalidFile, InvalidInputError, NotFoundError
from fabricheck.core.models import StrictModel
from fabricheck.node import NodeModel
from fabricheck.references.entries import faults, report_only, requires
from fabricheck.site import this_machine

#: The folder of the records, in the folder of the reference files.
FOLDER = "calibrations"

#: The file that lists the metrics that a partition takes from another one's record.
TRANSFERS = "transfers"

#: Tolerances are multiples of this.
STEP = 0.005

#: Why an entry of an earlier record requires nothing any more.
NO_SESSION = "no session measures it"


class SessionRecord(StrictModel):
    """One session's results on one node: its number in the record, campaign, and node letter."""

    number: int
    uuid: str
    date: str
    campaign: int
    devices: str


class Group(StrictModel):
    """The values of one campaign, or of one node; mad is unscaled."""

    n: int
    median: float
    mad: float


class Tolerance(StrictModel):
    """The three candidates of a tolerance, as fractions of the value; the largest is used."""

    floor: float
    spread: float
    worst: float

    @property
    def taken(self) -> float:
        """The largest, rounded up to a multiple of `STEP`; a multiple stays as it is."""
        return math.ceil(round(max(self.floor, self.spread, self.worst) / STEP, 6)) * STEP


class PublishedRecord(StrictModel):
    """The reference files' entry for the same node model: its value and its key."""

    value: float
    key: str
    kind: Literal["published", "derived"]


class MetricRecord(StrictModel):
    """One metric.

    link_class, engine: those of its transfers. peak: the node model's limit, in the unit.
    published: what documents state for the same node model. values: by the number of the session;
    by_devices: by the letter of the node; excluded: the nodes that are slow and excluded from the
    entry.
    between_campaigns: the largest difference of two campaigns' medians over the median of all.
    within_run: the median over the sessions of half the 95 % interval over the median. tolerance:
    its candidates, None where there can be none. entry: the reference, and its reason: ``rule``, or
    why nothing is required.
    """

    unit: str
    link_class: str | None = None
    engine: str | None = None
    peak: float | None = None
    published: PublishedRecord | None = None
    entry: list[int | float | str | None]
    why: str
    n: int
    median: float
    mad: float
    min: float
    max: float
    campaigns: dict[int, Group]
    between_campaigns: float | None
    within_run: float | None
    values: dict[int, float]
    tolerance: Tolerance | None = None
    by_devices: dict[str, Group] | None = None
    excluded: list[str] = Field(default_factory=list)

    @field_validator("entry", mode="before")
    @classmethod
    def _is_reference(cls, entry: Any, info: ValidationInfo) -> Any:
        unit = info.data.get("unit")
        if any(faults("", str(unit), entry)):
            raise ValueError(f"{entry} is not a reference [value, lower, upper, unit] in {unit}")
        return entry

    @property
    def required(self) -> bool:
        """Whether the entry requires something."""
        return requires(self.entry)


class UnusedRecord(StrictModel):
    """A case that gave no values, and why."""

    session: int
    check: str
    why: str


class Record(StrictModel):
    """The record of one partition.

    clock: whether the values were measured or simulated. device_sets: by the letter of a node the
    unique ids of its devices, empty where the runtime reports none. overlays: what changed a
    simulated node. gone: by check and metric the unit of what an earlier record had and no session
    has.
    """

    kind: Literal["calibration"] = "calibration"
    format: Literal[2] = 2
    partition: str
    clock: Literal["measured", "simulated"]
    rule: str
    same_devices: bool
    device_names: list[str]
    device_sets: dict[str, list[str]]
    overlays: dict[str, str] = Field(default_factory=dict)
    programs: list[dict[str, str]]
    versions: list[dict[str, str]]
    sessions: list[SessionRecord]
    unused: list[UnusedRecord]
    checks: dict[str, dict[str, MetricRecord]] = Field(default_factory=dict)
    gone: dict[str, dict[str, str]] = Field(default_factory=dict)

    def entries(self, check: str) -> dict[str, tuple[Sequence[Any], str]]:
        """Return by metric the entry that the record gives a check, with its reason."""
        return {
            **{
                name: (metric.entry, metric.why)
                for name, metric in self.checks.get(check, {}).items()
            },
            **{
                name: (list(report_only(unit)), NO_SESSION)
                for name, unit in self.gone.get(check, {}).items()
            },
        }


class Transfer(StrictModel):
    """The metrics that a partition that was not measured takes from another one's record.

    checks: the metrics of each check. Their entries are those of the record.
    """

    kind: Literal["transfer"] = "transfer"
    format: Literal[1] = 1
    partition: str
    measured_on: str
    checks: dict[str, list[str]]


_M = TypeVar("_M", Record, Transfer)


def file_of(
    references: Path, partition: str, folder: str = FOLDER, node: NodeModel | None = None
) -> Path:
    """Return the file of a partition's record, or of its transfer, beside the reference files.

    That of ``local:gpu`` is for machines of one kind: another kind has another file.

    :param node: the node model of a session of ``local:gpu``; by default this machine's.
    """
    name = partition.replace(":", "-")
    if partition == this_machine.NAME:
        kind = this_machine.name_for_files(node)
        if kind:
            name = f"{name}-{kind}"
    return references / folder / f"{name}.yaml"


def read(path: Path) -> Record:
    """Read a record.

    :raises NotFoundError: when there is none.
    :raises InvalidFile: when it is not a record.
    """
    return _read(path, Record, "calibration record")


def read_transfer(path: Path) -> Transfer:
    """Read the metrics that a partition takes from another one's record; raises as `read` does."""
    return _read(path, Transfer, "transfer")


def read_of(references: Path, partition: str) -> Record:
    """Read the record of a partition in a folder of reference files.

    :raises NotFoundError: when there is none.
    :raises InvalidInputError: when it is not a record, or that of another partition.
    """
    path = file_of(references, partition)
    record = read(path)
    if record.partition != partition:
        raise InvalidInputError(
            f"{path}: this is the record of {record.partition}, not of {partition}."
        )
    return record


def has_own(references: Path, partition: str, node: NodeModel | None = None) -> bool:
    """Whether a partition has a record of sessions that measured it.

    Metrics taken from another partition's record do not count, nor does an unreadable record.

    :param node: as for `file_of`.
    """
    path = file_of(references, partition, node=node)
    return path.exists() and _is_measured(path, path.stat().st_mtime_ns, partition)


@functools.lru_cache
def _is_measured(path: Path, _state: int, partition: str) -> bool:
    try:
        record = read(path)
    except InvalidInputError:
        return False
    return (record.partition, record.clock) == (partition, "measured")


def _read(path: Path, kind: type[_M], what: str) -> _M:
    if not path.exists():
        raise NotFoundError(
            f"There is no {what} {path}; fabricheck limits calibrate --write creates it."
        )
    try:
        return models.validated(kind, yaml_files.read(path), path)
    except InvalidFile as error:
        where = f"{error.key}: " if error.key else ""
        raise InvalidFile(path, None, f"is not a {what} ({where}{error.reason})") from None
