"""The form of ReFrame's run reports: the fields that are read here, with their types.

It follows ReFrame 4.10 (data version 4.2). Other fields may have any form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from fabricheck.core import strict_json
from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.text import read_text

#: Latest time that every calendar can represent, in seconds since the epoch: 31 December 9998.
_LATEST = 253370764799

_Time = Annotated[float, Field(ge=0, le=_LATEST)]


@dataclass(frozen=True)
class ReferenceCheck:
    """The reference that ReFrame compared a value with, and the limits as fractions of it.

    A limit of None bounds nothing. result: pass, fail, or for expected failures xfail and xpass.
    """

    reference: float | None
    lower: float | None
    upper: float | None
    result: str | None

    @property
    def least(self) -> float | None:
        """The least value that passes, in the unit of the reference; None without that limit."""
        return self._limit(self.lower)

    @property
    def most(self) -> float | None:
        """The greatest value that passes, in the unit of the reference; None without that limit."""
        return self._limit(self.upper)

    def _limit(self, part: float | None) -> float | None:
        return None if self.reference is None or part is None else self.reference * (1 + part)


@dataclass(frozen=True)
class Recorded:
    """The value of a metric (None without one), its unit, and what it was compared with."""

    value: float | None
    unit: str
    judged: ReferenceCheck


def _recorded(value: Any) -> Recorded:
    """Parse what ReFrame writes as [value, reference, lower, upper, unit, result, ...]."""
    if not isinstance(value, list) or len(value) < 6:
        raise ValueError("is not a list of at least six")
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
            raise ValueError("is not a finite number") from None
    if unit is not None and not isinstance(unit, str):
        raise ValueError("has no unit")
    if result is not None and not isinstance(result, str):
        raise ValueError("has no result")
    return Recorded(
        numbers[0], unit or "", ReferenceCheck(numbers[1], numbers[2], numbers[3], result)
    )


class _Section(BaseModel):
    model_config = ConfigDict(defer_build=True, strict=True, allow_inf_nan=False)


#: Why a check failed, as a verdict distinguishes it: other devices than the partition states; a
#: setting that changed the values or hides devices; an impossible value (beyond a physical bound,
#: or two clocks disagree); its job at its time limit; its job ended by a user or the scheduler.
Failure = Literal["other-devices", "setting", "doubted-value", "time-over", "ended-by-scheduler"]

#: The names of the exceptions of each. ReFrame's reports name the class of an exception, and put
#: its words before the reason.
EXCEPTIONS: Mapping[Failure, str] = {
    "other-devices": "OtherDevicesError",
    "setting": "SettingError",
    "doubted-value": "DoubtedValueError",
    "time-over": "TimeOverError",
    "ended-by-scheduler": "EndedBySchedulerError",
}
_FAILURES = {name: failure for failure, name in EXCEPTIONS.items()}


class Raised(_Section):
    """The exception that ended a failed case: the name of its class."""

    exc_type: str

    @property
    def failure(self) -> Failure | None:
        """Why the check failed; None for other exceptions."""
        return _FAILURES.get(self.exc_type)

    def without_name(self, reason: str) -> str:
        """Return a reason without the words of an exception of ours before it."""
        words = f"{self.failure} error: ".replace("-", " ")
        return reason.removeprefix(words)


class TestCase(_Section):
    """One check in one partition and environment, in one run.

    perfvalues: the recorded values by ``system:partition:metric``. scheduler: the name by which the
    partition's scheduler is registered with ReFrame. job_nodelist: the nodes of its job, with the
    local scheduler the machine that ReFrame ran on; a string without a job. job_exitcode: the exit
    code of the job script; None, or a text, without one. job_submit_time, job_completion_time_unix:
    when its job was started or queued, and when it ended; None, or a text, without a job.
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
    # ReFrame writes an attribute that it could not read as "<undefined>".
    job_exitcode: int | str | None = None
    fail_info: Raised | None = None
    job_submit_time: _Time | str | None = None
    job_completion_time_unix: _Time | str | None = None


class Joined(_Section):
    """For a joined session: what the first part's command does not tell.

    sessions: their UUIDs. set: the set that they were to make together, where it is known. lacking:
    sentences about what is missing.
    """

    sessions: list[str]
    set: str | None = None
    lacking: list[str] = []


class SessionInfo(_Section):
    """The session as a whole; times are seconds since the epoch.

    version: ReFrame's. cmdline: its command line, with spaces between the arguments.
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
    """The cases of one run or rerun."""

    testcases: list[TestCase]


class RunReport(_Section):
    """One call of ReFrame."""

    session_info: SessionInfo
    runs: list[Run]


def read(path: Path) -> RunReport:
    """Read a run report from a file.

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
        raise InvalidInputError(f"{path}: this is not a complete run report of ReFrame.")
    place = "".join(
        f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{step!r}]"
        for step in first["loc"]
    )
    raise InvalidInputError(f"{path}: ${place}: this differs from the run reports of ReFrame 4.10.")
