"""What is compared: a session or documents, and which partitions stand against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.core.nodelists import folded
from fabricheck.results import archive, jobs, meant, nodes, split_checks
from fabricheck.results.folder import (
    UNREPORTED,
    Entry,
    ResultsFolder,
    find_documents,
    read_entry,
)
from fabricheck.results.jobs import Job
from fabricheck.results.killed import Killed
from fabricheck.results.model import ResultDocument
from fabricheck.results.observed import by_node
from fabricheck.results.session import REPETITION, Case, Session
from fabricheck.site.software import record

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

    @property
    def names(self) -> list[str]:
        """The checks of today that it stands for: an older one may have been several in one."""
        metrics = self.case.values if self.case is not None else ()
        series = self.document["series"] if self.document is not None else ()
        found = {split_checks.of_metric(self.name, one) for one in metrics}
        return sorted(found | {split_checks.of_series(self.name, one) for one in series}) or [
            self.name
        ]


@dataclass(frozen=True)
class Part:
    """What a side has of one partition on one node.

    where: empty for documents outside of a session. node: None where nobody tells one.
    """

    where: str
    checks: tuple[Check, ...]
    node: str | None = None

    @property
    def name(self) -> str:
        """The partition and the node, for a sentence."""
        return f"{self.where} on {self.node}" if self.node else self.where

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
    """A or B: how it was named, what it is, and its partitions, of each node by itself.

    says: sentences about its software. chosen: whether one partition or node was asked for.
    unread: by node why nothing of it is compared, of a job over many nodes.
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    says: tuple[str, ...] = ()
    chosen: bool = False
    unread: Mapping[str, str] = field(default_factory=dict)

    def of(self, where: str) -> list[Part]:
        """Return what it has of a partition, a part for each node."""
        return [one for one in self.parts if one.where == where]

    @property
    def names(self) -> str:
        """Its partitions and their nodes, for a sentence."""
        found: dict[str, list[str | None]] = {}
        for part in self.parts:
            found.setdefault(part.where, []).append(part.node)
        return ", ".join(
            f"{where} on {names}" if (names := folded(on)) else where for where, on in found.items()
        )


def find(name: str) -> Side:
    """Return what a name stands for, with the partition, node or both behind ``@`` alone.

    That is a session (``latest``, an id, a part of its UUID, a killed one's folder), a document, a
    folder of documents, a results folder, of which what began last is taken (a session, or a job
    over many nodes), or a report of ReFrame in one.

    :raises FabricheckError: when there is none of that name, or none that can be read.
    """
    what, chosen = _chosen(name)
    if not what:
        raise UsageError(f"{name!r} names no session: `latest`, an id, a document or a folder.")
    side = _whole(what, name, chosen)
    parts, unread = side.parts, dict(side.unread)
    for one in chosen:
        if one not in {part.where for part in parts}:
            unread = {node: why for node, why in unread.items() if node == one}
        parts = tuple(part for part in parts if one in (part.where, part.node))
        if not parts:
            if one in unread:
                raise InvalidInputError(unread[one])
            if not side.names:
                raise UsageError(f"{what} has no partitions, so {one!r} can not be one of them.")
            kind = "partition or node" if any(part.node for part in side.parts) else "partition"
            raise NotFoundError(f"{what} has no {kind} {one!r}; it has {side.names}.")
    return replace(side, parts=parts, chosen=bool(chosen), unread=unread)


def _chosen(name: str) -> tuple[str, list[str]]:
    """Return a name without what stands behind ``@``, a partition and a node at most."""
    chosen: list[str] = []
    while "@" in name and len(chosen) < 2 and not Path(name).exists():
        name, _, last = name.rpartition("@")
        chosen.insert(0, last)
    return name, chosen


def _whole(what: str, name: str, chosen: Sequence[str] = ()) -> Side:
    """Return a side; of a session with more nodes than one that is chosen it alone is read."""
    path = archive.folder(Path(what))
    if jobs.is_job(path):
        return _of_job(name, jobs.read(path))
    if path.is_dir():
        if not (path / "reports").is_dir():
            return _of_documents(name, f"documents under {what}", find_documents(path), path)
        folder = ResultsFolder(path)
        return _of(name, folder, meant.latest(folder), chosen)
    if path.parent.name == "reports" and path.suffix == ".json":
        if not path.is_file():
            raise NotFoundError(f"There is no report {what}.")
        folder = ResultsFolder(path.parent.parent)
        return _of_session(name, folder, folder.session(path.stem), chosen)
    if path.is_file() or path.suffix in _DOCUMENTS:
        return _of_documents(name, f"document {what}", [path], path.parent)
    folder = ResultsFolder.default()
    if what == UNREPORTED:
        paths = [entry.path for entry in folder.unreported() if entry.path is not None]
        title = f"documents of no session in {folder.path}"
        return _of_documents(name, title, paths, folder.path)
    return _of(name, folder, meant.named(folder, what), chosen)


def _of(name: str, folder: ResultsFolder, found: meant.Meant, chosen: Sequence[str] = ()) -> Side:
    match found:
        case Job():
            return _of_job(name, found)
        case Killed():
            return _of_killed(name, found)
        case _:
            return _of_session(name, folder, found, chosen)


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
    checks = _Checks()
    for entry in killed.entries():
        if entry.case is not None:
            checks.add(entry.case, entry.case.name, None, entry)
    title = f"what session {killed.name} of {killed.results} left, which was killed or still runs"
    return Side(name, title, checks.parts)


