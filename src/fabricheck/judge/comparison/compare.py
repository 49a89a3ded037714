"""Comparison of one partition of A with one of B. Each value occurs once in the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabricheck.core.grouping import grouped
from fabricheck.core.vocabulary import SMALLER_IS_BETTER
from fabricheck.judge.comparison.circumstances import Difference, causes, differences
from fabricheck.judge.comparison.judging import Decision, Estimate, judge
from fabricheck.judge.comparison.pairing import NodeChecks
from fabricheck.judge.comparison.values import Key, estimates
from fabricheck.results.model import ResultDocument
from fabricheck.results.session import PASSED, SKIPPED, UNREPORTED
from fabricheck.results.table import Check

#: The status of a run whose samples scatter too much, and that of a good run.
TOO_NOISY = "too-noisy"
GOOD = "good"


@dataclass(frozen=True)
class Compared:
    """A value that both have, and its judgement."""

    key: Key
    a: Estimate
    b: Estimate
    decision: Decision

    @property
    def badness(self) -> float:
        """How much worse B is, as a factor above 1 in any unit; below 1, B is better."""
        ratio = self.decision.ratio
        if ratio is None:
            return self.b.median + 1 if self.b.median > self.a.median else 1 / (self.a.median + 1)
        return ratio if self.a.unit in SMALLER_IS_BETTER else 1 / ratio

    @property
    def determined(self) -> bool:
        """Whether it could be judged."""
        return self.decision.judgement != "undetermined"


@dataclass(frozen=True)
class NotComparable:
    """A value of A that B measured under other terms, and these terms."""

    key: Key
    why: str


@dataclass(frozen=True)
class ChangedResult:
    """A check whose result changed, or a difference from the node model that came or went.

    undetermined: one of the runs was too noisy to judge, which says nothing about the node.
    """

    check: str
    before: str
    after: str
    worse: bool
    reason: str = ""
    undetermined: bool = False

    @property
    def judgement(self) -> str:
        """The judgement of B relative to A."""
        return "undetermined" if self.undetermined else "worse" if self.worse else "better"


@dataclass(frozen=True)
class Comparison:
    """The common and the different values of two partitions.

    in_a, in_b: values that only one side has. unread: sentences about missing, invalid or
    incomplete documents. differs: differences in the conditions. causes_in_a, causes_in_b: possible
    causes in the states of nodes and devices, as sentences.
    """

    a: NodeChecks
    b: NodeChecks
    compared: tuple[Compared, ...]
    outcomes: tuple[ChangedResult, ...]
    in_a: tuple[Key, ...]
    in_b: tuple[Key, ...]
    checks_in_a: tuple[str, ...]
    checks_in_b: tuple[str, ...]
    not_comparable: tuple[NotComparable, ...]
    unread: tuple[str, ...]
    differs: tuple[Difference, ...]
    causes_in_a: tuple[str, ...]
    causes_in_b: tuple[str, ...]

    def judged(self, judgement: str) -> list[Compared]:
        """Return the values with one judgement, the worst of B first.

        Undetermined values with a change beyond noise come before the other undetermined ones.
        """
        found = [compared for compared in self.compared if compared.decision.judgement == judgement]
        found.sort(key=lambda compared: compared.badness, reverse=judgement != "better")
        if judgement == "undetermined":
            found.sort(key=lambda compared: compared.decision.low is None)
        return found

    @property
    def informs(self) -> bool:
        """Whether measured and simulated values are compared, which allows no judgement."""
        return _informs(self.a, self.b)

    @property
    def worse(self) -> bool:
        """Whether something is worse."""
        return bool(self.judged("worse")) or any(outcome.worse for outcome in self.outcomes)

    @property
    def missing(self) -> bool:
        """Whether A has a value or a check that B lacks."""
        return bool(self.in_a or self.not_comparable or self.checks_in_a)

    @property
    def changed(self) -> bool:
        """Whether anything changed, is missing or cannot be read."""
        return bool(
            self.worse or self.missing or self.outcomes or self.unread
            or self.in_b or self.checks_in_b or self.judged("better")
        )  # fmt: skip

    @property
    def by_chance(self) -> float:
        """The largest number of values expected to differ by chance if nothing changed."""
        return sum(compared.decision.chance for compared in self.compared if compared.key.of_series)

    @property
    def determined(self) -> bool:
        """Whether anything could be judged."""
        return any(not outcome.undetermined for outcome in self.outcomes) or any(
            compared.determined for compared in self.compared
        )


def compare(a: NodeChecks, b: NodeChecks, floor: float | None = None) -> Comparison:
    """Compare two partitions.

    :param floor: the smallest relative change that counts, instead of that of each kind of series.
    """
    before, after = estimates(a), estimates(b)
    both = [key for key in before if key in after]
    wrong = [
        NotComparable(key, why)
        for key in both
        if (why := _not_comparable(before[key], after[key], _informs(a, b))) is not None
    ]
    unsound = {comparable.key for comparable in wrong}
    compared = [
        Compared(key, before[key], after[key], judge(before[key], after[key], floor))
        for key in both
        if key not in unsound
    ]
    only_a = [key for key in before if key not in after]
    only_b = [key for key in after if key not in before]
    other_terms = list(_other_terms(only_a, only_b))
    matched = {term.key for term in other_terms}
    loosely = {key.without_terms for key in matched}
    ours, theirs = _ran(a), _ran(b)
    mine, others = _of_both(a, b)
    return Comparison(
        a,
        b,
        # For a metric that cannot be judged, its series are judged.
        tuple(value for value in compared if value.key.of_series or value.determined),
        (*_results(a, b), *_found(a, b)),
        tuple(key for key in only_a if key not in matched),
        tuple(key for key in only_b if key.without_terms not in loosely),
        tuple(name for name in ours if name not in theirs),
        tuple(name for name in theirs if name not in ours),
        (*wrong, *other_terms),
        (*_unread("A", a), *_unread("B", b)),
        tuple(differences(mine, others)),
        causes(mine),
        causes(others),
    )


def _informs(a: NodeChecks, b: NodeChecks) -> bool:
    return {a.clock, b.clock} == {"measured", "simulated"}


def _not_comparable(a: Estimate, b: Estimate, informs: bool) -> str | None:
    """Return why two values of one subject are not compared, or None if they are compared.

    :param informs: whether the clocks of A and B differ as a whole, so that nothing is judged.
    """
    if a.wrong or b.wrong:
        return f"wrong data in {'A' if a.wrong else 'B'}"
    if a.basis != b.basis:
        return "the series of the check have other sizes or conventions"
    if a.clock != b.clock and not informs:
        return f"{a.clock} in A and {b.clock} in B"
    return None


def _ran(side: NodeChecks) -> list[str]:
    """Return the names of the checks that were not skipped, each once."""
    return list(dict.fromkeys(row.check or "" for row in side.checks if row.result not in SKIPPED))


def _of_both(a: NodeChecks, b: NodeChecks) -> tuple[list[ResultDocument], list[ResultDocument]]:
    """Return the documents of the checks that both sides have; options of others do not count."""
    ours, theirs = ({row.check for row in side.checks if row.document} for side in (a, b))
    mine, others = (
        [row.document for row in side.checks if row.document and row.check in ours & theirs]
        for side in (a, b)
    )
    return mine, others


def _other_terms(only_a: list[Key], only_b: list[Key]) -> Iterator[NotComparable]:
    rests = grouped((key.without_terms, key) for key in only_b)
    for key in only_a:
        others = rests.get(key.without_terms)
        if others:
            nearest = min((key.differs(other) for other in others), key=len)
            yield NotComparable(key, "; ".join(nearest))


def _states(side: NodeChecks) -> dict[str, Check]:
    """Return the check that counts by name: of repetitions, the first that did not pass."""
    by_name = grouped((row.check or "", row) for row in side.checks)
    return {
        name: next((row for row in rows if not _good(row)), rows[0])
        for name, rows in by_name.items()
    }


def _is_told(row: Check) -> bool:
    """Whether a report states the result of a check; otherwise its document does."""
    return row.result not in (None, UNREPORTED)


def _good(row: Check) -> bool:
    return row.result in PASSED if _is_told(row) else row.status == GOOD


def _state(row: Check) -> str:
    if row.case is not None and _is_told(row):
        return row.case.outcome
    return row.status or "unreadable"


def _results(a: NodeChecks, b: NodeChecks) -> Iterator[ChangedResult]:
    after = _states(b)
    for name, before in _states(a).items():
        now = after.get(name)
        if now is None or _good(before) == _good(now):
            continue
        # A skipped check is missing, not worse: its values are among those that B lacks.
        if {before.result, now.result} & SKIPPED:
            continue
        # Neither a report nor a complete document has the result; `_unread` names it.
        if any(not (_is_told(row) or row.complete) for row in (before, now)):
            continue
        reason = now.case.reason if now.case is not None and not _good(now) else None
        text = " ".join((reason or "").split())
        noisy = TOO_NOISY in (before.status, now.status)
        worse = not _good(now) and not noisy
        yield ChangedResult(name, _state(before), _state(now), worse, text, noisy)


def _found(a: NodeChecks, b: NodeChecks) -> Iterator[ChangedResult]:
    """Yield differences from the node model on one side only, of checks that both have."""
    ours, theirs = _differences(a), _differences(b)
    for check in ours.keys() & theirs.keys():
        for sentence in theirs[check]:
            if sentence not in ours[check]:
                yield ChangedResult(check, "as the node model", "differs", True, sentence)
        for sentence in ours[check]:
            if sentence not in theirs[check]:
                yield ChangedResult(check, "differed", "as the node model", False, sentence)


def _differences(side: NodeChecks) -> Mapping[str, list[str]]:
    found = ((row.check, row.document and row.document.get("differences")) for row in side.checks)
    return {
        check or "": [difference["sentence"] for difference in differences]
        for check, differences in found
        if differences is not None
    }


def _unread(letter: str, side: NodeChecks) -> Iterator[str]:
    for row in side.checks:
        if row.entry is None:
            continue
        for problem in row.entry.problems:
            yield f"{letter}: {problem}"
        if row.complete is False:
            path = row.entry.path
            yield f"{letter}: {path}: it is incomplete ({row.status}), with some of its series."
