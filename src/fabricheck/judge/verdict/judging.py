"""The verdicts on all nodes of a session: the attempts of each, measured and simulated apart."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain, groupby

from fabricheck.core import show
from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import is_several
from fabricheck.judge.verdict import evidence, model, runs
from fabricheck.judge.verdict.attempts import Attempt
from fabricheck.judge.verdict.node import node_verdict
from fabricheck.judge.verdict.node_facts import NodeFacts
from fabricheck.judge.verdict.outcomes import Key, key
from fabricheck.judge.verdict.rules import Finding
from fabricheck.judge.verdict.subjects import UNPLACED, JudgedNode, NodeResults
from fabricheck.results.entry import Entry
from fabricheck.results.folder import earlier_document
from fabricheck.results.reading import Results, Source, answered
from fabricheck.results.rows import Check
from fabricheck.results.series import BETWEEN_NODES
from fabricheck.results.session import REPETITION, Case, Session
from fabricheck.site import partitions

#: The nodes of a share of the sources, and how they went in rounds over several nodes.
_Share = tuple[list[tuple[JudgedNode, evidence.Judged]], Mapping[str, evidence.Run]]

_Work = Callable[[Sequence[Source]], _Share]

#: The fewest nodes per process: starting a process takes as long as judging about four nodes.
_FEWEST = 8
_MOST_PROCESSES = 8


def judge(
    results: Results, expected_nodes: Iterable[str] = (), set_tag: str | None = None
) -> list[model.NodeVerdict]:
    """Return the verdict on each node, in no order.

    :param expected_nodes: nodes that must exist besides those that the session names.
    :param set_tag: the set that the sessions should have run; None for the set that they state.
    """
    silent_in = grouped((node, part) for part in results.parts for node in part.silent)
    ran_in = ran(results.sources)

    def verdict(
        subject: JudgedNode, results_of_node: NodeResults, named: Mapping[str, Sequence[Finding]]
    ) -> evidence.Judged:
        of_rounds = named.get(subject.node, ()) if subject.simulated is None else ()
        silent = silent_in.get(subject.node, ())
        facts = NodeFacts(subject, results_of_node, results, ran_in, silent, set_tag, of_rounds)
        return evidence.Judged(node_verdict(facts), runs.runs_of(results_of_node))

    def of_sources(sources: Sequence[Source]) -> _Share:
        nodes = group(sources)
        named, in_rounds = runs.from_rounds(nodes)
        for node in named:
            nodes.setdefault(JudgedNode(node), NodeResults(scheduled=True))
        judged = [
            (subject, verdict(subject, results_of_node, named))
            for subject, results_of_node in nodes.items()
        ]
        return judged, in_rounds

    with show.working(f"judging {results.title}"):
        made = _by_all_cores(of_sources, _shares(results))
    subjects = [subject for judged, _ in made for subject, _ in judged]
    if len({*subjects}) < len(subjects):
        # A folder with results of another node's sources is judged together with these.
        made = [of_sources(results.sources)]
        subjects = [subject for judged, _ in made for subject, _ in judged]
    nodes = [node for judged, _ in made for _, node in judged]
    nodes += [
        verdict(subject, NodeResults(scheduled=subject.node != UNPLACED), {})
        for subject in silent(subjects, results, expected_nodes)
    ]
    in_rounds = {node: run for _, of_share in made for node, run in of_share.items()}
    return evidence.decided(nodes, in_rounds)


def _by_all_cores(work: _Work, shares: Sequence[Sequence[Source]]) -> list[_Share]:
    """Work on each share in a process of its own; in this one on a single share.

    The processes are forked, so that only what they return is pickled.
    """
    if len(shares) == 1:
        return [work(shares[0])]
    # A session of one node ends before these are imported.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    forked = multiprocessing.get_context("fork")
    try:
        with ProcessPoolExecutor(len(shares), forked, _inherited.append, ((work, shares),)) as pool:
            return list(pool.map(_work_on, range(len(shares))))
    except BrokenProcessPool:  # a process was killed
        return [work(share) for share in shares]


#: In a process of `_by_all_cores`, the work and its shares.
_inherited: list[tuple[_Work, Sequence[Sequence[Source]]]] = []


def _work_on(number: int) -> _Share:
    work, shares = _inherited[-1]
    return work(shares[number])


def _shares(results: Results) -> list[tuple[Source, ...]]:
    """Split the sources of a job over many nodes into one share per core.

    The folder of a node is in one share. All other sources form one share.
    """
    by_folder = [
        tuple(sources) for _, sources in groupby(results.sources, lambda source: source.results)
    ]
    shares = min(len(os.sched_getaffinity(0)), _MOST_PROCESSES, len(by_folder) // _FEWEST)
    if results.job is None or shares < 2:
        return [results.sources]
    return [
        tuple(chain.from_iterable(by_folder[len(by_folder) * number // shares :
                                            len(by_folder) * (number + 1) // shares]))
        for number in range(shares)
    ]  # fmt: skip


def ran(sources: Iterable[Source]) -> Mapping[tuple[str, bool], Mapping[Key, None]]:
    """Return by partition the checks that ran on one node, and those that ran on several.

    The reports tell it: documents, of which there may be thousands, are not read.
    """
    keys: dict[tuple[str, bool], dict[Key, None]] = {}
    for case in chain.from_iterable(source.cases for source in sources):
        several = BETWEEN_NODES in case.experiments or is_several(case.node or "")
        for attempt in attempts(case, None, 0):
            if not attempt.skipped:
                keys.setdefault((case.where, several), {})[key(attempt)] = None
    return keys


def group(sources: Sequence[Source]) -> dict[JudgedNode, NodeResults]:
    """Return the results of sources by node."""
    rows = [row for source in sources for row in source.checks]
    clocks = grouped(
        (row.where, row.clock) for row in rows if row.case is not None and row.clock is not None
    )
    nodes: dict[JudgedNode, NodeResults] = defaultdict(NodeResults)
    for source in sources:
        here = grouped(
            (JudgedNode(row.node or _machine(source), _simulation(row, clocks)), attempt)
            for row in source.checks
            for attempt in attempts(row.case, row.entry, source.start, source.session)
        )
        for subject, attempts_of_node in here.items():
            nodes[subject].by_source.append((source, attempts_of_node))
            nodes[subject].scheduled |= subject.node in source.named
    return dict(nodes)


def attempts(
    case: Case | None, entry: Entry | None, began: float, session: Session | None = None
) -> list[Attempt]:
    """Return the attempts of a case, retries included; for a document without a case, the document.

    :param began: when the session began, in s since 1970.
    :param session: where the documents of earlier attempts are; None where none is needed.
    """
    if case is None:
        program = entry.document["program"]["name"] if entry and entry.document else "a document"
        return [Attempt(program, None, entry, began)]
    check = REPETITION.sub("", case.name)
    earlier_attempts = []
    for earlier in case.earlier:
        left = None if session is None else earlier_document(session, case, earlier)
        earlier_attempts.append(Attempt(check, earlier, left, began))
    return [*earlier_attempts, Attempt(check, case, entry, began)]


def _machine(source: Source) -> str:
    """Return the node of a result without one: ReFrame's own host, if no scheduler named a node."""
    if source.named or source.reported is None:
        return UNPLACED
    return source.session.hostname


