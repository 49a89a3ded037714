"""What to do after a session, and what the page of a partition says of its node's verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import folded, titled
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.judge.verdict import alike, caveats, model, scheduler
from fabricheck.judge.verdict.model import NodeVerdict, Reason, by_label
from fabricheck.judge.verdict.rules import STATUSES
from fabricheck.results.entry import Entry
from fabricheck.results.observed import Observed
from fabricheck.results.session import UNREPORTED

#: Rules of reasons that the page shows elsewhere: missing documents with the expected file, and the
#: diagnosis.
_SHOWN_ELSEWHERE = frozenset({"no-document", "not-judged", "diagnosis"})

#: The most failed nodes of a status that have a sentence each, and the most good nodes named.
_MOST_NAMED = 3


def next_steps(judged: Iterable[NodeVerdict]) -> list[str]:
    """Return what to do after a session, each as a sentence, the most urgent first."""
    every = list(judged)
    steps = alike.software_first(every)
    for is_simulated in (False, True):
        verdicts = [verdict for verdict in every if (verdict.simulated is not None) == is_simulated]
        for same in by_label(verdicts).values():
            steps += _steps(same)
    note = model.provisional_note(where for verdict in every for where in verdict.provisional)
    return [*steps, *([note] if note else [])]


def _steps(verdicts: Sequence[NodeVerdict]) -> Iterator[str]:
    """Yield what to do about nodes of one status, all simulated or none."""
    first, names = verdicts[0], folded(titled(verdict.node) for verdict in verdicts)
    if first.status == "PASS" and len(verdicts) > _MOST_NAMED:
        names = count(len(verdicts), "node")
    because = first_reason(first) or "there is no result."
    if first.simulated is not None:
        found = "passed." if first.status == "PASS" else f"is {first.label}: {because}"
        yield f"The simulated node {found} Nothing follows for a machine."
    elif first.status == "PASS":
        yield f"Accept {names}{' for now' if first.provisional else ''}: nothing failed."
    elif first.status == "UNSTABLE":
        yield f"Repeat the checks on {names}: {because}"
    elif first.status == "INCOMPLETE":
        yield f"Fix this, then measure {names} again: {because}"
    else:
        for verdict in verdicts[:_MOST_NAMED]:
            advice = f"Look into the {titled(verdict.node)}."
            if verdict.drain is not None:
                advice = scheduler.advice(verdict.drain, verdict.node)
            yield f"{advice} {first_reason(verdict)}"
        if len(verdicts) > _MOST_NAMED:
            yield (
                f"{first.label} also: "
                f"{folded(titled(verdict.node) for verdict in verdicts[_MOST_NAMED:])}."
            )


def is_of(verdict: NodeVerdict, one: Observed) -> bool:
    """Whether values belong to a verdict's subject, the machine or its simulation."""
    here = one.where in verdict.partitions or not one.where
    return here and (one.kind == "simulated") == (verdict.simulated is not None)


def first_reason(verdict: NodeVerdict) -> str:
    """Return the diagnosis, the first reason against PASS, and how many more there are."""
    found, more = verdict.diagnosis, len(verdict.reasons) - 1
    said = (
        *([found.sentence] if found is not None and found.degraded else []),
        *(f"{reason.sentence.rstrip('.')}." for reason in verdict.reasons[:1]),
        *([f"And {count(more, 'more reason')}."] if more > 0 else []),
    )
    return " ".join(dict.fromkeys(said))


def partition_verdict(judged: Iterable[NodeVerdict], observed: Observed) -> NodeVerdict:
    """Return the verdict on one partition, from those on the nodes of its session.

    Results without a node's name may be of several: their reasons come together.
    """
    its = [
        verdict
        for verdict in judged
        if observed.on in (None, verdict.node) and is_of(verdict, observed)
    ]
    worst = min(its, key=lambda one: STATUSES.index(one.status))
    others = (each for verdict in its if verdict is not worst for each in verdict.reasons)
    reasons = [*worst.reasons, *others]
    return worst.model_copy(update={"reasons": reasons}).in_partition(observed.where)


def failures(verdict: NodeVerdict) -> list[list[Reason]]:
    """Return the reasons against PASS by check, the worst first."""
    shown = (reason for reason in verdict.reasons if reason.rule not in _SHOWN_ELSEWHERE)
    return list(grouped((reason.check, reason) for reason in shown).values())


def problems(entry: Entry) -> Iterator[str]:
    """Yield the problems of a document: missing, unreadable, or of an unfinished run."""
    yield from map(str, entry.problems)
    if entry.document is not None and not entry.document["complete"]:
        said = entry.document["outcome"]["message"]
        yield (
            f"{entry.path}: the run did not finish "
            f"({entry.document['outcome']['status']}{f': {said}' if said else ''}); it has the "
            "series finished before."
        )


def says(observed: Observed) -> str:
    """Return the results of a partition in numbers."""
    cases = observed.cases
    unknown = sum(case.result == UNREPORTED for case in cases)
    if unknown:
        first = f"{count(unknown, 'check')} without a run report that states whether they passed"
    elif cases:
        first = f"{sum(case.passed for case in cases)} of {count(len(cases), 'check')} passed"
    else:
        first = f"{count(len(observed.entries), 'document')} outside any session"
    skipped = sum(case.skipped for case in cases)
    retried = sum(case.failed_attempts > 0 for case in cases)
    lacking = sum(len(list(problems(entry))) for entry in observed.entries)
    limits = caveats.limits(cases)
    limited = limits["kept"] + limits["missed"]
    series = [one for document in observed.documents for one in document["series"]]
    noisy = sum(one["noisy"] for one in series)
    wrong = sum(one["verification"]["errors"] > 0 for one in series)
    where_any = (
        (skipped, f"{skipped} skipped"),
        (retried, f"{retried} after a failed attempt"),
        (lacking, f"{count(lacking, 'document')} missing or not whole"),
        (limited, f"{limits['kept']} of {count(limited, 'metric')} within the limit"),
        (limits["free"], f"{limits['free']} without a limit"),
        (noisy, f"{noisy} of {len(series)} series noisy"),
        (wrong, f"{wrong} of {len(series)} series with wrong data"),
    )
    return listed([first, *(text for number, text in where_any if number)])
