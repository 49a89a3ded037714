"""Values that several sessions measured in one partition, by session and node."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.core.grouping import grouped
from fabricheck.core.show import enumerated, first_of, listed
from fabricheck.core.text import count
from fabricheck.judge.calibration import rule, shapes
from fabricheck.node import NodeModel
from fabricheck.results import archive, table
from fabricheck.results.entry import Entry
from fabricheck.results.model import ResultDocument
from fabricheck.results.observed import node_of
from fabricheck.results.reading import Results, Source, holds_sessions, read
from fabricheck.results.requested_nodes import RequestedNodes
from fabricheck.results.rows import Check, Metric
from fabricheck.results.series import noise
from fabricheck.results.session import Case, Session
from fabricheck.results.table import link_class
from fabricheck.rfm.acceptance import Bound, node_bound
from fabricheck.site import partitions

#: The unit of a percentage of the best measured value.
_WHOLE = Bound(100.0, "derived", "a part of the whole")


@dataclass(frozen=True)
class Value:
    """One session's value of a metric on one node.

    half_width: half the 95 % interval divided by the median, for a value that is the median of one
    series, else None.
    link_class, engine: those of its transfers; None for transfers that are not between two devices,
    or where the document has none. bound: the value's physical bound; None if unknown. floor: the
    smallest tolerance as a fraction of the value, where it exceeds that of the unit.
    """

    value: float
    unit: str
    half_width: float | None = None
    link_class: str | None = None
    engine: str | None = None
    bound: Bound | None = None
    floor: float = 0

    @property
    def impossible(self) -> str | None:
        """Why the value is physically impossible, as the rest of a sentence, or None.

        A count has no bound.
        """
        if self.unit == "count":
            return None
        if not math.isfinite(self.value) or self.value <= 0:
            return "which is not a measurement"
        bound = self.bound
        if bound is not None and self.unit != "us" and self.value > bound.value:
            return (
                f"above the {bound.origin} physical bound of {bound.value:g} {self.unit} "
                f"({bound.how})"
            )
        return None


def value_of(
    metric: Metric, value: float, document: ResultDocument, node: NodeModel | None
) -> Value:
    """Return a recorded value with the properties of its transfers.

    Its transfers are the series of the metric. If some of them have the value as their median, only
    those count. If several bounds apply, the largest counts.

    :param node: the healthy node model; without one, classes and bounds are unknown.
    """
    transfers = [document["series"][index] for index in metric.series or ()]
    decisive = [
        series for series in transfers if (series["unit"], series["median"]) == (metric.unit, value)
    ]
    half_width = reduced(statistics.median, (series["relative_half_width"] for series in decisive))
    if metric.unit == "%":
        return Value(value, metric.unit, half_width, bound=_WHOLE)
    chosen = decisive or transfers
    classes = {link_class(series, node) for series in transfers}
    ranks = document.get("ranks") or ()
    bounds = [] if node is None else [node_bound(node, series, ranks) for series in chosen]
    known = [bound for bound in bounds if bound is not None]
    at_once = any(
        len(series["device_set"]) > 1 and noise(series) in rule.OF_HOST for series in chosen
    )
    # A series without a bound allows any value.
    bound = max(known, key=lambda each: each.value) if known and len(known) == len(bounds) else None
    return Value(
        value,
        metric.unit,
        half_width,
        classes.pop() if len(classes) == 1 else None,
        listed(sorted({series["engine"] for series in chosen})) or None,
        bound,
        rule.FLOOR_AT_ONCE if at_once else 0,
    )


def middle(values: Sequence[Value]) -> Value:
    """Return the median of the values of a check that ReFrame repeated in a session.

    An impossible value is kept, so that the median does not hide it.
    """
    half_width = reduced(statistics.median, (value.half_width for value in values))
    false = next((value for value in values if value.impossible), None)
    if false is not None:
        return replace(false, half_width=half_width)
    value = statistics.median(each.value for each in values)
    return replace(values[0], value=value, half_width=half_width)


def reduced(reduce: Callable[[list[float]], float], values: Iterable[float | None]) -> float | None:
    """Reduce the values that are known and finite, or return None without any."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return reduce(known) if known else None


