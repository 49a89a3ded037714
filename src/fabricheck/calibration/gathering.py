"""What several sessions measured in one partition: values by check and metric, and occasions.

An occasion is a stretch of sessions on the same devices without a longer pause. Documents do not
tell when the machine was started, so a restart is seen as its pause, or as other devices.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabricheck.calibration.rule import FLOORS
from fabricheck.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.results.folder import Entry, ResultsFolder
from fabricheck.results.model import ResultDocument
from fabricheck.results.session import Case, Session

#: A longer pause between two sessions, in minutes, makes the later one another occasion.
PAUSE_MINUTES = 15.0

#: The version of ReFrame's run reports whose recorded values are known here.
DATA_VERSION = "4.2"

UNITS = frozenset({*FLOORS, "count"})


@dataclass(frozen=True)
class Value:
    """What one session says of a metric.

    half_width: half of the 95 % interval over the median, of the series whose median the value is;
        None where it is of no single series.
    """

    value: float
    unit: str
    half_width: float | None


@dataclass(frozen=True)
class Unused:
    """A case that gives no values; `sentence` may name files and nodes, `reason` does not."""

    check: str
    reason: str
    sentence: str


@dataclass
class Run:
    """One session's part in one partition.

    number: from 1, in the order of time. devices: the unique ids. values: by check and metric.
    """

    session: Session
    number: int = 0
    occasion: int = 0
    devices: frozenset[str] = frozenset()
    values: dict[str, dict[str, Value]] = field(default_factory=dict)
    unused: list[Unused] = field(default_factory=list)
    documents: list[ResultDocument] = field(default_factory=list)


def gather(paths: Sequence[Path], partition: str, pause: float = PAUSE_MINUTES) -> list[Run]:
    """Return the sessions that ran something in a partition, in the order of time.

    :param paths: results folders, all of whose sessions count, or run reports in one.
    :param partition: ``system:partition``.
    :param pause: in minutes; see `PAUSE_MINUTES`.
    :raises NotFoundError: when there is no such folder, report, or session in the partition.
    :raises InvalidInputError: when a report is not readable or of another form, a unit is unknown
        or differs between sessions, or the values are simulated.
    :raises UsageError: when a check ran in several environments.
    """
    runs: dict[str, Run] = {}
    for folder, session in _sessions(paths):
        if any(case.where == partition for case in session.cases):
            runs.setdefault(session.uuid, _run(folder, session, partition))
    if not runs:
        raise NotFoundError(f"There is no session of {partition} in {', '.join(map(str, paths))}.")
    ordered = sorted(runs.values(), key=lambda run: run.session.start)
    _check_units(ordered)
    _number(ordered, pause)
    return ordered


def _sessions(paths: Sequence[Path]) -> Iterator[tuple[ResultsFolder, Session]]:
    for path in paths:
        if path.is_file():
            folder = ResultsFolder(path.resolve().parent.parent)
            found = [one for one in folder.sessions if one.report.samefile(path)]
            problems = [one for one in folder.problems if str(one).startswith(str(path.resolve()))]
            if problems:
                raise problems[0]
            if not found:
                raise NotFoundError(f"{path} is not a run report reports/run-*.json.")
        else:
            folder = ResultsFolder(path)
            # A session that can not be read might be the one that differs.
            if folder.problems:
                raise folder.problems[0]
            found = folder.sessions
        for session in found:
            if session.data_version != DATA_VERSION:
                raise InvalidInputError(
                    f"{session.report}: is of version {session.data_version} of ReFrame's run "
                    f"reports, and recorded values are read from version {DATA_VERSION}."
                )
            yield folder, session


def _run(folder: ResultsFolder, session: Session, partition: str) -> Run:
    run = Run(session)
    entries = {id(entry.case): entry for entry in folder.entries(session)}
    environments: dict[str, str] = {}
    several: dict[str, dict[str, list[Value]]] = {}
    for case in session.cases:
        if case.where != partition or not (case.experiments or case.values):
            continue
        check = case.name.split()[0]
        other = environments.setdefault(check, case.environ)
        if other != case.environ:
            raise UsageError(
                f"{session.report}: {check} ran in the environments {other} and {case.environ} of "
                f"{partition}, and a reference is of one: calibrate sessions of one environment."
            )
        entry = entries.get(id(case))
        unused = _why_not(case, entry)
        if unused is not None:
            run.unused.append(Unused(check, unused[0], f"{session.id}: {unused[1]}"))
            continue
        assert entry is not None and entry.document is not None
        run.documents.append(entry.document)
        for metric, value in _values(case, entry.document):
            several.setdefault(check, {}).setdefault(metric, []).append(value)
    run.devices = frozenset(
        device["unique_id"]
        for document in run.documents
        for device in document["devices"]
        if device["unique_id"] is not None
    )
    # A check that ReFrame repeated in a session has several values there, and a session one.
    run.values = {
        check: {metric: _middle(values) for metric, values in metrics.items()}
        for check, metrics in several.items()
    }
    return run


def _why_not(case: Case, entry: Entry | None) -> tuple[str, str] | None:
    """Return why a case gives no values, without and with names, or None where it does."""
    said = f"{case.name} @{case.where}"
    if case.skipped:
        return "skipped", f"{said} was skipped."
    if not case.passed:
        reason = f": {' '.join(case.reason.split()).rstrip('.')}" if case.reason else ""
        short = "missed its reference" if case.phase == "performance" else f"failed ({case.result})"
        return short, f"{said} {short}{reason}."
    if case.failed_attempts:
        return "failed at an earlier attempt", f"{said} failed at an earlier attempt."
    if entry is None or entry.document is None:
        problem = entry.problem if entry is not None else None
        return "no valid result document", str(problem or f"{said} left no result document.")
    document = entry.document
    if document["clock"] != "measured":
        raise InvalidInputError(
            f"{entry.path}: is simulated, and a calibration is of what was measured."
        )
    if document["faults_injected"]:
        return "faults were injected", f"{said}: faults were injected into {entry.path}."
    if not case.values:
        return "no recorded values", f"{said} has no values in ReFrame's report."
    return None


def _values(case: Case, document: ResultDocument) -> Iterator[tuple[str, Value]]:
    widths: dict[tuple[str, float], list[float]] = {}
    for series in document["series"]:
        if series["relative_half_width"] is not None:
            key = (series["unit"], series["median"])
            widths.setdefault(key, []).append(series["relative_half_width"])
    for metric, (value, unit) in case.values.items():
        decisive = widths.get((unit, value))
        yield metric, Value(value, unit, statistics.median(decisive) if decisive else None)


def _middle(values: Sequence[Value]) -> Value:
    widths = [one.half_width for one in values if one.half_width is not None]
    return Value(
        statistics.median(one.value for one in values),
        values[0].unit,
        statistics.median(widths) if widths else None,
    )


def _check_units(runs: Sequence[Run]) -> None:
    units: dict[tuple[str, str], str] = {}
    for run in runs:
        for check, metrics in run.values.items():
            for metric, value in metrics.items():
                unit = units.setdefault((check, metric), value.unit)
                if value.unit not in UNITS or value.unit != unit:
                    raise InvalidInputError(
                        f"{run.session.report}: metric {metric} of {check} is in "
                        f"{value.unit or 'no unit'}, and "
                        + (f"in {unit} in an earlier session." if value.unit != unit else
                           f"only {', '.join(sorted(UNITS))} can be calibrated.")
                    )  # fmt: skip


def _number(runs: Sequence[Run], pause: float) -> None:
    """Number sessions and occasions: another occasion after a pause, or on other devices."""
    before: Run | None = None
    for number, run in enumerate(runs, start=1):
        run.number = number
        run.occasion = 1 if before is None else before.occasion
        if before is not None and (
            run.session.start - before.session.end > 60 * pause
            or not same_devices(before.devices, run.devices)
        ):
            run.occasion += 1
        before = run


def same_devices(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sessions had the same devices; one may have used some of them only."""
    return one <= other or other <= one


def missing(runs: Sequence[Run]) -> Mapping[tuple[str, str], list[int]]:
    """Return by check and metric the numbers of the sessions that lack it, where some do."""
    every = {
        (check, metric) for run in runs for check in run.values for metric in run.values[check]
    }
    lacking = {
        (check, metric): [run.number for run in runs if metric not in run.values.get(check, {})]
        for check, metric in sorted(every)
    }
    return {key: numbers for key, numbers in lacking.items() if numbers}
