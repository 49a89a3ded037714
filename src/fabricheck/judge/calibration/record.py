"""The calibration record of a partition: what its sessions measured, and what follows from it.

It holds every value of every session, so that each entry of a reference file can be followed to it.
Host names are not in it: nodes have letters, and the unique ids of their devices.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from fabricheck.core import statistics
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.vocabulary import Clock
from fabricheck.judge.calibration import rule
from fabricheck.judge.calibration.runs import Run, Value
from fabricheck.references.published import LOADER
from fabricheck.rfm.references import faults

#: Where the records are, in the folder of the reference files.
FOLDER = "calibrations"

#: Of a record these are written on one line each.
_INLINE = frozenset(
    {"sessions", "occasions", "programs", "versions", "unused", "by_devices", "tolerance"}
)

#: Members of a metric that are written where they say something.
_OPTIONAL = frozenset(
    {
        "by_devices", "tolerance", "link_class", "engine", "peak", "published", "aside", "overlays",
        "measured_by",
    }
)  # fmt: skip

_K = TypeVar("_K", int, str)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SessionRecord(_Model):
    """One session's part on one node: its number in the record, the occasion, the node's letter."""

    number: int
    uuid: str
    date: str
    occasion: int
    devices: str


class Group(_Model):
    """The values of one occasion, or of one node; mad is not scaled."""

    n: int
    median: float
    mad: float


class ToleranceRecord(_Model):
    """The three candidates of a tolerance, parts of the value."""

    floor: float
    spread: float
    worst: float


class PublishedRecord(_Model):
    """What the reference files have of the same node model: the value, and under which key."""

    value: float
    key: str
    kind: Literal["published", "derived"]


class MetricRecord(_Model):
    """One metric.

    measured_by: the checks under whose names it was measured, where sessions are older than the
    check. link_class, engine: of the transfers that it is of. peak: what the node model allows, in
    the unit. published: what documents say of the same node model. values: by the number of the
    session; by_devices: by the letter of the node; aside: the nodes that are slow, and not in the
    entry. between_occasions: the largest difference of two occasions' medians over the median of
    all. within_run: the median over the sessions of half of the 95 % interval over the median.
    tolerance: its candidates, None where there can be none. entry: the reference, and why it is so:
    ``rule``, or why nothing is required.
    """

    unit: str
    measured_by: list[str] = Field(default_factory=list)
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
    occasions: dict[int, Group]
    between_occasions: float | None
    within_run: float | None
    values: dict[int, float]
    tolerance: ToleranceRecord | None = None
    by_devices: dict[str, Group] | None = None
    aside: list[str] = Field(default_factory=list)

    @field_validator("entry")
    @classmethod
    def _is_reference(cls, entry: list[Any], info: ValidationInfo) -> list[Any]:
        unit = info.data.get("unit")
        if any(faults("", str(unit), entry)):
            raise ValueError(f"{entry} is no reference [value, lower, upper, unit] in {unit}")
        return entry

    @property
    def required(self) -> bool:
        """Whether the entry requires something."""
        return self.entry[1] is not None or self.entry[2] is not None


class UnusedRecord(_Model):
    """A case that gave no values, and why."""

    session: int
    check: str
    why: str


class Record(_Model):
    """The record of one partition.

    clock: whether the values were measured or simulated. device_sets: by the letter of a node the
    unique ids of its devices, none where the runtime tells none. overlays: what changed a simulated
    node.
    """

    kind: Literal["calibration"] = "calibration"
    format: Literal[1] = 1
    partition: str
    clock: Clock = "measured"
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


def file_of(references: Path, partition: str) -> Path:
    """Return the file of a partition's record in a folder of reference files."""
    return references / FOLDER / f"{partition.replace(':', '-')}.yaml"


#: Returns what documents say of a check's metric in a unit, or None.
Expected = Callable[[str, str, str], PublishedRecord | None]


