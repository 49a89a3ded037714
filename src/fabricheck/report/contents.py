"""What a page shows, put together: everything but its form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from altair.utils import schemapi
from markupsafe import Markup

from fabricheck.core import nodelists
from fabricheck.core.amounts import number
from fabricheck.core.errors import NotFoundError
from fabricheck.judge import coverage as rules
from fabricheck.judge import testable
from fabricheck.judge.coverage import Coverage
from fabricheck.judge.verdict.rules import Word
from fabricheck.judge.verdict.rules import worst as worst_of
from fabricheck.report import (
    document_figures,
    environment,
    judged_claims,
    nodes,
    rests_on,
    verdict,
    worst,
)
from fabricheck.report.document_figures import Counterpart, Ours
from fabricheck.report.drawing import inline
from fabricheck.report.figure import Figure
from fabricheck.report.figures import sections
from fabricheck.report.figures import undrawn as sentence
from fabricheck.report.figures.rows import own
from fabricheck.report.nodes import Nodes
from fabricheck.results.entry import Entry
from fabricheck.results.observed import Observed
from fabricheck.results.reading import NO_REPORT, Results, slug
from fabricheck.site import partitions

#: Of several nodes so many partitions have sections of their own, where none are chosen.
MOST_IN_FULL = 4

#: How a page calls the documents that no partition is known of.
NOWHERE = "no partition"


@dataclass(frozen=True)
class Shown:
    """A figure in the page. name: its id there, and its name as a file. csv: its data."""

    name: str
    figure: Figure
    drawing: Markup
    csv: str

    @property
    def experiments(self) -> frozenset[str]:
        """The experiments that its data are of; empty where they do not say."""
        return frozenset(row["experiment"] for row in own(self.figure.rows) if "experiment" in row)

    @property
    def columns(self) -> list[str]:
        """The columns of its data."""
        return list(self.figure.rows[0]) if self.figure.rows else []


@dataclass(frozen=True)
class Part:
    """One partition of the page.

    slug: its part of ids and names of files. undrawn: a sentence for each figure lost by a defect.
    """

    observed: Observed
    slug: str
    verdict: verdict.Verdict
    worst: worst.Worst
    claims: judged_claims.Claims
    figures: dict[str, list[Shown]]
    references: tuple[rests_on.Reference, ...]
    facts: list[environment.Fact]
    undrawn: tuple[str, ...]

    @property
    def name(self) -> str:
        """The partition, in headings."""
        apart = f" ({self.observed.apart})" if self.observed.apart else ""
        return f"{self.observed.where or NOWHERE}{apart}"

    @property
    def kind(self) -> str:
        """What its numbers are: measured, simulated, or none where there are none."""
        return self.observed.kind if self.observed.documents else "no results"

    @property
    def what(self) -> str:
        """What its figures are of: the node model's name, or what is known without one."""
        if self.observed.node is not None:
            return self.observed.node.name
        return "a CPU, no GPU" if self.observed.runtimes == {"host"} else "no node model"

    @property
    def glance(self) -> Iterator[str]:
        """What is worst, and what the verdict does not rest on: for those who read no further."""
        if self.observed.overlay:
            yield f"The simulated node was changed on purpose: {self.observed.overlay}."
        for one in self.worst.failed[:1]:
            yield (
                f"Farthest beyond its limit: {one.check} {one.metric}, {number(one.value)} "
                f"{one.unit}, {one.bound} {number(one.limit)}."
            )
        for slow in self.worst.slow[:1]:
            yield (
                f"Farthest behind its class: {slow.what}, {slow.operation}, {number(slow.value)} "
                f"{slow.unit}, {slow.percent:.1f} % behind the median of {slow.members} "
                f"{slow.among}."
            )
        yield from self.verdict.reservations

    @property
    def shown(self) -> Iterator[Shown]:
        """All of its figures."""
        for figures in self.figures.values():
            yield from figures


