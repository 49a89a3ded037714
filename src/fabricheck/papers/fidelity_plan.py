"""The plan of a comparison: which records are compared with which simulated series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.grouping import grouped
from fabricheck.core.models import StrictModel, validated
from fabricheck.core.show import listed
from fabricheck.core.vocabulary import BytesOfCopy
from fabricheck.core.yaml_files import read_mapping
from fabricheck.node import NodeModel
from fabricheck.node.loading import node_directory
from fabricheck.node.schema import Quantity
from fabricheck.references.published import Published, Record, at
from fabricheck.site.clusters import PROGRAMS, RANK_PROGRAMS

#: Devices of a series in order: (device,), (source, destination), or a set; empty for all ranks.
Place = tuple[int, ...]

#: The most fitted parameters; with more, little would be predicted. Twelve are for memory, links
#: and engines, and three for the cost of ranks, simultaneous copies of pageable memory and
#: messages.
MOST_FITTED = 12 + 3


_Count = Annotated[int, Field(gt=0)]
_Part = Annotated[float, Field(gt=0)]

#: One or several words; a single word may stand without a list.
_Words = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda given: [given] if isinstance(given, str) else given),
    Field(strict=False),
]


def _refuse(faults: Mapping[str, object]) -> None:
    """Refuse what has a fault, for the first one: its reason."""
    for reason, is_so in faults.items():
        if is_so:
            raise ValueError(reason)


class Tolerance(StrictModel):
    """Relative deviations that count as reproduced."""

    bandwidth: _Part
    latency: _Part
    fitted: _Part

    def allowed(self, record: Record) -> float:
        """Return that of a predicted record."""
        return self.latency if record.is_latency else self.bandwidth


class ProgramRun(StrictModel):
    """One run of a program; ``arguments`` are separated by blanks.

    A program of several ranks names a ``placement`` of the node model, or a number of ``ranks``,
    where rank n uses device n.
    """

    program: str
    arguments: str
    environment: dict[str, str] = {}
    placement: str | None = None
    ranks: _Count | None = None

    @model_validator(mode="after")
    def _complete(self) -> ProgramRun:
        several = sum(given is not None for given in (self.placement, self.ranks))
        _refuse({
            f"there is no program {self.program}; the programs are {listed(PROGRAMS)}":
                self.program not in PROGRAMS,
            "placement or ranks are for programs of several ranks, which require one of them":
                several != (self.program in RANK_PROGRAMS),
        })  # fmt: skip
        return self


class Read(StrictModel):
    """The series to read from a run, and the conversion of its value.

    Several operations run in sequence: their times are added. They may come from several runs.
    ``domain`` selects the host memory: near the device, or the slowest of all others. With
    ``rank``, a place is the device of a rank that works while others do; without it, the devices of
    a series that uses them alone or that is the sum of theirs.
    """

    runs: _Words = Field(alias="run")
    operations: _Words = Field(alias="operation")
    bytes: _Count | None = None
    counts: BytesOfCopy | None = None
    percent_of: Literal["path", "path-both"] | None = None
    convert: Literal["time"] | None = Field(default=None, alias="as")
    domain: Literal["near", "far"] | None = None
    rank: bool = False

    @property
    def unit(self) -> str:
        """The unit of a value: a time, unless it says how the publication counts bytes."""
        if self.counts is None or self.convert is not None:
            return "us"
        return "percent" if self.percent_of else "GB/s"


class Entry(StrictModel):
    """Records, and the source of their values: a pattern over places, or places by record."""

    title: str
    records: str | dict[str, str]
    places: str | None = None
    read: Read | None = None
    not_run: str | None = None
    reason: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Entry:
        _refuse({
            "places require a pattern of records, and the reverse":
                isinstance(self.records, str) != (self.places is not None),
            "an entry has either read or not_run": (self.read is None) == (self.not_run is None),
        })  # fmt: skip
        return self


class Lost(StrictModel):
    """A rule on the fraction by which values are below others, as records are below records.

    Both are patterns of ids, in which {rank} is the index of a place. The fraction is ``above`` a
    bound, or at most ``within`` it in either direction.
    """

    records: str
    below: str
    above: float | None = None
    within: _Part | None = None

    @model_validator(mode="after")
    def _complete(self) -> Lost:
        _refuse({"lost requires either above or within":
                 (self.above is None) == (self.within is None)})  # fmt: skip
        return self


class Statement(StrictModel):
    """A rule on simulated values, from published ranges, bounds or approximate values.

    With ``against``, a value is the fraction by which ``read`` is below it.
    """

    title: str
    read: Read
    against: Read | None = None
    places: str | None = None
    ratio: Annotated[tuple[str, str] | None, Field(strict=False)] = None
    near: str | None = None
    between: Annotated[tuple[str, str] | None, Field(strict=False)] = None
    below: str | None = None
    lost: Lost | None = None

    @model_validator(mode="after")
    def _complete(self) -> Statement:
        rules = (self.near, self.between, self.below, self.lost)
        _refuse({
            "a statement has either places or ratio": (self.places is None) == (self.ratio is None),
            "a statement with against requires places":
                self.against is not None and self.places is None,
            "a statement has one of near, between, below and lost":
                sum(rule is not None for rule in rules) != 1,
            "a statement with lost requires against":
                self.lost is not None and self.against is None,
        })  # fmt: skip
        return self

    @property
    def records(self) -> tuple[str, ...]:
        """The ids of the records used, without those of ``lost``."""
        return self.between or tuple(filter(None, (self.near, self.below)))


class Also(StrictModel):
    """Records of a system with another node model that are compared nevertheless, and why."""

    system: str
    experiments: list[str]
    reason: str


class Aim(StrictModel):
    """Experiments whose predicted records are counted together, with a remark."""

    experiments: list[str]
    remark: str | None = None


class PlanFile(StrictModel):
    """The whole plan file."""

    format: Literal[1]
    node: str
    published: str
    tolerance: Tolerance
    experiments: dict[str, list[str]]
    also: list[Also] = []
    aims: dict[str, Aim] = {}
    runs: dict[str, ProgramRun]
    fitted: Annotated[list[Entry], Field(min_length=1)]
    predicted: Annotated[list[Entry], Field(min_length=1)]
    beside: list[Entry] = []
    left_out: dict[str, str] = {}
    statements: list[Statement] = []

    @model_validator(mode="after")
    def _complete(self) -> PlanFile:
        named = sorted(name for aim in self.aims.values() for name in aim.experiments)
        reads = [entry.read for entry in (*self.fitted, *self.predicted, *self.beside)]
        reads += [
            read for statement in self.statements for read in (statement.read, statement.against)
        ]
        unknown = {name for read in filter(None, reads) for name in read.runs}.difference(self.runs)
        _refuse({
            "every experiment must have one aim, or there are no aims":
                self.aims and named != sorted(self.experiments),
            f"there is no run '{listed(sorted(unknown))}'": unknown,
        })  # fmt: skip
        return self


@dataclass(frozen=True)
class Row:
    """One record to compare, the devices of its series, and what was simulated for it.

    simulated: in the record's unit, None where nothing is run for it.
    """

    record: Record
    place: Place
    read: Read | None
    tolerance: float
    simulated: float | None = None

    @property
    def deviation(self) -> float | None:
        """The relative deviation of the simulated value from the published one."""
        return None if self.simulated is None else self.simulated / self.record.value - 1

    @property
    def within(self) -> bool:
        """Whether the deviation is within the tolerance."""
        return self.deviation is not None and abs(self.deviation) <= self.tolerance


@dataclass(frozen=True)
class Table:
    """The rows of one entry; ``remark`` is why they are not run, or do not count."""

    title: str
    rows: tuple[Row, ...]
    remark: str | None


@dataclass(frozen=True)
class Plan:
    """A plan, with the node that it is of and the records that it compares with."""

    path: Path
    file: PlanFile
    node: NodeModel
    records: Published

    @cached_property
    def tables(self) -> dict[str, tuple[Table, ...]]:
        """The rows that are fitted, predicted, and shown beside, by entry."""
        file = self.file
        fitted = [self._table(entry, file.tolerance.fitted) for entry in file.fitted]
        names = frozenset(_ids(fitted))
        return {
            "predicted": tuple(self._table(entry, without=names) for entry in file.predicted),
            "fitted": tuple(fitted),
            "beside": tuple(self._table(entry, without=names) for entry in file.beside),
        }

    def places(self, text: str, *, devices: bool = False) -> list[Place]:
        """Return the places that a text names, in order; "ranks" is one place of all ranks.

        :param devices: whether "all" means devices, not ordered pairs.
        :raises InvalidInputError: when the text names no place.
        """
        each: list[Place] = [(device,) for device in range(len(self.node.devices))]
        pairs: list[Place] = [*permutations(range(len(each)), 2)]
        known = grouped((self.node.link_class(*pair).name, pair) for pair in pairs)
        known |= {"-".join(map(str, place)): [place] for place in (*each, *pairs)}
        known |= {"all": each if devices else pairs, "ranks": [()]}
        for word in text.split(","):
            if word not in known:
                raise InvalidInputError(
                    f"{self.path}: '{word}' is not a device, pair or link class of "
                    f"{self.node.name}."
                )
        return [place for word in text.split(",") for place in known[word]]

    def record(self, name: str, unit: str | None = None) -> Record:
        """Return a record that the node can be compared with.

        :param unit: that of what is read for it.
        """
        if name not in self.records.records:
            raise NotFoundError(f"{self.path}: {self.records.path} has no record '{name}'.")
        record = self.records.record(name)
        if not record.comparable:
            raise InvalidInputError(
                f"{self.records.path}: record '{name}' cannot be compared: it is in {record.unit}."
            )
        if not self._is_of_node(record):
            raise InvalidInputError(
                f"{self.path}: record '{name}' is of {record.system} ({record.accelerator}), which "
                f"has no node {self.node.name}."
            )
        if unit not in (record.unit, None):
            lacks = ": 'counts' is required for a bandwidth" if unit == "us" else ""
            raise InvalidInputError(
                f"{self.path}: record '{name}' is in {record.unit}, but what is read for it is in "
                f"{unit}{lacks}."
            )
        return record

    def lost_records(self, statement: Statement) -> list[tuple[Record, Record]]:
        """Return the records of each place of a statement: the lower values, and their base."""
        assert statement.lost is not None and statement.places is not None
        lower, base = (
            [
                self.record(pattern.format(rank=rank), statement.read.unit)
                for rank in range(len(self.places(statement.places)))
            ]
            for pattern in (statement.lost.records, statement.lost.below)
        )
        return list(zip(lower, base, strict=True))

    def eligible(self) -> set[str]:
        """Return the ids of the records to compare: measured, exact and not secondary."""
        known = {name for names in self.file.experiments.values() for name in names}
        return {
            name
            for name, record in self.records.records.items()
            if record.experiment in known
            and self._is_of_node(record)
            and record.kind == "measured"
            and record.qualifier is None
            and not record.secondary
        }

    def _is_of_node(self, record: Record) -> bool:
        return record.system in self.node.systems or any(
            record.system == also.system and record.experiment in also.experiments
            for also in self.file.also
        )

    def _table(
        self,
        entry: Entry,
        tolerance: float | None = None,
        without: Collection[str] = (),
    ) -> Table:
        if isinstance(entry.records, dict):
            named = [
                (name, place)
                for name, text in entry.records.items()
                for place in self.places(text, devices=True)
            ]
        else:
            assert entry.places is not None
            named = [
                match
                for match in self._matching(entry.records, entry.places)
                if match[0] not in without
            ]
        unit = None if entry.read is None else entry.read.unit
        rows = []
        for name, place in named:
            record = self.record(name, unit)
            allowed = tolerance or self.file.tolerance.allowed(record)
            rows.append(Row(record, place, entry.read, allowed))
        return Table(entry.title, tuple(rows), entry.not_run or entry.reason)

    def _matching(self, pattern: str, text: str) -> list[tuple[str, Place]]:
        """Return the place for each record of a pattern."""
        places = self.places(text, devices="{device}" in pattern)
        parts = {1: ("device",), 2: ("from", "to")}
        try:
            return [
                (pattern.format_map(dict(zip(parts[len(place)], place, strict=True))), place)
                for place in places
            ]
        except (KeyError, ValueError):
            raise InvalidInputError(
                f"{self.path}: the pattern '{pattern}' and the places '{text}' do not match."
            ) from None


def plan_path(node: NodeModel) -> Path:
    """Return the file of a node's plan, ``reference_values/fidelity-NODE.yaml``.

    :raises NotFoundError: when there is none.
    """
    path = node_directory().parents[1] / "reference_values" / f"fidelity-{node.name}.yaml"
    if not path.is_file():
        raise NotFoundError(f"{path}: there is no such file, so {node.name} has no comparison.")
    return path


def read_plan(path: Path, node: NodeModel) -> Plan:
    """Read and check a plan against the node model and the published data set.

    :raises NotFoundError: for a file or a record that does not exist.
    :raises InvalidInputError: for a fault of the file, one sentence that names file and record.
    """
    content, _ = read_mapping(path)
    file = validated(PlanFile, content, path)
    if file.node != node.name:
        raise InvalidInputError(f"{path}: it is for node {file.node}, not for {node.name}.")
    plan = Plan(path, file, node, at(path.parent / file.published))
    _check_fitted(plan)
    _check_complete(plan)
    for statement in file.statements:
        if statement.lost is not None:
            plan.lost_records(statement)
        units = ("ratio", "percent") if statement.against is not None else ("ratio",)
        related = statement.ratio is not None or statement.against is not None
        for name in statement.records:
            record = plan.record(name, None if related else statement.read.unit)
            if related and record.unit not in units:
                raise InvalidInputError(f"{path}: record '{name}' is not a ratio.")
    return plan


def _ids(tables: Iterable[Table]) -> list[str]:
    """Return the ids of the records of some tables."""
    return [row.record.id for table in tables for row in table.rows]


def _check_fitted(plan: Plan) -> None:
    if plan.node.simulation is None:
        raise InvalidInputError(f"{plan.node.file}: a comparison needs the key simulation.")
    wanted = {
        str(value.record)
        for _, value in plan.node.simulation
        if isinstance(value, Quantity) and value.kind == "fitted"
    }
    fitted = set(_ids(plan.tables["fitted"]))
    if fitted != wanted:
        raise InvalidInputError(
            f"{plan.path}: the fitted records are not those of {plan.node.file}: they differ in "
            f"{listed(sorted(fitted ^ wanted))}."
        )
    if len(fitted) > MOST_FITTED:
        raise InvalidInputError(
            f"{plan.path}: {len(fitted)} records are fitted, more than {MOST_FITTED}."
        )


def _check_complete(plan: Plan) -> None:
    """Check that each comparable record occurs once, and that predicted records are exact."""
    times_of = Counter(name for tables in plan.tables.values() for name in _ids(tables))
    for pattern in plan.file.left_out:
        records = plan.records.matching(pattern)
        if not records:
            raise NotFoundError(f"{plan.path}: {plan.records.path} has no record '{pattern}'.")
        times_of.update(record.id for record in records)
    if twice := [name for name, times in times_of.items() if times > 1]:
        raise InvalidInputError(f"{plan.path}: {listed(sorted(twice))} must occur only once.")
    eligible = plan.eligible()
    if missing := eligible - times_of.keys():
        raise InvalidInputError(
            f"{plan.path}: neither compared nor left out: {listed(sorted(missing))}."
        )
    if wrong := set(_ids(plan.tables["predicted"])) - eligible:
        raise InvalidInputError(
            f"{plan.path}: not measured, exact and of these experiments: {listed(sorted(wrong))}."
        )
