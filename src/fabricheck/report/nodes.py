"""Many nodes at one glance: the word of each, and how each metric is spread over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabricheck.nodelists import folded, natural
from fabricheck.observed import Observed
from fabricheck.report import spread
from fabricheck.report.figure import Figure
from fabricheck.report.figures import over_nodes
from fabricheck.report.gather import Gathered
from fabricheck.report.spread import Far, Spread
from fabricheck.report.worst import Metric, metrics
from fabricheck.verdict.judging import judge
from fabricheck.verdict.model import NodeVerdict
from fabricheck.verdict.rules import WORDS, Word, worst

#: Up to so many nodes that passed stand in the open.
MOST_PASSED = 20


@dataclass(frozen=True)
class Row:
    """One node.

    says: the first reason for its word, or what its checks came to. nearest: the metric that is
    farthest beyond its limit, or has the least margin. behind: the metric that is farthest behind
    the median of all nodes, and how far, where it stands out.
    """

    verdict: NodeVerdict
    says: str
    nearest: Metric | None
    behind: tuple[Spread, Far] | None

    @property
    def node(self) -> str:
        """Its name, and what is simulated on it."""
        simulated = self.verdict.simulated
        return f"{self.verdict.node}, simulating {simulated}" if simulated else self.verdict.node


@dataclass(frozen=True)
class Nodes:
    """All nodes, the worst first; their metrics, those first of which a node stands out."""

    rows: tuple[Row, ...]
    spreads: tuple[Spread, ...]
    figures: tuple[Figure, ...]

    @property
    def word(self) -> Word:
        """The worst word."""
        return worst(row.verdict.word for row in self.rows)

    @property
    def counts(self) -> Iterator[tuple[Word, int, str]]:
        """Each word, how many nodes have it, and their names; those of PASS are not named."""
        for word in WORDS:
            here = [row.verdict.node for row in self.rows if row.verdict.word == word]
            if here:
                yield word, len(here), "" if word == "PASS" else folded(here)

    @property
    def silent(self) -> list[str]:
        """A sentence for each node that was to be measured and of which there is no result."""
        return [
            reason.sentence
            for row in self.rows
            for reason in row.verdict.reasons
            if reason.rule == "silent"
        ]

    @property
    def told(self) -> list[Row]:
        """The nodes that are no PASS, and those that are where there are few."""
        return [row for row in self.rows if row.verdict.word != "PASS" or not self.folded]

    @property
    def folded(self) -> list[Row]:
        """The nodes that passed, where there are many."""
        passed = [row for row in self.rows if row.verdict.word == "PASS"]
        return passed if len(passed) > MOST_PASSED else []

    @property
    def standing_out(self) -> list[Spread]:
        """The metrics of which a node stands out."""
        return [one for one in self.spreads if one.worse or one.better]

    @property
    def behind(self) -> list[Spread]:
        """The metrics of which a node is behind the others, of worst and median one."""
        return [one for one in over_nodes.first_of_each(self.spreads) if one.worse]

    @property
    def even(self) -> list[Spread]:
        """The metrics of which none does."""
        return [one for one in self.spreads if not one.worse and not one.better]


def of(gathered: Gathered) -> Nodes | None:
    """Return what there is of several nodes; None of one, or where no node has a name."""
    if gathered.judged is None:
        return None
    names = {one.on for one in gathered.parts if one.on is not None} | set(gathered.judged.asked)
    if len(names) < 2:
        return None
    spreads = spread.of(gathered.parts)
    parts: dict[str, list[Observed]] = {}
    for part in gathered.parts:
        parts.setdefault(part.on or "", []).append(part)
    behind: dict[str, tuple[Spread, Far]] = {}
    for one in spreads:
        for far in one.worse:
            if far.node not in behind or abs(far.percent) > abs(behind[far.node][1].percent):
                behind[far.node] = (one, far)
    rows = [
        _row(verdict, parts.get(verdict.node, []), behind.get(verdict.node))
        for verdict in judge(gathered.judged)
    ]
    rows.sort(key=lambda row: (WORDS.index(row.verdict.word), natural(row.node)))
    return Nodes(tuple(rows), tuple(spreads), tuple(over_nodes.figures(spreads)))


def _row(verdict: NodeVerdict, parts: Sequence[Observed], behind: tuple[Spread, Far] | None) -> Row:
    checks = verdict.checks
    says = f"{checks.passed} of {checks.passed + checks.failed + len(checks.skipped)} checks passed"
    if verdict.reasons:
        says = verdict.reasons[0].sentence
        more = len(verdict.reasons) - 1
        says += f" And {more} more." if more else ""
    own = [
        one for part in parts if (part.kind == "simulated") == (verdict.simulated is not None)
        for one, _ in metrics(part.cases) if one.margin is not None
    ]  # fmt: skip
    nearest = min(own, key=lambda one: one.margin or 0.0, default=None)
    return Row(verdict, says, nearest, behind)
