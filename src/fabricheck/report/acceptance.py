"""What is shown of an acceptance: lines for a terminal, the table as CSV, and the page."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import fabricheck
from fabricheck.core import show
from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import folded
from fabricheck.core.text import count
from fabricheck.judge.acceptance.model import OUTCOMES, AcceptanceRecord, NodeRow, Outcome, hosts
from fabricheck.report import acceptance_words as words
from fabricheck.report.rendering import KINDS, templates

#: The words of an outcome, and as what it is coloured.
OUTCOME: dict[Outcome, str] = {
    "missed": "missed",
    "open": "not yet measured",
    "waived": "waived",
    "met": "met",
}
_BADGES: dict[Outcome, str] = {
    "missed": "fail",
    "open": "incomplete",
    "waived": "demonstration",
    "met": "pass",
}

#: The most rows of the terminal's table; the page and --json have all.
_MOST = 40


def heading(record: AcceptanceRecord) -> str:
    """Return the line on the acceptance as a whole."""
    if record.accepted:
        word = "ACCEPTED"
    elif record.exit_code == 12:
        word = "NOT ACCEPTED"
    else:
        word = "OPEN"
    agreement = record.agreement
    return f"{agreement.title} ({agreement.system}, {folded(agreement.node_names)}): {word}"


def badge(record: AcceptanceRecord) -> str:
    """Return as what the whole is coloured."""
    if record.accepted:
        return "demonstration" if record.agreement.simulated else "pass"
    return "incomplete" if record.exit_code == 13 else "fail"


def counts(record: AcceptanceRecord) -> str:
    """Return how many nodes have which outcome, with their names."""
    parts = []
    for outcome in OUTCOMES:
        rows = record.with_outcome(outcome)
        if rows:
            parts.append(f"{len(rows)} {OUTCOME[outcome]} ({hosts(rows)})")
    return "; ".join(parts)


def lines(record: AcceptanceRecord) -> Iterator[show.Block]:
    """Yield the text for a terminal."""
    if record.agreement.simulated:
        yield words.SIMULATED
    yield show.status(heading(record), badge(record))
    yield f"Nodes: {counts(record)}"
    yield words.at_first(record)
    rows = [
        (column.name, words.criterion(column), *_numbers(record, column.name))
        for column in record.agreement.columns
    ]
    right = tuple(OUTCOME[outcome] for outcome in OUTCOMES)
    yield show.Table(("Criterion", "Asks that", *right), rows, right)
    yield _lacking(record)
    for row in record.nodes:
        yield from (f"Changed on {row.node}: {words.change(each)}" for each in row.changes)
    yield from _sessions(record)
    yield from (f"Unreadable: {sentence}" for sentence in record.unreadable)
    command = words.next_command(record)
    if command is not None:
        repair = ", when what failed is repaired" if record.with_outcome("missed") else ""
        yield f"Next{repair}: {command}"


def _numbers(record: AcceptanceRecord, criterion: str) -> list[str]:
    outcomes: list[Outcome] = []
    for row in record.nodes:
        outcomes += [cell.outcome for cell in row.cells if cell.criterion == criterion]
    return [str(outcomes.count(outcome)) for outcome in OUTCOMES]


def _lacking(record: AcceptanceRecord) -> show.Table:
    """Return a row for each criterion that nodes have not met; alike ones together."""
    cells: list[tuple[tuple[Outcome, str, str, str, str], str]] = []
    for row in record.nodes:
        for cell in row.cells:
            if cell.outcome != "met" or cell.waiver is not None:
                texts = (words.value(cell), words.tries(cell), words.why(cell))
                cells.append(((cell.outcome, cell.criterion, *texts), row.node))
    alike = grouped(cells)
    rows = [
        (
            folded(nodes),
            criterion,
            show.status(OUTCOME[outcome], _BADGES[outcome]),
            value,
            tried,
            why,
        )
        for (outcome, criterion, value, tried, why), nodes in sorted(
            alike.items(), key=lambda item: OUTCOMES.index(item[0][0])
        )
    ]
    columns = ("Node", "Criterion", "Outcome", "Value", "Tried", "Why")
    return show.Table(columns, rows, most=_MOST)


def _sessions(record: AcceptanceRecord) -> Iterator[str]:
    """Yield how many sessions there were, and what is odd about them."""
    total = sum(len(row.attempts) for row in record.nodes)
    failed = sum(row.failed for row in record.nodes)
    left_out = sum(row.not_counted for row in record.nodes)
    yield (
        f"Sessions: {total} of {count(len(record.nodes), 'node')}, {failed} did not pass, "
        f"{left_out} do not count. The last one that counts decides."
    )
    for row in record.nodes:
        for attempt in row.attempts:
            if attempt.clock_back_s > 60:
                yield (
                    f"Clock on {row.node}: session {attempt.id} says a time "
                    f"{attempt.clock_back_s:.0f} s before what began earlier; the marks order them."
                )
    accepted = grouped(
        (name, row.node)
        for row in record.nodes
        for attempt in row.attempts
        for name in attempt.accepts
    )
    for name, nodes in accepted.items():
        yield f"The site file accepts {name} on {folded(dict.fromkeys(nodes))}."
    for folder in record.folders:
        if folder.missing_marks:
            gone = count(len(folder.missing_marks), "mark")
            yield f"{folder.path} lacks {gone} of sessions that began there: they were removed."


def table(record: AcceptanceRecord) -> str:
    """Return the criteria by nodes as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        (
            "node", "criterion", "outcome", "value", "unit", "at least", "at most", "session",
            "tried", "not met", "waiver until", "waiver by", "why", "simulated",
        )
    )  # fmt: skip
    for row in record.nodes:
        for cell in row.cells:
            waiver = cell.waiver
            writer.writerow(
                (
                    row.node, cell.criterion, cell.outcome, cell.value, cell.unit, cell.least,
                    cell.most, words.session(cell), cell.tried, cell.missed,
                    waiver.until if waiver is not None else None,
                    waiver.by if waiver is not None else None,
                    words.why(cell) if cell.outcome != "met" else "",
                    record.agreement.simulated,
                )
            )  # fmt: skip
    return out.getvalue()


def html(record: AcceptanceRecord) -> str:
    """Return the page: the summary for the signature first, then nodes that are not plainly met."""
    return (
        templates()
        .get_template("acceptance.html.j2")
        .render(
            record=record,
            agreement=record.agreement,
            heading=heading(record),
            counts=counts(record),
            numbers=lambda name: _numbers(record, name),
            outcomes=OUTCOMES,
            outcome=OUTCOME,
            shown=[row for row in record.nodes if _is_shown(row)],
            words=words,
            kinds=KINDS,
            kind="simulated" if record.agreement.simulated else "measured",
            sessions=list(_sessions(record)),
            doubts=lambda attempt: "; ".join(map(words.doubt, attempt.doubts)),
            version=fabricheck.__version__,
        )
    )


def _is_shown(row: NodeRow) -> bool:
    """Whether a node has a part of its own: it failed, is open, has a waiver, or changed."""
    has_waiver = any(cell.waiver is not None for cell in row.cells)
    return row.outcome != "met" or has_waiver or bool(row.changes) or row.failed_at_first