#: The parts of a document that are kept. Samples are dropped: those of some hundred nodes would
#: fill the memory.
_KEPT = ("program", "versions", "devices")


@dataclass(frozen=True)
class Unused:
    """A case without values. `sentence` may name files and nodes; `reason` does not."""

    check: str
    reason: str
    sentence: str


@dataclass
class Run:
    """The results of one session on one node of one partition.

    node: its name in the scheduler, else the hostname; records do not contain it. overlay: the
    change to a simulated node. group: the node's letter in the record. number: counts from 1 in
    order of time. devices: the unique ids. values: by check and metric. documents: the parts in
    `_KEPT` of each document. shapes: the mean rate of each shape of kernels that a check tried, in
    GB/s. left_out: whether the user left the node out.
    """

    session: Session
    node: str
    overlay: str | None = None
    number: int = 0
    campaign: int = 0
    group: str = ""
    devices: frozenset[str] = frozenset()
    values: dict[tuple[str, str], Value] = field(default_factory=dict)
    unused: list[Unused] = field(default_factory=list)
    documents: list[Mapping[str, Any]] = field(default_factory=list)
    shapes: Mapping[shapes.Shape, float] = field(default_factory=dict)
    left_out: bool = False

    @property
    def named(self) -> str:
        """The name of the node in sentences."""
        return f"{self.node} with overlay {self.overlay}" if self.overlay else self.node


def _leave_out(runs: Sequence[Run], without: AbstractSet[str]) -> None:
    """Remove the values of nodes; the record lists these nodes as left out.

    :raises UsageError: for a node that no session has.
    """
    unknown = sorted(without - {run.node for run in runs})
    if unknown:
        known = sorted({run.node for run in runs})
        raise UsageError(f"No session has {listed(unknown)}; the nodes are {listed(known)}.")
    for run in runs:
        if run.node in without and run.values:
            sentence = f"{run.session.id}: node {run.node} was left out."
            checks = dict.fromkeys(check for check, _ in run.values)
            run.unused += [Unused(check, "left out", sentence) for check in checks]
            run.values, run.left_out = {}, True


def _refuse_impossible(runs: Sequence[Run]) -> None:
    """Refuse physically impossible values.

    The whole session is refused: an error in a clock or a count affects its other values too,
    without a sign.

    :raises InvalidInputError: with a sentence for each value.
    """
    sentences = []
    for run in runs:
        for (check, metric), value in run.values.items():
            if value.impossible:
                sentences.append(
                    f"{check} {metric}: session {run.session.id} ({run.session.uuid}) on "
                    f"{run.named} has {value.value:g} {value.unit}, {value.impossible}."
                )
    if sentences:
        raise InvalidInputError(
            f"Physically impossible: {count(len(sentences), 'value')}. The measurement is wrong: "
            "leave out that node (--without) or session (name the reports of the "
            f"others). {' '.join(first_of(sentences))}"
        )


def _name_nodes(runs: Sequence[Run]) -> None:
    """Name nodes A, B ... in order of time: by devices, else by name and overlay.

    A session that used some of the devices of a node belongs to that node.
    """
    sets: list[tuple[frozenset[str], set[str]]] = []
    for run in runs:
        for index, (devices, names) in enumerate(sets):
            same = (
                devices <= run.devices or run.devices <= devices
                if devices and run.devices
                else run.named in names
            )
            if same:
                sets[index] = (devices | run.devices, names | {run.named})
                run.group = _letters(index)
                break
        else:
            run.group = _letters(len(sets))
            sets.append((run.devices, {run.named}))


def _letters(index: int) -> str:
    """Return A to Z, then AA, AB and so on."""
    head, last = divmod(index, 26)
    return (_letters(head - 1) if head else "") + chr(ord("A") + last)


def _number_campaigns(runs: Sequence[Run], pause: float) -> None:
    """Number the sessions and campaigns. A new campaign starts on another node or after a pause."""
    before: dict[str, Run] = {}
    campaigns = 0
    for index, run in enumerate(runs, start=1):
        run.number = index
        last = before.get(run.group)
        if last is None or run.session.start - last.session.end > 60 * pause:
            campaigns += 1
            run.campaign = campaigns
        else:
            run.campaign = last.campaign
        before[run.group] = run


