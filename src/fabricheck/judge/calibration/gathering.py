"""Reading what several sessions measured in one partition, by session and node."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.judge.calibration import physics
from fabricheck.judge.calibration.groups import FLOORS
from fabricheck.judge.calibration.runs import (
    Run,
    Unused,
    Value,
    head_of,
    leave_out,
    name_nodes,
    number_occasions,
    refuse_impossible,
)
from fabricheck.node import NodeModel
from fabricheck.results import archive, nodes_asked, split_checks
from fabricheck.results.folder import Entry, ResultsFolder
from fabricheck.results.model import ResultDocument
from fabricheck.results.observed.partition import node_of
from fabricheck.results.session import Case, Session
from fabricheck.site import partitions

#: A longer pause between two sessions, in minutes, makes the later one another occasion.
PAUSE_MINUTES = 15.0

#: The version of ReFrame's run reports whose recorded values are known here.
DATA_VERSION = "4.2"

UNITS = frozenset({*FLOORS, "count"})


#: The feature of partitions whose node is simulated.
SIMULATED = "simulated"


def gather(
    paths: Sequence[Path],
    partition: str,
    pause: float = PAUSE_MINUTES,
    without: AbstractSet[str] = frozenset(),
) -> list[Run]:
    """Return what sessions measured in a partition, by session and node, in the order of time.

    :param paths: results folders, or archives of them, all of whose sessions count, those of jobs
        over many nodes too;
        folders of such jobs (``every-node/NAME``); or run reports in a results folder.
    :param partition: ``system:partition``.
    :param pause: in minutes; see `PAUSE_MINUTES`.
    :param without: nodes of which nothing is used, by the scheduler's name.
    :raises NotFoundError: when there is no such folder, report, or session in the partition.
    :raises InvalidInputError: when a report is not readable or of another form, a unit is unknown
        or differs between sessions, a value is outside physics, or values are simulated and the
        partition is not, or the reverse.
    :raises UsageError: when a check ran in several environments, or a node in `without` is in none.
    """
    simulated = SIMULATED in partitions.known(partition).get("features", [])
    runs: dict[tuple[str, str], Run] = {}
    for results, session, node in _sessions(paths):
        if any(case.where == partition for case in session.cases):
            for run in _runs(results, session, partition, node, simulated):
                runs.setdefault((session.uuid, run.named), run)
    if not runs:
        raise NotFoundError(f"There is no session of {partition} in {', '.join(map(str, paths))}.")
    ordered = sorted(runs.values(), key=lambda run: (run.session.start, run.named))
    leave_out(ordered, without)
    _check_units(ordered)
    name_nodes(ordered)
    number_occasions(ordered, pause)
    refuse_impossible(ordered)
    return ordered


def _sessions(paths: Sequence[Path]) -> Iterator[tuple[ResultsFolder, Session, str | None]]:
    """Yield sessions, and the node in whose own folder one lies."""
    for path, node in _folders(paths):
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
            yield folder, session, node


def _folders(paths: Sequence[Path]) -> Iterator[tuple[Path, str | None]]:
    """Yield results folders and reports; of a job over many nodes the folder of each node."""
    for path in map(archive.folder, paths):
        if not (path / nodes_asked.NAME).is_file():
            yield path, None
        for job in _jobs(path):
            for name, asked in nodes_asked.read(job).nodes.items():
                own = job.parent / (asked.results or name)
                if own.is_dir():
                    yield own, name


def _jobs(path: Path) -> list[Path]:
    """Return what says of which nodes a job was: of this folder, or of the jobs in it."""
    found = [path / nodes_asked.NAME, *sorted(path.glob(f"every-node/*/{nodes_asked.NAME}"))]
    return [file for file in found if file.is_file()]


def silent(paths: Sequence[Path], runs: Sequence[Run]) -> Iterator[str]:
    """Say which nodes a session was meant to measure that it has nothing of.

    References rest on the others, and those that are silent may be the ones that differ.

    :param paths: as of `gather`, which returned the runs.
    :raises InvalidInputError: when a list of nodes can not be read.
    """
    known = {run.node for run in runs}
    folders = [folder for run in runs for folder in run.session.outputs]
    own = [folder / nodes_asked.NAME for folder in folders]
    files = dict.fromkeys([job for path in paths for job in _jobs(path)] + own)
    for file in files:
        for name, asked in nodes_asked.read(file).nodes.items() if file.is_file() else ():
            if name not in known:
                state = ", ".join(word for word in (asked.state, asked.because, asked.said) if word)
                yield f"{name} is in {file}, and no session has it{f' ({state})' if state else ''}."


def _runs(
    folder: ResultsFolder, session: Session, partition: str, place: str | None, simulated: bool
) -> list[Run]:
    """Return a session's part in a partition by node.

    :param place: the node in whose own folder the session lies.
    :param simulated: whether the partition is.
    """
    runs: dict[tuple[str | None, str | None], Run] = {}
    entries = {id(entry.case): entry for entry in folder.entries(session)}
    environments: dict[str, str] = {}
    several: dict[int, dict[str, dict[str, list[Value]]]] = {}
    nowhere: list[Unused] = []
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
        document = entry.document if entry is not None else None
        node, overlay = _place(case, document, place)
        run = None
        if node is not None:
            run = runs.setdefault((node, overlay), Run(session, node, overlay))
        unused = _why_not(case, entry, partition, simulated)
        if unused is not None:
            said = Unused(check, unused[0], f"{session.id}: {unused[1]}")
            (nowhere if run is None else run.unused).append(said)
            continue
        assert run is not None and document is not None
        run.documents.append(head_of(document))
        model = node_of(partition, [document])
        for metric, value in _values(case, document, model):
            of_run = several.setdefault(id(run), {})
            today = split_checks.of_metric(check, metric)
            of_run.setdefault(today, {}).setdefault(metric, []).append(value)
    if not runs:
        name = place or session.hostname
        runs[name, None] = Run(session, name)
    next(iter(runs.values())).unused[:0] = nowhere
    for run in runs.values():
        run.devices = frozenset(
            device["unique_id"]
            for document in run.documents
            for device in document["devices"]
            if device["unique_id"] is not None
        )
        # A check that ReFrame repeated in a session has several values there, and a session one.
        run.values = {
            check: {metric: _middle(values) for metric, values in metrics.items()}
            for check, metrics in several.get(id(run), {}).items()
        }
    return list(runs.values())


def _place(
    case: Case, document: ResultDocument | None, folder: str | None
) -> tuple[str | None, str | None]:
    """Return the node of a case, by the scheduler's name if there is one, and its overlay."""
    if document is None:
        return case.node or folder, None
    host = document["host"]
    node = case.node or host.get("scheduler_node") or folder or host["hostname"]
    simulated = document.get("node")
    overlay = simulated["overlay"] if simulated else None
    return node, overlay["name"] if overlay else None


