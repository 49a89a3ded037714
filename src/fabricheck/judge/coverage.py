"""Which of the experiments E1 to E15 a session ran, and why the others did not run."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fabricheck.core.checkout import ROOT
from fabricheck.core.vocabulary import EXPERIMENTS
from fabricheck.judge import testable
from fabricheck.results.entry import Entry
from fabricheck.results.model import ResultDocument
from fabricheck.results.session import Case, Session

#: The experiments whose results are comparisons, no series: a node with its model, and where ranks
#: sit with where they should.
COMPARING, PLACING = "E13", "E15"

#: ReFrame's variable for where checks are looked for; the repository's own folder otherwise.
CHECKS_VARIABLE = "RFM_CHECK_SEARCH_PATH"


#: ``system:partition`` and node.
Place = tuple[str, str | None]


@dataclass(frozen=True)
class Tool:
    """Another tool that measures an experiment: program of its documents, name, how to get it."""

    program: str
    name: str
    get: str


@dataclass(frozen=True)
class Experiment:
    """One row of experiments.yaml; ``made_of`` is whose series it uses, where not its own.

    ``not_without`` is, by feature of a partition, what cannot be tested without it and why;
    ``skipped`` is why a check of it is skipped.
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


@dataclass
class Ran:
    """What a session has of one experiment in one partition, on one node where nodes are known.

    ``cases`` are those tagged with the experiment or whose document has series of it; ``series``
    counts measured series, ``comparisons`` the documents that compare a node with its model or
    tell where ranks sit,
    ``unread`` the cases without a document that can be used.
    """

    where: str
    node: str | None = None
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    series: int = 0
    comparisons: int = 0
    unread: int = 0
    clocks: set[str] = field(default_factory=set)
    runtimes: set[str] = field(default_factory=set)
    programs: set[str] = field(default_factory=set)

    @property
    def cases(self) -> int:
        """The number of cases, skipped ones included."""
        return self.passed + self.failed + self.skipped


@dataclass(frozen=True)
class Coverage:
    """One experiment: where it ran, or why it did not.

    ``partitions`` are those of the sites that have what its checks ask for; None if not known.
    ``not_testable`` are the reasons, by partition of the session, why there is no more of it.
    """

    experiment: Experiment
    has_check: bool
    ran: Sequence[Ran]
    why_not: str | None
    partitions: tuple[str, ...] | None = None
    not_testable: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
        """Whether all of its results are of a simulated node."""
        clocks = {clock for ran in self.ran for clock in ran.clocks}
        return self.measured_anything and clocks == {"simulated"}


@functools.cache
def experiments() -> tuple[Experiment, ...]:
    """Return E1 to E15 in order."""
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


def coverage(
    session: Session | None,
    entries: Sequence[Entry],
    able: Mapping[str, tuple[str, ...]] | None,
    features: Mapping[str, frozenset[str]],
) -> list[Coverage]:
    """Return one row for each experiment.

    :param session: None when there is none.
    :param entries: the session's documents.
    :param able: the partitions that can run each experiment, as `partitions.able` gives them.
    :param features: of partitions with real devices, as `testable.features_of_devices` gives them.
    """
    by_case = {id(entry.case): entry for entry in entries}
    tables: dict[str, dict[Place, Ran]] = {}
    runtimes: set[str] = set()
    for case in session.cases if session else ():
        entry = by_case.get(id(case))
        _count(tables, case, entry)
        if entry is not None and entry.document is not None:
            runtimes.add(entry.document["program"]["runtime"])
    rows = []
    for experiment in experiments():
        ran = list(tables.get(experiment.id, {}).values())
        have = None if able is None else able.get(experiment.id, ())
        has_check = have != () or bool(ran)
        why_not = None if ran else _why_not(experiment, has_check, session, runtimes, have)
        no_more = {
            where: tuple(_not_testable(experiment, where, session, by_case, features))
            for where in dict.fromkeys(case.where for case in (session.cases if session else ()))
        }
        no_more = {where: reasons for where, reasons in no_more.items() if reasons}
        rows.append(Coverage(experiment, has_check, ran, why_not, have, no_more))
    return rows


def _not_testable(
    experiment: Experiment,
    where: str,
    session: Session | None,
    by_case: Mapping[int, Entry],
    features: Mapping[str, frozenset[str]],
) -> Iterator[str]:
    cases = session.cases if session else ()
    here = [one for one in cases if one.where == where and experiment.id in one.experiments]
    return testable.reasons(
        experiment.id,
        experiment.not_without,
        experiment.skipped,
        features.get(where),
        [(case, by_case.get(id(case))) for case in here],
    )


def _count(tables: dict[str, dict[Place, Ran]], case: Case, entry: Entry | None) -> None:
    node = case.node if entry is None else entry.node
    document = entry.document if entry is not None else None
    measured: list[str] = (
        [series["experiment"] for series in document["series"]] if document else []
    )
    compared = _compared(document)
    for name in case.experiments | set(measured) | compared:
        ran = tables.setdefault(name, {}).setdefault((case.where, node), Ran(case.where, node))
        ran.passed += case.passed
        ran.skipped += case.skipped
        ran.failed += not case.passed and not case.skipped
        series = measured.count(_made_of().get(name, name))
        comparisons = int(name in compared)
        ran.series += series
        ran.comparisons += comparisons
        if document is None:
            ran.unread += not case.skipped
        elif series or comparisons:
            ran.clocks.add(document["clock"])
            ran.runtimes.add(document["program"]["runtime"])
            ran.programs.add(document["program"]["name"])


def _compared(document: ResultDocument | None) -> set[str]:
    """Return the experiments of which a document is a comparison."""
    if document is None:
        return set()
    places = document["program"]["name"] == "affinity" and document.get("ranks")
    return {
        *([COMPARING] if document.get("differences") is not None else []),
        *([PLACING] if places else []),
    }


def _made_of() -> dict[str, str]:
    return {row.id: row.made_of for row in experiments() if row.made_of is not None}


def _why_not(
    experiment: Experiment,
    has_check: bool,
    session: Session | None,
    runtimes: set[str],
    able: tuple[str, ...] | None,
) -> str:
    if not has_check:
        return "no check in this version"
    reasons = [experiment.not_on.get(runtime) for runtime in sorted(runtimes)]
    if reasons and all(reasons):
        return str(reasons[0])
    if session is None:
        return "no session yet"
    why = "not selected"
    if not able:
        why = "no partition of the sites has what it needs"
        if able is None:
            why = "not selected, or no partition has what it needs"
    return f"not in session {session.id}: {why}"