@dataclass(frozen=True)
class Contents:
    """Everything that a page shows.

    parts: the partitions with sections of their own. nodes: all nodes at one glance, where there
    are several; overview: the figures of that.
    """

    results: Results
    parts: tuple[Part, ...]
    coverage: Sequence[Coverage]
    nodes: Nodes | None = None
    overview: tuple[Shown, ...] = ()

    @property
    def on(self) -> str | None:
        """The node that all of it is of; None of several, and where nobody names one."""
        names = {part.observed.on for part in self.parts}
        return names.pop() if self.nodes is None and len(names) == 1 else None

    @property
    def left_out(self) -> int:
        """How many partitions of nodes have no sections of their own."""
        return len(self.results.observed) - len(self.parts)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why this is not all, or not what was asked for, in sentences."""
        sources = self.results.sources
        without = [NO_REPORT] if sources and all(one.killed for one in sources) else []
        return (*(one.sentence for one in self.results.problems), *without)

    @property
    def problems(self) -> Iterator[str]:
        """What is missing, broken or not whole, each in one sentence."""
        yield from self.warnings
        for entry in self.results.entries:
            yield from verdict.problems(entry)
        yield from self.nodes.silent if self.nodes is not None else ()
        yield from self.lost

    @property
    def entries(self) -> list[Entry]:
        """The documents of what is shown."""
        return [entry for part in self.parts for entry in part.observed.entries]

    @property
    def word(self) -> Word:
        """The verdict on all partitions together."""
        if self.nodes is not None:
            return self.nodes.word
        return worst_of(part.verdict.word for part in self.parts) if self.parts else "INCOMPLETE"

    @property
    def lost(self) -> tuple[str, ...]:
        """Figures and claims that a defect lost, each in one sentence."""
        return tuple(one for part in self.parts for one in (*part.undrawn, *part.claims.defects))

    @cached_property
    def counterparts(self) -> list[Counterpart]:
        """The documents' figures, and where each is here."""
        ours = [
            Ours(
                one.name, one.figure.id, one.figure.title, part.name, one.figure.kind,
                one.experiments or self._measured(part),
                part.observed.node.name if part.observed.node else "", part.what,
            )
            for part in self.parts
            for one in part.shown
        ]  # fmt: skip
        return document_figures.counterparts(ours, self.coverage)

    def _measured(self, part: Part) -> frozenset[str]:
        names = {point.experiment for point in part.observed.points}
        compared = {
            row.experiment.id
            for row in self.coverage
            for ran in row.ran
            if (ran.where, ran.node) == (part.observed.where, part.observed.on)
            and (ran.series or ran.comparisons)
        }
        return frozenset(names | compared)


def of(results: Results, on: Sequence[str] = ()) -> Contents:
    """Judge, draw and list what a session has.

    :param on: the nodes with sections of their own; where none are named those that did not pass,
        up to MOST_IN_FULL, or the first.
    :raises NotFoundError: when there is no result of one of them.
    """
    found = nodes.of(results)
    undrawn: list[str] = []
    overview = tuple(_shown("all", found.figures, undrawn)) if found is not None else ()
    parts = tuple(_parts(_in_full(results, found, on)))
    if undrawn and parts:
        parts = (replace(parts[0], undrawn=(*undrawn, *parts[0].undrawn)), *parts[1:])
    return Contents(results, parts, _coverage(results), found, overview)


def _in_full(results: Results, found: Nodes | None, on: Sequence[str]) -> Sequence[Observed]:
    every = results.observed
    if on:
        lacking = sorted(set(on) - {one.on for one in every})
        if lacking:
            raise NotFoundError(
                f"There is no result of {nodelists.folded(lacking)} in {results.title}."
            )
        return [one for one in every if one.on in on]
    if len({one.on for one in every}) <= MOST_IN_FULL:
        return every
    rows = found.rows if found is not None else ()
    worst_first = dict.fromkeys(row.verdict.node for row in rows if row.verdict.word != "PASS")
    chosen = [one for node in worst_first for one in every if one.on == node]
    return chosen[:MOST_IN_FULL] or every[:1]


def _parts(chosen: Iterable[Observed]) -> Iterator[Part]:
    taken: set[str] = set()
    for one in chosen:
        name = slug(f"{one.where or NOWHERE} {one.apart}") or "partition"
        while name in taken:
            name += "-x"
        taken.add(name)
        # Altair's check of each part takes a third of the time; tests of the drawers have it.
        with schemapi.debug_mode(False):
            drawn = sections(one)
        undrawn = list(drawn.undrawn)
        shown = {title: list(_shown(name, own, undrawn)) for title, own in drawn.figures.items()}
        yield Part(
            one,
            name,
            verdict.of(one),
            worst.of(one),
            judged_claims.of(one),
            {title: figures for title, figures in shown.items() if figures},
            rests_on.of(one),
            environment.of(one),
            tuple(undrawn),
        )


def _shown(part: str, figures: Sequence[Figure], undrawn: list[str]) -> Iterator[Shown]:
    """Yield the figures; what becomes no drawing is added to ``undrawn`` as a sentence."""
    for figure in figures:
        name = f"{part}-{slug(figure.id)}"
        try:
            yield Shown(name, figure, inline(figure.svg, name, figure.title), figure.csv)
        # The library that draws raises what it likes, or its process ends.
        except Exception as error:
            undrawn.append(sentence(f"Figure {name}", error))


def _coverage(results: Results) -> list[Coverage]:
    sites = partitions.known_sites()
    features = testable.features_of_devices(sites)
    return rules.coverage(
        results.together, tuple(results.entries), partitions.able(sites), features
    )
