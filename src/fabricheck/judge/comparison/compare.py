"""Comparison of two sessions: resolution of A and B, pairs of their nodes, and their values.

Each value occurs once in the comparison of two nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.core.grouping import grouped
from fabricheck.core.show import enumerated, listed
from fabricheck.core.vocabulary import SMALLER_IS_BETTER
from fabricheck.judge.comparison.circumstances import ChangedCircumstance, causes, differences
from fabricheck.judge.comparison.judging import (
    Decision,
    Estimate,
    Row,
    columns,
    estimates,
    identity,
    judge,
)
from fabricheck.judge.comparison.routes import Rerouted
from fabricheck.results.model import ResultDocument
from fabricheck.results.reading import Problem, Results, Source, read
from fabricheck.results.rows import Check, Series, by_place
from fabricheck.results.session import PASSED, SKIPPED, UNREPORTED
from fabricheck.site import software

#: The status of a run whose samples scatter too much, and that of a good run.
TOO_NOISY = "too-noisy"
GOOD = "good"


@dataclass(frozen=True)
class NodeChecks:
    """The rows of the checks of one partition on one node; empty where one side lacks it.

    where: empty for documents outside any session. node: None where unknown. clock: ``measured``,
    ``simulated``, both, or a dash without any document.
    """

    where: str
    node: str | None = None
    checks: tuple[Check, ...] = field(default=(), repr=False)
    clock: str = "-"

    @property
    def name(self) -> str:
        """The partition and the node, for a sentence."""
        return f"{self.where} on {self.node}" if self.node else self.where


@dataclass(frozen=True)
class Side:
    """A or B: the name as the user wrote it, and its results by partition and node.

    unread: sentences about what cannot be read, such as the session of one node of a job.
    """

    name: str
    results: Results
    nodes: tuple[NodeChecks, ...]
    unread: tuple[str, ...]

    @property
    def chosen(self) -> bool:
        """Whether the user chose one partition or node."""
        return any(source.where or source.on for source in self.results.sources)

    @property
    def says(self) -> list[str]:
        """Sentences about its software."""
        sessions = [
            source.session for source in _compared(self.results) if source.reported is not None
        ]
        sentences = (
            software.sentences(session.outputs, session.start, session.end) for session in sessions
        )
        return list(dict.fromkeys(sentence for each in sentences for sentence in each))


def side(name: str) -> Side:
    """Return the results of a name; for a job, the sessions of its nodes that have a report.

    :raises FabricheckError: when nothing has that name, no check ran, or a single document cannot
        be read.
    """
    results = read([name])
    unread = tuple(_not_read(results))
    places = by_place(_named(results))
    nodes = tuple(
        NodeChecks(*place, tuple(checks), enumerated(sorted(filter(None, clocks))) or "-")
        for place, checks in places.items()
        for clocks in [{row.clock for row in checks}]
    )
    chosen_side = Side(name, results, nodes, unread)
    if not chosen_side.nodes:
        if chosen_side.chosen and unread:
            raise InvalidInputError(unread[0])
        if results.job is not None:
            raise NotFoundError(f"There is no session of any node in {results.home}.")
        raise NotFoundError(f"Session {results.sources[0].name} of {results.home} ran no check.")
    first = chosen_side.nodes[0]
    if _is_one_document(first) and (entry := first.checks[0].entry) and entry.problem is not None:
        raise entry.problem
    return chosen_side


def _compared(results: Results) -> list[Source]:
    """Return the sources to compare: for a job, those with a report and a check."""
    return [
        source
        for source in results.sources
        if results.job is None or (source.reported is not None and source.session.cases)
    ]


def _not_read(results: Results) -> Iterator[str]:
    problems = list(results.problems)
    of_job = results.sources if results.job is not None else ()
    known = {problem.node for problem in problems} | {
        source.node for source in of_job if source.reported
    }
    for source in of_job:
        if source.killed and source.node not in known:
            sentence = f"The session on {source.node} has no report: it was killed."
            problems.append(Problem(sentence, source.node))
    chosen = {node for source in results.sources for node in source.on}
    for problem in problems:
        if not chosen or problem.node in (None, *chosen):
            yield problem.sentence


def _named(results: Results) -> Iterator[Check]:
    """Yield the rows of checks; the column ``check`` is made unique.

    The name gets the environment if the partition has several. For a document outside any session
    it gets the path of its folder if several folders have one name.
    """
    sources = _compared(results)
    folders = Counter(row.check for source in sources for row in source.checks)
    for source in sources:
        environs = grouped((case.where, case.environ) for case in source.session.cases)
        for row in source.checks:
            entry, case = row.entry, row.case
            name = row.check
            if case is None and entry is not None and entry.path and folders[name] > 1:
                name = str(entry.path.parent.relative_to(source.results))
            elif case is not None and len(set(environs[case.where])) > 1:
                name = f"{name} +{case.environ}"
            yield replace(row, check=name)


def pair_up(a: Side, b: Side) -> list[tuple[NodeChecks, NodeChecks]]:
    """Return the pairs of partitions to compare; a missing counterpart is an empty one.

    :raises UsageError: when the choice is ambiguous.
    """
    pairs = list(_matches(a, b))
    if not pairs:
        raise UsageError(_unclear(a, b))
    mine, theirs = pairs[0]
    if _is_one_document(mine) and _is_one_document(theirs):
        # Two named documents are compared, whatever their folders.
        row = replace(theirs.checks[0], check=mine.checks[0].check)
        return [(mine, replace(theirs, checks=(row,)))]
    if a.chosen or b.chosen:
        return pairs
    paired = {id(checks) for pair in pairs for checks in pair}
    pairs += [
        (node, NodeChecks(node.where, node.node)) for node in a.nodes if id(node) not in paired
    ]
    pairs += [
        (NodeChecks(node.where, node.node), node) for node in b.nodes if id(node) not in paired
    ]
    order = list(dict.fromkeys(checks.where for checks in (*a.nodes, *b.nodes)))
    return sorted(pairs, key=lambda pair: order.index(pair[0].where))


def _matches(a: Side, b: Side) -> Iterator[tuple[NodeChecks, NodeChecks]]:
    """Yield pairs of nodes: equal partition and node; single nodes match whatever their names.

    Single partitions match whatever their names, too.
    """
    one_each = len({node.where for node in a.nodes}) == len({node.where for node in b.nodes}) == 1
    for mine in a.nodes:
        here, there = (
            [node for node in side.nodes if one_each or node.where == mine.where] for side in (a, b)
        )
        alone = len(there) == len(here) == 1
        yield from ((mine, checks) for checks in there if alone or checks.node == mine.node)


def elsewhere(pairs: Sequence[tuple[NodeChecks, NodeChecks]]) -> list[str]:
    """Return the checks of a partition that both sides ran, but on no node of the same name."""
    ran = (
        (a.where, [{row.check or "" for row in side.checks} for side in (a, b)]) for a, b in pairs
    )
    names: set[str] = set()
    for of_pairs in grouped(ran).values():
        in_a, in_b = (set().union(*side) for side in zip(*of_pairs, strict=True))
        names |= in_a & in_b - {name for a, b in of_pairs for name in a & b}
    return sorted(names)


def _unclear(a: Side, b: Side) -> str:
    """Return the sentence that tells the user to name a partition or a node."""
    if a.chosen or b.chosen:
        chosen, other = (a, b) if a.chosen else (b, a)
        return (
            f"{other.name} has no partition {chosen.nodes[0].name} but {other.results.places}: "
            f"name the one to compare with, as {_with_choice(other)}."
        )
    return (
        f"{a.name} has {a.results.places or 'no partition'} and {b.name} has "
        f"{b.results.places or 'none'}: name one of each to compare, as "
        f"{_with_choice(a if len(a.nodes) > 1 else b)}."
    )


def _with_choice(side: Side) -> str:
    first = side.nodes[0]
    several = len({node.where for node in side.nodes}) < len(side.nodes)
    return f"{side.name}@{first.node if several and first.node else first.where}"


def _is_one_document(side: NodeChecks) -> bool:
    return not side.where and len(side.checks) == 1


@dataclass(frozen=True)
class Compared:
    """A value that both have, and its judgement; ``columns`` identify it.

    rerouted: whether its data takes another route in B, since other links join the devices.
    """

    columns: Mapping[str, Any]
    a: Estimate
    b: Estimate
    decision: Decision
    row: Row = field(repr=False)
    rerouted: bool = False

    @property
    def badness(self) -> float:
        """How much worse B is, as a factor above 1 in any unit; below 1, B is better."""
        ratio = self.decision.ratio
        if ratio is None:
            return self.b.median + 1 if self.b.median > self.a.median else 1 / (self.a.median + 1)
        return ratio if self.a.unit in SMALLER_IS_BETTER else 1 / ratio


@dataclass(frozen=True)
class Unmatched:
    """A value that one side lacks, or that B measured under other terms: these are ``why``."""

    columns: Mapping[str, Any]
    why: str
    row: Row = field(repr=False)


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

    worse, better, undetermined, unchanged: the values that both have, the worst of B first, or the
    best; undetermined ones with a change beyond noise come before the others. informs_only: whether
    measured and simulated values are compared, which allows no judgement. by_chance_at_most: the
    number of series expected to differ if nothing had changed. unread: sentences about missing,
    invalid or incomplete documents. differs: differences in the conditions. causes_in_a,
    causes_in_b: possible causes in the states of nodes and devices, as sentences.
    """

    a: NodeChecks
    b: NodeChecks
    informs_only: bool
    differs: tuple[ChangedCircumstance, ...]
    causes_in_a: tuple[str, ...]
    causes_in_b: tuple[str, ...]
    outcomes: tuple[ChangedResult, ...]
    worse: tuple[Compared, ...]
    better: tuple[Compared, ...]
    undetermined: tuple[Compared, ...]
    unchanged: tuple[Compared, ...]
    by_chance_at_most: float
    missing_in_b: tuple[Unmatched, ...]
    missing_in_a: tuple[Unmatched, ...]
    checks_missing_in_b: tuple[str, ...]
    checks_missing_in_a: tuple[str, ...]
    not_comparable: tuple[Unmatched, ...]
    unread: tuple[str, ...]

    @property
    def compared(self) -> tuple[Compared, ...]:
        """The values that both have."""
        return (*self.worse, *self.better, *self.undetermined, *self.unchanged)

    @property
    def is_worse(self) -> bool:
        """Whether something is worse."""
        return bool(self.worse) or any(outcome.worse for outcome in self.outcomes)

    @property
    def lacks(self) -> bool:
        """Whether A has a value or a check that B lacks."""
        return bool(self.missing_in_b or self.not_comparable or self.checks_missing_in_b)

    @property
    def changed(self) -> bool:
        """Whether anything changed, is missing or cannot be read."""
        return bool(
            self.worse or self.lacks or self.outcomes or self.unread
            or self.missing_in_a or self.checks_missing_in_a or self.better
        )  # fmt: skip

    @property
    def determined(self) -> bool:
        """Whether anything could be judged."""
        return any(not outcome.undetermined for outcome in self.outcomes) or bool(
            self.worse or self.better or self.unchanged
        )


