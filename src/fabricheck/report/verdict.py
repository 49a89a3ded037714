"""The verdict on a partition: status, numbers and reasons, by the rules of `judge.verdict`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from fabricheck.core.text import count
from fabricheck.judge.diagnosis.model import Diagnosis
from fabricheck.judge.verdict import caveats, checks, diagnosed, grouping, model
from fabricheck.judge.verdict.rules import Finding, NodeStatus, in_order, worst
from fabricheck.results import killed
from fabricheck.results.entry import Entry
from fabricheck.results.observed import Observed
from fabricheck.site.sets import EVERYTHING, Choice

#: Rules whose findings are listed as missing, with the expected file.
_TOLD_AS_MISSING = frozenset({"no-document", "not-judged"})


@dataclass(frozen=True)
class Failure:
    """Why a check, or the partition, did not pass: worst status, and reasons as sentences."""

    check: str
    status: NodeStatus
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a partition.

    status: the status of a node with these results. provisional: the partition, if the status
    depends on its limits and it has no calibration of its own. simulated: whether the node is
    simulated. says: the reason in numbers. failures: the reasons against PASS, the worst first.
    problems: missing or incomplete parts. skipped: checks that did not run. absent: checks of the
    partition that the session lacks, chosen or not. caveats: the limits of the status, each
    as one sentence. diagnosis: the explanation of the missed limits; None if none was missed.
    """

    status: NodeStatus
    provisional: tuple[str, ...]
    simulated: bool
    says: str
    failures: tuple[Failure, ...]
    problems: tuple[str, ...]
    skipped: tuple[str, ...]
    absent: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None

    @property
    def told(self) -> str:
        """The status as printed."""
        return model.status_label(self.status, self.provisional)


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


def of(observed: Observed) -> Verdict:
    """Return the verdict on one partition."""
    entries = {id(entry.case): entry for entry in observed.entries if entry.case is not None}
    loose = [(None, entry) for entry in observed.entries if entry.case is None]
    attempts = [
        attempt
        for case, entry in [*((case, entries.get(id(case))) for case in observed.cases), *loose]
        for attempt in grouping.attempts(case, entry, 0.0)
    ]
    choice = observed.session.choice if observed.session is not None else Choice((), None)
    recorded = {observed.where: observed.recorded} if observed.recorded is not None else {}
    found = checks.Checks.of(attempts, choice, recorded)
    reasons = list(found.reasons())
    if found.absent:
        reasons.append(checks.missing(found.absent, "here"))
    absent = tuple(found.absent_of(choice.set or EVERYTHING))
    skipped = tuple(case.name for case in observed.cases if case.skipped)
    missing = tuple(one for entry in observed.entries for one in problems(entry))
    limits = caveats.limits(observed.cases)
    status = worst(one.status for one in reasons)
    here = [observed.where] if observed.where and not observed.simulated else []
    return Verdict(
        status,
        tuple(model.provisional_partitions(status, here, here, {one.rule.name for one in reasons})),
        observed.simulated,
        _says(observed, missing, limits),
        tuple(_failures(reasons)),
        missing,
        skipped,
        absent,
        (
            *caveats.of(observed.cases, observed.documents, len(found.tried), len(skipped)),
            *caveats.of_state(attempts),
            *found.unknown(),
            *([_not_there(len(absent))] if absent else ()),
        ),
        diagnosed.of(found),
    )


def _not_there(absent: int) -> str:
    are = "is" if absent == 1 else "are"
    return f"{count(absent, 'check')} of this partition {are} not in this session."


def _failures(reasons: list[Finding]) -> list[Failure]:
    """Return the reasons by check, the worst first."""
    by_check: dict[str, list[Finding]] = {}
    for found in in_order(reasons):
        if found.rule.name not in _TOLD_AS_MISSING:
            by_check.setdefault(found.check or "all", []).append(found)
    return [
        Failure(check, own[0].status, tuple(one.sentence for one in own))
        for check, own in by_check.items()
    ]


def _says(observed: Observed, lacking: tuple[str, ...], limits: Counter[str]) -> str:
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
    limited = limits["kept"] + limits["missed"]
    series = [one for document in observed.documents for one in document["series"]]
    noisy = sum(one["noisy"] for one in series)
    wrong = sum(one["verification"]["errors"] > 0 for one in series)
    where_any = (
        (skipped, f"{skipped} skipped"),
        (retried, f"{retried} after a failed attempt"),
        (len(lacking), f"{count(len(lacking), 'document')} missing or not whole"),
        (limited, f"{limits['kept']} of {count(limited, 'metric')} within the limit"),
        (limits["free"], f"{limits['free']} without a limit"),
        (True, f"{len(series)} series"),
        (noisy, f"{noisy} of them noisy"),
        (True, f"{wrong} with wrong data"),
    )
    return ", ".join([first, *(text for number, text in where_any if number)])
