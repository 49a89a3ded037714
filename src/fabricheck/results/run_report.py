"""The form of ReFrame's run reports, as far as they are read here, and the reasons in them.

It follows ReFrame 4.10 (data version 4.2); other fields may have any form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from fabricheck.core import models
from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.core.forms import NodeName, Word, is_node_name
from fabricheck.core.text import read_text

#: Latest time that every calendar can represent, in seconds since the epoch: 31 December 9998.
_LATEST = 253370764799

_Time = Annotated[float, Field(ge=0, le=_LATEST)]

#: A number that a double can have, infinity included; NaN is not above the least.
_Number = (
    Annotated[int, Field(ge=-_LATEST, le=_LATEST)]
    | Annotated[float, Field(ge=-math.inf, allow_inf_nan=True)]
)


def _without_more(given: Any) -> Any:
    """Leave out what ReFrame adds to the list of a metric; its unit may be null."""
    if not isinstance(given, list) or len(given) < 6:
        return given
    *limits, unit, result = given[:6]
    return [*limits, "" if unit is None else unit, result]


class MetricResult(NamedTuple):
    """A metric as ReFrame recorded it.

    value: None without one; a plain test's may be infinite or NaN. lower, upper: the limits as
    fractions of the reference that it was compared with; a limit of None bounds nothing. result:
    pass, fail, or for expected failures xfail and xpass.
    """

    value: _Number | Annotated[float, Field(allow_inf_nan=True)] | None
    reference: _Number | None
    lower: _Number | None
    upper: _Number | None
    unit: str
    result: str | None

    @property
    def is_finite(self) -> bool:
        """Whether it has a value that can be compared with its limits."""
        return self.value is not None and math.isfinite(self.value)

    @property
    def has_limit(self) -> bool:
        """Whether a value can miss its reference: [0, null, null, unit] is report only."""
        return self.lower is not None or self.upper is not None

    @property
    def missed(self) -> bool:
        """Whether ReFrame says that it missed its reference."""
        return self.result is not None and self.result not in ("pass", "xfail")

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

    @property
    def nearest_limit(self) -> tuple[float, str, float | None] | None:
        """The limit nearest to the value, its kind, and the margin in percent.

        The margin is None if the limit is the reference itself, as for counts.
        """
        limits = []
        sides = ((self.least, self.lower, "at least", 1), (self.most, self.upper, "at most", -1))
        for limit, part, word, sign in sides:
            if limit is not None and self.value is not None and self.is_finite:
                left = sign * (self.value - limit)
                limits.append((limit, word, 100 * left / abs(limit) if part and limit else None))
        return min(
            limits, key=lambda attempt: 0.0 if attempt[2] is None else attempt[2], default=None
        )


#: The name of a session's log in our settings.
_LOG = re.compile(r"reframe-(?P<stamp>.+)\.log")


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
FAILURES = {name: failure for failure, name in EXCEPTIONS.items()}


#: The suffix that ReFrame adds to a check made once for each node (--distribute).
DISTRIBUTED = re.compile(r" %(?P<what>\.part|\.nid)=(?P<value>\S+)")


def _with_node_names(display_name: str) -> str:
    """Return the name of a check; refuse the name of a node in it that has not the form of one."""
    for match in DISTRIBUTED.finditer(display_name):
        if match["what"] == ".nid" and not is_node_name(match["value"]):
            raise ValueError("its node is not the name of one")
    return display_name


class TestCase(_Section):
    """One check in one partition and environment, in one run.

    exception: the class of the exception that ended a failed one. perfvalues: the recorded values
    by ``system:partition:metric``. scheduler: the name by which the partition's scheduler is
    registered with ReFrame. job_nodelist: the nodes of its job, with the local scheduler the
    machine that ReFrame ran on; a string without a job. job_exitcode: the exit code of the job
    script; None, or a text, without one. job_submit_time, job_completion_time_unix: when its job
    was started or queued, and when it ended; None, or a text, without a job.
    """

    __test__ = False

    environ: Word
    partition: Word
    system: Word
    display_name: Annotated[str, AfterValidator(_with_node_names)]
    result: str
    tags: list[str]
    unique_name: str = ""
    fail_reason: str | None = None
    fail_phase: str | None = None
    perfvalues: dict[str, Annotated[MetricResult, BeforeValidator(_without_more)]] | None = None
    outputdir: str | None = None
    stagedir: str | None = None
    scheduler: str | None = None
    job_nodelist: list[NodeName] | str | None = None
    # ReFrame writes an attribute that it could not read as "<undefined>".
    job_exitcode: int | str | None = None
    exception: str | None = Field(None, validation_alias=AliasPath("fail_info", "exc_type"))
    job_submit_time: _Time | str | None = None
    job_completion_time_unix: _Time | str | None = None


class SessionInfo(_Section):
    """The session as a whole; times are seconds since the epoch.

    version: ReFrame's. cmdline: its command line, with spaces between the arguments. log_files: the
    first is named by the start of the session and its process. whole,
    lacking: of joined sessions the set that they were to make together, where it is known, and
    sentences about what is missing.
    """

    uuid: Word
    hostname: NodeName
    time_start_unix: _Time
    time_end_unix: _Time
    data_version: str | None = None
    version: str = ""
    cmdline: str = ""
    prefix_output: str = ""
    prefix_stage: str = ""
    log_files: list[str] = []
    whole: str | None = Field(None, validation_alias=AliasPath("joined", "set"))
    lacking: list[str] = Field([], validation_alias=AliasPath("joined", "lacking"))

    @property
    def stamp(self) -> str:
        """What names the log of the session, as our settings name it; empty for another log."""
        for path in self.log_files:
            match = _LOG.fullmatch(Path(path).name)
            if match is not None:
                return match["stamp"]
        return ""


class Run(_Section):
    """The cases of one run or rerun."""

    testcases: list[TestCase]


class RunReport(_Section):
    """One call of ReFrame."""

    session_info: SessionInfo
    runs: list[Run]


def is_report(path: Path) -> bool:
    """Whether a file is a run report of ReFrame, wherever it lies; False if it cannot be read."""
    try:
        content = models.parse_json(read_text(path), path, infinite=True)
    except FabricheckError:
        return False
    return isinstance(content, dict) and {"session_info", "runs"} <= content.keys()


def parse_report(path: Path) -> RunReport:
    """Read a run report from a file.

    :raises InvalidInputError: when it cannot be read or has another form.
    """
    try:
        text = read_text(path)
        report = RunReport.model_validate_json(text)
        models.parse_json(text, path, infinite=True)
        return report
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


def missed_limit(
    metric: str, where: str, recorded: MetricResult, compared: str = "", reached: str = ""
) -> str:
    """Return the sentence of a check about one metric.

    :param where: pairs, devices and node.
    :param compared: for a metric that compares measurements, its value with these.
    :param reached: how many samples reached the limit, where that is said.
    """
    value, unit = math.nan if recorded.value is None else recorded.value, recorded.unit
    required = "its limit is not recorded"
    if recorded.least is not None:
        required = f"at least {recorded.least:g} {unit} is required"
    if recorded.most is not None and (recorded.least is None or value > recorded.most):
        required = f"at most {recorded.most:g} {unit} is required"
    if compared:
        return f"Metric {metric}: {where} measured {compared}; {required}{reached}."
    stated = recorded.reference
    reference = "" if stated is None else f" (reference {stated:g} {unit})"
    return f"Metric {metric}: {where} measured {value:g} {unit}; {required}{reference}{reached}."


def own_sentences(reason: str) -> list[str]:
    """Return the check's own sentences; ReFrame's are the first line and the indented ones."""
    lines = reason.splitlines()[1:]
    return [line for line in lines if line.strip() and not line[0].isspace()]