def compare(a: NodeChecks, b: NodeChecks, floor: float | None = None) -> Comparison:
    """Compare two partitions.

    :param floor: the smallest relative change that counts, instead of that of each kind of series.
    """
    before, after = estimates(a.checks), estimates(b.checks)
    informs_only = {a.clock, b.clock} == {"measured", "simulated"}
    both = [
        (row, mine, after[key][1], _not_comparable(mine, after[key][1], informs_only))
        for key, (row, mine) in before.items()
        if key in after
    ]
    rerouted = Rerouted(a.checks, b.checks)
    compared = [
        Compared(columns(row), mine, theirs, judge(mine, theirs, floor), row, rerouted.has(row))
        for row, mine, theirs, why in both
        if why is None
    ]
    compared.sort(key=lambda row: row.badness, reverse=True)
    judged = grouped(
        (each.decision.judgement, each)
        for each in compared
        # For a metric that cannot be judged, its series are judged.
        if isinstance(each.row, Series) or each.decision.judgement != "undetermined"
    )
    only_a, only_b = (
        [row for key, (row, _) in rows.items() if key not in others]
        for rows, others in ((before, after), (after, before))
    )
    other_terms = list(_other_terms(only_a, only_b))
    matched = {term.row for term in other_terms}
    loosely = {identity(row)[:2] for row in matched}
    ours, theirs = _ran(a), _ran(b)
    mine, others = _of_both(a, b)
    undetermined = judged.get("undetermined", [])
    return Comparison(
        a,
        b,
        informs_only=informs_only,
        differs=tuple(differences(mine, others)),
        causes_in_a=causes(mine),
        causes_in_b=causes(others),
        outcomes=(*_results(a, b), *_model_differences(a, b)),
        worse=tuple(judged.get("worse", ())),
        better=tuple(sorted(judged.get("better", ()), key=lambda row: row.badness)),
        undetermined=tuple(sorted(undetermined, key=lambda row: row.decision.low is None)),
        unchanged=tuple(judged.get("unchanged", ())),
        by_chance_at_most=sum(
            each.decision.chance for each in compared if isinstance(each.row, Series)
        ),
        missing_in_b=tuple(
            Unmatched(columns(row), "", row) for row in only_a if row not in matched
        ),
        missing_in_a=tuple(
            Unmatched(columns(row), "", row) for row in only_b if identity(row)[:2] not in loosely
        ),
        checks_missing_in_b=tuple(name for name in ours if name not in theirs),
        checks_missing_in_a=tuple(name for name in theirs if name not in ours),
        not_comparable=(
            *(Unmatched(columns(row), why, row) for row, _, _, why in both if why),
            *other_terms,
        ),
        unread=(*_unread("A", a), *_unread("B", b)),
    )


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