def _why_not(
    case: Case, entry: Entry | None, partition: str, simulated: bool
) -> tuple[str, str] | None:
    """Return why a case gives no values, without and with names, or None where it does."""
    said = f"{case.name} @{case.place}"
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
    if (document["clock"] == "simulated") != simulated:
        word = "a" if simulated else "no"
        raise InvalidInputError(
            f"{entry.path}: is {document['clock']}, and {partition} is {word} simulated "
            "partition: what was measured and what was simulated are calibrated apart."
        )
    if document["faults_injected"]:
        return "faults were injected", f"{said}: faults were injected into {entry.path}."
    if not case.values:
        return "no recorded values", f"{said} has no values in ReFrame's report."
    return None


def _values(
    case: Case, document: ResultDocument, model: NodeModel | None
) -> Iterator[tuple[str, Value]]:
    widths: dict[tuple[str, float], list[float]] = {}
    for series in document["series"]:
        if series["relative_half_width"] is not None:
            key = (series["unit"], series["median"])
            widths.setdefault(key, []).append(series["relative_half_width"])
    for metric, (value, unit) in case.values.items():
        decisive = widths.get((unit, value))
        width = statistics.median(decisive) if decisive else None
        about = physics.subject(document, model, metric, value, unit)
        check = case.name.split()[0]
        yield metric, Value(value, unit, width, about.link_class, about.engine, about.bound, check)


def _middle(values: Sequence[Value]) -> Value:
    widths = [one.half_width for one in values if one.half_width is not None]
    # One that can not be true stays: no median of repetitions hides it.
    false = next(
        (one for one in values if physics.impossible(one.value, one.unit, one.bound)), None
    )
    return dataclasses.replace(
        false or values[0],
        value=false.value if false else statistics.median(one.value for one in values),
        half_width=statistics.median(widths) if widths else None,
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
