"""Sessions: what ran, where, and with which result, from ReFrame's run reports.

First the form of the reports: the fields that are read here. It follows ReFrame 4.10 (data version
4.2); other fields may have any form. At the end what a report lacks: the checks that a session
could select on each partition.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import chain
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
from fabricheck.core.grouping import grouped
from fabricheck.core.models import StrictModel, read_model
from fabricheck.core.nodelists import folded
from fabricheck.core.show import listed
from fabricheck.core.text import count, printable, read_text
from fabricheck.core.vocabulary import EXPERIMENTS
from fabricheck.core.whole_files import write_whole
from fabricheck.results.metric_records import RENAMED
from fabricheck.results.requested_nodes import Moment
from fabricheck.site import sets
from fabricheck.site.deviations import Deviation, DeviationName

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
        found = []
        sides = ((self.least, self.lower, "at least", 1), (self.most, self.upper, "at most", -1))
        for limit, part, word, sign in sides:
            if limit is not None and self.value is not None and self.is_finite:
                left = sign * (self.value - limit)
                found.append((limit, word, 100 * left / abs(limit) if part and limit else None))
        return min(
            found, key=lambda attempt: 0.0 if attempt[2] is None else attempt[2], default=None
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


#: The suffix that ReFrame adds to a check made once for each node (--distribute).
_DISTRIBUTED = re.compile(r" %(?P<what>\.part|\.nid)=(?P<value>\S+)")


def _with_node_names(display_name: str) -> str:
    """Return the name of a check; refuse the name of a node in it that has not the form of one."""
    for found in _DISTRIBUTED.finditer(display_name):
        if found["what"] == ".nid" and not is_node_name(found["value"]):
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
            found = _LOG.fullmatch(Path(path).name)
            if found is not None:
                return found["stamp"]
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
        found = RunReport.model_validate_json(text)
        models.parse_json(text, path, infinite=True)
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


#: The file that a program writes, and its name until the program ends.
DOCUMENT_NAME = "result.json"
PARTIAL_NAME = "result.json.partial"

#: Results of ReFrame that mean success, including an expected failure.
PASSED = frozenset({"pass", "xfail"})
#: Results of ReFrame for tests that did not run.
SKIPPED = frozenset({"skip"})

#: The result of a case without a run report.
UNREPORTED = "unknown"

#: The suffix that ReFrame adds to a check repeated in one session (--repeat).
REPETITION = re.compile(r" %\S*repeat_no=(?P<number>\d+)")

#: The name of a session's log in our settings.
_LOG = re.compile(r"reframe-(?P<stamp>.+)\.log")

#: The scheduler whose jobs are processes of the machine that ReFrame runs on.
_LOCAL = "local"


@dataclass(frozen=True)
class Case:
    """One check in one partition and environment, by its last attempt.

    Each repetition of a check is a case, told apart by its name; a distributed check is told
    apart by its node. ``folders`` are where its document may be, in order; ``earlier`` are the
    attempts before this one (ReFrame's retries and reruns), the first one first. ``phase`` is
    the phase in which it failed; ``metrics`` are as it recorded them. ``node`` is the node
    assigned by the scheduler, by the scheduler's name, or the host list of several; None
    without a scheduler, and for a job never placed. ``exit_code`` is that of its job, None
    without one, and ``failure`` why it failed, where a check distinguishes it.
    ``submitted`` and ``ended`` are when its job was started or queued, and when it ended, in
    seconds since the epoch; None without a job.
    """

    name: str
    system: str
    partition: str
    environ: str
    result: str
    reason: str | None
    tags: frozenset[str]
    folders: tuple[str, ...]
    earlier: tuple[Case, ...] = ()
    phase: str | None = None
    metrics: Mapping[str, MetricResult] = field(default_factory=dict, hash=False)
    node: str | None = None
    exit_code: int | None = None
    failure: Failure | None = None
    submitted: float | None = None
    ended: float | None = None

    @cached_property
    def values(self) -> Mapping[str, tuple[float, str]]:
        """The value and the unit of each metric that has one."""
        return {
            name: (metric.value, metric.unit)
            for name, metric in self.metrics.items()
            if metric.value is not None
        }

    @property
    def failed_attempts(self) -> int:
        """Number of attempts that failed before the last one."""
        return sum(not (case.passed or case.skipped) for case in self.earlier)

    @property
    def outcome(self) -> str:
        """ReFrame's result, with the attempt's number where an earlier one failed."""
        if not self.failed_attempts:
            return self.result
        return f"{self.result} at attempt {len(self.earlier) + 1}"

    @property
    def passed(self) -> bool:
        """Whether the check succeeded."""
        return self.result in PASSED

    @property
    def why(self) -> list[str]:
        """Why it failed: of missed references the check's own sentences, else what ReFrame says."""
        reason = self.reason or ""
        own = own_sentences(reason) if self.phase == "performance" else []
        whole = " ".join(reason.split())
        if own or not whole:
            return own
        return [whole]

    @property
    def skipped(self) -> bool:
        """Whether the check did not run."""
        return self.result in SKIPPED

    @property
    def where(self) -> str:
        """The partition as ReFrame writes it: ``system:partition``."""
        return f"{self.system}:{self.partition}"

    @property
    def place(self) -> str:
        """Where it ran, for a sentence: ``system:partition``, and the node where known."""
        return f"{self.where} on {self.node}" if self.node else self.where

    @property
    def experiments(self) -> frozenset[str]:
        """The experiments among its tags; a check without any does not measure."""
        return self.tags & set(EXPERIMENTS)

    @property
    def results(self) -> Path | None:
        """The results folder that it is in."""
        parents = Path(next(iter(self.folders), "")).parents
        return next(
            (parent.parent for parent in parents if parent.name in ("output", "stage")), None
        )

    @property
    def document_path(self) -> Path | None:
        """The document of the run, else what a killed run left of it, else None."""
        for name in (DOCUMENT_NAME, PARTIAL_NAME):
            for folder in self.folders:
                path = f"{folder}/{name}"
                if os.path.isfile(path):  # noqa: PTH113 - a Path for each takes longer
                    return Path(path)
        return None


@dataclass(frozen=True)
class Session:
    """One call of ReFrame. Times are seconds since the epoch.

    ``outputs`` are the folders where the outputs of its checks may be, in order; ``reframe`` is
    ReFrame's version, and ``command`` its command line. For joined sessions ``command`` is the
    first one's, ``whole`` the set that all make together, and ``lacking`` says what is missing.
    ``report`` is None for a session that was killed or is still running, and for documents outside
    any session, which have no id: ``paths`` are their documents, and the cases those that the
    folders show (`folder.without_report`). ``stamp`` names its mark; empty where the report does
    not tell it.
    """

    id: str
    uuid: str
    report: Path | None
    hostname: str
    start: float
    end: float
    cases: tuple[Case, ...]
    data_version: str | None = None
    outputs: tuple[Path, ...] = ()
    reframe: str = ""
    command: str = ""
    whole: str | None = None
    lacking: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()
    stamp: str = ""

    @property
    def date(self) -> datetime:
        """The start in local time."""
        return datetime.fromtimestamp(self.start).astimezone()

    @property
    def nodes(self) -> tuple[str | None, ...]:
        """The nodes of its cases, in their order; None for cases with an unknown node."""
        return tuple(dict.fromkeys(case.node for case in self.cases))

    @property
    def choice(self) -> sets.Choice:
        """What selected its checks, and the set they make."""
        if self.whole is not None:
            return sets.Choice((), self.whole)
        return sets.chosen(self.command)

    @property
    def passed(self) -> int:
        """Number of cases that passed in their last attempt."""
        return sum(case.passed for case in self.cases)

    @property
    def skipped(self) -> int:
        """Number of cases that did not run."""
        return sum(case.skipped for case in self.cases)

    @property
    def retried(self) -> int:
        """Number of cases whose earlier attempt failed, whatever the last one's result."""
        return sum(case.failed_attempts > 0 for case in self.cases)

    @property
    def failed(self) -> int:
        """Number of cases that ran, or should have, and did not pass."""
        return len(self.cases) - self.passed - self.skipped


def read_report(path: Path, results: Path, node: str | None = None) -> Session:
    """Read one run report of ReFrame.

    :param path: the report.
    :param results: the results folder; if it was moved, documents are sought under its present
        place.
    :param node: the node of the results folder, if it has one.
    :raises InvalidInputError: when the report cannot be read or has another form.
    """
    report = parse_report(path)
    info = report.session_info
    return Session(
        id=path.stem,
        uuid=info.uuid,
        report=path,
        hostname=info.hostname,
        start=info.time_start_unix,
        end=info.time_end_unix,
        cases=tuple(_cases(report, results, node)),
        data_version=info.data_version,
        outputs=tuple(
            map(Path, _places(info.prefix_output, info.prefix_output, results, "output"))
        ),
        reframe=printable(info.version),
        command=printable(info.cmdline),
        whole=info.whole,
        lacking=tuple(map(printable, info.lacking)),
        stamp=info.stamp,
    )


def _cases(report: RunReport, results: Path, node: str | None) -> Iterator[Case]:
    attempts = []
    for run in report.runs:
        # An attempt is a run of ReFrame; the same name twice in one run is two cases.
        in_this_run: Counter[tuple[str, ...]] = Counter()
        for entry in run.testcases:
            unique = entry.unique_name or entry.display_name
            who = (unique, entry.system, entry.partition, entry.environ)
            in_this_run[who] += 1
            case = _case(entry, report.session_info, results, node)
            attempts.append(((*who, in_this_run[who]), case))
    for tried in grouped(attempts).values():
        # A pass on another node does not excuse a failure. Attempts without a node count with the
        # last one.
        by_node = grouped((attempt.node or tried[-1].node, attempt) for attempt in tried)
        for *earlier, last in by_node.values():
            yield replace(last, earlier=tuple(earlier)) if earlier else last


def _case(entry: TestCase, info: SessionInfo, results: Path, node: str | None = None) -> Case:
    """Return one attempt of a check, as a report describes it.

    :param results: the results folder, as of `read_report`; so is ``node``.
    """
    name, reason = printable(entry.display_name), entry.fail_reason
    submitted, ended = entry.job_submit_time, entry.job_completion_time_unix
    failure = _FAILURES.get(entry.exception or "")
    if failure is not None and reason is not None:
        reason = reason.removeprefix(f"{failure.replace('-', ' ')} error: ")
    metrics = {}
    for key, values in (entry.perfvalues or {}).items():
        metric = key.rsplit(":", 1)[-1]
        metrics[RENAMED.get(metric, metric)] = values
    if reason is not None:
        for older, present in RENAMED.items():
            reason = reason.replace(older, present)
    return Case(
        name=_DISTRIBUTED.sub("", name),
        system=entry.system,
        partition=entry.partition,
        environ=entry.environ,
        result=printable(entry.result),
        reason=None if reason is None else printable(reason),
        tags=frozenset(entry.tags),
        folders=tuple(_folders(entry, info, results)),
        phase=entry.fail_phase,
        metrics=metrics,
        node=_node(entry, name) or node,
        exit_code=entry.job_exitcode if isinstance(entry.job_exitcode, int) else None,
        failure=failure,
        submitted=submitted if not isinstance(submitted, str) else None,
        ended=ended if not isinstance(ended, str) else None,
    )


def _node(entry: TestCase, name: str) -> str | None:
    # The job's own list is empty for a distributed case that was never submitted.
    nodes = entry.job_nodelist if entry.scheduler and isinstance(entry.job_nodelist, list) else []
    # With the local scheduler --distribute knows one node, localhost, which is not a node's name;
    # several are those of a step.
    if entry.scheduler == _LOCAL and len(nodes) < 2:
        return None
    for found in _DISTRIBUTED.finditer(name):
        if found["what"] == ".nid":
            return found["value"]
    return folded(nodes) if nodes else None


def _folders(entry: TestCase, info: SessionInfo, results: Path) -> Iterator[str]:
    # ReFrame keeps the files of a passed check in the output folder, of a failed one in the stage.
    output = _places(entry.outputdir, info.prefix_output, results, "output")
    stage = _places(entry.stagedir, info.prefix_stage, results, "stage")
    return chain(output, stage) if entry.result in PASSED else chain(stage, output)


def _places(recorded: str | None, base: str, results: Path, kind: str) -> Iterator[str]:
    """Return where a recorded folder may be: where the results are now, then where they were.

    The present place comes first, so that copied results are not read from the original.

    :param recorded: the folder, as the report names it.
    :param base: ReFrame's prefix of it, whose last part is the session's own folder, or ``output``
        or ``stage`` where sessions have none.
    :param kind: the name of the present one in the results folder, ``output`` or ``stage``.
    """
    if not recorded:
        return
    if base and f"{recorded}/".startswith(f"{base}/"):
        own = base.rstrip("/").rpartition("/")[2]
        within = recorded[len(base) :].strip("/")
        folder = f"{results}/{kind}" if own == kind else f"{results}/{kind}/{own}"
        present = f"{folder}/{within}"
        yield present
        if present == recorded:
            return
    yield recorded


# A report lists only what ran. So the session guard writes the checks of all partitions beside the
# results before anything is measured, and names those that are lost. A verdict compares the checks
# that ran with them.

#: The file, in the folder of a session's outputs.
CHECKS_FILE = "checks.json"


class PartitionChecks(StrictModel):
    """The checks of a partition.

    checks: by class name the tags of each. lost: by name of a check, or of an experiment without
    one, why it should be there. ran: those that ran, in this session or an earlier one. plain:
    tests of ReFrame alone, which other sessions may lack. without_value: by check that passed its
    performance variables without a value, or in another unit than that of their references;
    ReFrame only warns of them. deviations: how the session deviated here from what its commit
    states; accepts: by name those that the site file accepts.
    """

    checks: Mapping[str, Sequence[str]]
    lost: Mapping[str, str] = {}
    ran: Sequence[str] = ()
    plain: Sequence[str] = ()
    without_value: Mapping[str, Sequence[str]] = {}
    deviations: Sequence[Deviation] = ()
    accepts: Sequence[DeviationName] = ()

    def valueless(self, where: str) -> Iterator[str]:
        """Yield one sentence for each check that passed without a value."""
        for name, metrics in self.without_value.items():
            yield f"{name} on {where} passed without a value of {listed(metrics)}."

    def losses(self, where: str) -> Iterator[str]:
        """Yield one sentence for each reason why the partition lost checks.

        :param where: ``system:partition``.
        """
        for why, names in grouped((why, name) for name, why in self.lost.items()).items():
            yield f"{where} lost {count(len(names), 'check')}: {listed(names)}, {why}."

    def of_set(self, name: str | None) -> list[str]:
        """Return the checks of a set; none without a set."""
        return [check for check, tags in self.checks.items() if name in tags]


class SessionChecks(StrictModel):
    """The checks of a session's partitions, by ``system:partition``."""

    form: Literal["fabricheck-checks-1"] = "fabricheck-checks-1"
    written: Moment
    partitions: Mapping[str, PartitionChecks]


def write_checks(outputs: Path, checks: SessionChecks) -> None:
    """Write the record of a session.

    :param outputs: the folder of its outputs.
    :raises NotFoundError: when it cannot be written.
    """
    outputs.mkdir(parents=True, exist_ok=True)
    write_whole(outputs / CHECKS_FILE, checks.model_dump_json() + "\n")


def joined_checks(records: Sequence[SessionChecks]) -> SessionChecks:
    """Return the first record with the deviations of all, and what all of them accept."""
    first, *others = records
    partitions = dict(first.partitions)
    for where, its in first.partitions.items():
        rest = [record.partitions[where] for record in others if where in record.partitions]
        deviations = [*its.deviations]
        accepts = [*its.accepts]
        for other in rest:
            deviations += [each for each in other.deviations if each not in deviations]
            accepts = [name for name in accepts if name in other.accepts]
        changes = {"deviations": deviations, "accepts": accepts}
        partitions[where] = its.model_copy(update=changes)
    return first.model_copy(update={"partitions": partitions})


def checks_of(outputs: Iterable[Path]) -> Mapping[str, PartitionChecks]:
    """Return the checks of a session's partitions; empty without a record.

    :param outputs: the folders where its outputs may be, in order.
    :raises InvalidInputError: when the record cannot be read.
    """
    for folder in outputs:
        if (folder / CHECKS_FILE).is_file():
            return read_model(folder / CHECKS_FILE, SessionChecks).partitions
    return {}


def last_checks(results: Path, where: str) -> SessionChecks | None:
    """Return the last record of a partition in a results folder; None without one.

    A session of plain tests alone does not count: it may lack every check of this suite.

    :param where: ``system:partition``.
    :raises InvalidInputError: when it, or a later one, cannot be read.
    """
    # The names of the folders begin with the start of the session.
    paths = sorted(results.glob(f"output/*/{CHECKS_FILE}"), reverse=True)
    records = (read_model(path, SessionChecks) for path in paths)
    return next(
        (
            record
            for record in records
            if (found := record.partitions.get(where)) and found.checks.keys() - found.plain
        ),
        None,
    )
