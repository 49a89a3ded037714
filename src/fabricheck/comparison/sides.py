"""What is compared: a session or documents, and which partitions stand against each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricheck.errors import NotFoundError, UsageError
from fabricheck.results.folder import (
    UNREPORTED,
    Entry,
    ResultsFolder,
    find_documents,
    read_entry,
)
from fabricheck.results.killed import Killed
from fabricheck.results.model import ResultDocument
from fabricheck.results.session import Case, Session
from fabricheck.software import record

#: How ReFrame names the repetitions of a check in one session.
REPETITION = re.compile(r" %\S*repeat_no=(?P<number>\d+)")

#: Files that hold a document, or what a killed run left of it.
_DOCUMENTS = (".json", ".partial")


@dataclass(frozen=True)
class Check:
    """A case of a session, a document, or both.

    name: of the case, without the number of its repetition, and with its environment where the
    partition has several; of a document outside of a session its folder.
    """

    name: str
    case: Case | None
    entry: Entry | None

    @property
    def document(self) -> ResultDocument | None:
        """Its document, where there is one that can be read."""
        return self.entry.document if self.entry is not None else None


@dataclass(frozen=True)
class Part:
    """What a side has of one partition; ``where`` is empty for documents outside of a session."""

    where: str
    checks: tuple[Check, ...]

    @property
    def documents(self) -> list[ResultDocument]:
        """The documents that can be read."""
        return [check.document for check in self.checks if check.document is not None]

    @property
    def clock(self) -> str:
        """``measured``, ``simulated``, both, or a dash without any document."""
        return " and ".join(sorted({one["clock"] for one in self.documents})) or "-"


@dataclass(frozen=True)
class Side:
    """A or B: how it was named, what it is, and its partitions.

    says: sentences about its software. chosen: whether one partition was asked for.
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    says: tuple[str, ...] = ()
    chosen: bool = False

    def part(self, where: str) -> Part | None:
        """Return what it has of a partition."""
        return next((one for one in self.parts if one.where == where), None)

    @property
    def names(self) -> str:
        """Its partitions, for a sentence."""
        return ", ".join(part.where for part in self.parts)


def find(name: str) -> Side:
    """Return what a name stands for, with the partition behind its last ``@`` alone.

    That is a session (``latest``, an id, a part of its UUID, a killed one's folder), a document, a
    folder of documents, a results folder, of which the latest session is taken, or a report of
    ReFrame in one.

    :raises FabricheckError: when there is none of that name, or none that can be read.
    """
    what, at, partition = name.rpartition("@")
    if not (what if at else name):
        raise UsageError(f"{name!r} names no session: `latest`, an id, a document or a folder.")
    if not at or Path(name).exists():
        return _whole(name, name)
    side = _whole(what, name)
    part = side.part(partition)
    if part is None:
        if not side.names:
            raise UsageError(f"{what} has no partitions, so {partition!r} can not be one of them.")
        raise NotFoundError(f"{what} has no partition {partition!r}; it has {side.names}.")
    return Side(name, side.title, (part,), side.says, chosen=True)


def _whole(what: str, name: str) -> Side:
    path = Path(what)
    if path.is_dir():
        if not (path / "reports").is_dir():
            return _of_documents(name, f"documents under {what}", find_documents(path), path)
        folder = ResultsFolder(path)
        return _of_session(name, folder, folder.latest())
    if path.parent.name == "reports" and path.suffix == ".json":
        if not path.is_file():
            raise NotFoundError(f"There is no report {what}.")
        folder = ResultsFolder(path.parent.parent)
        return _of_session(name, folder, folder.session(path.stem))
    if path.is_file() or path.suffix in _DOCUMENTS:
        return _of_documents(name, f"document {what}", [path], path.parent)
    folder = ResultsFolder.default()
    if what == UNREPORTED:
        paths = [entry.path for entry in folder.unreported() if entry.path is not None]
        title = f"documents of no session in {folder.path}"
        return _of_documents(name, title, paths, folder.path)
    try:
        session = folder.session(what)
    except NotFoundError:
        for one in folder.killed():
            if one.name == what:
                return _of_killed(name, one)
        raise
    return _of_session(name, folder, session)


