"""The file format of a comparison plan: one pydantic class per section."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    BeforeValidator,
    Field,
    model_validator,
)

from fabricheck.core.models import StrictModel
from fabricheck.core.vocabulary import BytesOfCopy
from fabricheck.site.clusters import PROGRAMS, RANK_PROGRAMS

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
                f"there is no program {self.program}; the programs are {', '.join(PROGRAMS)}"
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
    of: str
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


class MatrixOf(StrictModel):
    """A matrix to print: a pattern of records in `predicted` and `fitted`."""

    title: str
    records: str


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
    matrices: list[MatrixOf] = []

    @model_validator(mode="after")
    def _aims_once(self) -> PlanFile:
        named = sorted(name for aim in self.aims.values() for name in aim.experiments)
        if self.aims and named != sorted(self.experiments):
            raise ValueError("every experiment must have one aim, or there are no aims")
        return self
