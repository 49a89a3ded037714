"""How a session of a node answers a criterion: met, missed or open, by which value and limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabricheck.judge.acceptance.model import Doubt, Outcome, Reason
from fabricheck.judge.acceptance.sessions import Tried, Value
from fabricheck.judge.verdict.rules import FAILED, NodeStatus, worst
from fabricheck.references.agreement import Agreement, Criterion, Metric
from fabricheck.references.entries import requires
from fabricheck.references.stated import References
from fabricheck.results.metric_records import is_within
from fabricheck.site import partitions, sets

#: The most reasons of a cell: the page and the verdict have all.
_MOST_REASONS = 5


@dataclass(frozen=True)
class Answer:
    """What a session says of a criterion. doubts: why it does not count for this criterion."""

    outcome: Outcome
    value: float | None = None
    least: float | None = None
    most: float | None = None
    unit: str = ""
    doubts: tuple[Doubt, ...] = ()
    reasons: tuple[Reason, ...] = ()


def answer(
    session: Tried, criterion: Criterion, agreement: Agreement, references: References
) -> Answer | None:
    """Return what a session says of a criterion; None where it does not answer it."""
    if criterion.set is not None:
        return _of_set(session, criterion.set, agreement)
    if criterion.metric is not None:
        return _of_metric(session, criterion.metric, agreement, references)
    return None  # hours of soak are of many sessions


def covers(ran: str | None, wanted: str) -> bool:
    """Whether a set has all checks of another one: sets of a node have those of shorter ones."""
    if ran is None:
        return False
    if ran == wanted:
        return True
    known = sets.known()
    if known[ran].apart or known[wanted].apart:
        return False
    names = [*known]
    return names.index(ran) > names.index(wanted)


def _of_set(session: Tried, name: str, agreement: Agreement) -> Answer | None:
    if not covers(session.set, name):
        return None
    verdict = session.verdict
    doubts = []
    if verdict.provisional:
        doubts.append(Doubt(kind="provisional", facts=[*verdict.provisional]))
    if session.facts.limits:
        doubts.append(Doubt(kind="limits", facts=[*session.facts.limits][:_MOST_REASONS]))
    if not agreement.simulated and verdict.status == "PASS" and not verdict.accepted:
        doubts.append(Doubt(kind="no-gpu"))
    reasons = _reasons(session, None)
    return Answer(_outcome(verdict.status), doubts=tuple(doubts), reasons=reasons)


def _outcome(status: NodeStatus) -> Outcome:
    if status in FAILED:
        return "missed"
    return "met" if status == "PASS" else "open"


def _reasons(session: Tried, check: str | None) -> tuple[Reason, ...]:
    """Return the first reasons of a verdict, of all checks or of one."""
    chosen = [
        reason
        for reason in session.verdict.reasons
        if check is None or (reason.check or "").split()[:1] == [check]
    ]
    return tuple(
        Reason(rule=reason.rule, sentence=reason.sentence) for reason in chosen[:_MOST_REASONS]
    )


def _of_metric(
    session: Tried, metric: Metric, agreement: Agreement, references: References
) -> Answer | None:
    """Return what a session says of a metric: all its values must keep the limit.

    Limits of the suite do not count here, and so no calibration, unless it is the agreed limit.
    What its check failed by otherwise counts.
    """
    if metric.check not in session.facts.ran:
        return None
    values = session.facts.values.get((metric.check, metric.metric), ())
    reasons = _reasons(session, metric.check)
    status = _status_of_check(session, metric)
    if status in FAILED:
        return Answer("missed", reasons=reasons)
    known = [value for value in values if value.value is not None]
    if not known:
        return Answer("open", reasons=reasons)
    doubts = _doubts_of_limit(session, metric, known, agreement, references)
    each = [_compared(value, metric) for value in known]
    # The first of the worst: all values must keep the limit.
    lost = [result for result in each if result.outcome == "missed"]
    chosen = lost[0] if lost else each[0]
    outcome = chosen.outcome
    if status in ("UNSTABLE", "INCOMPLETE"):
        outcome = "open"
    return Answer(
        outcome,
        chosen.value,
        chosen.least,
        chosen.most,
        chosen.unit,
        tuple(doubts),
        reasons if outcome != "met" else (),
    )


def _status_of_check(session: Tried, metric: Metric) -> NodeStatus:
    """Return what else than limits a verdict has against a check, and this metric at times."""
    return worst(
        reason.status
        for reason in session.verdict.reasons
        if (reason.check or "").split()[:1] == [metric.check] and reason.status != "PERF-FAIL"
    )


def _compared(value: Value, metric: Metric) -> Answer:
    """Return the outcome of one value with the agreed limit."""
    least, most = metric.at_least, metric.at_most
    if metric.percent_of_peak is not None and value.peak is not None:
        least = metric.percent_of_peak / 100 * value.peak
    if metric.limit == "calibrated":
        least, most = value.least, value.most
    assert value.value is not None
    outcome: Outcome = "met" if is_within(value.value, least, most) else "missed"
    return Answer(outcome, value.value, least, most, value.unit)


def _doubts_of_limit(
    session: Tried,
    metric: Metric,
    values: Sequence[Value],
    agreement: Agreement,
    references: References,
) -> list[Doubt]:
    if metric.percent_of_peak is not None and any(value.peak is None for value in values):
        return [Doubt(kind="no-peak")]
    if metric.unit is not None and any(value.unit != metric.unit for value in values):
        return [Doubt(kind="values", facts=[f"{metric.check} {metric.metric}"])]
    if metric.limit is None:
        return []
    named = partitions.extras(agreement.system).get("references")
    given = references.calibrated(metric.check, agreement.system, named).get(metric.metric)
    clock = "simulated" if agreement.simulated else "measured"
    if given is None:
        return [Doubt(kind="not-calibrated")]
    entry, record = given
    if record.clock != clock or record.partition != agreement.system or not requires(entry):
        return [Doubt(kind="not-calibrated")]
    name = f"{metric.check} {metric.metric}"
    if name in session.facts.limits:
        return [Doubt(kind="limits", facts=[name])]
    return []
