"""The acceptance of a machine: what nodes have of criteria, by the last session that counts.

A session counts for a criterion if it answers it and nothing speaks against it (`doubts`). The last
one that counts decides, however many were tried; how many that were, and how many of them missed
it, is told beside it. A waiver lets a missed or open criterion pass until its day has ended.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import fabricheck
from fabricheck.core import checkout
from fabricheck.judge.acceptance import criteria, hardware, soak
from fabricheck.judge.acceptance.criteria import Answer
from fabricheck.judge.acceptance.doubts import Judge
from fabricheck.judge.acceptance.model import (
    AcceptanceRecord,
    Attempt,
    Cell,
    Change,
    Doubt,
    Environment,
    Folder,
    Hardware,
    Next,
    NodeRow,
    Outcome,
)
from fabricheck.judge.acceptance.sessions import Root, Tried, tried
from fabricheck.judge.acceptance.soak import Soaked
from fabricheck.references.agreement import THIS_CHECKOUT, Agreement, Criterion
from fabricheck.references.published import folder as references_folder
from fabricheck.references.stated import References, references_in
from fabricheck.results.folder import ResultsFolder
from fabricheck.site import partitions, sets


@dataclass(frozen=True)
class Given:
    """All that is judged: the sessions and soaks of the nodes in order, and where they are."""

    agreement: Agreement
    roots: Sequence[Root]
    sessions: Sequence[Tried]
    soaks: Sequence[Soaked]
    references: References
    judge: Judge
    unreadable: Sequence[str] = ()


#: What makes a text of a record: its table, its page.
Shown = Callable[[AcceptanceRecord], str]


@dataclass(frozen=True)
class Accepted:
    """The record, and the judged sessions that it rests on."""

    record: AcceptanceRecord
    sessions: Sequence[Tried]


@dataclass(frozen=True)
class _Try:
    """An answer to a criterion, the session or soak that gave it, and why it does not count."""

    id: str
    place: str
    answer: Answer
    doubts: tuple[Doubt, ...]


def judge(
    agreement: Agreement,
    digest: str,
    folders: Sequence[Path],
    now: datetime,
    commits: Sequence[str] | None = None,
) -> Accepted:
    """Return the acceptance by the sessions in some results folders.

    The limits are those of the folder of references that the environment names.

    :param digest: SHA-256 of the agreement's file.
    :param now: the time at which waivers and sessions are looked at.
    :param commits: those that take the place of this checkout's; None for this checkout.
    """
    given = _given(agreement, folders, now, commits)
    rows = [_row(node, given) for node in agreement.node_names]
    counted = [session for session in given.sessions if not given.judge.doubts(session)]
    counted_commits = {commit for each in counted for commit in each.verdict.versions.commits}
    record = AcceptanceRecord(
        made=now,
        by=fabricheck.__version__,
        checkout=checkout.commit(),
        agreement=agreement,
        agreement_sha256=digest,
        commits=sorted(counted_commits),
        nodes=rows,
        folders=[_folder(root) for root in given.roots],
        environments=_environments(counted, agreement.system),
        commands=list(dict.fromkeys(each.command for each in counted if each.command)),
        limits_sha256=_limits(references_folder()),
        next=_next(rows, agreement),
        unreadable=list(given.unreadable),
    )
    return Accepted(record, given.sessions)


def _given(
    agreement: Agreement,
    folders: Sequence[Path],
    now: datetime,
    commits: Sequence[str] | None,
) -> Given:
    references = references_in(references_folder())
    nodes = agreement.node_names
    roots = [Root(number, path) for number, path in enumerate(folders)]
    sessions: list[Tried] = []
    soaks: list[Soaked] = []
    unreadable: list[str] = []
    for root in roots:
        there, problems = tried(root, agreement.system, nodes, references)
        sessions += there
        unreadable += problems
        if agreement.soak_hours:
            of_root, problems = soak.of_root(root, nodes)
            soaks += of_root
            unreadable += problems
    sessions.sort(key=lambda session: session.order)
    soaks.sort(key=lambda soaked: soaked.began)
    judge = Judge.of(agreement, sessions, now, commits)
    return Given(agreement, roots, sessions, soaks, references, judge, unreadable)


def _row(node: str, given: Given) -> NodeRow:
    sessions = [session for session in given.sessions if session.node == node]
    attempts = [_attempt(session, given.judge.doubts(session)) for session in sessions]
    last = sessions[-1].verdict if sessions else None
    return NodeRow(
        node=node,
        cells=[_cell(node, column, sessions, given) for column in given.agreement.columns],
        attempts=attempts,
        hardware=given.judge.latest.get(node, Hardware()),
        changes=_changes(sessions),
        skipped=last.checks.skipped if last is not None else [],
        caveats=last.caveats if last is not None else [],
    )


def _changes(sessions: Sequence[Tried]) -> list[Change]:
    """Return what changed from each session that shows devices to the next one."""
    shown = [each.facts.hardware for each in sessions if each.facts.hardware.devices]
    changes = []
    for before, after in itertools.pairwise(shown):
        changes += hardware.changes(before, after)
    return changes


def _attempt(session: Tried, doubts: list[Doubt]) -> Attempt:
    verdict = session.verdict
    began = datetime.fromtimestamp(session.began, UTC) if session.began else None
    return Attempt(
        id=session.id,
        place=session.place,
        began=began,
        set=session.set,
        status=verdict.status,
        provisional=bool(verdict.provisional),
        failed_before=session.facts.failed_before,
        commits=verdict.versions.commits,
        checkout=session.record.checkout if session.record is not None else None,
        programs=session.programs,
        accepts=list(session.accepts),
        clock_back_s=round(session.clock_back_s, 3),
        doubts=doubts,
    )


def _cell(node: str, column: Criterion, sessions: Sequence[Tried], given: Given) -> Cell:
    tries = list(_tries(node, column, sessions, given))
    counting = [each for each in tries if not each.doubts]
    waiver = given.agreement.waiver(node, column.name)
    holds = waiver is not None and waiver.holds(given.judge.now)
    decided = counting[-1] if counting else None
    outcome: Outcome = decided.answer.outcome if decided is not None else "open"
    if outcome != "met" and holds:
        outcome = "waived"
    shown = decided or (tries[-1] if tries else None)
    answer = shown.answer if shown is not None else Answer("open")
    first_missed = bool(counting) and counting[0].answer.outcome == "missed" and not holds
    doubts: list[Doubt] = []
    if decided is None and tries:
        doubts = list(tries[-1].doubts)
    return Cell(
        criterion=column.name,
        outcome=outcome,
        value=answer.value,
        least=answer.least,
        most=answer.most,
        unit=answer.unit,
        session=shown.id if shown is not None else None,
        place=shown.place if shown is not None else None,
        tried=len(tries),
        missed=sum(each.answer.outcome != "met" for each in tries),
        doubts=doubts,
        reasons=list(answer.reasons),
        first_missed=first_missed,
        waiver=waiver,
        waiver_ended=waiver is not None and not holds,
    )


def _tries(node: str, column: Criterion, sessions: Sequence[Tried], given: Given) -> Iterable[_Try]:
    """Yield what answers a criterion, in the order in which it began."""
    if column.hours is not None:
        for soaked in given.soaks:
            if soaked.node == node:
                answer = soak.answer(soaked, column.hours, given.judge)
                yield _Try(soaked.judged.name, soaked.place, answer, answer.doubts)
        return
    for session in sessions:
        of_session = criteria.answer(session, column, given.agreement, given.references)
        if of_session is not None:
            doubts = (*given.judge.doubts(session), *of_session.doubts)
            yield _Try(session.id, session.place, of_session, doubts)


def _folder(root: Root) -> Folder:
    there = ResultsFolder(root.path)
    numbers = {mark.number for mark in there.marks}
    last = max(numbers, default=0)
    begun, _ = there.begun()
    return Folder(
        path=str(root.path),
        sessions=len(begun),
        marks=len(numbers),
        missing_marks=[number for number in range(1, last + 1) if number not in numbers],
    )


def _environments(sessions: Iterable[Tried], where: str) -> list[Environment]:
    """Return the environments that sessions ran in, each once for its programs and locks."""
    chosen: dict[tuple[str, str], Environment] = {}
    builds = _build_commands(where)
    for session in sessions:
        for entry in session.record.environments if session.record is not None else ():
            if entry.environment not in session.environments:
                continue
            made = Environment(
                name=entry.environment,
                folder=entry.folder,
                spack_environment=entry.spack_environment,
                build_command=builds.get(entry.environment),
                locks=entry.files,
                programs=entry.sha256,
            )
            chosen.setdefault((entry.environment, made.model_dump_json()), made)
    return [*chosen.values()]


def _build_commands(where: str) -> Mapping[str, str]:
    """Return by environment of a partition the command that builds its programs."""
    target = partitions.target(where)
    if target is None:
        return {}
    return {each["name"]: target.build_command(each) for each in target.environments}


def _limits(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.yaml"))
    }


def _next(rows: Sequence[NodeRow], agreement: Agreement) -> Next | None:
    """Return what to run next: the longest set on all nodes that lack something, else the soak."""
    columns = {column.name: column for column in agreement.columns}
    lacking = [row for row in rows if row.outcome in ("missed", "open")]
    wanted: dict[str, Criterion] = {}
    for row in lacking:
        for cell in row.cells:
            if cell.outcome in ("missed", "open"):
                wanted[cell.criterion] = columns[cell.criterion]
    of_sets = [column for column in wanted.values() if column.hours is None]
    if of_sets:
        nodes = [row.node for row in lacking if _lacks(row, of_sets)]
        names = [column.set for column in of_sets if column.set is not None]
        longest = sorted(names or agreement.sets, key=[*sets.known()].index)
        return Next(nodes=nodes, set=longest[-1])
    if wanted:
        return Next(nodes=[row.node for row in lacking], hours=agreement.soak_hours)
    return None


def _lacks(row: NodeRow, columns: Sequence[Criterion]) -> bool:
    names = {column.name for column in columns}
    return any(cell.outcome in ("missed", "open") and cell.criterion in names for cell in row.cells)


def resolved(agreement: Agreement, record: AcceptanceRecord) -> Sequence[str] | None:
    """Return the commits that take the place of this checkout's when a record is made again."""
    return record.commits if agreement.commit == THIS_CHECKOUT else None