def _other_terms(only_a: Sequence[Row], only_b: Sequence[Row]) -> Iterator[Unmatched]:
    rests = grouped((identity(row)[:2], row) for row in only_b)
    for row in only_a:
        others = rests.get(identity(row)[:2])
        if others:
            nearest = min((_differing_terms(row, other) for other in others), key=len)
            yield Unmatched(columns(row), "; ".join(nearest), row)


def _differing_terms(row: Row, other: Row) -> list[str]:
    """Return, as text, each term in which two values of one subject differ."""
    theirs = dict(other.terms)
    return [
        f"{name.replace('_', ' ')} {_in_words(mine)} and {_in_words(theirs[name])}"
        for name, mine in row.terms
        if mine != theirs[name]
    ]


def _in_words(value: object) -> str:
    if isinstance(value, tuple):
        return listed("none" if item is None else str(item) for item in value) or "none"
    return "none" if value is None else str(value)


def _states(side: NodeChecks) -> dict[str, Check]:
    """Return the check that counts by name: of repetitions, the first that did not pass."""
    by_name = grouped((row.check or "", row) for row in side.checks)
    return {
        name: next((row for row in rows if not _good(row)), rows[0])
        for name, rows in by_name.items()
    }


def _is_reported(row: Check) -> bool:
    """Whether a report states the result of a check; otherwise its document does."""
    return row.result not in (None, UNREPORTED)


