"""The contents of a page, without its layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from altair.utils import schemapi

from fabricheck.core import nodelists
from fabricheck.core.errors import NotFoundError
from fabricheck.core.grouping import grouped
from fabricheck.judge import coverage as rules
from fabricheck.judge.coverage import Coverage
from fabricheck.judge.verdict import model
from fabricheck.judge.verdict.judging import judge
from fabricheck.judge.verdict.model import NodeVerdict, Reason
from fabricheck.judge.verdict.rules import STATUSES, NodeStatus
from fabricheck.judge.verdict.rules import worst as worst_of
from fabricheck.report import demonstration, findings, nodes
from fabricheck.report.experiments import Reference
from fabricheck.report.figure import Figure, Shown, defect, inline
from fabricheck.report.figures import sections
from fabricheck.report.figures.rows import session_rows
from fabricheck.report.nodes import Nodes
from fabricheck.report.rendering import added_sections
from fabricheck.results.entry import Entry
from fabricheck.results.observed import Observed
from fabricheck.results.reading import NO_REPORT, Results, slug
from fabricheck.site import partitions, sets

#: The most partitions with sections of their own, if several nodes are shown and none are chosen.
MOST_IN_FULL = 4


@dataclass(frozen=True, eq=False)
class Part(findings.Partition):
    """One partition of the page.

    slug: its part of ids and file names. added: by id the content of sections of subpackages. node:
    the drawing of the node, placed beside the verdict. sections: the other figures, by the title of
    their section. undrawn: a sentence for each figure lost to a defect.
    """

    slug: str
    added: dict[str, Any]
    node: Shown | None
    sections: Mapping[str, Sequence[Shown]]
    undrawn: tuple[str, ...]

    @property
    def clock(self) -> str:
        """The clock of its numbers: measured, simulated, or none if there are none."""
        return self.observed.clock_in_words

    @property
    def unseen(self) -> str:
        """What a passed session of its set does not show; empty where it ran no whole set."""
        known = sets.known().get(self.verdict.set or "")
        return known.not_ if known is not None else ""

    @property
    def limited(self) -> list[Reference]:
        """The metrics with a limit, the least margin first."""
        return sorted(
            (reference for reference in self.references if reference.limits),
            key=lambda reference: reference.metric.margin or 0.0,
        )

    @property
    def unmeasured(self) -> list[list[Reason]]:
        """The reasons against PASS other than missed limits."""
        return [each for each in self.failures if each[0].status != "PERF-FAIL"]

    @property
    def drawings(self) -> int:
        """The number of figures in the sections."""
        return sum(map(len, self.sections.values()))

    @property
    def shown(self) -> Iterator[Shown]:
        """All of its figures."""
        return chain([] if self.node is None else [self.node], *self.sections.values())


@dataclass(frozen=True)
class Contents:
    """The contents of a page.

    judged: the verdicts on all nodes. parts: the partitions that have sections, the worst status
    first. nodes: the overview of all nodes, None for one node. overview: its figures.
    """

    results: Results
    judged: Sequence[NodeVerdict]
    parts: tuple[Part, ...]
    coverage: Sequence[Coverage]
    nodes: Nodes | None = None
    overview: tuple[Shown, ...] = ()
    undrawn: Sequence[str] = ()

    @property
    def on(self) -> str | None:
        """The node of all results; None if there are several, or no name is known."""
        names = {part.observed.on for part in self.parts}
        return names.pop() if self.nodes is None and len(names) == 1 else None

    @property
    def left_out(self) -> int:
        """The number of partitions of nodes without sections of their own."""
        return len(self.results.observed) - len(self.parts)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Missing parts of what was requested, as sentences."""
        sources = self.results.sources
        without = [NO_REPORT] if sources and all(source.killed for source in sources) else []
        return (*(problem.sentence for problem in self.results.problems), *without)

    @property
    def problems(self) -> Iterator[str]:
        """Missing, broken or incomplete results, each as one sentence."""
        yield from self.warnings
        yield from chain.from_iterable(map(findings.problems, self.results.entries))
        reasons = (reason for verdict in self.judged for reason in verdict.reasons)
        yield from (reason.sentence for reason in reasons if reason.rule == "silent")
        yield from self.lost

    @property
    def covered(self) -> int:
        """The number of experiments with results, those of documents without a check included."""
        return sum(row.measured_anything or row.unreported > 0 for row in self.coverage)

    @property
    def entries(self) -> list[Entry]:
        """The documents of the shown results."""
        return [entry for part in self.parts for entry in part.observed.entries]

    @property
    def status(self) -> NodeStatus:
        """The verdict on all partitions together."""
        return worst_of(verdict.status for verdict in self.judged) if self.judged else "INCOMPLETE"

    @property
    def label(self) -> str:
        """The combined status, as printed."""
        same = [bool(verdict.provisional) for verdict in self.judged
                if verdict.status == self.status and not verdict.simulated]  # fmt: skip
        # Where one was proven slow, the others' grounds do not matter.
        proven = self.status == "PERF-FAIL" and not all(same)
        return model.status_label(self.status, any(same) and not proven)

    @property
    def badge(self) -> str:
        """The combined status, as coloured: that of an accepted node, if there is one."""
        badges = {verdict.badge for verdict in self.judged if verdict.status == self.status}
        return "pass" if "pass" in badges else next(iter(badges), "incomplete")

    @property
    def demonstration(self) -> str:
        """That no GPU was measured, as a sentence; empty where some were or should have been."""
        return demonstration.SENTENCE if demonstration.is_demonstration(self.judged) else ""

    @property
    def next_steps(self) -> list[str]:
        """What to do, as sentences, the most urgent first."""
        return findings.next_steps(self.judged)

    @property
    def lost(self) -> tuple[str, ...]:
        """What was lost to a defect, one sentence each."""
        of_parts = (
            (
                *part.undrawn,
                *(defect for section in part.added.values() for defect in section.defects),
            )
            for part in self.parts
        )
        return (*self.undrawn, *chain.from_iterable(of_parts))


