"""Resolution of the names that a user gives: sessions, jobs, folders, documents, archives.

`read` is the only function that resolves a name. All commands on results (show, verdict, claims,
compare, calibrate, export, report) query what it returns.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import folded, is_several
from fabricheck.core.show import listed
from fabricheck.core.text import moment
from fabricheck.results import archive, marking, requested_nodes
from fabricheck.results.entry import Entry
from fabricheck.results.folder import (
    ResultsFolder,
    documents_of,
    find_documents,
    without_report,
)
from fabricheck.results.observed import Observed, distinct_partitions, observe, series_of
from fabricheck.results.requested_nodes import RequestedNode, RequestedNodes
from fabricheck.results.rows import Check, Metric, Node, Series, by_place
from fabricheck.results.run_report import is_report, parse_report
from fabricheck.results.session import Case, Session, read_report
from fabricheck.results.session_checks import PartitionChecks, checks_of
from fabricheck.results.table import check_row, metrics, nodes
from fabricheck.site import sets

#: The name of what started last: a session, a killed session, or a job over many nodes.
LATEST = "latest"

#: The sentence about documents without a run report.
NO_REPORT = (
    "These documents have no run report, as after a killed session, so it is unknown which "
    "checks passed."
)

#: Folders of which a results folder contains at least one.
_OF_RESULTS = ("reports", requested_nodes.FOLDER, "output", "stage")

#: Files that contain a document, or the part that a killed run wrote.
_DOCUMENTS = (".json", ".partial")


#: The machine itself, as opposed to its partitions.
_MACHINE = ""


@dataclass(frozen=True)
class Problem:
    """One sentence about missing or unreadable results, and the node if it is known."""

    sentence: str
    node: str | None = None
    exit_code: int = InvalidInputError.exit_code


@dataclass(frozen=True)
class Source:
    """One session, or documents outside any; read on demand.

    results: the results folder, or the folder of the documents. node: the node of all its results,
    in a job over many nodes. requested: the nodes that the session was to measure, if its folder
    lists them; of_job: those of its job over many nodes. recorded: by ``system:partition`` the
    checks that it could select. record_lost: whether the session wrote such a record, and it is not
    there or damaged. where, on: the partition and the nodes that results are restricted to.
    """

    results: Path
    session: Session
    node: str | None = None
    requested: RequestedNodes | None = None
    of_job: RequestedNodes | None = None
    recorded: Mapping[str, PartitionChecks] = field(default_factory=dict)
    record_lost: bool = False
    where: str | None = None
    on: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The session's id, or the folder of a killed one; empty for other documents."""
        return self.session.id

    @property
    def reported(self) -> Session | None:
        """The session, where it has a run report."""
        return None if self.session.report is None else self.session

    @property
    def killed(self) -> bool:
        """Whether it is a session without a run report: killed, or still running."""
        return self.session.report is None and bool(self.name)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The documents, read once: one or its problem for each case, and those without a case."""
        entries = documents_of(self.session, self._may_take)
        return tuple(entry for entry in entries if self._takes(entry.case, entry))

    @cached_property
    def by_case(self) -> Mapping[int, Entry]:
        """The document of each case, or why there is none, by the identity of the case."""
        return {id(entry.case): entry for entry in self.entries if entry.case is not None}

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The cases of the session; for a killed one those that its folders show."""
        if self.where is None and not self.on:
            return self.session.cases
        return tuple(
            case for case in self.session.cases if self._takes(case, self.by_case.get(id(case)))
        )

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """The rows of its checks, then those of documents without a check."""
        held = {id(case) for case in self.cases}
        loose = [entry for entry in self.entries if id(entry.case) not in held]
        pairs: list[tuple[Case | None, Entry | None]] = [
            *((case, self.by_case.get(id(case))) for case in self.cases),
            *((None, entry) for entry in loose),
        ]
        # A simulated node has its own host name, valid in its partition only.
        hosts: dict[str, list[str]] = {}
        for case, entry in pairs:
            if entry is None or entry.document is None:
                continue
            host = entry.document["host"]["hostname"]
            if case is not None:
                hosts.setdefault(case.where, []).append(host)
            if entry.document["clock"] == "measured":
                hosts.setdefault(_MACHINE, []).append(host)
        return tuple(
            check_row(self.reported, case, entry, self._node(case, entry, hosts))
            for case, entry in pairs
        )

    @cached_property
    def named(self) -> frozenset[str]:
        """The nodes that a scheduler assigned to its checks."""
        names = (*(case.node for case in self.cases), *(entry.node for entry in self.entries))
        return frozenset(name for name in names if name is not None)

    def _node(
        self, case: Case | None, entry: Entry | None, hosts: Mapping[str, Sequence[str]]
    ) -> str | None:
        """Return the node of a check without a scheduler's name and without a document, if it is
        known.

        :param hosts: the host names of documents, by partition and for all measured ones.
        """
        if (case is not None and case.node) or (entry is not None and entry.node):
            return None  # its row says which
        named = self.named
        if len(named) > 1:
            named = frozenset(name for name in named if not is_several(name))
        if len(named) == 1:
            return next(iter(named))
        if self.named or case is None or (entry is not None and entry.document is not None):
            return None
        # Where everything ran on one machine, a check that left nothing ran there too.
        hosts_here = {*(hosts.get(case.where) or hosts.get(_MACHINE, ()))}
        return hosts_here.pop() if len(hosts_here) == 1 else None

    @property
    def nodes(self) -> Iterator[Node]:
        """The rows of the nodes that the session was to measure."""
        if self.requested is not None:
            yield from nodes(self.requested, (row.node for row in self.checks), self.reported)

    @property
    def choice(self) -> sets.Choice:
        """What selected the checks, and the set they make."""
        if self.reported is not None:
            return self.session.choice
        requested = self.of_job or self.requested
        if requested is None:
            return sets.Choice((), None)
        return sets.chosen(shlex.join(("reframe", *requested.chosen)))

    @property
    def start(self) -> float:
        """When it began, in s since 1970; 0 where unknown."""
        if self.reported is not None:
            return self.session.start
        times = (moment(entry.document["started"]) for entry in self.entries if entry.document)
        return min((time.timestamp() for time in times if time is not None), default=0.0)

    def _may_take(self, case: Case) -> bool:
        """Whether a case may be on the chosen nodes: its document may yet tell its node."""
        fits = self.where in (None, case.where)
        return fits and (not self.on or case.node is None or case.node in self.on)

    def _takes(self, case: Case | None, entry: Entry | None) -> bool:
        if self.where is not None and (case is None or case.where != self.where):
            return False
        node = entry.node if entry is not None else case.node if case is not None else None
        return not self.on or node in self.on