def missing(runs: Sequence[Run]) -> Mapping[tuple[str, str], list[int]]:
    """Return, by check and metric, the numbers of the sessions that lack it."""
    runs = [run for run in runs if not run.left_out]
    metrics = {key for run in runs for key in run.values}
    lacking = {
        key: [run.number for run in runs if key not in run.values] for key in sorted(metrics)
    }
    return {key: numbers for key, numbers in lacking.items() if numbers}


#: A longer pause between two sessions, in minutes, starts another campaign.
PAUSE_MINUTES = 15.0

#: The version of ReFrame's run reports whose recorded values can be read.
_DATA_VERSION = "4.2"

_UNITS = frozenset({*rule.FLOORS, "count"})


class Gathered(NamedTuple):
    """The runs in order of time, and sentences about nodes that were to be measured in vain."""

    runs: list[Run]
    silent: list[str]


def gather(
    paths: Sequence[Path],
    partition: str,
    pause: float = PAUSE_MINUTES,
    without: AbstractSet[str] = frozenset(),
) -> Gathered:
    """Read the values of sessions in a partition, by session and node.

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
    simulated = bool(partitions.simulates(partition))
    results = list(_named(paths))
    runs: dict[tuple[str, str], Run] = {}
    for source in (source for part in results for source in part.sources):
        session = source.reported
        if session is None:
            continue  # it was killed, and has no recorded values
        if session.data_version != _DATA_VERSION:
            raise InvalidInputError(
                f"{session.report}: it has version {session.data_version} of ReFrame's run "
                f"reports, but recorded values can be read from version {_DATA_VERSION} on."
            )
        if any(case.where == partition for case in source.cases):
            # A copy, whose documents are not kept.
            for run in _runs(replace(source), partition, simulated):
                runs.setdefault((run.session.uuid, run.named), run)
    if not runs:
        raise NotFoundError(f"There is no session of {partition} in {listed(paths)}.")
    ordered = sorted(runs.values(), key=lambda run: (run.session.start, run.named))
    _leave_out(ordered, without)
    _check_units(ordered)
    _name_nodes(ordered)
    _number_campaigns(ordered, pause)
    _refuse_impossible(ordered)
    return Gathered(ordered, list(_silent(results, ordered)))


def _named(paths: Sequence[Path]) -> Iterator[Results]:
    """Yield what each path names; a report that cannot be read might be of one that differs."""
    for path in paths:
        named = read([str(path)], all_sessions=holds_sessions(path))
        if not named.sessions and path.is_file() and not archive.is_archive(path):
            raise NotFoundError(f"{path} is not a run report reports/run-*.json.")
        # Sentences about missing parts of a joined session are made where the session is judged.
        lacking = {sentence for session in named.sessions for sentence in session.lacking}
        for problem in named.problems:
            if problem.sentence not in lacking:
                raise InvalidInputError(problem.sentence)
        yield named


def _silent(results: Sequence[Results], runs: Sequence[Run]) -> Iterator[str]:
    """Yield sentences about nodes that a session was to measure but that gave no result.

    The references come from the other nodes; a silent node may be one that differs.
    """
    known = {run.node for run in runs}
    ran = {run.session.uuid for run in runs}
    lists: dict[Path | None, RequestedNodes] = {}
    for part in results:
        sources = tuple(source for source in part.sources if source.session.uuid in ran)
        lists |= {nodes.path: nodes for nodes in replace(part, sources=sources).lists}
    for file, requested_nodes in lists.items():
        for name, requested in requested_nodes.nodes.items():
            if name not in known:
                words = (requested.state, requested.because, requested.how_ended)
                state = listed(filter(None, words))
                yield f"{name} is in {file}, but no session has it{f' ({state})' if state else ''}."


def _runs(source: Source, partition: str, simulated: bool) -> list[Run]:
    """Return a session's results in a partition, by node.

    :param simulated: whether the partition is simulated.
    """
    session = source.session
    by_node = grouped(
        ((case.node if row.document is None else row.node, row.overlay), (row, case))
        for row in source.checks
        if (case := row.case) is not None and case.where == partition
        if case.experiments or case.values
    )
    cases = [case for rows in by_node.values() for _, case in rows]
    for check, environs in grouped((case.name.split()[0], case.environ) for case in cases).items():
        if len(set(environs)) > 1:
            raise UsageError(
                f"{session.report}: {check} ran in environments "
                f"{enumerated(dict.fromkeys(environs))} of {partition}, but a reference needs "
                "one: calibrate sessions of one environment."
            )
    runs: list[Run] = []
    nowhere: list[Unused] = []
    for (node, overlay), rows in by_node.items():
        judged = [
            (row, _why_not(session.id, case, row.entry, partition, simulated)) for row, case in rows
        ]
        unused = [why for _, why in judged if why is not None]
        if node is None:
            nowhere += unused
            continue
        used = [row for row, why in judged if why is None]
        documents: list[Mapping[str, Any]] = [
            row.document for row in used if row.document is not None
        ]
        values = grouped(value for row in used for value in _values(row))
        ids = (device["unique_id"] for document in documents for device in document["devices"])
        run = Run(
            session,
            node,
            overlay,
            devices=frozenset(unique_id for unique_id in ids if unique_id is not None),
            values={metric: middle(several) for metric, several in values.items()},
            unused=unused,
            documents=[{name: document[name] for name in _KEPT} for document in documents],
            shapes=shapes.rates(documents),
        )
        runs.append(run)
    runs = runs or [Run(session, session.hostname)]
    runs[0].unused[:0] = nowhere
    return runs


def _why_not(
    session: str, case: Case, entry: Entry | None, partition: str, simulated: bool
) -> Unused | None:
    """Return why a case gives no values, or None where it does give values."""
    what = f"{session}: {case.name} @{case.place}"
    path, document = (None, None) if entry is None else (entry.path, entry.document)
    if document is not None and (document["clock"] == "simulated") != simulated:
        article = "a" if simulated else "no"
        raise InvalidInputError(
            f"{path}: it is {document['clock']}, but {partition} is {article} "
            "simulated partition: measured and simulated values are calibrated separately."
        )
    missed = "missed its reference" if case.phase == "performance" else f"failed ({case.result})"
    because = f": {' '.join(case.reason.split()).rstrip('.')}" if case.reason else ""
    problems = () if entry is None else entry.problems
    of_entry = f"{session}: {problems[0]}" if problems else f"{what} left no result document."
    whys = {
        "skipped": (case.skipped, f"{what} was skipped."),
        missed: (not case.passed, f"{what} {missed}{because}."),
        "failed at an earlier attempt":
            (case.failed_attempts, f"{what} failed at an earlier attempt."),
        "no valid result document": (document is None, of_entry),
        "a damaged metrics.json": (problems, of_entry),
        "faults were injected": (
            document and document["faults_injected"], f"{what}: faults were injected into {path}."
        ),
        "no recorded values": (not case.values, f"{what} has no values in ReFrame's report."),
    }  # fmt: skip
    reasons = (
        Unused(case.name.split()[0], why, sentence)
        for why, (is_so, sentence) in whys.items()
        if is_so
    )
    return next(reasons, None)


def _values(row: Check) -> Iterator[tuple[tuple[str, str], Value]]:
    """Yield the values of a check, each by check and metric."""
    document, case = row.document, row.case
    assert document is not None and case is not None
    model = node_of(case.where, [document], case)
    for metric in table.metrics(row):
        record = metric.record
        # One that compares a node with itself is limited by its rule, whatever its value.
        if metric.value is not None and not (record and record.compared and record.rule):
            value = value_of(metric, metric.value, document, model)
            yield (case.name.split()[0], metric.metric), value


def _check_units(runs: Sequence[Run]) -> None:
    units: dict[tuple[str, str], str] = {}
    for run in runs:
        for (check, metric), value in run.values.items():
            unit = units.setdefault((check, metric), value.unit)
            if value.unit != unit:
                why = f"in {unit} in an earlier session"
            elif value.unit not in _UNITS:
                why = f"only {listed(sorted(_UNITS))} can be calibrated"
            else:
                continue
            raise InvalidInputError(
                f"{run.session.report}: metric {metric} of {check} is in "
                f"{value.unit or 'no unit'}, but {why}."
            )
