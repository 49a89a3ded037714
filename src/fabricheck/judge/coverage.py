"""Coverage: the experiments E1 to E17 that a session ran, and why the others did not run.

Every experiment that a partition cannot test is reported with its reason. It never passes and is
never left out.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fabricheck.core.checkout import ROOT
from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import folded
from fabricheck.core.show import listed
from fabricheck.core.text import count
from fabricheck.core.vocabulary import EXPERIMENTS, OF_DEVICES
from fabricheck.node import NodeModel
from fabricheck.results.model import ResultDocument
from fabricheck.results.reading import Results
from fabricheck.results.rows import Check, by_place
from fabricheck.results.session import PASSED, SKIPPED
from fabricheck.site import partitions

#: The experiments whose results are comparisons without series: a node and its NICs with its model,
#: and the places of ranks with the expected ones.
COMPARING, COMPARING_NICS, PLACING = "E13", "E16", "E15"

#: The experiments with collectives, some of which a site may leave out (`mpi_without`), and the
#: text in documents about those.
WITH_COLLECTIVES = frozenset({"E10", "E12"})
LEFT_OUT = "left out by --without"

#: ReFrame's variable for the folders of checks; without it, the repository's own folder is used.
CHECKS_VARIABLE = "RFM_CHECK_SEARCH_PATH"

#: The content of the site files, from `partitions.known_sites`; None where unknown.
Sites = dict[str, list[dict[str, Any]]] | None


@dataclass(frozen=True)
class Tool:
    """A third-party tool for an experiment: its program name in documents, its title, and how
    to get it.
    """

    program: str
    name: str
    get: str


@dataclass(frozen=True)
class Experiment:
    """One row of experiments.yaml.

    ``made_of``: the experiment whose series it uses, if not its own. ``not_without``: by feature of
    a partition, what cannot be tested without the feature, and why. ``skipped``: why one of its
    checks is skipped.
    """

    id: str
    title: str
    needs: str
    get: str
    not_on: Mapping[str, str]
    made_of: str | None
    tool: Tool | None = None
    not_without: Mapping[str, str] = field(default_factory=dict)
    skipped: str | None = None


@dataclass(frozen=True)
class Ran:
    """A session's results of one experiment in one partition, on one node where nodes are known.

    clocks, runtimes, programs: those of the documents with results. series, comparisons: how many
    were measured, and how many documents compare a node with its model or place ranks. cases: the
    checks that are tagged with the experiment or whose document has results of it, by result;
    without_document: those that ran and left none.
    """

    where: str
    node: str | None
    clocks: tuple[str, ...]
    runtimes: tuple[str, ...]
    programs: tuple[str, ...]
    series: int
    comparisons: int
    cases: int
    passed: int
    failed: int
    skipped: int
    without_document: int

    @property
    def sentence(self) -> str:
        """The results and their amount as a sentence, with ``{}`` for the place."""
        what = listed(self.clocks) or "nothing measured"
        runtimes = f" by the {listed(self.runtimes)} runtime" if self.runtimes else ""
        counts = {
            "passed": self.passed,
            "failed": self.failed,
            "skipped": self.skipped,
            "without a document": self.without_document,
        }
        parts = listed(f"{number} {kind}" for kind, number in counts.items() if number)
        measured = f"{self.series} series"
        if self.comparisons:
            measured = count(self.comparisons, "comparison")
        checks = count(self.cases, "check")
        return f"{what} in {{where}}{runtimes}: {{each}}{measured}, {checks} ({parts})"


@dataclass(frozen=True)
class Coverage:
    """One experiment: where it ran, or why it did not.

    ``partitions``: the partitions of the sites that meet the requirements of its checks; None if
    unknown. ``not_testable``: by partition of the session, why the rest did not run.
    ``unreported``: how many series of it are in documents that no run report names.
    """

    experiment: Experiment
    has_check: bool
    ran: Sequence[Ran]
    why_not: str | None
    partitions: tuple[str, ...] | None
    not_testable: Mapping[str, tuple[str, ...]]
    unreported: int = 0

    @property
    def measured_anything(self) -> bool:
        """Whether at least one series of the experiment, or one comparison, exists."""
        return any(ran.series or ran.comparisons for ran in self.ran)

    @property
    def missing_tool(self) -> Tool | None:
        """The other tool that measures the experiment, where it did not."""
        tool = self.experiment.tool
        ran = any(tool and tool.program in ran.programs for ran in self.ran)
        return None if ran else tool

    @property
    def only_simulated(self) -> bool:
        """Whether all of its results are from a simulated node."""
        clocks = {clock for ran in self.ran for clock in ran.clocks}
        return self.measured_anything and clocks == {"simulated"}

    @property
    def sentence(self) -> str:
        """Where the experiment ran, or why it did not and how to run it."""
        clauses = [
            f"not testable here ({where}): {reason}"
            for where, reasons in self.not_testable.items()
            for reason in reasons
        ]
        # If all checks were skipped, the reason is the whole sentence.
        ran = [
            place
            for place in self.ran
            if place.cases > place.skipped or place.where not in self.not_testable
        ]
        clauses = [*_alike(ran), *clauses]
        if self.unreported:
            clauses.append(f"{self.unreported} series in documents that no run report names")
        if not (self.ran or clauses):
            clauses = [self._why_and_how]
        tool = self.missing_tool
        lacking = f"; not by {tool.name}: {tool.get}" if tool else ""
        return "; ".join(clauses) + lacking

    @property
    def _why_and_how(self) -> str:
        why = f"{self.why_not}; needs {self.experiment.needs}"
        if not self.has_check:
            return why
        if self.partitions:
            return f"{why}; possible on {listed(self.partitions)}"
        return f"{why}; {self.experiment.get}"


def not_judged(node: NodeModel | None) -> Iterator[str]:
    """Yield a sentence on the peaks of a node that its model does not know."""
    if node is not None and node.unknown_peaks:
        unknown = listed(node.unknown_peaks)
        yield f"Not judged against a peak of {node.name} that is unknown: {unknown}."


def _alike(ran: Iterable[Ran]) -> Iterator[str]:
    """Yield one sentence for all nodes of a partition with the same amount of results."""
    on = grouped(((place.where, place.sentence), place.node) for place in ran)
    for (where, sentence), nodes in on.items():
        names = folded(nodes)
        place = f"{where} on {names}" if names else where
        yield sentence.format(where=place, each="each " if len(nodes) > 1 else "")


@functools.cache
def experiments() -> tuple[Experiment, ...]:
    """Return E1 to E17 in order."""
    text = Path(__file__).with_name("experiments.yaml").read_text(encoding="utf-8")
    table: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return tuple(
        Experiment(
            name,
            EXPERIMENTS[name],
            row["needs"],
            row["get"],
            row.get("not_on", {}),
            row.get("made_of"),
            Tool(**row["tool"]) if "tool" in row else None,
            row.get("not_without", {}),
            row.get("skipped"),
        )
        for name, row in table.items()
    )


def checks_folders() -> list[Path]:
    """Return the folders of checks: RFM_CHECK_SEARCH_PATH, else reframe_checks of this suite."""
    given = os.environ.get(CHECKS_VARIABLE)
    if given:
        return [Path(part) for part in given.split(":") if part]
    beside_the_package = ROOT / "reframe_checks"
    return [folder for folder in (beside_the_package, Path("reframe_checks")) if folder.is_dir()][
        :1
    ]


def coverage(results: Results | None, sites: Sites) -> list[Coverage]:
    """Return one row for each experiment.

    :param results: None without results; of documents that no run report names, the series count.
    """
    checks = tuple(results.checks) if results else ()
    rows = [row for row in checks if row.session is not None]
    unreported = _series_by_experiment(row.document for row in checks if row.session is None)
    able = partitions.able(sites)
    features = features_of_devices(sites)
    covered = []
    for experiment in experiments():
        places = by_place(row for row in rows if experiment.id in _experiments_of(row))
        ran = [_ran(experiment, *place, rows_of_place) for place, rows_of_place in places.items()]
        have = None if able is None else able.get(experiment.id, ())
        has_check = have != () or bool(ran)
        why_not = None if ran else _why_not(experiment, has_check, results, rows, have)
        rows_of = grouped((where, row) for (where, _), each in places.items() for row in each)
        reasons = {
            where: tuple(_not_testable(experiment, features.get(where), rows_of.get(where, ())))
            for where in dict.fromkeys(row.where for row in rows)
        }
        not_testable = {where: why for where, why in reasons.items() if why}
        series = unreported[experiment.id]
        covered.append(Coverage(experiment, has_check, ran, why_not, have, not_testable, series))
    return covered


def _series_by_experiment(documents: Iterable[ResultDocument | None]) -> Counter[str]:
    numbers: Counter[str] = Counter()
    for document in documents:
        if document is not None:
            numbers.update(series["experiment"] for series in document["series"])
    return numbers


def _ran(experiment: Experiment, where: str, node: str | None, rows: Sequence[Check]) -> Ran:
    name = experiment.made_of or experiment.id
    documents = [row.document for row in rows if row.document is not None]
    series = [sum(series["experiment"] == name for series in each["series"]) for each in documents]
    compares = [experiment.id in _compared(each) for each in documents]
    counted = zip(documents, series, compares, strict=True)
    with_results = [document for document, number, comparison in counted if number or comparison]
    programs = [result["program"] for result in with_results]
    passed = sum(row.result in PASSED for row in rows)
    skipped = sum(row.result in SKIPPED for row in rows)
    return Ran(
        where,
        node,
        clocks=tuple(sorted({result["clock"] for result in with_results})),
        runtimes=tuple(sorted({program["runtime"] for program in programs})),
        programs=tuple(sorted({program["name"] for program in programs})),
        series=sum(series),
        comparisons=sum(compares),
        cases=len(rows),
        passed=passed,
        failed=len(rows) - passed - skipped,
        skipped=skipped,
        without_document=sum(row.document is None and row.result not in SKIPPED for row in rows),
    )


def _experiments_of(row: Check) -> set[str]:
    """Return the experiments that a check is tagged with, or that its document has results of."""
    tagged = set((row.experiment or "").split())
    if row.document is None:
        return tagged
    measured = {series["experiment"] for series in row.document["series"]}
    return tagged | measured | _compared(row.document)


def _compared(document: ResultDocument) -> set[str]:
    """Return the experiments for which a document holds a comparison."""
    program = document["program"]["name"]
    compares = COMPARING_NICS if program == "nics" else COMPARING
    return {
        *([compares] if document.get("differences") is not None else []),
        *([PLACING] if program == "affinity" and document.get("ranks") else []),
    }


def _why_not(
    experiment: Experiment,
    has_check: bool,
    results: Results | None,
    rows: Iterable[Check],
    able: tuple[str, ...] | None,
) -> str:
    if not has_check:
        return "no check in this version"
    runtimes = {row.runtime for row in rows if row.runtime is not None}
    reasons = [experiment.not_on.get(runtime) for runtime in sorted(runtimes)]
    if reasons and all(reasons):
        return str(reasons[0])
    if results is None or not results.sessions:
        return "no session yet"
    lacking = "no partition of the sites has what it needs"
    unknown = "not selected, or no partition has what it needs"
    why = "not selected" if able else unknown if able is None else lacking
    return f"not in session {results.name}: {why}"


def features_of_devices(sites: Sites) -> dict[str, frozenset[str]]:
    """Return the features of each partition, ``system:partition``, that measures real devices."""
    if sites is None:
        return {}
    runtimes = {
        entry["name"]: entry.get("extras", {}).get("runtime")
        for entry in sites.get("environments", [])
    }
    return {
        name: frozenset(partition.get("features", []))
        for name, partition in partitions.named(sites)
        if not {runtimes.get(environment) for environment in partition["environs"]}.isdisjoint(
            OF_DEVICES
        )
    }


def _not_testable(
    experiment: Experiment, features: frozenset[str] | None, rows: Sequence[Check]
) -> Iterator[str]:
    """Yield why an experiment, or a part of it, cannot be tested in one partition.

    :param features: those of the partition; None where unknown.
    :param rows: the checks of the experiment in that partition.
    """
    if features is not None:
        # The first reason found counts.
        yield from [why for word, why in experiment.not_without.items() if word not in features][:1]
    tagged = [row for row in rows if experiment.id in (row.experiment or "").split()]
    skipped = [row.title for row in tagged if row.result in SKIPPED]
    if skipped and experiment.skipped is not None:
        yield f"{listed(skipped)}: {experiment.skipped}"
    if experiment.id in WITH_COLLECTIVES:
        entries = [
            entry
            for row in tagged
            for entry in (row.document and row.document.get("skipped")) or ()
        ]
        left_out = {entry["operation"] for entry in entries if entry["reason"] == LEFT_OUT}
        if left_out:
            names = listed(sorted(left_out))
            yield f"{names}: left out, as the partition's MPI does not support them (mpi_without)"