def _of_job(name: str, job: Job) -> Side:
    """Return the latest session of each node of a job."""
    sides = [
        _of_session(name, share.folder, share.session)
        for share in job.shares
        if share.folder is not None and share.session is not None and share.session.cases
    ]
    if not sides:
        raise NotFoundError(f"There is no session of any node in {job.path}.")
    unread = {
        share.node: str(
            share.problem or f"The session on {share.node} has no report: it was killed."
        )
        for share in job.shares
        if share.session is None and (share.problem or share.killed)
    }
    says = dict.fromkeys(sentence for side in sides for sentence in side.says)
    title = f"job {job.name} over {len(job.asked.nodes)} nodes, {len(sides)} of them with a session"
    parts = tuple(part for side in sides for part in side.parts)
    return Side(name, title, parts, tuple(says), unread=unread)


def _of_session(
    name: str, folder: ResultsFolder, session: Session, chosen: Sequence[str] = ()
) -> Side:
    if not session.cases:
        raise NotFoundError(f"Session {session.id} of {folder.path} ran no check.")
    wanted = [one for one in chosen if one in session.nodes]
    read = nodes.before_reading(session, wanted)
    entries = {id(entry.case): entry for entry in folder.entries(read)}
    environs: dict[str, set[str]] = {}
    for case in session.cases:
        environs.setdefault(case.where, set()).add(case.environ)
    checks = _Checks(session.cases)
    for case in read.cases:
        label = REPETITION.sub("", case.name)
        if len(environs[case.where]) > 1:
            label += f" +{case.environ}"
        checks.add(case, label, case, entries.get(id(case)))
    on = folded(session.nodes)
    title = (
        f"session {session.id} of {folder.path}, {session.date:%Y-%m-%d %H:%M:%S}, on "
        f"{on or session.hostname}: {len(session.cases)} checks, {session.passed} passed, "
        f"{session.failed} failed, {session.skipped} skipped"
    )
    says = record.sentences(session.outputs, session.start, session.end)
    return Side(name, title, checks.parts, tuple(says))


class _Checks:
    """Checks by partition and node, in their order.

    among: cases of which only some are taken; their nodes are there all the same.
    """

    def __init__(self, among: Sequence[Case] = ()) -> None:
        self._found: dict[str, list[tuple[Check, str | None]]] = {}
        self._there: dict[str, set[str | None]] = {}
        for case in among:
            self._there.setdefault(case.where, set()).add(case.node)

    def add(self, of: Case, label: str, case: Case | None, entry: Entry | None) -> None:
        """Take one more; its document may tell the node where the case does not."""
        node = of.node if entry is None else entry.node
        self._found.setdefault(of.where, []).append((Check(label, case, entry), node))

    @property
    def parts(self) -> tuple[Part, ...]:
        """Each node of each partition by itself."""
        return tuple(
            Part(where, tuple(checks), node)
            for where, found in self._found.items()
            for node, checks in by_node(found, self._there.get(where, ())).items()
        )


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
        found = list(_matches(one, other))
        if not found:
            raise UsageError(
                f"{other.name} has no partition {one.parts[0].name} but {other.names}: name the "
                f"one to compare with, as {_as_named(other)}."
            )
        return found if one is a else [(theirs, mine) for mine, theirs in found]
    pairs = list(_matches(a, b))
    if not pairs:
        several = a if len(a.parts) > 1 else b
        raise UsageError(
            f"{a.name} has {a.names or 'no partition'} and {b.name} has {b.names or 'none'}: name "
            f"one of each to compare, as {_as_named(several)}."
        )
    lacking = {id(part) for part in (*a.parts, *b.parts)} - {
        id(part) for pair in pairs for part in pair
    }
    pairs += [(part, Part(part.where, (), part.node)) for part in a.parts if id(part) in lacking]
    pairs += [(Part(part.where, (), part.node), part) for part in b.parts if id(part) in lacking]
    order = list(dict.fromkeys(part.where for part in (*a.parts, *b.parts)))
    return sorted(pairs, key=lambda pair: order.index(pair[0].where))


def _matches(a: Side, b: Side) -> Iterator[tuple[Part, Part]]:
    """Yield the same node of the same partition; of one node each, whatever their names.

    Of one partition each the names of these do not matter either.
    """
    one_each = len({part.where for part in a.parts}) == len({part.where for part in b.parts}) == 1
    for mine in a.parts:
        here, there = (list(side.parts) if one_each else side.of(mine.where) for side in (a, b))
        alone = len(there) == len(here) == 1
        yield from ((mine, one) for one in there if alone or one.node == mine.node)


def elsewhere(pairs: Sequence[tuple[Part, Part]]) -> list[str]:
    """Return the checks that both sides ran in a partition, and nowhere on nodes of one name."""
    ran: dict[str, tuple[set[str], set[str], set[str]]] = {}
    for a, b in pairs:
        in_a, in_b = ({check.name for check in part.checks} for part in (a, b))
        every_a, every_b, both = ran.setdefault(a.where, (set(), set(), set()))
        every_a |= in_a
        every_b |= in_b
        both |= in_a & in_b
    return sorted({name for a, b, both in ran.values() for name in (a & b) - both})


def _as_named(side: Side) -> str:
    first = side.parts[0]
    several = len({part.where for part in side.parts}) < len(side.parts)
    return f"{side.name}@{first.node if several and first.node else first.where}"


def _alone(part: Part) -> bool:
    return not part.where and len(part.checks) == 1


def _named_alike(part: Part, name: str) -> Part:
    return Part("", (Check(name, None, part.checks[0].entry),))