def page_contents(results: Results, on: Sequence[str] = ()) -> Contents:
    """Return the contents of the page of a session.

    :param on: the nodes with sections of their own; if none are named, those that did not pass, up
        to MOST_IN_FULL, or the first node.
    :raises NotFoundError: when a node has no result.
    """
    judged = judge(results)
    overview_of_nodes = nodes.overview(results, judged)
    undrawn: list[str] = []
    overview = (
        tuple(_drawn("all", overview_of_nodes.figures, undrawn))
        if overview_of_nodes is not None
        else ()
    )
    coverage = rules.coverage(results, partitions.known_sites())
    parts = tuple(
        sorted(
            _parts(_in_full(results, overview_of_nodes, on), judged, coverage),
            key=_place,
        )
    )
    return Contents(results, judged, parts, coverage, overview_of_nodes, overview, undrawn)


def _place(part: Part) -> tuple[bool, int, int]:
    """Return where a partition stands: machines above simulated nodes, the worst first."""
    return part.observed.simulated, STATUSES.index(part.verdict.status), -len(part.limited)


def _in_full(
    results: Results, overview_of_nodes: Nodes | None, on: Sequence[str]
) -> Sequence[Observed]:
    all_observed = results.observed
    if on:
        lacking = sorted(set(on) - {observed.on for observed in all_observed})
        if lacking:
            raise NotFoundError(
                f"There is no result of {nodelists.folded(lacking)} in {results.title}."
            )
        return [observed for observed in all_observed if observed.on in on]
    if len({observed.on for observed in all_observed}) <= MOST_IN_FULL:
        return all_observed
    rows = overview_of_nodes.rows if overview_of_nodes is not None else ()
    worst_first = dict.fromkeys(row.verdict.node for row in rows if row.verdict.status != "PASS")
    by_node = grouped((observed.on, observed) for observed in all_observed)
    chosen = [observed for node in worst_first for observed in by_node.get(node, ())]
    return chosen[:MOST_IN_FULL] or all_observed[:1]


def _parts(
    chosen: Iterable[Observed], judged: Sequence[NodeVerdict], coverage: Sequence[Coverage]
) -> Iterator[Part]:
    taken: set[str] = set()
    for observed in chosen:
        partition = findings.Partition(observed, findings.partition_verdict(judged, observed))
        name = slug(partition.name) or "partition"
        while name in taken:
            name += "-x"
        taken.add(name)
        # Altair's validation of each part takes a third of the time; the drawers' tests run it
        # instead.
        with schemapi.debug_mode(False):
            drawn, undrawn = sections(observed, partition.verdict.diagnosis)
        all_shown = [
            (title, shown)
            for title, figures in drawn.items()
            for shown in _shown(name, partition, figures, coverage, undrawn)
        ]
        node = next((shown for _, shown in all_shown if shown.figure.id == "node"), None)
        rest = grouped((title, shown) for title, shown in all_shown if shown is not node)
        others = {each.ID: each.judged_claims(observed) for each in added_sections()}
        yield Part(observed, partition.verdict, name, others, node, rest, tuple(undrawn))


def _shown(
    part: str,
    partition: findings.Partition,
    figures: Sequence[Figure],
    coverage: Sequence[Coverage],
    undrawn: list[str],
) -> Iterator[Shown]:
    """Yield the figures of a partition, with their partition and node."""
    observed = partition.observed
    name, shows = "", "a CPU, no GPU" if observed.runtimes == {"host"} else "no node model"
    if observed.node is not None:
        name, shows = observed.node.whole_name, observed.node.name
    for shown in _drawn(part, figures, undrawn):
        rows = session_rows(shown.figure.rows)
        measured = {row["experiment"] for row in rows if "experiment" in row}
        yield replace(
            shown, where=partition.name, node_shown=shows, node=name,
            measured=frozenset(measured or _measured(observed, coverage)),
        )  # fmt: skip


def _measured(observed: Observed, coverage: Iterable[Coverage]) -> Iterator[str]:
    """Yield the experiments of which a partition has series or comparisons."""
    yield from (point.experiment for point in observed.points)
    for row in coverage:
        for ran in row.ran:
            here = (ran.where, ran.node) == (observed.where, observed.on)
            if here and (ran.series or ran.comparisons):
                yield row.experiment.id


def _drawn(part: str, figures: Sequence[Figure], undrawn: list[str]) -> Iterator[Shown]:
    """Yield the figures; a figure that cannot be drawn adds a sentence to ``undrawn``."""
    for figure in figures:
        name = f"{part}-{slug(figure.id)}"
        try:
            yield Shown(name, figure, inline(figure.svg, name, figure.title), figure.csv)
        # The drawing library may raise anything, or its process may end.
        except Exception as error:
            undrawn.append(defect(f"Figure {name} could not be drawn", error))
