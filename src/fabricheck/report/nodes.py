"""The overview of several nodes: the status of each, and the spread of each metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import folded, is_several, natural, titled
from fabricheck.core.text import count
from fabricheck.judge.verdict import scheduler
from fabricheck.judge.verdict.model import NodeVerdict, by_label
from fabricheck.judge.verdict.rules import STATUSES
from fabricheck.report.figure import Figure
from fabricheck.report.figures import over_nodes
from fabricheck.report.figures.over_nodes import Spread
from fabricheck.report.findings import first_reason, is_of
from fabricheck.results.observed import Observed
from fabricheck.results.reading import Results
from fabricheck.results.table import Metric


@dataclass(frozen=True)
class Row:
    """A row of the table of nodes.

    says: the first reason for its status, or the result of its checks. nearest: the metric that is
    farthest beyond its limit, or has the smallest margin, of what the verdict is on: no simulated
    value stands beside the status of a machine.
    """

    verdict: NodeVerdict
    says: str
    nearest: Metric | None

    @property
    def node(self) -> str:
        """The name of the node, and the name of its simulation."""
        simulated, title = self.verdict.simulated, titled(self.verdict.node)
        return f"{title}, simulating {simulated.label}" if simulated else title


@dataclass(frozen=True)
class Nodes:
    """All nodes, the worst first; their metrics, those with outliers first."""

    rows: tuple[Row, ...]
    spreads: tuple[Spread, ...]
    figures: tuple[Figure, ...]

    @property
    def totals(self) -> Iterator[tuple[str, list[tuple[str, int, str]]]]:
        """How many nodes, then networks, of machines, then of simulations, have each status.

        Yields ``3 simulated nodes``, and each status with its number and the names of its nodes;
        nodes with PASS are not named.
        """
        for noun, simulated in product(("node", "network"), (False, True)):
            rows = [
                row.verdict
                for row in self.rows
                if bool(row.verdict.simulated) == simulated
                and is_several(row.verdict.node) == (noun == "network")
            ]
            if rows:
                what = count(len(rows), f"simulated {noun}" if simulated else noun)
                yield (
                    what,
                    [
                        (
                            label,
                            len(verdicts),
                            ""
                            if verdicts[0].status == "PASS"
                            else folded(v.node for v in verdicts),
                        )
                        for label, verdicts in by_label(rows).items()
                    ],
                )

    @property
    def silent(self) -> list[str]:
        """A sentence for each requested node without any result."""
        return [
            reason.sentence
            for row in self.rows
            for reason in row.verdict.reasons
            if reason.rule == "silent"
        ]


def overview(results: Results, judged: Iterable[NodeVerdict]) -> Nodes | None:
    """Return the overview of several nodes, or of a single node without results.

    Returns None for one node with results, without node names, and for documents outside any
    session.
    """
    if not any(source.folder for source in results.sources) and results.job is None:
        return None
    there = {observed.on for observed in results.observed if observed.on is not None}
    requested = set(results.requested)
    if len(there | requested) < 2 and not requested - there:
        return None
    spreads = over_nodes.spreads(results.observed)
    parts = grouped((part.on or "", part) for part in results.observed)
    rows = sorted((_row(verdict, parts.get(verdict.node, ())) for verdict in judged), key=_place)
    return Nodes(tuple(rows), tuple(spreads), tuple(over_nodes.figures(spreads)))


def _place(row: Row) -> tuple[int, bool, float, list[tuple[int, int, str]]]:
    """Return the sort key of a node: status, machines first if failed, margin, name."""
    status = row.verdict.status
    margin = None if row.nearest is None or status == "PASS" else row.nearest.margin
    far = math.inf if margin is None else margin
    is_simulated = status != "PASS" and row.verdict.simulated is not None
    return STATUSES.index(status), is_simulated, far, natural(row.node)


def _row(verdict: NodeVerdict, parts: Iterable[Observed]) -> Row:
    checks = verdict.checks
    every = checks.passed + checks.failed + len(checks.skipped)
    says = first_reason(verdict) or f"{checks.passed} of {count(every, 'check')} passed"
    if verdict.drain is not None and verdict.simulated is None:
        says = f"{says} {scheduler.advice(verdict.drain)}"
    own = [
        metric for part in parts if is_of(verdict, part)
        for metric in part.metrics if metric.margin is not None
    ]  # fmt: skip
    return Row(verdict, says, min(own, key=lambda one: one.margin or 0.0, default=None))
