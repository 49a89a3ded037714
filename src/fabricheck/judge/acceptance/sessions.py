"""The sessions of an agreement's nodes: each judged as `fabricheck verdict` judges it, in order.

Documents are read once for the verdict and once for the values, and are not kept.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import is_several, unfolded
from fabricheck.judge.acceptance import hardware
from fabricheck.judge.acceptance.model import Hardware
from fabricheck.judge.calibration.gathering import value_of
from fabricheck.judge.verdict import judging
from fabricheck.judge.verdict.model import NodeVerdict
from fabricheck.references import entries
from fabricheck.references.stated import References
from fabricheck.results import observed, reading, table
from fabricheck.results.folder import ResultsFolder
from fabricheck.results.reading import Results, Source
from fabricheck.results.rows import Check, Metric
from fabricheck.site import partitions, sets, software, this_machine

#: The relative difference that two equal values may have.
_SAME = 1e-6


@dataclass(frozen=True)
class Value:
    """A value of a metric in a session.

    least, most: the recorded limits. peak: the node model's limit; None where it states none.
    """

    value: float | None
    unit: str
    least: float | None
    most: float | None
    peak: float | None


@dataclass(frozen=True)
class Facts:
    """What the documents of a session show of one node.

    values: by check and metric. ran: the checks that ran. limits: metrics whose recorded limit is
    not that of the references; values_differ: those whose value is not that of their series.
    digests: of the samples of each document with a series, by check.
    """

    hardware: Hardware = field(default_factory=Hardware)
    values: Mapping[tuple[str, str], Sequence[Value]] = field(default_factory=dict)
    ran: frozenset[str] = frozenset()
    limits: tuple[str, ...] = ()
    values_differ: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    failed_before: int = 0


#: By what sessions are sorted: a time that no clock sets back, the number of the mark, and that of
#: the mark in the folder of a node.
Order = tuple[float, int, int]


@dataclass(frozen=True)
class Tried:
    """A session of one node, judged.

    place: the results folder by its number, and the path in it. order: by which sessions are
    sorted, whatever their clocks; began: in s since 1970, of their clocks. set: that ran as a
    whole. record: of its software; None without one.
    """

    node: str
    place: str
    id: str
    order: Order
    began: float
    set: str | None
    verdict: NodeVerdict
    facts: Facts
    record: software.Record | None
    command: str
    environments: frozenset[str]
    accepts: tuple[str, ...]

    @property
    def clock_back_s(self) -> float:
        """How much its clock was behind that of what began before."""
        return max(self.order[0] - self.began, 0.0) if self.began else 0.0

    @property
    def programs(self) -> dict[str, str]:
        """The SHA-256 of its programs by name; empty where they are not recorded."""
        if self.record is None:
            return {}
        digest_of: dict[str, str] = {}
        for entry in self.record.environments:
            if entry.environment in self.environments:
                digest_of |= entry.sha256
        return digest_of


@dataclass(frozen=True)
class Root:
    """A results folder of the acceptance, and its number among them."""

    number: int
    path: Path

    def place(self, folder: Path) -> str:
        """Return the path of a results folder in it, behind its number."""
        inside = folder.resolve().relative_to(self.path.resolve())
        return str(Path(str(self.number), inside))


def tried(
    root: Root, where: str, nodes: Collection[str], references: References
) -> tuple[list[Tried], list[str]]:
    """Return the sessions of some nodes in a results folder, and what of it cannot be read.

    :param where: the partition, ``system:partition``.
    :param references: those that recorded limits are compared with.
    """
    folder = ResultsFolder(root.path)
    if not reading.holds_sessions(root.path):
        return [], []
    try:
        whole = reading.read([str(root.path)], all_sessions=True)
    except NotFoundError:
        return [], []  # no session yet
    problems = [str(problem.sentence) for problem in whole.problems]
    sessions = []
    for part, begun in _parts(whole, folder):
        verdicts = judging.judge(part)
        for verdict in verdicts:
            if verdict.node in nodes and not verdict.sessions and part.job is not None:
                sessions.append(_silent(root, part, begun, verdict))
            for node in _nodes_of(verdict, where, nodes):
                sessions += _sessions(root, part, begun, verdict, node, where, references)
    return sorted(sessions, key=lambda session: session.order), problems


def _silent(root: Root, part: Results, begun: Order, verdict: NodeVerdict) -> Tried:
    """Return the part of a job of a node that never answered."""
    assert part.job is not None
    return Tried(
        node=verdict.node,
        place=root.place(part.home),
        id=part.name,
        order=begun,
        began=part.job.start,
        set=sets.chosen(shlex.join(("reframe", *part.job.chosen))).set,
        verdict=verdict,
        facts=Facts(),
        record=None,
        command="",
        environments=frozenset(),
        accepts=(),
    )


def _nodes_of(verdict: NodeVerdict, where: str, nodes: Collection[str]) -> list[str]:
    """Return the nodes of an agreement that a verdict on a partition is about."""
    if where not in verdict.partitions:
        return []
    if verdict.simulated is not None and verdict.simulated.partition != where:
        return []
    names = unfolded(verdict.node) if is_several(verdict.node) else [verdict.node]
    return [name for name in names if name in nodes]


def _parts(whole: Results, folder: ResultsFolder) -> Iterator[tuple[Results, Order]]:
    """Yield what is judged together, and when it began: a session, or a job's last one a node.

    The earlier sessions of a job's nodes are judged each by itself.
    """
    for part in whole.parts or (whole,):
        if part.job is None:
            yield part, (0.0, 0, 0)
            continue
        last = reading.of_job(part.job)
        began = (*folder.order(part.job), 0)
        yield last, began
        names = {(source.results, source.name) for source in last.sources}
        for source in part.sources:
            if (source.results, source.name) not in names:
                title = f"session {source.name}"
                yield Results(source.name, title, source.results, (source,)), began


def _sessions(
    root: Root,
    part: Results,
    begun: Order,
    verdict: NodeVerdict,
    node: str,
    where: str,
    references: References,
) -> Iterator[Tried]:
    """Yield the sessions of a node in what was judged together."""
    names = {(each.results, each.id) for each in verdict.sessions}
    sources = [
        source
        for source in part.sources
        if (str(source.results), source.name or "documents") in names
    ]
    for source in sources:
        order = ResultsFolder(source.results, source.node).order(source.session)
        # A copy, since this one keeps the documents that are read.
        of_node = replace(source)
        rows = [row for row in of_node.checks if row.where == where and _is_of(row, node)]
        recorded = source.recorded.get(where)
        yield Tried(
            node=node,
            place=root.place(source.results),
            id=source.name or "documents",
            order=(max(order[0], begun[0]), begun[1] or order[1], order[1]),
            began=source.start,
            set=source.choice.set,
            verdict=verdict,
            facts=_facts(rows, node, where, references),
            record=_record(source),
            command=source.session.command,
            environments=frozenset(row.case.environ for row in rows if row.case is not None),
            accepts=tuple(recorded.accepts) if recorded is not None else (),
        )


def _is_of(row: Check, node: str) -> bool:
    if row.node is None:
        return False
    return row.node == node or (is_several(row.node) and node in unfolded(row.node))


def _record(source: Source) -> software.Record | None:
    session = source.session
    end = session.end if source.reported is not None else math.inf
    try:
        return software.recorded(session.outputs, session.start, end)
    except InvalidInputError:
        return None


def _facts(rows: Sequence[Check], node: str, where: str, references: References) -> Facts:
    # A document of several nodes has devices of all of them.
    alone = [row for row in rows if row.node == node]
    documents = [row.document for row in alone if row.document is not None]
    metrics: list[tuple[str, Metric]] = []
    for row in rows:
        metrics += [(_check_of(row), metric) for metric in table.metrics(row)]
    return Facts(
        hardware=hardware.of_documents(documents, node),
        values=grouped(
            ((check, metric.metric), _value(metric, where)) for check, metric in metrics
        ),
        ran=frozenset(
            _check_of(row) for row in rows if row.case is not None and not row.case.skipped
        ),
        limits=tuple(_other_limits(metrics, where, references)),
        values_differ=tuple(
            f"{check} {metric.metric}" for check, metric in metrics if not _is_of_series(metric)
        ),
        digests=_digests(alone),
        failed_before=sum(row.failed_attempts or 0 for row in rows),
    )


def _check_of(row: Check) -> str:
    # A name may have parameters behind it.
    return (row.check or "").split()[0] if row.check else ""


def _value(metric: Metric, where: str) -> Value:
    row = metric.check_row
    peak = None
    if row.document is not None and metric.value is not None and metric.unit == "GB/s":
        node = observed.node_of(where, [row.document], row.case)
        bound = value_of(metric, metric.value, row.document, node).bound
        peak = bound.value if bound is not None else None
    return Value(metric.value, metric.unit, metric.least, metric.most, peak)


def _is_of_series(metric: Metric) -> bool:
    """Whether a recorded value is that of its series, and ReFrame judged it by its limit."""
    record, document, value = metric.record, metric.check_row.document, metric.value
    if value is None or not metric.recorded.is_finite:
        return True
    beyond = metric.is_beyond(value)
    if beyond and metric.judged == "pass":
        return False
    if record is None or document is None or record.reduce not in ("worst", "best", "median"):
        return True
    chosen = [document["series"][index] for index in record.series]
    medians = [series["median"] for series in chosen]
    if not medians:
        return True
    low, high = min(medians), max(medians)
    if record.reduce == "median":
        return low * (1 - _SAME) <= value <= high * (1 + _SAME)
    is_low = (chosen[0]["better"] == "higher") == (record.reduce == "worst")
    return math.isclose(value, low if is_low else high, rel_tol=_SAME)


def _other_limits(
    metrics: Sequence[tuple[str, Metric]], where: str, references: References
) -> Iterator[str]:
    """Yield the metrics whose recorded limit is looser or another one than the references have.

    A limit by a rule has no reference; on ``local:gpu`` a rule may widen one.
    """
    if where == this_machine.NAME:
        return
    named = partitions.extras(where).get("references")
    by_check: dict[str, Mapping[str, object]] = {}
    for check, metric in metrics:
        if check not in by_check:
            by_check[check] = references.entries(check, where, named)
        stated = entries.entry_of(entries.plain(by_check[check].get(metric.metric)))
        if stated is None or not entries.requires(stated):
            continue
        recorded = metric.recorded
        limits = (recorded.reference, recorded.lower, recorded.upper)
        if not _are_equal(limits, stated[:3]) or recorded.unit != stated[3]:
            yield f"{check} {metric.metric}"


def _are_equal(limits: Sequence[float | None], stated: Sequence[float | None]) -> bool:
    for recorded, wanted in zip(limits, stated, strict=True):
        if recorded is None or wanted is None:
            if recorded is not wanted:
                return False
        elif not math.isclose(recorded, wanted, rel_tol=_SAME, abs_tol=_SAME):
            return False
    return True


def _digests(rows: Sequence[Check]) -> dict[str, str]:
    """Return a digest of all samples of each document, by check: no two measurements are equal."""
    digest_of = {}
    for row in rows:
        if row.document is None or row.clock != "measured" or not row.document["series"]:
            continue
        samples = [series["samples"] for series in row.document["series"]]
        text = json.dumps(samples)
        digest_of[_check_of(row)] = hashlib.sha256(text.encode()).hexdigest()
    return digest_of
