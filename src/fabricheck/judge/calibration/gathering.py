"""Values that several sessions measured in one partition, by session and node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.judge.calibration.groups import FLOORS
from fabricheck.judge.calibration.runs import (
    KEPT,
    Run,
    Unused,
    leave_out,
    name_nodes,
    number_campaigns,
    refuse_impossible,
)
from fabricheck.judge.calibration.values import Value, middle, value_of
from fabricheck.references.rules import RELATIVE
from fabricheck.results import archive, table
from fabricheck.results.entry import Entry
from fabricheck.results.observed import node_of
from fabricheck.results.reading import Results, Source, holds_sessions, read
from fabricheck.results.requested_nodes import RequestedNodes
from fabricheck.results.session import Case
from fabricheck.site import partitions

#: A longer pause between two sessions, in minutes, starts another campaign.
PAUSE_MINUTES = 15.0

#: The version of ReFrame's run reports whose recorded values can be read.
DATA_VERSION = "4.2"

UNITS = frozenset({*FLOORS, "count"})


def gather(
    paths: Sequence[Path],
    partition: str,
    pause: float = PAUSE_MINUTES,
    without: AbstractSet[str] = frozenset(),
) -> list[Run]:
    """Return the values of sessions in a partition, by session and node, in order of time.

    :param paths: results folders, archives of them, and folders of jobs over many nodes
        (``every-node/NAME``), of which all sessions are used; or other names of sessions
        (`results.reading.read`), such as run reports.
    :param partition: ``system:partition``.
    :param pause: in minutes; see `PAUSE_MINUTES`.
    :param without: nodes to exclude, by the scheduler's name.
    :raises NotFoundError: when there is no such folder, report, or session in the partition.
    :raises InvalidInputError: when a report cannot be read or has another form, a unit is unknown
        or differs between sessions, a value is physically impossible, or values are simulated but
        the partition is not, or the reverse.
    :raises UsageError: when a check ran in several environments, or no session has a node in
        `without`.
    """
    simulated = "simulated" in partitions.known(partition).get("features", [])
    runs: dict[tuple[str, str], Run] = {}
    for source in _sources(_named(paths)):
        if any(case.where == partition for case in source.cases):
            for run in _runs(source, partition, simulated):
                runs.setdefault((run.session.uuid, run.named), run)
    if not runs:
        raise NotFoundError(f"There is no session of {partition} in {', '.join(map(str, paths))}.")
    ordered = sorted(runs.values(), key=lambda run: (run.session.start, run.named))
    leave_out(ordered, without)
    _check_units(ordered)
    name_nodes(ordered)
    number_campaigns(ordered, pause)
    refuse_impossible(ordered)
    return ordered


def _named(paths: Sequence[Path]) -> Iterator[Results]:
    """Yield what each path names; a report that cannot be read might be of one that differs."""
    for path in paths:
        found = read([str(path)], every=holds_sessions(path))
        if not found.sessions and path.is_file() and not archive.is_archive(path):
            raise NotFoundError(f"{path} is not a run report reports/run-*.json.")
        # Sentences about missing parts of a joined session are made where the session is judged.
        lacking = {sentence for session in found.sessions for sentence in session.lacking}
        for problem in found.problems:
            if problem.sentence not in lacking:
                raise InvalidInputError(problem.sentence)
        yield found


def _sources(every: Iterable[Results]) -> Iterator[Source]:
    """Yield the sessions that finished. A killed session has no recorded values."""
    for source in (source for found in every for source in found.sources):
        session = source.session
        if session is None:
            continue
        if session.data_version != DATA_VERSION:
            raise InvalidInputError(
                f"{session.report}: it has version {session.data_version} of ReFrame's run "
                f"reports, but recorded values can be read from version {DATA_VERSION} on."
            )
        # A copy without documents, which are not kept.
        yield replace(source)


def silent(paths: Sequence[Path], runs: Sequence[Run]) -> Iterator[str]:
    """Return sentences about nodes that a session was to measure but that gave no result.

    The references come from the other nodes; a silent node may be one that differs.

    :param paths: the paths given to `gather`, which returned the runs.
    :raises InvalidInputError: when a list of nodes cannot be read.
    """
    known = {run.node for run in runs}
    ran = {run.session.uuid for run in runs}
    lists: dict[Path | None, RequestedNodes] = {}
    for found in _named(paths):
        own = tuple(one for one in found.sources if one.session and one.session.uuid in ran)
        lists |= {one.path: one for one in replace(found, sources=own).lists}
    for file, one in lists.items():
        for name, requested in one.nodes.items():
            if name not in known:
                state = ", ".join(
                    word for word in (requested.state, requested.because, requested.said) if word
                )
                yield f"{name} is in {file}, but no session has it{f' ({state})' if state else ''}."


def _runs(source: Source, partition: str, simulated: bool) -> list[Run]:
    """Return a session's results in a partition, by node.

    :param simulated: whether the partition is simulated.
    """
    session = source.session
    assert session is not None
    runs: dict[tuple[str, str | None], Run] = {}
    environments: dict[str, str] = {}
    repeated: dict[tuple[str, str | None], dict[tuple[str, str], list[Value]]] = {}
    nowhere: list[Unused] = []
    for row in source.checks:
        case = row.case
        if case is None or case.where != partition or not (case.experiments or case.values):
            continue
        check = case.name.split()[0]
        other = environments.setdefault(check, case.environ)
        if other != case.environ:
            raise UsageError(
                f"{session.report}: {check} ran in environments {other} and {case.environ} of "
                f"{partition}, but a reference needs one: calibrate sessions of one environment."
            )
        node = case.node if row.document is None else row.node
        unused = _why_not(session.id, case, row.entry, partition, simulated)
        if node is None:
            assert unused is not None
            nowhere.append(unused)
            continue
        key = (node, row.overlay)
        run = runs.setdefault(key, Run(session, *key))
        if unused is not None:
            run.unused.append(unused)
            continue
        document: Mapping[str, Any] | None = row.document
        assert document is not None
        run.documents.append({name: document[name] for name in KEPT})
        for metric, value in _values(row):
            repeated.setdefault(key, {}).setdefault((check, metric), []).append(value)
    if not runs:
        runs[session.hostname, None] = Run(session, session.hostname)
    next(iter(runs.values())).unused[:0] = nowhere
    for key, run in runs.items():
        run.devices = frozenset(
            device["unique_id"]
            for document in run.documents
            for device in document["devices"]
            if device["unique_id"] is not None
        )
        for (check, metric), values in repeated.get(key, {}).items():
            run.values.setdefault(check, {})[metric] = middle(values)
    return list(runs.values())


def _why_not(
    session: str, case: Case, entry: Entry | None, partition: str, simulated: bool
) -> Unused | None:
    """Return why a case gives no values, or None where it does give values."""
    said = f"{session}: {case.name} @{case.place}"
    check = case.name.split()[0]
    if case.skipped:
        return Unused(check, "skipped", f"{said} was skipped.")
    if not case.passed:
        reason = f": {' '.join(case.reason.split()).rstrip('.')}" if case.reason else ""
        short = "missed its reference" if case.phase == "performance" else f"failed ({case.result})"
        return Unused(check, short, f"{said} {short}{reason}.")
    if case.failed_attempts:
        return Unused(
            check, "failed at an earlier attempt", f"{said} failed at an earlier attempt."
        )
    if entry is None or entry.document is None:
        problem = entry.problem if entry is not None else None
        sentence = f"{session}: {problem}" if problem else f"{said} left no result document."
        return Unused(check, "no valid result document", sentence)
    if entry.problems:
        return Unused(check, "a damaged metrics.json", f"{session}: {entry.problems[0]}")
    document = entry.document
    if (document["clock"] == "simulated") != simulated:
        article = "a" if simulated else "no"
        raise InvalidInputError(
            f"{entry.path}: it is {document['clock']}, but {partition} is {article} simulated "
            "partition: measured and simulated values are calibrated separately."
        )
    if document["faults_injected"]:
        sentence = f"{said}: faults were injected into {entry.path}."
        return Unused(check, "faults were injected", sentence)
    if not case.values:
        return Unused(check, "no recorded values", f"{said} has no values in ReFrame's report.")
    return None


def _values(row: table.Check) -> Iterator[tuple[str, Value]]:
    document, case = row.document, row.case
    assert document is not None and case is not None
    model = node_of(case.where, [document])
    for one in table.metrics(row, model):
        # A metric that compares a node with itself is limited by a rule, whatever its value.
        if one.value is not None and not RELATIVE.search(one.metric):
            yield one.metric, value_of(one, one.value, document, model)


def _check_units(runs: Sequence[Run]) -> None:
    units: dict[tuple[str, str], str] = {}
    for run in runs:
        for check, metrics in run.values.items():
            for metric, value in metrics.items():
                unit = units.setdefault((check, metric), value.unit)
                if value.unit != unit:
                    why = f"in {unit} in an earlier session"
                elif value.unit not in UNITS:
                    why = f"only {', '.join(sorted(UNITS))} can be calibrated"
                else:
                    continue
                raise InvalidInputError(
                    f"{run.session.report}: metric {metric} of {check} is in "
                    f"{value.unit or 'no unit'}, but {why}."
                )
