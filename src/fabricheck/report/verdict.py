"""What the page of a partition says of the verdict: that of its node, and its own numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fabricheck.core.text import count
from fabricheck.judge.verdict import caveats
from fabricheck.judge.verdict.model import NodeVerdict, Reason
from fabricheck.judge.verdict.rules import STATUSES
from fabricheck.report.spread import Spread
from fabricheck.results import killed
from fabricheck.results.entry import Entry
from fabricheck.results.observed import Observed

#: Rules of reasons that the page shows elsewhere: missing documents with the expected file, and the
#: diagnosis.
_SHOWN_ELSEWHERE = frozenset({"no-document", "not-judged", "diagnosis"})


def is_of(verdict: NodeVerdict, one: Observed | Spread) -> bool:
    """Whether values belong to a verdict's subject, the machine or its simulation."""
    here = one.where in verdict.partitions or not one.where
    return here and (one.kind == "simulated") == (verdict.simulated is not None)


def of(judged: Iterable[NodeVerdict], observed: Observed) -> NodeVerdict:
    """Return the verdict on one partition, from those on the nodes of its session.

    Results without a node's name may be of several: their reasons come together.
    """
    its = [one for one in judged if observed.on in (None, one.node) and is_of(one, observed)]
    worst = min(its, key=lambda one: STATUSES.index(one.status))
    reasons = [*worst.reasons, *(each for one in its if one is not worst for each in one.reasons)]
    return worst.model_copy(update={"reasons": reasons}).in_partition(observed.where)


def failures(verdict: NodeVerdict) -> list[list[Reason]]:
    """Return the reasons against PASS by check, the worst first."""
    found: dict[str | None, list[Reason]] = {}
    for reason in verdict.reasons:
        if reason.rule not in _SHOWN_ELSEWHERE:
            found.setdefault(reason.check, []).append(reason)
    return list(found.values())


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
    unknown = sum(case.result == killed.RESULT for case in cases)
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
        (True, f"{len(series)} series"),
        (noisy, f"{noisy} of them noisy"),
        (True, f"{wrong} with wrong data"),
    )
    return ", ".join([first, *(text for number, text in where_any if number)])
