"""Resolution of A and B, and pairing of their partitions and nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import folded
from fabricheck.results.reading import Problem, Results, Source, read
from fabricheck.results.table import Check, by_place
from fabricheck.site import software


@dataclass(frozen=True)
class NodeChecks:
    """The rows of the checks of one partition on one node; empty where one side lacks it.

    where: empty for documents outside any session. node: None where unknown.
    """

    where: str
    node: str | None = None
    checks: tuple[Check, ...] = ()

    @property
    def name(self) -> str:
        """The partition and the node, for a sentence."""
        return f"{self.where} on {self.node}" if self.node else self.where

    @property
    def clock(self) -> str:
        """``measured``, ``simulated``, both, or a dash without any document."""
        return " and ".join(sorted({row.clock for row in self.checks if row.clock})) or "-"


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
    def title(self) -> str:
        """The heading of a side: session, job, folder or document."""
        job, home, first = self.results.job, self.results.home, self.results.sources[0]
        if job is not None:
            ran = sum(bool(session.cases) for session in self.results.sessions)
            count = "" if self.chosen else f", {ran} of them with a session"
            return f"{self.results.title}{count}"
        session = first.reported
        if session is not None:
            return (
                f"session {session.id} of {home}, {session.date:%Y-%m-%d %H:%M:%S}, on "
                f"{folded(session.nodes) or session.hostname}: {len(session.cases)} checks, "
                f"{session.passed} passed, {session.failed} failed, {session.skipped} skipped"
            )
        if first.killed and self.results.name == first.name:
            return (
                f"session {first.name} of {home} without a report, which was killed or is still "
                "running"
            )
        return self.results.title

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
    unread = tuple(_unread(results))
    places = by_place(_named(results))
    nodes = tuple(NodeChecks(*place, tuple(checks)) for place, checks in places.items())
    found = Side(name, results, nodes, unread)
    if not found.nodes:
        if found.chosen and unread:
            raise InvalidInputError(unread[0])
        if results.job is not None:
            raise NotFoundError(f"There is no session of any node in {results.home}.")
        raise NotFoundError(f"Session {results.sources[0].name} of {results.home} ran no check.")
    first = found.nodes[0]
    if _is_one_document(first) and (entry := first.checks[0].entry) and entry.problem is not None:
        raise entry.problem
    return found


def _compared(results: Results) -> list[Source]:
    """Return the sources to compare: for a job, those with a report and a check."""
    return [
        source
        for source in results.sources
        if results.job is None or (source.reported is not None and source.session.cases)
    ]


def _unread(results: Results) -> Iterator[str]:
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
    found: set[str] = set()
    for of_pairs in grouped(ran).values():
        in_a, in_b = (set().union(*side) for side in zip(*of_pairs, strict=True))
        found |= in_a & in_b - {name for a, b in of_pairs for name in a & b}
    return sorted(found)


def _unclear(a: Side, b: Side) -> str:
    """Return the sentence that tells the user to name a partition or a node."""
    if a.chosen or b.chosen:
        one, other = (a, b) if a.chosen else (b, a)
        return (
            f"{other.name} has no partition {one.nodes[0].name} but {other.results.places}: name "
            f"the one to compare with, as {_with_choice(other)}."
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
