"""One partition of A against one of B: every value has one place in the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabricheck.judge.comparison.circumstances import Difference, differences
from fabricheck.judge.comparison.judging import Value, Verdict, judge
from fabricheck.judge.comparison.sides import Check, Part
from fabricheck.judge.comparison.subjects import Metric, Subject, Transfer
from fabricheck.judge.comparison.values import values
from fabricheck.references.entries import SMALLER_IS_BETTER
from fabricheck.results.model import ResultDocument

What = Subject | Metric

#: The status of a run whose samples scatter too much.
TOO_NOISY = "too-noisy"


@dataclass(frozen=True)
class Compared:
    """One value that both have, and how B stands to A."""

    what: What
    a: Value
    b: Value
    verdict: Verdict

    @property
    def badness(self) -> float:
        """How much worse B is, as a factor above 1, whatever the unit; below 1 it is better."""
        ratio = self.verdict.ratio
        if ratio is None:
            return self.b.median + 1 if self.b.median > self.a.median else 1 / (self.a.median + 1)
        return ratio if self.a.unit in SMALLER_IS_BETTER else 1 / ratio


@dataclass(frozen=True)
class NotComparable:
    """A value of A that B has on other terms, and which these are."""

    what: What
    why: str


@dataclass(frozen=True)
class Outcome:
    """A check whose result changed, or a difference from the node model that came or went.

    undetermined: one of both runs was too noisy to judge, which says nothing of the node.
    """

    check: str
    before: str
    after: str
    worse: bool
    reason: str = ""
    undetermined: bool = False

    @property
    def word(self) -> str:
        """How B stands to A."""
        return "undetermined" if self.undetermined else "worse" if self.worse else "better"


@dataclass(frozen=True)
class Comparison:
    """What two partitions have in common, and what not.

    in_a, in_b: values that only the one has. unread: sentences about documents that are not there,
    are invalid or incomplete. differs: what is not the same around the values.
    """

    a: Part
    b: Part
    compared: tuple[Compared, ...]
    outcomes: tuple[Outcome, ...]
    in_a: tuple[What, ...]
    in_b: tuple[What, ...]
    checks_in_a: tuple[str, ...]
    checks_in_b: tuple[str, ...]
    not_comparable: tuple[NotComparable, ...]
    unread: tuple[str, ...]
    differs: tuple[Difference, ...]

    def judged(self, judgement: str) -> list[Compared]:
        """Return the values with one judgement, the worst of B first.

        Of undetermined ones those come first whose change is beyond noise.
        """
        found = [one for one in self.compared if one.verdict.judgement == judgement]
        found.sort(key=lambda one: one.badness, reverse=judgement != "better")
        if judgement == "undetermined":
            found.sort(key=lambda one: one.verdict.low is None)
        return found

    @property
    def informs(self) -> bool:
        """Whether measured values stand against simulated ones, which judges nothing."""
        return {self.a.clock, self.b.clock} == {"measured", "simulated"}

    @property
    def worse(self) -> bool:
        """Whether something is worse."""
        return bool(self.judged("worse")) or any(one.worse for one in self.outcomes)

    @property
    def missing(self) -> bool:
        """Whether A has a value or a check that was not compared with one of B for lack of it."""
        return bool(self.in_a or self.not_comparable or self.checks_in_a)

    @property
    def changed(self) -> bool:
        """Whether anything has another judgement than unchanged, or is missing or not readable."""
        return bool(
            self.worse or self.missing or self.outcomes or self.unread
            or self.in_b or self.checks_in_b or self.judged("better")
        )  # fmt: skip

    @property
    def by_chance(self) -> float:
        """How many values would at most differ by chance where nothing changed."""
        return sum(one.verdict.chance for one in self.compared if isinstance(one.what, Subject))

    @property
    def determined(self) -> bool:
        """Whether anything could be judged."""
        return any(not one.undetermined for one in self.outcomes) or any(
            one.verdict.judgement != "undetermined" for one in self.compared
        )


def compare(a: Part, b: Part, floor: float | None = None) -> Comparison:
    """Set two partitions against each other.

    :param floor: the least relative change that counts, instead of that of each kind of series.
    """
    before, after = values(a), values(b)
    both = [what for what in before if what in after]
    wrong = [
        NotComparable(what, f"wrong data in {'A' if before[what].wrong else 'B'}")
        for what in both
        if before[what].wrong or after[what].wrong
    ]
    wrong += [
        NotComparable(what, "the series of the check have other sizes or conventions")
        for what in both
        if before[what].basis != after[what].basis
    ]
    if {a.clock, b.clock} != {"measured", "simulated"}:  # else the whole comparison informs
        wrong += [
            NotComparable(what, f"{before[what].clock} in A and {after[what].clock} in B")
            for what in both
            if before[what].clock != after[what].clock
        ]
    unsound = {one.what for one in wrong}
    compared = [
        Compared(what, before[what], after[what], judge(before[what], after[what], floor))
        for what in both
        if what not in unsound
    ]
    only_a = [what for what in before if what not in after]
    only_b = [what for what in after if what not in before]
    other_terms = list(_other_terms(only_a, only_b))
    matched = {one.what for one in other_terms}
    loosely = {_loosely(what) for what in matched}
    ours, theirs = _ran(a), _ran(b)
    return Comparison(
        a,
        b,
        tuple(one for one in compared if _counts(one)),
        (*_results(a, b), *_found(a, b)),
        tuple(what for what in only_a if what not in matched),
        tuple(what for what in only_b if _loosely(what) not in loosely),
        tuple(name for name in ours if name not in theirs),
        tuple(name for name in theirs if name not in ours),
        (*wrong, *other_terms),
        (*_unread("A", a), *_unread("B", b)),
        tuple(differences(*_of_both(a, b))),
    )


def _counts(one: Compared) -> bool:
    """Whether a value has a place of its own: a metric that can not be judged has its series."""
    return isinstance(one.what, Subject) or one.verdict.judgement != "undetermined"


def _ran(part: Part) -> list[str]:
    """Return the names of the checks that were not skipped, each once."""
    ran = (one.names for one in part.checks if one.case is None or not one.case.skipped)
    return list(dict.fromkeys(name for names in ran for name in names))


def _of_both(a: Part, b: Part) -> tuple[list[ResultDocument], list[ResultDocument]]:
    """Return the documents of checks that both have: the options of others are no difference."""
    names = [{one.name for one in part.checks if one.document is not None} for part in (a, b)]
    ours, theirs = (
        [
            one.document
            for one in part.checks
            if one.document is not None and one.name in names[0] & names[1]
        ]
        for part in (a, b)
    )
    return ours, theirs


def _loosely(what: What) -> Transfer | tuple[str, str]:
    """Return what a value is of, whatever the terms."""
    return what.transfer if isinstance(what, Subject) else (what.check, what.name)


def _other_terms(only_a: list[What], only_b: list[What]) -> Iterator[NotComparable]:
    rests: dict[Transfer | tuple[str, str], list[What]] = {}
    for what in only_b:
        rests.setdefault(_loosely(what), []).append(what)
    for what in only_a:
        others = rests.get(_loosely(what))
        if not others:
            continue
        differing = [_differing(what, other) for other in others]
        nearest = min(differing, key=len)
        yield NotComparable(what, "; ".join(nearest))


def _differing(what: What, other: What) -> list[str]:
    if isinstance(what, Subject) and isinstance(other, Subject):
        return what.terms.differs(other.terms)
    return [f"unit {what.unit} and {other.unit}"]


def _states(part: Part) -> dict[str, Check]:
    """Return of each name the check that counts: of repetitions the first that did not pass."""
    found: dict[str, Check] = {}
    for check in part.checks:
        for name in check.names:
            if name not in found or (_good(found[name]) and not _good(check)):
                found[name] = check
    return found


def _good(check: Check) -> bool:
    if check.case is not None:
        return check.case.passed
    return check.document is not None and check.document["outcome"]["status"] == "good"


def _unread_alone(check: Check) -> bool:
    """Whether nothing tells the result: no case, and a document that `_unread` names."""
    whole = check.document is not None and check.document["complete"]
    return check.case is None and not whole


def _state(check: Check) -> str:
    if check.case is not None:
        return check.case.outcome
    return _status(check) or "unreadable"


def _status(check: Check) -> str | None:
    return check.document["outcome"]["status"] if check.document is not None else None


def _results(a: Part, b: Part) -> Iterator[Outcome]:
    after = _states(b)
    for name, before in _states(a).items():
        now = after.get(name)
        if now is None or _good(before) == _good(now):
            continue
        reason = now.case.reason if now.case is not None and not _good(now) else None
        text = " ".join((reason or "").split())
        # What was skipped is missing, not worse: its values are among those that B lacks.
        skipped = now.case is not None and now.case.skipped
        if skipped or (before.case is not None and before.case.skipped):
            continue
        if _unread_alone(before) or _unread_alone(now):
            continue
        noisy = TOO_NOISY in (_status(before), _status(now))
        worse = not _good(now) and not noisy
        yield Outcome(name, _state(before), _state(now), worse, text, noisy)


def _found(a: Part, b: Part) -> Iterator[Outcome]:
    """Yield what differs from the node model in one side only, of checks that both have."""
    ours, theirs = _differences(a), _differences(b)
    for check in ours.keys() & theirs.keys():
        for sentence in theirs[check]:
            if sentence not in ours[check]:
                yield Outcome(check, "as the node model", "differs", True, sentence)
        for sentence in ours[check]:
            if sentence not in theirs[check]:
                yield Outcome(check, "differed", "as the node model", False, sentence)


def _differences(part: Part) -> Mapping[str, list[str]]:
    return {
        check.name: list(check.document.get("differences") or ())
        for check in part.checks
        if check.document is not None and check.document.get("differences") is not None
    }


def _unread(side: str, part: Part) -> Iterator[str]:
    for check in part.checks:
        if check.entry is None:
            continue
        if check.entry.problem is not None:
            yield f"{side}: {check.entry.problem}"
        elif check.document is not None and not check.document["complete"]:
            status = check.document["outcome"]["status"]
            yield f"{side}: {check.entry.path}: is incomplete ({status}): its series are a part."
