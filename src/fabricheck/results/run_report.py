"""The form of ReFrame's run reports: what of them is read here, and of which type it has to be.

It is the form of ReFrame 4.10 (data version 4.2). What is not named here may be anything.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fabricheck.errors import InvalidInputError, NotFoundError
from fabricheck.results.text import read_text

#: Latest time that every calendar can write, in seconds since the epoch: 31 December 9998.
_LATEST = 253370764799

_Time = Annotated[float, Field(ge=0, le=_LATEST)]


def _recorded(value: list[Any]) -> tuple[float | None, str]:
    """Return value and unit of a recorded value; its reference and limits stand between them."""
    numbers, unit = value[:4], value[4]
    for number in numbers:
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ValueError("is no number")
        if math.isnan(number):
            raise ValueError("is NaN")
    if unit is not None and not isinstance(unit, str):
        raise ValueError("has no unit")
    return numbers[0], unit or ""


class _Section(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class TestCase(_Section):
    """One check in one partition and environment, in one run.

    perfvalues: by ``system:partition:metric`` the value (None where it has none) and its unit.
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
    perfvalues: (
        dict[str, Annotated[list[Any], Field(min_length=6), AfterValidator(_recorded)]] | None
    ) = None
    outputdir: str | None = None
    stagedir: str | None = None


class SessionInfo(_Section):
    """What holds for the whole session; times are seconds since the epoch."""

    uuid: str
    hostname: str
    time_start_unix: _Time
    time_end_unix: _Time
    data_version: str | None = None
    prefix_output: str = ""
    prefix_stage: str = ""


class Run(_Section):
    """The cases that ran, or ran again."""

    testcases: list[TestCase]


class RunReport(_Section):
    """One call of ReFrame."""

    session_info: SessionInfo
    runs: list[Run]


def read(path: Path) -> RunReport:
    """Read the report in a file.

    :raises InvalidInputError: when it can not be read or has another form.
    """
    try:
        return RunReport.model_validate_json(read_text(path))
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
