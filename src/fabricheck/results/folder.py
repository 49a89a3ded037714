"""A results folder: its sessions and the documents of each."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate
from pathlib import Path

from fabricheck.core.errors import InvalidInputError, NotFoundError
from fabricheck.core.forms import is_node_name
from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.core.text import moment, printable
from fabricheck.core.vocabulary import ENV_RESULTS
from fabricheck.results import archive, requested_nodes
from fabricheck.results.document import read_head
from fabricheck.results.entry import Entry, no_document, read_entry
from fabricheck.results.marks import Mark, marks_of
from fabricheck.results.requested_nodes import RequestedNodes
from fabricheck.results.run_report import is_report, parse_report
from fabricheck.results.session import (
    DOCUMENT_NAME,
    PARTIAL_NAME,
    UNREPORTED,
    Case,
    Session,
    read_report,
)
from fabricheck.schedulers import table

#: Seconds by which a document may lie outside its session's times: rounding on the same host,
#: clocks that differ on another one.
_SLACK_SAME_HOST = 2.0
_SLACK_OTHER_HOST = 60.0


class ResultsFolder:
    """The results in one folder, as `make run` and ReFrame's settings store them.

    ``sessions`` are the readable ones, latest first; ``unreadable`` are the other reports;
    ``marks`` are those of the sessions and jobs that began. ``node`` is the node of all results,
    in a job over many nodes.
    """

    def __init__(self, path: Path, node: str | None = None) -> None:
        """Read the reports under ``path``; documents are read when asked for.

        :param node: the node of all results; by default the one in the file beside them, if any.
        :raises NotFoundError: when there is no such folder.
        """
        if not path.is_dir():
            raise NotFoundError(
                f"There is no results folder {path}: run `make run` first, or set {ENV_RESULTS} "
                "to another one."
            )
        self.path = path
        self.node = node or _node_of(path)
        self.marks = marks_of(path)
        jobs, self.unreadable = requested_nodes.latest_first(
            [*sorted(path.glob("reports/run-*.json")), *self._reports_elsewhere()],
            lambda report: read_report(report, path, self.node),
        )
        self._mark_of_job = {mark.job: mark for mark in self.marks if mark.job is not None}
        self._mark_of_id = {name: mark for mark in self.marks for name in (mark.stamp, mark.id)}
        self._mark_of_stamp = {mark.stamp: mark for mark in self.marks if mark.stamp}
        # A clock that went back gives no mark an earlier time than the mark before.
        times = accumulate((mark.began.timestamp() for mark in self.marks), max)
        self._time_of_mark = {
            mark.number: time for mark, time in zip(self.marks, times, strict=True)
        }
        self.sessions = sorted(jobs, key=self.order, reverse=True)

    def _reports_elsewhere(self) -> Iterator[Path]:
        """Yield the reports that sessions wrote elsewhere, as ``--report-file`` asks.

        A later session may have written over one, and another program where one was to be. Of an
        archive none is read: its marks could name what is on this machine.
        """
        if archive.is_unpacked(self.path):
            return
        for mark in self.marks:
            for place in map(Path, mark.elsewhere):
                name = "*".join(map(glob.escape, place.name.split("{sessionid}")))
                for report in sorted(place.parent.glob(name)):
                    if is_report(report) and parse_report(report).session_info.stamp == mark.stamp:
                        yield report

    @classmethod
    def default(cls) -> ResultsFolder:
        """Open the folder of `default_path`.

        :raises NotFoundError: when there is no such folder.
        """
        return cls(default_path())

    @property
    def problems(self) -> list[InvalidInputError]:
        """Return one sentence for each unreadable report."""
        return [problem for _, problem in self.unreadable]

    def mark(self, begun: Session | RequestedNodes) -> Mark | None:
        """Return the mark of a session or a job; None without one, as of an older version."""
        if isinstance(begun, RequestedNodes):
            return self._mark_of_job.get(begun.name)
        if begun.report is None:
            return self._mark_of_id.get(begun.id)
        return self._mark_of_stamp.get(begun.stamp)

    def order(self, begun: Session | RequestedNodes) -> tuple[float, int]:
        """Return by what sessions and jobs are sorted: the number of the mark, whatever the clock.

        One without a mark is placed among the others by its start.
        """
        mark = self.mark(begun)
        if mark is None:
            return begun.start, 0
        return self._time_of_mark[mark.number], mark.number

    def begun(self) -> tuple[list[Session | RequestedNodes], list[requested_nodes.Unreadable]]:
        """Return all sessions and jobs, the one that began last first, and unreadable jobs."""
        jobs, unreadable = requested_nodes.jobs_of(self.path)
        sessions: list[Session | RequestedNodes] = [*jobs, *self.sessions, *self.unreported()[0]]
        return sorted(sessions, key=self.order, reverse=True), unreadable

    def latest(self) -> Session:
        """Return the session with a report that started last.

        :raises InvalidInputError: when a report written after it cannot be read: the last session
            is then that one.
        :raises NotFoundError: when there is no session.
        """
        if self.unreadable:
            written, problem = max(self.unreadable, key=lambda unread: unread[0])
            report = self.sessions[0].report if self.sessions else None
            if report is None or written > report.stat().st_mtime:
                raise problem
        if not self.sessions:
            raise self.no_session()
        return self.sessions[0]

    def no_session(self) -> NotFoundError:
        """Return the sentence for a folder without a completed session."""
        sentence = f"There is no session in {self.path}: run `make run` first"
        killed_sessions, outside = self.unreported()
        if killed_sessions:
            name = killed_sessions[0].id
            sentence += f"; killed or still running: `fabricheck results show {name}`"
        elif outside:
            sentence += f"; a document of none: `fabricheck results show {outside[0]}`"
        return NotFoundError(f"{sentence}.")

    def session(self, name: str) -> Session:
        """Return a session by its id (``run-3`` or ``3``), or a part of its UUID.

        :raises NotFoundError: when no session, or more than one, has that name.
        :raises InvalidInputError: when its report cannot be read.
        """
        matching = [
            session
            for session in self.sessions
            if name in (session.id, session.id.removeprefix("run-"))
        ] or [
            session for session in self.sessions if len(name) >= 4 and session.uuid.startswith(name)
        ]
        if len(matching) == 1:
            return matching[0]
        for report in (f"{name}.json", f"run-{name}.json"):
            if (self.path / "reports" / report).is_file():
                read_report(self.path / "reports" / report, self.path)
        known = listed(session.id for session in self.sessions[:5]) or "none"
        raise NotFoundError(
            f"There is no session {name!r} in {self.path}; the latest are: {known}."
        )

    def clocks(self, session: Session) -> list[str]:
        """Return ``measured`` or ``simulated`` for each document of a session.

        Documents are not validated: for 20 sessions that would take half a minute.
        """
        paths = [case.document_path for case in session.cases]
        heads = [read_head(path) for path in paths if path is not None]
        return [
            head.clock
            for head in heads
            if head is not None and _within(session, head.started, head.hostname)
        ]

    def unreported_paths(self) -> list[Path]:
        """Return the paths of documents that belong to no report; they may be invalid.

        Jobs over many nodes have reports of their own and are left out.
        """
        jobs = f"{self.path / requested_nodes.FOLDER}/"
        claimed = {
            path
            for session in self.sessions
            for case in session.cases
            for attempt in (*case.earlier, case)
            for folder in attempt.folders
            for path in (f"{folder}/{DOCUMENT_NAME}", f"{folder}/{PARTIAL_NAME}")
        }
        return [
            path
            for path in find_documents(self.path)
            if not str(path).startswith(jobs) and str(path) not in claimed
        ]

    def unreported(self) -> tuple[list[Session], list[Path]]:
        """Return the sessions without a report, the last one first, and the documents outside any
        session.

        The sessions were killed, or are still running. Some left a list of nodes alone, and some
        nothing but their mark.
        """
        documents = grouped(
            (_session_of(path, self.path), path) for path in self.unreported_paths()
        )
        outside = documents.pop(None, [])
        reported = {path.name for session in self.sessions for path in session.outputs}
        listed = {path.parent.name for path in self.path.glob(f"output/*/{requested_nodes.NAME}")}
        names = {*filter(None, documents)} | (listed - reported) | {*self._marked_only(reported)}
        sessions = []
        for name in sorted(names, reverse=True):
            session = without_report(name, self.path, documents.get(name, []), self.node)
            mark = self.mark(session)
            if mark is not None:
                session = replace(session, start=mark.began.timestamp())
            sessions.append(session)
        return sorted(sessions, key=self.order, reverse=True), outside

    def _marked_only(self, reported: Collection[str]) -> Iterator[str]:
        """Yield the ids of sessions whose mark no report and no job has.

        :param reported: the folders of sessions with a report, which others may have used as well.
        """
        stamps = {session.stamp for session in self.sessions}
        jobs = {path.name for path in self.path.glob(f"{requested_nodes.FOLDER}/*")}
        for mark in self.marks:
            if not (mark.stamp and mark.stamp in stamps) and mark.job not in jobs:
                yield mark.stamp if mark.id in reported else mark.id


def default_path() -> Path:
    """Return the folder that FABRICHECK_RESULTS names, else ``results`` in the working folder."""
    return Path(os.environ.get(ENV_RESULTS) or "results")


def _node_of(path: Path) -> str | None:
    """Return the node of a results folder, as the file beside it states."""
    beside = path.resolve().parent / requested_nodes.NAME
    if not beside.is_file():
        return None
    here = Path(path.resolve().name)
    for node, requested in requested_nodes.read(beside).with_network.items():
        if requested.results and Path(requested.results) == here:
            return node
    return None


def find_documents(folder: Path) -> list[Path]:
    """Return the documents under a folder, partial ones where there is no other, sorted."""
    # Of both names the first that is there.
    names = (DOCUMENT_NAME, PARTIAL_NAME)
    there = (
        Path(root, next(name for name in names if name in files))
        for root, _, files in os.walk(folder)
        if not {*names}.isdisjoint(files)
    )
    return sorted(there)


def documents_of(
    session: Session, wanted: Callable[[Case], bool] = lambda case: True
) -> Iterator[Entry]:
    """Yield the documents of a session by case, then those without a case.

    A case without a document has an entry with a problem if it measures (its tags name an
    experiment), and in a session without a report; so has one whose document is invalid or belongs
    to another session.

    :param wanted: the cases whose documents are read.
    """
    for case in filter(wanted, session.cases):
        path = case.document_path
        if path is None:
            if session.report is None:
                folder = printable(case.folders[0])
                why = f" in {folder}: its session was killed there, or is still running"
                yield no_document(case, why)
            elif case.experiments and not case.skipped:
                why = f": {' '.join((case.reason or '').split())}".rstrip(": .")
                yield no_document(case, why)
            continue
        yield _document_of(session, case, path)
    of_cases = {folder for case in session.cases for folder in case.folders}
    yield from (read_entry(path) for path in session.paths if str(path.parent) not in of_cases)


def earlier_document(session: Session, case: Case, attempt: Case) -> Entry | None:
    """Return the document of an earlier attempt of a case; None where a later one replaced it.

    ReFrame gives a retry a folder of its own, and a rerun that of the attempt before.
    """
    path = attempt.document_path
    later = case.earlier[case.earlier.index(attempt) + 1 :]
    if path is None or path in {attempted.document_path for attempted in (*later, case)}:
        return None
    return _document_of(session, attempt, path)


def _document_of(session: Session, case: Case, path: Path) -> Entry:
    """Return the entry of a document, which is a problem where it belongs to another session."""
    entry = read_entry(path, case)
    if entry.document is None:
        return entry
    started, hostname = entry.document["started"], entry.document["host"]["hostname"]
    if _within(session, started, hostname):
        return entry
    problem = NotFoundError(
        f"{case.name} @{case.place}: {path} was started at {started}, outside session "
        f"{session.id}: it belongs to another session, or the node's clock is wrong."
    )
    return Entry(case, path, None, problem)


def _within(session: Session, started: str, hostname: str) -> bool:
    """Whether a document was started in the times of a session, which only a report has."""
    if session.report is None:
        return True
    slack = _SLACK_SAME_HOST if hostname == session.hostname else _SLACK_OTHER_HOST
    at = moment(started)
    return at is not None and session.start - slack <= at.timestamp() <= session.end + slack


# Sessions without a run report: killed ones, and documents outside any session. A session that is
# still running looks the same: ReFrame writes its report at the end.

#: The job script that ReFrame keeps in the case's folder.
_SCRIPT = "rfm_job.sh"

#: The digest by which ReFrame tells the folders of a parameterized check apart.
_DIGEST = re.compile(r"_[0-9a-f]{8}$")

_KINDS = ("output", "stage")
_OF_A_CASE = ("SYSTEM", "PARTITION", "ENVIRON", "CHECK")


def without_report(
    name: str, results: Path, paths: Sequence[Path], node: str | None = None
) -> Session:
    """Return what a session without a run report left, or documents outside any session.

    Case and result come from the folders: SYSTEM/PARTITION/ENVIRON/CHECK, and ``unknown``. The node
    is the one that the job script requests, as it does where ReFrame distributes; there a check
    that was never submitted has no script, and is no case: its node is unknown.

    :param name: its folder in ``output`` and ``stage``, which is its start and the number of its
        process; empty for documents outside any session.
    :param results: the results folder, or the folder of the documents.
    :param paths: its documents; none where only its list of nodes is left.
    :param node: the node that the results folder is of, if any.
    """
    cases = [_case(path.parent, node) for path in paths if _session_of(path, results) is not None]
    output = results / "output" / name
    if name:
        known = {path.parent for path in paths}
        distributed = (output / requested_nodes.NAME).is_file()
        for folder in sorted((results / "stage" / name).glob("/".join("*" * len(_OF_A_CASE)))):
            submitted = not distributed or _requested_node(folder) is not None
            if folder.is_dir() and folder not in known and submitted:
                cases.append(_case(folder, node))
    return Session(
        id=name,
        uuid="",
        report=None,
        hostname="",
        start=_start(name),
        end=_start(name),
        cases=tuple(cases),
        outputs=(output,) if name else (),
        paths=tuple(paths),
    )


def _start(name: str) -> float:
    try:
        return datetime.strptime(name.partition("-")[0], "%Y%m%dT%H%M%S").timestamp()
    except ValueError:
        return 0.0


def _session_of(path: Path, results: Path) -> str | None:
    """Return the folder in ``output`` or ``stage`` of the session that a document is of.

    None where it is in no such folder.
    """
    kind, *inside = path.relative_to(results).parts
    if kind not in _KINDS or len(inside) - len(_OF_A_CASE) != 2:
        return None
    return inside[0]


def _case(folder: Path, measured_on: str | None = None) -> Case:
    system, partition, environ, check = map(printable, folder.parts[-len(_OF_A_CASE) :])
    node = _requested_node(folder)
    # Two checks of one name on two nodes are told apart by the node.
    return Case(
        name=_DIGEST.sub("", check) if node else check,
        system=system,
        partition=partition,
        environ=environ,
        result=UNREPORTED,
        reason=None,
        tags=frozenset(),
        folders=(str(folder),),
        node=node or measured_on,
    )


def _requested_node(folder: Path) -> str | None:
    try:
        node = table.requested_node((folder / _SCRIPT).read_text(errors="replace"))
    except OSError:
        return None
    return node if node is not None and is_node_name(node) else None