def _of_documents(name: str, title: str, paths: Sequence[Path], root: Path) -> Side:
    entries = [read_entry(path) for path in paths]
    if not entries:
        raise NotFoundError(f"There is no result document in {name}.")
    if len(entries) == 1 and entries[0].problem is not None:
        raise entries[0].problem
    own = Counter(path.resolve().parent.name for path in paths)
    checks = tuple(
        # ReFrame names the folder of a document by its check.
        Check(folder if own[folder] == 1 else str(path.parent.relative_to(root)), None, entry)
        for path, entry in zip(paths, entries, strict=True)
        for folder in [path.resolve().parent.name]
    )
    return Side(name, title, (Part("", checks),))


def _of_killed(name: str, killed: Killed) -> Side:
    """Return what a killed session left: documents, and no results of checks."""
    checks: dict[str, list[Check]] = {}
    for entry in killed.entries():
        if entry.case is not None:
            checks.setdefault(entry.case.where, []).append(Check(entry.case.name, None, entry))
    title = f"what session {killed.name} of {killed.results} left, which was killed or still runs"
    return Side(name, title, tuple(Part(where, tuple(some)) for where, some in checks.items()))


def _of_session(name: str, folder: ResultsFolder, session: Session) -> Side:
    entries = {id(entry.case): entry for entry in folder.entries(session)}
    environs: dict[str, set[str]] = {}
    for case in session.cases:
        environs.setdefault(case.where, set()).add(case.environ)
    checks: dict[str, list[Check]] = {}
    for case in session.cases:
        label = REPETITION.sub("", case.name)
        if len(environs[case.where]) > 1:
            label += f" +{case.environ}"
        checks.setdefault(case.where, []).append(Check(label, case, entries.get(id(case))))
    if not checks:
        raise NotFoundError(f"Session {session.id} of {folder.path} ran no check.")
    title = (
        f"session {session.id} of {folder.path}, {session.date:%Y-%m-%d %H:%M:%S}, on "
        f"{session.hostname}: {len(session.cases)} checks, {session.passed} passed, "
        f"{session.failed} failed, {session.skipped} skipped"
    )
    says = record.sentences(session.outputs, session.start, session.end)
    parts = tuple(Part(where, tuple(found)) for where, found in checks.items())
    return Side(name, title, parts, tuple(says))


def pair_up(a: Side, b: Side) -> list[tuple[Part, Part]]:
    """Return the partitions that are compared; one that the other lacks stands against nothing.

    :raises UsageError: when it is not clear which are meant.
    """
    if len(a.parts) == 1 and len(b.parts) == 1:
        mine, theirs = a.parts[0], b.parts[0]
        if _alone(mine) and _alone(theirs):
            # Two documents that were named are meant for each other, whatever their folders.
            name = mine.checks[0].name
            return [(_named_alike(mine, name), _named_alike(theirs, name))]
        return [(mine, theirs)]
    if a.chosen or b.chosen:
        one, other = (a, b) if a.chosen else (b, a)
        found = other.part(one.parts[0].where)
        if found is None:
            raise UsageError(
                f"{other.name} has no partition {one.parts[0].where} but {other.names}: name the "
                f"one to compare with, as {other.name}@{other.parts[0].where}."
            )
        return [(one.parts[0], found) if one is a else (found, one.parts[0])]
    if not any(b.part(part.where) for part in a.parts):
        several = a if len(a.parts) > 1 else b
        raise UsageError(
            f"{a.name} has {a.names or 'no partition'} and {b.name} has {b.names or 'none'}: name "
            f"one of each to compare, as {several.name}@{several.parts[0].where}."
        )
    names = dict.fromkeys(part.where for part in (*a.parts, *b.parts))
    return [(a.part(one) or Part(one, ()), b.part(one) or Part(one, ())) for one in names]


def _alone(part: Part) -> bool:
    return not part.where and len(part.checks) == 1


def _named_alike(part: Part, name: str) -> Part:
    return Part("", (Check(name, None, part.checks[0].entry),))