def _simulates(where: str, clocks: Collection[str]) -> bool:
    """Whether a partition simulates: by the site file, or else all its documents do."""
    known = partitions.simulates(where)
    return set(clocks) == {"simulated"} if known is None else known


def _simulation(row: Check, clocks: Mapping[str, Sequence[str]]) -> str | None:
    """Return the partition that simulates; None for results of the machine.

    The clock of a document decides, so a simulated result never counts for a machine.

    :param clocks: by partition, the clocks of the documents.
    """
    if row.clock is not None:
        return (row.where or "no partition") if row.clock == "simulated" else None
    return row.where if _simulates(row.where, clocks.get(row.where, ())) else None


def silent(
    there: Collection[JudgedNode],
    results: Results,
    expected_nodes: Iterable[str],
) -> list[JudgedNode]:
    """Return the nodes without any result.

    :param there: the nodes with a result.
    :param expected_nodes: nodes that must exist besides the requested ones.
    """
    names = {subject.node for subject in there}
    simulated = {subject.simulated for subject in there} or {None}
    partition = next(
        (nodes.partition for nodes in results.lists if nodes.partition is not None), None
    )
    if partition is not None:
        missing_as = partition if partition in simulated or _simulates(partition, ()) else None
    else:
        # If anything was measured, the node itself is what is missing.
        missing_as = None if None in simulated or len(simulated) > 1 else next(iter(simulated))
    missed = dict.fromkeys((*results.requested, *expected_nodes))
    if any(problem.node is None for problem in results.problems):
        missed[UNPLACED] = None
    return [JudgedNode(name, missing_as) for name in missed if not answered(name, names)]


def began(results: Results) -> list[datetime]:
    """Return when the sessions began, in local time and in order; empty if they did not begin."""
    times = sorted(source.start for source in results.sources if source.start)
    if not times:
        times = sorted(nodes.started.timestamp() for nodes in results.lists)[:1]
    return [datetime.fromtimestamp(time).astimezone() for time in times]
