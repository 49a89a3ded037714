"""The committed plan: which records are compared with which simulated series."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from fabricheck.core.errors import InvalidInputError, NotFoundError
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


Count = Annotated[int, Field(gt=0)]
Part = Annotated[float, Field(gt=0)]

#: One or several words; a single word may stand without a list.
Words = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda given: [given] if isinstance(given, str) else given),
    Field(strict=False),
]


class Tolerance(StrictModel):
    """Relative deviations that count as reproduced."""

    bandwidth: Part
    latency: Part
    fitted: Part

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
    ranks: Count | None = None

    @model_validator(mode="after")
    def _complete(self) -> ProgramRun:
        if self.program not in PROGRAMS:
            raise ValueError(
                f"there is no program {self.program}; the programs are {listed(PROGRAMS)}"
            )
        several = sum(given is not None for given in (self.placement, self.ranks))
        if several != (self.program in RANK_PROGRAMS):
            raise ValueError(
                "placement or ranks are for programs of several ranks, which require one of them"
            )
        return self


class Read(StrictModel):
    """The series to read from a run, and the conversion of its value.

    Several operations run in sequence: their times are added. They may come from several runs.
    ``domain`` selects the host memory: near the device, or the slowest of all others. With
    ``rank``, a place is the device of a rank that works while others do; without it, the devices of
    a series that uses them alone or that is the sum of theirs.
    """

    runs: Words = Field(alias="run")
    operations: Words = Field(alias="operation")
    bytes: Count | None = None
    counts: BytesOfCopy | None = None
    percent_of: Literal["path", "path-both"] | None = None
    convert: Literal["time"] | None = Field(default=None, alias="as")
    domain: Literal["near", "far"] | None = None
    rank: bool = False


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
        if isinstance(self.records, str) != (self.places is not None):
            raise ValueError("places require a pattern of records, and the reverse")
        if (self.read is None) == (self.not_run is None):
            raise ValueError("an entry has either read or not_run")
        return self


class Lost(StrictModel):
    """A rule on the fraction by which values are below others, as records are below records.

    Both are patterns of ids, in which {rank} is the index of a place. The fraction is ``above`` a
    bound, or at most ``within`` it in either direction.
    """

    records: str
    below: str
    above: float | None = None
    within: Part | None = None

    @model_validator(mode="after")
    def _complete(self) -> Lost:
        if (self.above is None) == (self.within is None):
            raise ValueError("lost requires either above or within")
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
        if (self.places is None) == (self.ratio is None):
            raise ValueError("a statement has either places or ratio")
        if self.against is not None and self.places is None:
            raise ValueError("a statement with against requires places")
        rules = (self.near, self.between, self.below, self.lost)
        if sum(rule is not None for rule in rules) != 1:
            raise ValueError("a statement has one of near, between, below and lost")
        if self.lost is not None and self.against is None:
            raise ValueError("a statement with lost requires against")
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
    def _aims_once(self) -> PlanFile:
        named = sorted(name for aim in self.aims.values() for name in aim.experiments)
        if self.aims and named != sorted(self.experiments):
            raise ValueError("every experiment must have one aim, or there are no aims")
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
    """A checked plan; every record in it exists and occurs once."""

    path: Path
    file: PlanFile
    records: Published
    fitted: tuple[Table, ...]
    predicted: tuple[Table, ...]
    beside: tuple[Table, ...]


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
    records = at(path.parent / file.published)
    expander = _Expander(path, file, node, records)
    plan = Plan(
        path,
        file,
        records,
        fitted=expander.tables(file.fitted, frozenset(), file.tolerance.fitted),
        predicted=expander.tables(file.predicted, expander.fitted_ids()),
        beside=expander.tables(file.beside, expander.fitted_ids()),
    )
    _check_fitted(plan, node)
    _check_complete(plan, node)
    for statement in file.statements:
        expander.check_statement(statement)
    return plan


def places_of(text: str, node: NodeModel, *, devices: bool, path: Path) -> tuple[Place, ...]:
    """Return the places that a text of the file names, in order; "ranks" is one place of all ranks.

    :param devices: whether "all" means devices, not ordered pairs.
    :raises InvalidInputError: when the text names no place.
    """
    n = len(node.devices)
    pairs = tuple((a, b) for a in range(n) for b in range(n) if a != b)
    if text == "all":
        return tuple((device,) for device in range(n)) if devices else pairs
    if text == "ranks":
        return ((),)
    found: list[Place] = []
    for word in text.split(","):
        members = tuple(pair for pair in pairs if node.link_class(*pair).name == word)
        if members:
            found += members
            continue
        place = tuple(
            int(part) if part.isdecimal() and len(part) < 9 else -1 for part in word.split("-")
        )
        if not all(0 <= device < n for device in place) or len(place) not in (1, 2):
            raise InvalidInputError(
                f"{path}: '{word}' is not a device, pair or link class of {node.name}."
            )
        found.append(place)
    return tuple(found)


class _Expander:
    def __init__(self, path: Path, file: PlanFile, node: NodeModel, records: Published) -> None:
        self.path = path
        self.file = file
        self.node = node
        self.all = records

    def record(self, name: str) -> Record:
        if name not in self.all.records:
            raise NotFoundError(f"{self.path}: {self.all.path} has no record '{name}'.")
        record = self.all.record(name)
        if not record.comparable:
            raise InvalidInputError(
                f"{self.all.path}: record '{name}' cannot be compared: it is in {record.unit}."
            )
        others = {
            (also.system, experiment) for also in self.file.also for experiment in also.experiments
        }
        known = record.system in self.node.systems
        if not known and (record.system, record.experiment) not in others:
            raise InvalidInputError(
                f"{self.path}: record '{name}' is of {record.system} ({record.accelerator}), which "
                f"has no node {self.node.name}."
            )
        return record

    def check_run(self, read: Read) -> None:
        for name in read.runs:
            if name not in self.file.runs:
                raise InvalidInputError(f"{self.path}: there is no run '{name}'.")

    def check_statement(self, statement: Statement) -> None:
        for read in filter(None, (statement.read, statement.against)):
            self.check_run(read)
        if statement.lost is not None:
            for pair in lost_records(statement, self.node, self.path):
                for name in pair:
                    self._check_units(self.record(name), statement.read)
        for name in statement.records:
            record = self.record(name)
            if statement.ratio is None and statement.against is None:
                self._check_units(record, statement.read)
            elif record.unit != "ratio" and not (statement.against and record.unit == "percent"):
                raise InvalidInputError(f"{self.path}: record '{name}' is not a ratio.")

    def fitted_ids(self) -> frozenset[str]:
        return frozenset(name for entry in self.file.fitted for name, _ in self._records(entry))

    def tables(
        self, entries: Iterable[Entry], without: frozenset[str], tolerance: float | None = None
    ) -> tuple[Table, ...]:
        return tuple(self._table(entry, without, tolerance) for entry in entries)

    def _table(self, entry: Entry, without: frozenset[str], tolerance: float | None) -> Table:
        if entry.read is not None:
            self.check_run(entry.read)
        pattern = isinstance(entry.records, str)
        rows = []
        for name, place in self._records(entry):
            if name in without and pattern:
                continue
            record = self.record(name)
            if entry.read is not None:
                self._check_units(record, entry.read)
            allowed = tolerance or self.file.tolerance.allowed(record)
            rows.append(Row(record, place, entry.read, allowed))
        return Table(entry.title, tuple(rows), entry.not_run or entry.reason)

    def _records(self, entry: Entry) -> list[tuple[str, Place]]:
        if isinstance(entry.records, dict):
            return [(name, self._place(place)) for name, place in entry.records.items()]
        assert entry.places is not None
        pattern = entry.records
        devices = "{device}" in pattern
        places = places_of(entry.places, self.node, devices=devices, path=self.path)
        try:
            return [(_named(pattern, place), place) for place in places]
        except (KeyError, IndexError, ValueError):
            raise InvalidInputError(
                f"{self.path}: the pattern '{pattern}' and the places '{entry.places}' do not "
                "match."
            ) from None

    def _place(self, text: str) -> Place:
        places = places_of(text, self.node, devices=True, path=self.path)
        if len(places) != 1:
            raise InvalidInputError(f"{self.path}: '{text}' is not one place.")
        return places[0]

    def _check_units(self, record: Record, read: Read) -> None:
        """Refuse a unit that cannot be converted to the record's unit."""
        latency = read.operations[0].startswith("latency") or read.convert == "time"
        given = "us" if latency else "percent" if read.percent_of else "GB/s"
        if given != record.unit:
            raise InvalidInputError(
                f"{self.path}: record '{record.id}' is in {record.unit}, but what is read for it "
                f"is in {given}."
            )
        if latency == (read.counts is not None):
            raise InvalidInputError(
                f"{self.path}: record '{record.id}': 'counts' is required for a bandwidth, and "
                "allowed only there."
            )


