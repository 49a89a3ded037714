"""The diagnosis of a node from the attempts of its checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fabricheck.judge.diagnosis.model import Degraded, Diagnosis
from fabricheck.judge.verdict.checks import Attempt, Checks
from fabricheck.judge.verdict.rules import Finding, finding
from fabricheck.results import state
from fabricheck.results.metric_records import MetricRecord
from fabricheck.results.model import ResultDocument
from fabricheck.results.observed import node_of

if TYPE_CHECKING:
    from fabricheck.judge.diagnosis.evidence import Limits, Miss, Session

#: The rules of slow values and of differences from the node model.
OF_MISSES = frozenset(
    {"reference", "peers", "at-times", "topology", "lost", "device-in-use", "host-busy", "varies"}
)


def node_diagnosis(checks: Checks) -> Diagnosis | None:
    """Return the diagnosis of a node; None if nothing was missed.

    Several partitions measure the same hardware; the one with the most misses is diagnosed.
    """
    by_partition: dict[str, list[Attempt]] = {}
    for (where, _, _), one in checks.outcomes.items():
        by_partition.setdefault(where, []).append(one.attempts[-1])
    every = (one for own in by_partition.values() for each in own for one in each.findings)
    if not any(one.rule.name in OF_MISSES for one in every):
        return None  # before the files of a healthy node are read
    found = [(where, session(own)) for where, own in by_partition.items()]
    where, most = max(found, key=lambda one: len(one[1].misses))
    if not most.misses:
        return None
    from fabricheck.judge.diagnosis.diagnose import diagnose  # a healthy node needs none

    told = diagnose(most, node_of(where, most.documents.values()))
    there = checks.recorded[where].checks if where in checks.recorded else None
    return None if told is None else _completed(told, most, there)


def session(attempts: Iterable[Attempt]) -> Session:
    """Return the data of a node's session from one attempt of each check."""
    from fabricheck.judge.diagnosis.evidence import Limits, Session  # a healthy node needs none

    documents: dict[str, ResultDocument] = {}
    limits: list[Limits] = []
    misses: list[Miss] = []
    for one in attempts:
        document, case = one.document, one.case
        if document is None or case is None:
            continue
        documents[one.check] = document
        records = one.entry.metrics if one.entry is not None else {}
        for metric, held in case.judged.items():
            _, unit = case.values.get(metric, (None, "count"))
            if unit != "count":
                own = (held.reference, held.least, held.most)
                limits.append(Limits(one.check, unit, *own, records.get(metric)))
        misses += _misses(one, document, records)
    return Session(documents, limits, misses)


def _misses(
    attempt: Attempt, document: ResultDocument, records: Mapping[str, MetricRecord]
) -> Iterator[Miss]:
    from fabricheck.judge.diagnosis.components import place_of
    from fabricheck.judge.diagnosis.evidence import Miss

    assert attempt.case is not None
    places = {one["sentence"]: place_of(one) for one in document.get("differences") or ()}
    for one in attempt.findings:
        if one.rule.name in ("topology", "lost"):
            place = places.get(one.sentence, (frozenset(), None))
            yield Miss(attempt.check, one.metric or "", sentence=one.sentence, place=place)
        elif one.rule.name in OF_MISSES and (metric := one.metric or "") in attempt.case.values:
            value, unit = attempt.case.values[metric]
            limits, made = attempt.case.judged[metric], records.get(metric)
            series = _decisive(made, document, value) if made is not None else ()
            yield Miss(attempt.check, metric, value, limits.least, limits.most, unit, series)


def _decisive(made: MetricRecord, document: ResultDocument, value: float) -> tuple[int, ...]:
    """Return the indices of the series that decided a metric."""
    own = {id(one) for one in made.decisive(document, value)}
    return tuple(index for index in (made.decided or made.series)
                 if id(document["series"][index]) in own)  # fmt: skip


def _completed(told: Diagnosis, of_session: Session, there: Collection[str] | None) -> Diagnosis:
    """Complete a diagnosis with the counters of its devices, without checks that cannot run here.

    :param there: the checks that can; None where they are unknown.
    """
    missed = {one.check for one in of_session.misses}
    documents = [one for check, one in of_session.documents.items() if check in missed]
    degraded = [
        one.model_copy(
            update={
                "causes": _causes(one, documents),
                "next": [check for check in one.next if there is None or check in there],
            }
        )
        for one in told.degraded
    ]
    return told.model_copy(update={"degraded": degraded})


def _causes(one: Degraded, documents: Sequence[ResultDocument]) -> list[str]:
    devices = one.devices or None
    every = (
        cause
        for document in documents
        for cause in (*state.disturbances(document, devices), *state.slowdowns(document, devices))
    )
    return [cause.clause(address=False) for cause in state.merged(every)]


def with_diagnosis(reasons: Sequence[Finding], told: Diagnosis | None) -> list[Finding]:
    """Return the reasons of a node with its diagnosis before the first miss.

    If nothing explains the misses, that is stated after them, unless the data is missing. Without a
    node model, the misses themselves name all that is known.
    """
    places = [place for place, one in enumerate(reasons) if one.rule.name in OF_MISSES]
    lacks = told is None or told.node_model is None or (told.lacking and not told.degraded)
    # A device that is gone is its own explanation.
    gone = all(reasons[place].rule.name == "lost" for place in places)
    lacks = lacks or (told is not None and not told.degraded and gone)
    if told is None or not places or lacks:
        return list(reasons)
    place = places[0] if told.degraded else places[-1] + 1
    first = reasons[places[0] if told.degraded else places[-1]]
    own = replace(finding("diagnosis", told.sentence), status=first.status)
    return [*reasons[:place], own, *reasons[place:]]