def _good(row: Check) -> bool:
    return row.result in PASSED if _is_reported(row) else row.status == GOOD


def _state(row: Check) -> str:
    if row.case is not None and _is_reported(row):
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
        if any(not (_is_reported(row) or row.complete) for row in (before, now)):
            continue
        why = now.case.why if now.case is not None and not _good(now) else []
        noisy = TOO_NOISY in (before.status, now.status)
        worse = not _good(now) and not noisy
        yield ChangedResult(name, _state(before), _state(now), worse, " ".join(why), noisy)


def _model_differences(a: NodeChecks, b: NodeChecks) -> Iterator[ChangedResult]:
    """Yield differences from the node model on one side only, of checks that both have."""
    ours, theirs = _differences(a), _differences(b)
    for check in ours.keys() & theirs.keys():
        for sentence in theirs[check]:
            if sentence not in ours[check]:
                yield ChangedResult(check, "as the node model", "differs", True, sentence)
    for check in ours.keys() & theirs.keys():
        for sentence in ours[check]:
            if sentence not in theirs[check]:
                yield ChangedResult(check, "differed", "as the node model", False, sentence)


def _differences(side: NodeChecks) -> Mapping[str, list[str]]:
    listed_by_check = (
        (row.check, row.document and row.document.get("differences")) for row in side.checks
    )
    return {
        check or "": [difference["sentence"] for difference in differences]
        for check, differences in listed_by_check
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