def _named(pattern: str, place: Place) -> str:
    """Insert a place into a pattern of record ids."""
    if len(place) == 1:
        return pattern.format(device=place[0])
    return pattern.format_map({"from": place[0], "to": place[1]})


def lost_records(statement: Statement, node: NodeModel, path: Path) -> list[tuple[str, str]]:
    """Return the record ids of each place of a statement: the lower values, and their base."""
    assert statement.lost is not None and statement.places is not None
    ranks = len(places_of(statement.places, node, devices=True, path=path))
    of = (statement.lost.records, statement.lost.below)
    return [(of[0].format(rank=rank), of[1].format(rank=rank)) for rank in range(ranks)]


def _ids(tables: Iterable[Table]) -> list[str]:
    return [row.record.id for table in tables for row in table.rows]


def _listed(names: Iterable[str]) -> str:
    return listed(sorted(names))


def _check_fitted(plan: Plan, node: NodeModel) -> None:
    if node.simulation is None:
        raise InvalidInputError(f"{node.file}: a comparison needs the key simulation.")
    parameters = [value for _, value in node.simulation if isinstance(value, Quantity)]
    wanted = {str(value.record) for value in parameters if value.kind == "fitted"}
    fitted = set(_ids(plan.fitted))
    if fitted != wanted:
        raise InvalidInputError(
            f"{plan.path}: the fitted records are not those of {node.file}: they differ in "
            f"{_listed(fitted ^ wanted)}."
        )
    if len(fitted) > MOST_FITTED:
        raise InvalidInputError(
            f"{plan.path}: {len(fitted)} records are fitted, more than {MOST_FITTED}."
        )


