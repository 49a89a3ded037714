"""The form of ReFrame's run reports: what of them is read here, and of which type it has to be.

It is the form of ReFrame 4.10 (data version 4.2). What is not named here may be anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from fabricheck.core import strict_json
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.text import read_text

#: Latest time that every calendar can write, in seconds since the epoch: 31 December 9998.
_LATEST = 253370764799

_Time = Annotated[float, Field(ge=0, le=_LATEST)]


@dataclass(frozen=True)
class Judged:
    """What ReFrame held a value against: the reference, and its limits as parts of it.

    A limit of None bounds nothing. result: pass, fail, or of expected failures xfail and xpass.
    """

    reference: float | None
    lower: float | None
    upper: float | None
    result: str | None

    @property
    def least(self) -> float | None:
        """The least value that passes, in the unit of the reference; None for no such limit."""
        return self._limit(self.lower)

    @property
    def most(self) -> float | None:
        """The greatest value that passes, in the unit of the reference; None for no such limit."""
        return self._limit(self.upper)

    def _limit(self, part: float | None) -> float | None:
        return None if self.reference is None or part is None else self.reference * (1 + part)


@dataclass(frozen=True)
class Recorded:
    """A value of a metric, None where it has none, its unit, and what it was held against."""

    value: float | None
    unit: str
    judged: Judged


def _recorded(value: Any) -> Recorded:
    """Return what ReFrame writes as [value, reference, lower, upper, unit, result, ...]."""
    if not isinstance(value, list) or len(value) < 6:
        raise ValueError("is not a list of six")
    numbers, unit, result = value[:4], value[4], value[5]
    for number in numbers:
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise ValueError("is not a number")
        try:
            if math.isnan(number):
                raise ValueError("is NaN")
        except OverflowError:
            raise ValueError("is beyond every number") from None
    if unit is not None and not isinstance(unit, str):
        raise ValueError("has no unit")
    if result is not None and not isinstance(result, str):
        raise ValueError("has no result")
    return Recorded(numbers[0], unit or "", Judged(numbers[1], numbers[2], numbers[3], result))


class _Section(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class Raised(_Section):
    """What ended a case that failed: the name of the exception's class."""

    exc_type: str


class TestCase(_Section):
    """One check in one partition and environment, in one run.

    perfvalues: by ``system:partition:metric`` what was recorded.
    scheduler: the name by which the partition's scheduler is registered with ReFrame.
    job_nodelist: the nodes of its job, of the local scheduler the machine that ReFrame ran on; a
        string where there was no job.
    job_exitcode: that of the job's script; None, or a text, where there is none.
    job_submit_time, job_completion_time_unix: when its job was started or went into the queue, and
        ended; None, or a text, where there was none.
    """

    __test__ = False

    environ: str
    partition: str
    system: str
    display_name: str
    result: str
    tags: list[str]
    unique_name: str = ""
    fail_reason: str | None = None
    fail_phase: str | None = None
    perfvalues: dict[str, Annotated[Recorded, PlainValidator(_recorded)]] | None = None
    outputdir: str | None = None
    stagedir: str | None = None
    scheduler: str | None = None
    job_nodelist: list[str] | str | None = None
    # An attribute that ReFrame could not read is the text "<undefined>".
    job_exitcode: int | str | None = None
    fail_info: Raised | None = None
    job_submit_time: _Time | str | None = None
    job_completion_time_unix: _Time | str | None = None


class Joined(_Section):
    """Of a session that is made of several: what the first one's command does not say.

    sessions: their UUIDs. set: the set that they were to be together, where it is known. lacking:
    in sentences what is not in it.
    """

    sessions: list[str]
    set: str | None = None
    lacking: list[str] = []


class SessionInfo(_Section):
    """What holds for the whole session; times are seconds since the epoch.

    version: ReFrame's. cmdline: the words that it was called with, with spaces between them.
    """

    uuid: str
    hostname: str
    time_start_unix: _Time
    time_end_unix: _Time
    data_version: str | None = None
    version: str = ""
    cmdline: str = ""
    prefix_output: str = ""
    prefix_stage: str = ""
    joined: Joined | None = None


class Run(_Section):
    """The cases that ran, or ran again."""

    testcases: list[TestCase]


class RunReport(_Section):
    """One call of ReFrame."""

    session_info: SessionInfo
    runs: list[Run]


def read(path: Path) -> RunReport:
    """Read the report in a file.

    :raises InvalidInputError: when it cannot be read or has another form.
    """
    try:
        text = read_text(path)
        found = RunReport.model_validate_json(text)
        strict_json.parse(text, path, infinite=True)
        return found
    except NotFoundError as error:
        raise InvalidInputError(str(error)) from None
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        raise InvalidInputError(f"{path}: is not a whole run report of ReFrame.")
    place = "".join(
        f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{step!r}]"
        for step in first["loc"]
    )
    raise InvalidInputError(
        f"{path}: ${place}: is not what a run report of ReFrame 4.10 has there."
    )
