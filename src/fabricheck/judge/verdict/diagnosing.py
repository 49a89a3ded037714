"""The diagnosis of a node as a part of its verdict: from its missed limits to its reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.judge.diagnosis.model import Degraded, Diagnosis
from fabricheck.judge.verdict.attempts import Attempt
from fabricheck.judge.verdict.outcomes import CheckOutcome, Key
from fabricheck.judge.verdict.rules import Finding, finding
from fabricheck.results import state
from fabricheck.results.causes import Errors, merged
from fabricheck.results.model import ResultDocument
from fabricheck.results.observed import node_of
from fabricheck.results.session_checks import PartitionChecks

if TYPE_CHECKING:
    from fabricheck.judge.diagnosis.diagnose import Miss, Session

#: The kinds of components that are links, and that a driver counts errors of.
_LINK_KINDS = ("link", "link_gone", "link_turns", "host_link")

#: The rules of slow values and of differences from the node model.
OF_MISSES = frozenset(
    {"reference", "peers", "at-times", "topology", "lost", "device-in-use", "host-busy", "varies"}
)


def node_diagnosis(
    outcomes: Mapping[Key, CheckOutcome], recorded: Mapping[str, PartitionChecks]
) -> Diagnosis | None:
    """Return the diagnosis of a node; None if nothing was missed.

    Several partitions measure the same hardware; the one with the most misses is diagnosed. Of its
    components it names no further check that cannot run there.
    """
    by_partition = grouped(
        (where, outcome.attempts[-1]) for (where, _, _), outcome in outcomes.items()
    )
    last = (attempt for attempts in by_partition.values() for attempt in attempts)
    if not any(each.rule.name in OF_MISSES for attempt in last for each in attempt.findings):
        return None  # before the files of a healthy node are read
    from fabricheck.judge.diagnosis.diagnose import diagnose  # a healthy node needs none

    sessions = [
        (where, _diagnosed_session(of_partition)) for where, of_partition in by_partition.items()
    ]
    where, most = max(sessions, key=lambda session: len(session[1].misses))
    diagnosis = diagnose(most, node_of(where, most.documents.values(), by_partition[where][0].case))
    if diagnosis is None:
        return None
    missed = {miss.check for miss in most.misses}
    documents = [document for check, document in most.documents.items() if check in missed]
    others = [document for check, document in most.documents.items() if check not in missed]
    there = recorded[where].checks if where in recorded else None
    degraded = [
        component.model_copy(
            update={
                "causes": _causes(component, documents, others),
                "next": [check for check in component.next if there is None or check in there],
            }
        )
        for component in diagnosis.degraded
    ]
    return diagnosis.model_copy(update={"degraded": degraded})


def _diagnosed_session(attempts: Iterable[Attempt]) -> Session:
    """Return the data of a node's session from one attempt of each check."""
    from fabricheck.judge.diagnosis.diagnose import Session  # a healthy node needs none

    last_of = {
        attempt.check: (attempt, attempt.document)
        for attempt in attempts
        if attempt.case and attempt.document is not None
    }
    return Session(
        {check: document for check, (_, document) in last_of.items()},
        [metric for attempt, _ in last_of.values() for metric in attempt.metrics.values()],
        [miss for attempt, _ in last_of.values() for miss in _misses(attempt)],
    )


def _misses(attempt: Attempt) -> Iterator[Miss]:
    from fabricheck.judge.diagnosis.diagnose import Miss

    for each in attempt.findings:
        metric = attempt.metrics.get(each.metric or "")
        if each.rule.name in ("topology", "lost"):
            place = each.place or (frozenset(), None)
            yield Miss(attempt.check, each.metric or "", sentence=each.sentence, place=place)
        elif each.rule.name in OF_MISSES and metric is not None and metric.value is not None:
            series = dict(zip(metric.decisive, metric.decisive_series, strict=True))
            yield Miss(attempt.check, metric.metric, metric, series)


def _causes(
    component: Degraded, documents: Sequence[ResultDocument], others: Sequence[ResultDocument]
) -> list[str]:
    """Return the states of its devices that can be why a component is slow.

    :param documents: those of the checks that missed a limit.
    :param others: those of other checks, in which a link may have had errors, too.
    """
    devices = component.devices or None
    causes = [
        cause
        for document in documents
        for cause in (*state.disturbances(document, devices), *state.slowdowns(document, devices))
    ]
    for document in others:
        causes += state.link_errors(document, devices)
    if component.component.kind in _LINK_KINDS:
        # The first is in the sentence: what a link counts says most of it.
        causes.sort(key=lambda cause: not (isinstance(cause, Errors) and cause.of_links))
    return [cause.clause(address=False) for cause in merged(causes)]


def with_diagnosis(reasons: Sequence[Finding], diagnosis: Diagnosis | None) -> list[Finding]:
    """Return the reasons of a node with its diagnosis before the first miss; after it if unsure.

    If nothing explains the misses, that is stated after them, unless the data is missing.
    Without a node model, the misses themselves name all that is known.
    """
    places = [place for place, reason in enumerate(reasons) if reason.rule.name in OF_MISSES]
    if diagnosis is None or diagnosis.node_model is None or not places:
        return list(reasons)
    # A device that is gone is its own explanation.
    gone = all(reasons[place].rule.name == "lost" for place in places)
    if not diagnosis.degraded and (diagnosis.lacking or gone):
        return list(reasons)
    if not diagnosis.degraded:
        place, status = places[-1] + 1, reasons[places[-1]].status
    elif diagnosis.unsure:
        place, status = places[0] + 1, reasons[places[0]].status
    else:
        place, status = places[0], reasons[places[0]].status
    labels = [degraded.component.label for degraded in diagnosis.degraded]
    of_diagnosis = replace(
        finding("diagnosis", diagnosis.sentence), status=status, component=listed(labels) or None
    )
    return [*reasons[:place], of_diagnosis, *reasons[place:]]