def _check_complete(plan: Plan, node: NodeModel) -> None:
    """Check that each comparable record occurs once, and that predicted records are exact."""
    counted = _ids(plan.predicted)
    left = _left_out(plan)
    every = [*_ids(plan.fitted), *counted, *_ids(plan.beside), *left]
    twice = {name for name in every if every.count(name) > 1}
    if twice:
        raise InvalidInputError(f"{plan.path}: {_listed(twice)} must occur only once.")
    known = frozenset(name for names in plan.file.experiments.values() for name in names)
    eligible = _eligible(plan.records, node.systems, known)
    for also in plan.file.also:
        eligible |= _eligible(plan.records, (also.system,), frozenset(also.experiments) & known)
    if missing := eligible - set(every):
        raise InvalidInputError(f"{plan.path}: neither compared nor left out: {_listed(missing)}.")
    if wrong := set(counted) - eligible:
        raise InvalidInputError(
            f"{plan.path}: not measured, exact and of these experiments: {_listed(wrong)}."
        )


def _left_out(plan: Plan) -> list[str]:
    """Return the ids of the records that a plan leaves out.

    :raises NotFoundError: for a pattern that matches no record.
    """
    left: list[str] = []
    for pattern in plan.file.left_out:
        found = plan.records.matching(pattern)
        if not found:
            raise NotFoundError(f"{plan.path}: {plan.records.path} has no record '{pattern}'.")
        left += [record.id for record in found]
    return left


def _eligible(
    records: Published, systems: tuple[str, ...], experiments: frozenset[str]
) -> set[str]:
    """Return the ids of records of systems and experiments: measured, exact and not secondary."""
    return {
        name
        for name, one in records.records.items()
        if one.system in systems
        and one.experiment in experiments
        and one.kind == "measured"
        and one.qualifier is None
        and not one.secondary
    }
