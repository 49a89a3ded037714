"""Sessions: what ReFrame's run reports say was run, where, and with what result.

Read is the report format of ReFrame 4.10 (data version 4.2), and of it only what is used here.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema

from fabricheck.errors import InvalidInputError, NotFoundError
from fabricheck.results.text import read_text, refuse_lone_surrogates

#: File that a program writes, and the name that it has until the program ends.
DOCUMENT_NAME = "result.json"
PARTIAL_NAME = "result.json.partial"

#: Results of ReFrame that mean success; an expected failure is one.
PASSED = frozenset({"pass", "xfail"})
#: Results of ReFrame that mean that the test did not run.
SKIPPED = frozenset({"skip"})

EXPERIMENT = re.compile(r"E([1-9]|1[0-5])")

#: Latest time that every calendar can write, in seconds since the epoch: 31 December 9998.
_LATEST = 253370764799

_CASE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["environ", "partition", "system", "display_name", "result", "tags"],
    "properties": {
        "environ": {"type": "string"},
        "partition": {"type": "string"},
        "system": {"type": "string"},
        "display_name": {"type": "string"},
        "unique_name": {"type": "string"},
        "result": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "fail_reason": {"type": ["string", "null"]},
        "fail_phase": {"type": ["string", "null"]},
        # By system:partition:metric the value, its reference and limits, the unit and the result.
        "perfvalues": {
            "type": ["object", "null"],
            "additionalProperties": {
                "type": "array",
                "minItems": 6,
                "prefixItems": [
                    {"type": ["number", "null"]},
                    *[{"type": ["number", "null"]}] * 3,
                    *[{"type": ["string", "null"]}] * 2,
                ],
            },
        },
        "outputdir": {"type": ["string", "null"]},
        "stagedir": {"type": ["string", "null"]},
    },
}
_REPORT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["session_info", "runs"],
    "properties": {
        "session_info": {
            "type": "object",
            "required": ["uuid", "hostname", "time_start_unix", "time_end_unix"],
            "properties": {
                "uuid": {"type": "string"},
                "data_version": {"type": "string"},
                "hostname": {"type": "string"},
                "time_start_unix": {"type": "number", "minimum": 0, "maximum": _LATEST},
                "time_end_unix": {"type": "number", "minimum": 0, "maximum": _LATEST},
                "prefix_output": {"type": "string"},
                "prefix_stage": {"type": "string"},
            },
        },
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["testcases"],
                "properties": {"testcases": {"type": "array", "items": _CASE_SCHEMA}},
            },
        },
    },
}


@dataclass(frozen=True)
class Judged:
    """What ReFrame held a value against: the reference, and its limits as parts of it.

    A limit of None bounds nothing. result: pass, fail, or expected failures xfail and xpass.
    """

    reference: float | None
    lower: float | None
    upper: float | None
    result: str | None


@dataclass(frozen=True)
class Case:
    """One check in one partition and environment, as its last attempt ended.

    A check that ReFrame repeats or distributes is a case each time, told apart by its name.
    ``folders`` are where its document may lie, in order; ``earlier`` are the attempts before this
    one (ReFrame's retries and reruns), first one first. ``phase`` is where a failed one failed, and
    ``values`` has by metric the value that ReFrame recorded, and its unit; ``judged`` what it was
    held against.
    """

    name: str
    system: str
    partition: str
    environ: str
    result: str
    reason: str | None
    tags: frozenset[str]
    folders: tuple[Path, ...]
    earlier: tuple[Case, ...] = ()
    phase: str | None = None
    values: Mapping[str, tuple[float, str]] = field(default_factory=dict, hash=False)
    judged: Mapping[str, Judged] = field(default_factory=dict, hash=False)

    @property
    def failed_attempts(self) -> int:
        """Number of attempts that failed before the last one."""
        return sum(not (case.passed or case.skipped) for case in self.earlier)

    @property
    def outcome(self) -> str:
        """ReFrame's result, and at which attempt where an earlier one failed."""
        if not self.failed_attempts:
            return self.result
        return f"{self.result} at attempt {len(self.earlier) + 1}"

    @property
    def passed(self) -> bool:
        """Whether the check did what was expected of it."""
        return self.result in PASSED

    @property
    def skipped(self) -> bool:
        """Whether the check did not run."""
        return self.result in SKIPPED

    @property
    def where(self) -> str:
        """The partition as ReFrame writes it: ``system:partition``."""
        return f"{self.system}:{self.partition}"

    @property
    def experiments(self) -> frozenset[str]:
        """The experiments among its tags; a check without any does not measure."""
        return frozenset(tag for tag in self.tags if EXPERIMENT.fullmatch(tag))

    @property
    def document_path(self) -> Path | None:
        """The document of the run, else what a killed run left of it, else None."""
        for name in (DOCUMENT_NAME, PARTIAL_NAME):
            for folder in self.folders:
                if (folder / name).is_file():
                    return folder / name
        return None


@dataclass(frozen=True)
class Session:
    """One call of ReFrame. Times are seconds since the epoch.

    ``outputs`` are the folders where the outputs of its checks may lie, in order.
    """

    id: str
    uuid: str
    report: Path
    hostname: str
    start: float
    end: float
    cases: tuple[Case, ...]
    data_version: str | None = None
    outputs: tuple[Path, ...] = ()

    @property
    def date(self) -> datetime:
        """The start in local time."""
        return datetime.fromtimestamp(self.start).astimezone()

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
        """Number of cases whose earlier attempt failed, however the last one ended."""
        return sum(case.failed_attempts > 0 for case in self.cases)

    @property
    def failed(self) -> int:
        """Number of cases that ran, or should have, and did not pass."""
        return len(self.cases) - self.passed - self.skipped


def read_report(path: Path, results: Path) -> Session:
    """Read one run report of ReFrame.

    :param path: the report.
    :param results: the results folder; when it was moved since, documents are looked for under
        its present place.
    :raises InvalidInputError: when the report can not be read or has another form.
    """
    try:
        # NaN becomes a text, and the schema names the place where it should be a number.
        report = json.loads(read_text(path), parse_constant=str)
        refuse_lone_surrogates(report)
    except NotFoundError as error:
        raise InvalidInputError(str(error)) from None
    except (ValueError, RecursionError):
        raise InvalidInputError(f"{path}: is not a whole run report of ReFrame.") from None
    errors = jsonschema.Draft202012Validator(_REPORT_SCHEMA).iter_errors(report)
    first = next(iter(errors), None)
    if first is not None:
        raise InvalidInputError(
            f"{path}: {first.json_path}: is not what a run report of ReFrame 4.10 has there."
        )
    info = report["session_info"]
    return Session(
        id=path.stem,
        uuid=info["uuid"],
        report=path,
        hostname=info["hostname"],
        start=info["time_start_unix"],
        end=info["time_end_unix"],
        cases=tuple(_cases(report, results)),
        data_version=info.get("data_version"),
        outputs=tuple(_outputs(info, results)),
    )


def _outputs(info: dict[str, Any], results: Path) -> Iterator[Path]:
    base = info.get("prefix_output")
    if base:
        yield Path(base)
        # The results may have been moved; the last folder is the session's (timestamps).
        yield results / "output" / Path(base).name


def _cases(report: dict[str, Any], results: Path) -> Iterator[Case]:
    attempts: dict[tuple[str | int, ...], list[Case]] = {}
    for run in report["runs"]:
        # An attempt is a run of ReFrame; what has the same name twice in one run are two cases.
        in_this_run: Counter[tuple[str, ...]] = Counter()
        for entry in run["testcases"]:
            unique = entry.get("unique_name") or entry["display_name"]
            who = (unique, *(entry[name] for name in ("system", "partition", "environ")))
            in_this_run[who] += 1
            case = _case(entry, report["session_info"], results)
            attempts.setdefault((*who, in_this_run[who]), []).append(case)
    for *earlier, last in attempts.values():
        yield dataclasses.replace(last, earlier=tuple(earlier))


def _case(entry: dict[str, Any], info: dict[str, Any], results: Path) -> Case:
    return Case(
        name=entry["display_name"],
        system=entry["system"],
        partition=entry["partition"],
        environ=entry["environ"],
        result=entry["result"],
        reason=entry.get("fail_reason"),
        tags=frozenset(entry["tags"]),
        folders=tuple(_folders(entry, info, results)),
        phase=entry.get("fail_phase"),
        values={
            key.rsplit(":", 1)[-1]: (value, unit or "")
            for key, (value, _, _, _, unit, *_) in (entry.get("perfvalues") or {}).items()
            if value is not None
        },
        judged={
            key.rsplit(":", 1)[-1]: Judged(reference, lower, upper, result)
            for key, (_, reference, lower, upper, _, result, *_) in (
                entry.get("perfvalues") or {}
            ).items()
        },
    )


def _folders(entry: dict[str, Any], info: dict[str, Any], results: Path) -> Iterator[Path]:
    # A check that passed has its kept files in the output folder, one that failed in the stage.
    kinds = [("outputdir", "prefix_output", "output"), ("stagedir", "prefix_stage", "stage")]
    if entry["result"] not in PASSED:
        kinds.reverse()
    for name, prefix, folder in kinds:
        recorded = entry.get(name)
        if not recorded:
            continue
        yield Path(recorded)
        base = info.get(prefix)
        if base and Path(recorded).is_relative_to(base):
            # The results may have been moved; their last folder may be the session's (timestamps).
            within = Path(recorded).relative_to(base)
            yield results / folder / within
            yield results / folder / Path(base).name / within
