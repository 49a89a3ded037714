"""Whether a partition passed, in a word and in numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fabricheck.observed import Observed
from fabricheck.partitions import extras
from fabricheck.report.gather import problems
from fabricheck.results import killed

Word = Literal["PASS", "FAIL", "INCOMPLETE"]

#: Outcomes of a program that are a verdict on the node, also without ReFrame.
FAILED = frozenset({"wrong-data", "runtime-error", "too-noisy"})

#: What a check says of a metric that missed its reference.
_METRIC = re.compile(r"Metric \w+: .*?is required.*?\.(?= Metric |$)")


@dataclass(frozen=True)
class Failure:
    """What failed: the check, ReFrame's phase, and why."""

    check: str
    phase: str
    because: str

    @property
    def sentences(self) -> list[str]:
        """Why, a sentence for each metric where metrics were missed.

        ReFrame says all of them before, without places and with sixteen digits: that is left out.
        """
        found = _METRIC.findall(self.because)
        return found if self.phase == "performance" and found else [self.because]


@dataclass(frozen=True)
class Verdict:
    """What a partition's results amount to.

    word: FAIL where anything failed; INCOMPLETE where nothing did and something is missing, or
    nobody says that it passed; else PASS. says: why, in numbers. skipped: checks that did not run.
    absent: checks that the site expects there and the session has not. reservations: what the word
    does not rest on, each in one sentence.
    """

    word: Word
    says: str
    failures: tuple[Failure, ...]
    problems: tuple[str, ...]
    skipped: tuple[str, ...]
    absent: tuple[str, ...]
    reservations: tuple[str, ...] = ()


def of(observed: Observed) -> Verdict:
    """Return the verdict on one partition."""
    failures = (*_of_checks(observed), *_of_documents(observed))
    lacking = tuple(one for entry in observed.entries for one in problems(entry))
    passed = sum(case.passed for case in observed.cases)
    skipped = tuple(case.name for case in observed.cases if case.skipped)
    absent = _absent(observed)
    word: Word = "PASS"
    if failures:
        word = "FAIL"
    elif lacking or not passed:
        word = "INCOMPLETE"
    limits = _limits(observed)
    return Verdict(
        word,
        _says(observed, passed, lacking, limits),
        failures,
        lacking,
        skipped,
        absent,
        tuple(_reservations(observed, limits, len(skipped), len(absent))),
    )


def _limits(observed: Observed) -> Counter[str]:
    """Return how many metrics kept their limits, missed them, and are free of any."""
    return Counter(
        "free" if one.lower is None and one.upper is None else "missed" if missed(one.result) else
        "kept"
        for case in observed.cases
        for one in case.judged.values()
    )  # fmt: skip


def _reservations(
    observed: Observed, limits: Counter[str], skipped: int, absent: int
) -> Iterator[str]:
    every = limits.total()
    if observed.simulated:
        yield "It is of a simulated node, and says nothing of a machine."
    if observed.documents and not any(document["series"] for document in observed.documents):
        yield "No series was measured."
    if every and limits["free"] == every:
        yield f"None of {_count(every, 'metric')} has a limit: nothing judges whether it is fast."
    elif limits["free"]:
        yield (
            f"{every - limits['free']} of {_count(every, 'metric')} have a limit; the others are "
            "recorded, and nothing judges them."
        )
    if skipped:
        were = "was" if skipped == 1 else "were"
        yield f"{skipped} of {_count(len(observed.cases), 'check')} {were} skipped."
    if absent:
        are = "is" if absent == 1 else "are"
        yield f"{_count(absent, 'check')} that the site expects here {are} not in this session."


def _of_checks(observed: Observed) -> list[Failure]:
    return [
        Failure(
            case.name,
            case.phase or case.result,
            " ".join((case.reason or "ReFrame gives no reason").split()),
        )
        for case in observed.cases
        if not case.passed and not case.skipped and case.result != killed.RESULT
    ]


def _of_documents(observed: Observed) -> list[Failure]:
    """Return what programs say went wrong, where no check of ReFrame says it."""
    found = []
    for entry in observed.entries:
        failed = entry.case and not entry.case.passed and entry.case.result != killed.RESULT
        if entry.document is None or failed:
            continue
        outcome = entry.document["outcome"]
        if outcome["status"] in FAILED:
            name = entry.case.name if entry.case else str(entry.path)
            found.append(Failure(name, outcome["status"], outcome["message"] or "it says no more"))
    return found


def _absent(observed: Observed) -> tuple[str, ...]:
    here = {case.name.split()[0] for case in observed.cases}
    return tuple(
        name for name in extras(observed.where).get("expected_checks", ()) if name not in here
    )


def _says(observed: Observed, passed: int, lacking: tuple[str, ...], limits: Counter[str]) -> str:
    parts = []
    unknown = sum(case.result == killed.RESULT for case in observed.cases)
    if unknown:
        parts.append(f"{_count(unknown, 'check')} of which no run report says whether they passed")
    elif observed.cases:
        parts.append(f"{passed} of {_count(len(observed.cases), 'check')} passed")
    else:
        parts.append(f"{_count(len(observed.entries), 'document')} outside of any session")
    skipped = sum(case.skipped for case in observed.cases)
    if skipped:
        parts.append(f"{skipped} skipped")
    retried = sum(case.failed_attempts > 0 for case in observed.cases)
    if retried:
        parts.append(f"{retried} after an attempt that failed")
    if lacking:
        parts.append(f"{_count(len(lacking), 'document')} missing or not whole")
    limited = limits["kept"] + limits["missed"]
    if limited:
        parts.append(f"{limits['kept']} of {_count(limited, 'metric')} with a limit within it")
    if limits["free"]:
        parts.append(f"{limits['free']} without a limit")
    series = [one for document in observed.documents for one in document["series"]]
    parts.append(f"{len(series)} series")
    noisy = sum(one["noisy"] for one in series)
    if noisy:
        parts.append(f"{noisy} of them noisy")
    wrong = sum(one["verification"]["errors"] > 0 for one in series)
    parts.append(f"{wrong} with wrong data")
    return ", ".join(parts)


def missed(result: str | None) -> bool:
    """Whether ReFrame says that a metric missed its reference."""
    return result is not None and result not in ("pass", "xfail")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