def build(runs: Sequence[Run], partition: str, expected: Expected = lambda *_: None) -> Record:
    """Make the record of the sessions of a partition, in the order of time.

    :param expected: what was published of the partition's node model.
    """
    sets: dict[str, frozenset[str]] = {}
    for run in runs:
        sets[run.group] = sets.get(run.group, frozenset()) | run.devices
    nodes = {run.number: run.group for run in runs}
    documents = [document for run in runs for document in run.documents]
    values: dict[str, dict[str, dict[int, Value]]] = {}
    for run in runs:
        for check, metrics in run.values.items():
            for metric, value in metrics.items():
                values.setdefault(check, {}).setdefault(metric, {})[run.number] = value
    occasions = {run.number: run.occasion for run in runs}
    return Record(
        partition=partition,
        clock=next((run.clock for run in runs if run.documents), "measured"),
        rule=rule.TEXT,
        same_devices=len(sets) == 1,
        device_names=sorted({one["name"] for document in documents for one in document["devices"]}),
        device_sets={name: sorted(ids) for name, ids in sets.items()},
        overlays={run.group: run.overlay for run in runs if run.overlay is not None},
        programs=_distinct([document["program"] for document in documents]),
        versions=_distinct([document["versions"] for document in documents]),
        sessions=[
            SessionRecord(
                number=run.number,
                uuid=run.session.uuid,
                date=datetime.fromtimestamp(run.session.start, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                occasion=run.occasion,
                devices=run.group,
            )
            for run in runs
        ],
        unused=[
            UnusedRecord(session=run.number, check=one.check, why=one.reason)
            for run in runs
            for one in run.unused
        ],
        checks={
            check: {
                metric: _metric(
                    check, found, occasions, nodes, expected(check, metric, _first(found).unit)
                )
                for metric, found in metrics.items()
            }
            for check, metrics in sorted(values.items())
        },
    )


def _first(found: Mapping[int, Value]) -> Value:
    return next(iter(found.values()))


def _distinct(entries: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    found = {tuple(sorted((key, str(value)) for key, value in one.items())) for one in entries}
    return [dict(one) for one in sorted(found)]


def _metric(
    check: str,
    found: Mapping[int, Value],
    occasions: Mapping[int, int],
    nodes: Mapping[int, str],
    published: PublishedRecord | None,
) -> MetricRecord:
    values = {number: one.value for number, one in found.items()}
    unit = _first(found).unit
    when = [occasions[number] for number in values]
    verdict = rule.judge(list(values.values()), when, unit, [nodes[number] for number in values])
    by_occasion = _groups(values, occasions)
    medians = [group.median for group in by_occasion.values()]
    middle = statistics.median(list(values.values()))
    widths = [one.half_width for one in found.values() if one.half_width is not None]
    between = (max(medians) - min(medians)) / middle if len(medians) > 1 and middle else None
    tolerance = verdict.tolerance
    bounds = [one.bound.value for one in found.values() if one.bound is not None]
    several = len(set(nodes.values())) > 1
    measured_by = {one.check for one in found.values()}
    return MetricRecord(
        unit=unit,
        measured_by=[] if measured_by == {check} else sorted(measured_by),
        link_class=_only({one.link_class for one in found.values()}),
        engine=_only({one.engine for one in found.values()}),
        # A time is bounded by zero, a count by nothing.
        peak=max(bounds) if bounds and unit not in ("us", "count") else None,
        published=published,
        entry=list(verdict.entry),
        why=verdict.reason,
        n=len(values),
        median=middle,
        mad=statistics.mad(list(values.values())),
        min=min(values.values()),
        max=max(values.values()),
        occasions=by_occasion,
        between_occasions=between,
        within_run=statistics.median(widths) if widths else None,
        tolerance=None if tolerance is None else ToleranceRecord(**vars(tolerance)),
        by_devices=_groups(values, nodes) if several else None,
        aside=list(verdict.aside),
        values=values,
    )


def _only(words: set[str | None]) -> str | None:
    """Return what sessions say of a metric, all of it where they differ."""
    return ", ".join(sorted(word for word in words if word is not None)) or None


def _groups(values: Mapping[int, float], of: Mapping[int, _K]) -> dict[_K, Group]:
    members: dict[_K, list[float]] = {}
    for number, value in values.items():
        members.setdefault(of[number], []).append(value)
    return {
        name: Group(n=len(own), median=statistics.median(own), mad=statistics.mad(own))
        for name, own in members.items()
    }


def read(path: Path) -> Record:
    """Read a record.

    :raises NotFoundError: when there is none.
    :raises InvalidInputError: when it is not one.
    """
    try:
        return Record.model_validate(yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER))
    except FileNotFoundError:
        raise NotFoundError(
            f"There is no calibration record {path}: fabricheck calibrate --write makes it."
        ) from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        first = (
            f"{'.'.join(map(str, error.errors()[0]['loc']))}: {error.errors()[0]['msg']}"
            if isinstance(error, ValidationError)
            else str(error)
        )
        raise InvalidInputError(f"{path}: is no calibration record ({first}).") from None


def read_of(references: Path, partition: str) -> Record:
    """Read the record of a partition in a folder of reference files.

    :raises NotFoundError: when there is none.
    :raises InvalidInputError: when it is not one, or another partition's.
    """
    path = file_of(references, partition)
    found = read(path)
    if found.partition != partition:
        raise InvalidInputError(f"{path}: is the record of {found.partition}, not of {partition}.")
    return found


def text(record: Record) -> str:
    """Return a record as YAML."""
    content = _plain(record.model_dump())
    content.yaml_set_start_comment(
        "Written by `fabricheck calibrate` (docs/calibration.md). Values are in the unit of\n"
        "their metric, by the number of the session; parts of a value are fractions."
    )
    out = io.StringIO()
    writer = YAML()
    writer.width = 120
    writer.indent(mapping=2, sequence=4, offset=2)
    writer.dump(content, out)
    return out.getvalue()


def _plain(value: Any, inline: bool = False) -> Any:
    """Return maps and lists for the writer, those that are short on one line."""
    made: Any
    if isinstance(value, dict):
        flat = inline or not any(isinstance(one, (dict, list)) for one in value.values())
        made = CommentedMap()
        for key, one in value.items():
            if key not in _OPTIONAL or one:
                made[key] = _plain(one, inline or (key in _INLINE and isinstance(one, dict)))
        if flat:
            made.fa.set_flow_style()
        return made
    if isinstance(value, list):
        made = CommentedSeq([_plain(one, True) for one in value])
        if inline or not any(isinstance(one, dict) for one in value):
            made.fa.set_flow_style()
        return made
    return value