@dataclass(frozen=True)
class Results:
    """What names resolve to.

    name: that of a folder for files written about it. title: a heading. home: the results folder,
    that of a job over many nodes, or the folder of the documents. problems: what is missing or
    unreadable. notes: further information, with nothing missing. job: the job over many nodes.
    archive: the archive of `fabricheck site first-hour` it was read from. parts: the several
    results it was combined from.
    """

    name: str
    title: str
    home: Path
    sources: tuple[Source, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    job: RequestedNodes | None = None
    archive: Path | None = None
    parts: tuple[Results, ...] = ()

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The sessions with a report: one, those of a job (one a node), or several."""
        return tuple(source.session for source in self.sources if source.reported is not None)

    @property
    def session(self) -> Session | None:
        """The session; None for a job, for several, and without a report."""
        is_single = len(self.sources) == len(self.sessions) == 1 and self.job is None
        return self.sessions[0] if is_single else None

    @property
    def checks(self) -> Iterator[Check]:
        """The rows of all checks."""
        return (row for source in self.sources for row in source.checks)

    @property
    def metrics(self) -> Iterator[Metric]:
        """The rows of all metrics that were judged."""
        return (row for check in self.checks for row in metrics(check))

    @property
    def series(self) -> Iterator[Series]:
        """The rows of all series, including those with wrong data."""
        return (row for check in self.checks for row in series_of(check))

    @property
    def entries(self) -> Iterator[Entry]:
        """The documents of all sources, or why there is none."""
        return (entry for source in self.sources for entry in source.entries)

    @cached_property
    def observed(self) -> tuple[Observed, ...]:
        """The partitions of its sessions, each node by itself."""
        return distinct_partitions(
            (source.name, replace(observed, recorded=source.recorded.get(observed.where)))
            for source in self.sources
            for observed in observe(source.checks)
        )

    @cached_property
    def requested(self) -> Mapping[str, RequestedNode]:
        """The requested nodes, by the scheduler's name."""
        requested: dict[str, RequestedNode] = {}
        for job in self.lists:
            requested |= job.with_network
        return requested

    @cached_property
    def reached_by(self) -> Mapping[str, str]:
        """The row of the table of ways to reach nodes of each requested node."""
        rows: dict[str, str] = {}
        for job in self.lists:
            rows |= dict.fromkeys(job.with_network, job.reached_by)
        return rows

    @property
    def jobs(self) -> Iterator[RequestedNodes]:
        """The jobs over many nodes that it contains."""
        if self.job is not None:
            yield self.job
        for part in self.parts:
            yield from part.jobs

    @property
    def lists(self) -> Iterator[RequestedNodes]:
        """The lists of requested nodes: of jobs, and of sessions on many nodes."""
        yield from self.jobs
        yield from (source.requested for source in self.sources if source.requested is not None)

    @property
    def silent(self) -> tuple[str, ...]:
        """The requested nodes without any result; none where nodes were chosen."""
        if any(source.on for source in self.sources):
            return ()
        there = {row.scheduler_node for row in self.checks}
        return tuple(name for name in self.requested if not answered(name, there))

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions of its cases, ``system:partition``."""
        partitions = (case.where for source in self.sources for case in source.cases)
        return tuple(dict.fromkeys(partitions))

    @property
    def node_names(self) -> tuple[str, ...]:
        """The scheduler's names of the nodes with results."""
        nodes = dict.fromkeys(row.scheduler_node for row in self.checks)
        return tuple(node for node in nodes if node is not None)

    @property
    def places(self) -> str:
        """Its partitions and their nodes, for a sentence."""
        on = grouped(by_place(row for row in self.checks if row.case is not None))
        return listed(
            f"{where} on {folded(nodes)}".removesuffix(" on ") for where, nodes in on.items()
        )

    def only(self, where: str | None = None, on: Sequence[str] = ()) -> Results:
        """Restrict to a partition, to some nodes, or to both; neither returns everything.

        :raises NotFoundError: when there is no result of the partition or of one of the nodes.
        """
        if where is None and not on:
            return self
        chosen = [
            replace(
                source,
                where=where or source.where,
                on=frozenset(on) or source.on,
                requested=source.requested and source.requested.only(on),
            )
            for source in self.sources
        ]
        narrowed = replace(
            self,
            sources=tuple(source for source in chosen if source.cases or source.entries),
            problems=tuple(
                problem for problem in self.problems if not on or problem.node in (None, *on)
            ),
            job=self.job and self.job.only(on),
            parts=tuple(replace(part, job=part.job and part.job.only(on)) for part in self.parts),
        )
        lacking = sorted(set(on) - set(narrowed.node_names))
        if lacking or not narrowed.sources:
            raise NotFoundError(
                f"There is no result of {folded(lacking) or where} in {self.title}."
            )
        return narrowed


def read(names: Sequence[str] = (), all_sessions: bool = False) -> Results:
    """Resolve names; without any, return what started last in the results folder, or the session
    that FABRICHECK_SESSION names.

    A name is ``latest``, a session's id (``run-3`` or ``3``), a part of its UUID, the folder of a
    killed session, the number of a job over many nodes, a results folder or an archive of one (what
    started last there), the folder of a job, a run report, a document, or a folder of documents; a
    partition, a node, or both may follow ``@``. Several names are combined: one without results
    becomes a problem.

    :param all_sessions: all of a results folder, of an archive, and of the folders of a job's
        nodes, instead of the last one.
    :raises NotFoundError: when nothing has that name.
    :raises InvalidInputError: when nothing of it can be read.
    :raises UsageError: when ``all_sessions`` is asked of something other than a results folder.
    """
    if len(names) < 2:
        return _read(names[0] if names else LATEST, all_sessions)
    parts: list[Results] = []
    problems: list[Problem] = []
    for name in names:
        try:
            parts.append(_read(name, all_sessions))
        except (NotFoundError, InvalidInputError) as error:
            problems.append(Problem(str(error), None, error.exit_code))
    if not parts:
        raise NotFoundError("\n".join(problem.sentence for problem in problems))
    return Results(
        name=parts[-1].name,
        title=f"{len(parts)} sessions" if len(parts) > 1 else parts[-1].title,
        home=parts[-1].home,
        sources=tuple(_each_once(source for part in parts for source in part.sources)),
        problems=(*problems, *(problem for part in parts for problem in part.problems)),
        notes=tuple(note for part in parts for note in part.notes),
        parts=tuple(parts),
    )


def answered(name: str, there: Collection[str | None]) -> bool:
    """Whether a requested node has results, or the network of a job: of any of its nodes."""
    several = is_several(name) and any(name is not None and is_several(name) for name in there)
    return several or name in there


def _each_once(sources: Iterator[Source]) -> Iterator[Source]:
    seen: set[Path | None] = set()
    for source in sources:
        report = source.session.report and source.session.report.resolve()
        if report is None or report not in seen:
            yield source
        seen.add(report)


def _read(name: str, all_sessions: bool) -> Results:
    what: str = name
    chosen: list[str] = []
    # A partition and a node at most.
    while "@" in what and len(chosen) < 2 and not Path(what).exists():
        what, _, last = what.rpartition("@")
        chosen.insert(0, last)
    if not what:
        raise UsageError(
            f"{name!r} is not a session: give `latest`, an id, a document or a folder."
        )
    results = _named(what, all_sessions)
    for word in chosen:
        results = _choose(results, what, word)
    return results


def _choose(results: Results, name: str, word: str) -> Results:
    if word in results.partitions:
        return results.only(where=word)
    # The scheduler's names suffice for most; otherwise a document may tell its node.
    known = any(case.node == word for session in results.sessions for case in session.cases)
    if known or word in results.node_names:
        return results.only(on=[word])
    unread = next((problem for problem in results.problems if problem.node == word), None)
    if unread is not None:
        raise InvalidInputError(unread.sentence)
    if not results.partitions:
        raise UsageError(f"{name} has no partitions, so {word!r} cannot be one of them.")
    kind = "partition or node" if results.node_names else "partition"
    raise NotFoundError(f"{name} has no {kind} {word!r}; it has {results.places}.")


def _named(name: str, all_sessions: bool) -> Results:
    path = Path(name)
    if all_sessions and name != LATEST and not holds_sessions(path):
        raise UsageError(f"--all applies to results folders; {name} is not one.")
    if archive.is_archive(path):
        return _of_archive(path, all_sessions)
    if requested_nodes.is_job(path):
        return of_job(requested_nodes.read(path / requested_nodes.NAME), all_sessions)
    if _is_results(path):
        return _of_folder(ResultsFolder(path), all_sessions)
    if path.is_dir():
        paths = find_documents(path)
        if not paths:
            raise NotFoundError(f"There is no result document under {name}.")
        return _of_documents(f"documents under {name}", path, paths)
    if path.parent.name == "reports" and path.suffix == ".json":
        if not path.is_file():
            raise NotFoundError(f"There is no report {name}.")
        folder = ResultsFolder(path.parent.parent)
        return of_session(folder, folder.session(path.stem))
    if path.is_file() and is_report(path):
        return _of_report(path)
    if path.exists() or path.suffix in _DOCUMENTS:
        if not path.exists():
            raise NotFoundError(f"There is no result document {name}.")
        return _of_documents(f"document {name}", path.parent, [path])
    folder = ResultsFolder.default()
    if name != LATEST:
        return _by_name(folder, name)
    meant = os.environ.get(marking.ENV_SESSION)
    if all_sessions or not meant:
        return _of_folder(folder, all_sessions)
    results = _by_mark(folder, meant)
    if results is None:
        raise NotFoundError(
            f"There is no session {meant} in {folder.path}, which {marking.ENV_SESSION} names: it "
            "was not started, or ReFrame refused its command line."
        )
    return results


def _of_report(path: Path) -> Results:
    """Return the session of a run report outside a results folder.

    Its documents are in the results folder in which they were measured, if that is there.
    """
    results = path.parent
    for folder in Path(parse_report(path).session_info.prefix_output).parents:
        if folder.name == "output" and _is_results(folder.parent):
            results = folder.parent
            break
    return of_session(ResultsFolder(results), read_report(path, results))


def holds_sessions(path: Path) -> bool:
    """Whether a path contains any number of sessions: a results folder, a job's, or an archive."""
    return archive.is_archive(path) or requested_nodes.is_job(path) or _is_results(path)


def _is_results(path: Path) -> bool:
    return any((path / name).is_dir() for name in _OF_RESULTS)


def _by_mark(folder: ResultsFolder, name: str) -> Results | None:
    """Return the session that was given a name; of several the last."""
    for begun in folder.begun()[0]:
        mark = folder.mark(begun)
        if mark is not None and name in (mark.name, mark.stamp):
            return _of_begun(folder, begun)
    return None


def _by_name(folder: ResultsFolder, name: str) -> Results:
    named = _by_mark(folder, name)
    if named is not None:
        return named
    try:
        return of_session(folder, folder.session(name))
    except NotFoundError:
        for session in folder.unreported()[0]:
            if session.id == name:
                return of_session(folder, session)
        job = requested_nodes.job_named(folder.path, name)
        if job is None:
            raise
        return of_job(job)


def _of_begun(folder: ResultsFolder, begun: Session | RequestedNodes) -> Results:
    return of_session(folder, begun) if isinstance(begun, Session) else of_job(begun)


def _of_folder(folder: ResultsFolder, all_sessions: bool) -> Results:
    if not all_sessions:
        return _began_last(folder)
    unreported, outside = folder.unreported()
    of_each = [of_session(folder, session) for session in reversed(folder.sessions)]
    for session in reversed(unreported):
        results = of_session(folder, session)
        # One that left nothing but its mark has no part in all results.
        if not _is_empty(results.sources[0]):
            of_each.append(results)
    if outside:
        title = f"documents outside any session in {folder.path}"
        of_each.append(_of_documents(title, folder.path, outside))
    jobs, damaged = requested_nodes.jobs_of(folder.path)
    problems = [Problem(str(problem)) for _, problem in (*folder.unreadable, *damaged)]
    of_each += [of_job(job, all_sessions) for job in reversed(jobs)]
    if not of_each:
        raise folder.problems[0] if folder.problems else folder.no_session()
    return Results(
        name=folder.path.resolve().name,
        title=f"all sessions of {folder.path}",
        home=folder.path,
        sources=tuple(source for results in of_each for source in results.sources),
        problems=(*problems, *(problem for results in of_each for problem in results.problems)),
        # A killed session leaves nothing out of the others.
        notes=tuple(note for results in of_each for note in results.notes),
        parts=tuple(of_each),
    )


def _began_last(folder: ResultsFolder) -> Results:
    """Return what began last: a session, with or without a report, or a job.

    :raises InvalidInputError: when a report or a ``nodes.json`` that was written after it cannot be
        read; but the documents of a session whose own report that may be are returned.
    :raises NotFoundError: without any.
    """
    begun, problems = folder.begun()
    last = begun[0] if begun else None
    report = last.report if isinstance(last, Session) else None
    written = report.stat().st_mtime if report is not None else 0.0
    began = max(written, last.start) if last is not None else 0.0
    unread = [
        problem for problem in (*problems, *folder.unreadable) if last is None or problem[0] > began
    ]
    if isinstance(last, Session) and report is None:
        # A full disk cuts off the report; what was measured before it remains.
        left = of_session(folder, last)
        return replace(
            left, problems=(*(Problem(str(error)) for _, error in unread), *left.problems)
        )
    if unread:
        raise max(unread, key=lambda problem: problem[0])[1]
    if last is None:
        raise folder.no_session()
    return _of_begun(folder, last)


def of_session(
    folder: ResultsFolder, session: Session, of_job: RequestedNodes | None = None
) -> Results:
    """Return one session, with the nodes that it was to measure.

    :param of_job: the requested nodes of its job over many nodes.
    """
    lists = (path / requested_nodes.NAME for path in session.outputs)
    requested = next((requested_nodes.read(path) for path in lists if path.is_file()), None)
    recorded: Mapping[str, PartitionChecks] = {}
    problems = [Problem(sentence) for sentence in session.lacking]
    try:
        recorded = checks_of(session.outputs)
    except InvalidInputError as error:
        problems.insert(0, Problem(str(error)))
    lost = not recorded and _had_record(folder, session)
    source = Source(folder.path, session, folder.node, requested, of_job, recorded, lost)
    if _is_empty(source):
        sentence = _left_nothing(folder, session)
        problems.append(Problem(sentence, folder.node, NotFoundError.exit_code))
    # Its own report may be one that cannot be read.
    notes = tuple(map(str, folder.problems)) if source.killed else ()
    title = f"session {session.id}"
    return Results(session.id, title, folder.path, (source,), tuple(problems), notes)


def _had_record(folder: ResultsFolder, session: Session) -> bool:
    """Whether a session wrote a record of its checks: each does whose mark knows its outputs."""
    if session.report is None:
        return False
    mark = folder.mark(session)
    return mark is not None and mark.outputs is not None


def _is_empty(source: Source) -> bool:
    """Whether a session left nothing that can be judged, not even a list of nodes."""
    left = source.session.cases or source.session.paths
    return source.killed and not left and source.requested is None


def _left_nothing(folder: ResultsFolder, session: Session) -> str:
    """Return the sentence on a session that left nothing, by what its mark tells."""
    mark = folder.mark(session)
    if mark is None:
        return f"Session {session.id} left no results in {folder.path}."
    who = f"session {mark.name}" if mark.name else f"session {session.id}"
    why = "it ended, or was killed, before its first check, or has just begun"
    if not mark.stamp:
        why = "it could not even write its mark"
    elif mark.elsewhere:
        why = (
            f"it writes to {listed(mark.elsewhere)}, as RFM_PREFIX, RFM_REPORT_FILE or an option "
            "of reframe asks"
        )
    elif mark.job is not None:
        why = f"its job {mark.job} is not there"
    elif mark.outputs is not None:
        why = "it ended, or was killed, before a check left anything, or is still running"
    earlier = f", or name an earlier one ({folder.sessions[0].id})" if folder.sessions else ""
    return (
        f"The {who}, begun {session.date:%Y-%m-%d %H:%M:%S}, left no results in {folder.path}: "
        f"{why}. Measure again{earlier}."
    )


def of_job(job: RequestedNodes, all_sessions: bool = False) -> Results:
    """Return the sessions of a job over many nodes: the last one of each node, or all."""
    of_each: list[Results] = []
    problems: list[Problem] = []
    # Behind the requested nodes what joins them, where it was to be measured.
    for node, part in job.with_network.items():
        path = None if part.results is None else job.folder / part.results
        if path is None or not path.is_dir():
            continue
        folder = ResultsFolder(path, node)
        sessions = folder.sessions[::-1] if all_sessions else []
        if all_sessions:
            problems += [Problem(str(error), node) for error in folder.problems]
        else:
            try:
                sessions.append(folder.latest())
            except InvalidInputError as problem:
                problems.append(Problem(str(problem), node))
            except NotFoundError:
                pass  # a killed session may have left documents
        of_each += [of_session(folder, session) for session in sessions]
        for last in folder.unreported()[0][:1]:
            requested = job
            if part is job.network:
                chosen = requested_nodes.CHOSEN_OF_NETWORK
                requested = job.model_copy(update={"chosen": chosen})
            left = of_session(folder, last, requested)
            # What the job knows of a node tells why its session left nothing.
            if not _is_empty(left.sources[0]):
                of_each.append(left)
    count = len(job.nodes)
    return Results(
        name=job.name,
        title=f"job {job.name} over {count} node{'' if count == 1 else 's'}",
        home=job.folder,
        sources=tuple(source for results in of_each for source in results.sources),
        problems=(*problems, *(problem for results in of_each for problem in results.problems)),
        job=job,
    )


def _of_archive(path: Path, all_sessions: bool) -> Results:
    top = archive.unpacked(path)
    results = top / archive.RESULTS
    inside = [document for document in find_documents(top) if not document.is_relative_to(results)]
    try:
        of_archive = _of_folder(ResultsFolder(results), all_sessions)
    except NotFoundError:
        # A session that started and left no document is included, as of an interrupted first hour.
        if not all_sessions:
            sentence = f"{path} contains no session, so there is nothing to judge."
            raise NotFoundError(sentence) from None
        of_archive = Results(archive.stem(path), "", results, ())
    if all_sessions and inside:
        outside = Source(top, without_report("", top, inside))
        of_archive = replace(of_archive, sources=(*of_archive.sources, outside))
    title = f"archive {path}" if all_sessions else of_archive.title
    return replace(of_archive, title=title, archive=path)


def _of_documents(title: str, home: Path, paths: Sequence[Path]) -> Results:
    name = slug(home.resolve().name if len(paths) != 1 else paths[0].resolve().name) or "documents"
    return Results(name, title, home, (Source(home, without_report("", home, paths)),))


def slug(text: str) -> str:
    """Make a text usable in file names and ids: letters, digits and single dashes."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()
