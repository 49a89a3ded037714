"""A results folder: its sessions and the documents that belong to each of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fabricheck.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.results.document import load
from fabricheck.results.model import ResultDocument
from fabricheck.results.session import DOCUMENT_NAME, PARTIAL_NAME, Case, Session, read_report

#: The environment variable that names the results folder.
FOLDER_VARIABLE = "FABRICHECK_RESULTS"

#: Name by which the documents that no report knows are shown, as of a killed session.
UNREPORTED = "unreported"

#: Seconds by which a document may lie outside its session: rounding of times on the same host,
#: clocks that differ on another one.
_SLACK_SAME_HOST = 2.0
_SLACK_OTHER_HOST = 60.0


@dataclass(frozen=True)
class Entry:
    """A document, or the sentence that says why there is none.

    ``case`` is the check that it belongs to; None for a document outside any session.
    """

    case: Case | None
    path: Path | None
    document: ResultDocument | None
    problem: FabricheckError | None


class ResultsFolder:
    """The results of one place, as `make run` and ReFrame's settings lay them out.

    ``sessions`` are the readable ones, latest first; ``problems`` has one sentence for each report
    that is not readable.
    """

    def __init__(self, path: Path) -> None:
        """Read the reports under ``path``; documents are read when asked for.

        :raises NotFoundError: when there is no such folder.
        """
        if not path.is_dir():
            raise NotFoundError(
                f"There is no results folder {path}: run `make run` first, or name another one "
                f"in {FOLDER_VARIABLE}."
            )
        self.path = path
        self.sessions: list[Session] = []
        self.problems: list[InvalidInputError] = []
        self._newest_unreadable: tuple[float, InvalidInputError] | None = None
        for report in sorted(path.glob("reports/run-*.json")):
            try:
                self.sessions.append(read_report(report, path))
            except InvalidInputError as problem:
                self.problems.append(problem)
                written = report.lstat().st_mtime
                if self._newest_unreadable is None or written > self._newest_unreadable[0]:
                    self._newest_unreadable = (written, problem)
        self.sessions.sort(key=lambda session: session.start, reverse=True)

    @classmethod
    def default(cls) -> ResultsFolder:
        """Open the folder that FABRICHECK_RESULTS names, else ``results`` in the working folder.

        :raises NotFoundError: when there is no such folder.
        """
        return cls(Path(os.environ.get(FOLDER_VARIABLE) or "results"))

    def latest(self) -> Session:
        """Return the session that started last.

        :raises InvalidInputError: when a report written after it is not readable: the last session
            is then another one, and its results are not those asked for.
        :raises NotFoundError: when there is no session.
        """
        if self._newest_unreadable is not None:
            written, problem = self._newest_unreadable
            if not self.sessions or written > self.sessions[0].report.stat().st_mtime:
                raise problem
        if not self.sessions:
            raise NotFoundError(f"There is no session in {self.path}: run `make run` first.")
        return self.sessions[0]

    def session(self, name: str) -> Session:
        """Return a session by ``latest``, its id (``run-3`` or ``3``), or a part of its UUID.

        :raises NotFoundError: when there is none of that name, or several.
        :raises InvalidInputError: when its report is not readable.
        """
        if name == "latest":
            return self.latest()
        found = [
            session
            for session in self.sessions
            if name in (session.id, session.id.removeprefix("run-"))
        ] or [
            session for session in self.sessions if len(name) >= 4 and session.uuid.startswith(name)
        ]
        if len(found) == 1:
            return found[0]
        for report in (f"{name}.json", f"run-{name}.json"):
            if (self.path / "reports" / report).is_file():
                read_report(self.path / "reports" / report, self.path)
        known = ", ".join(session.id for session in self.sessions[:5]) or "none"
        raise NotFoundError(
            f"There is no session {name!r} in {self.path}; the latest are: {known}."
        )

    def entries(self, session: Session) -> list[Entry]:
        """Return the documents of a session, by case.

        A case that measures (its tags name an experiment) and has no document has an entry with
        a problem; so has one whose document is invalid or belongs to another session.
        """
        return list(self._entries(session))

    def _entries(self, session: Session) -> Iterator[Entry]:
        later = self._claimed_after(session)
        for case in session.cases:
            path = case.document_path
            if path is None:
                if case.experiments and not case.skipped:
                    yield Entry(case, None, None, NotFoundError(_no_document(case)))
                continue
            if path.resolve() in later:
                problem = NotFoundError(
                    f"{case.name} @{case.where}: {path} was overwritten by session "
                    f"{later[path.resolve()]}."
                )
                yield Entry(case, path, None, problem)
                continue
            entry = read_entry(path, case)
            if entry.document is not None and not _within(session, entry.document):
                problem = NotFoundError(
                    f"{case.name} @{case.where}: {path} is of "
                    f"{entry.document['started']}, thus of another session than {session.id}."
                )
                entry = Entry(case, path, None, problem)
            yield entry

    def _claimed_after(self, session: Session) -> dict[Path, str]:
        """Return the documents of later sessions: ReFrame uses the same folders again."""
        claimed: dict[Path, str] = {}
        for other in self.sessions:
            if other.start > session.start:
                for case in other.cases:
                    for path in _documents(case):
                        claimed.setdefault(path, other.id)
        return claimed

    def unreported(self) -> list[Entry]:
        """Return the documents that belong to no report, as a killed session leaves them."""
        claims: dict[Path, list[Session]] = {}
        for session in self.sessions:
            for case in session.cases:
                for path in _documents(case):
                    claims.setdefault(path, []).append(session)
        result = []
        for path in find_documents(self.path):
            owners = claims.get(path.resolve(), [])
            if owners and path.stat().st_mtime <= owners[0].end + _SLACK_SAME_HOST:
                continue
            entry = read_entry(path)
            if entry.document is None and owners:
                continue
            if entry.document is not None and any(
                _within(owner, entry.document) for owner in owners
            ):
                continue
            result.append(entry)
        return result


def find_documents(folder: Path) -> list[Path]:
    """Return the documents under a folder, partial ones where there is no other, sorted."""
    whole = set(folder.rglob(DOCUMENT_NAME))
    partial = {
        path for path in folder.rglob(PARTIAL_NAME) if path.with_name(DOCUMENT_NAME) not in whole
    }
    return sorted(whole | partial)


def read_entry(path: Path, case: Case | None = None) -> Entry:
    """Load one document; what is wrong with it becomes the entry's problem."""
    try:
        return Entry(case, path, load(path), None)
    except FabricheckError as problem:
        return Entry(case, path, None, problem)


def _documents(case: Case) -> list[Path]:
    """Return the documents of all attempts: one that a later attempt replaced has its session."""
    paths = [attempt.document_path for attempt in (*case.earlier, case)]
    return [path.resolve() for path in paths if path is not None]


def _no_document(case: Case) -> str:
    reason = f": {' '.join(case.reason.split())}" if case.reason else ""
    return f"{case.name} @{case.where} ({case.result}) left no result document{reason.rstrip('.')}."


def _within(session: Session, document: ResultDocument) -> bool:
    same_host = document["host"]["hostname"] == session.hostname
    slack = _SLACK_SAME_HOST if same_host else _SLACK_OTHER_HOST
    started = datetime.fromisoformat(document["started"].replace("Z", "+00:00")).timestamp()
    return session.start - slack <= started <= session.end + slack
