"""A verdict as text: the nodes with their statuses, why, what to do next, and lists of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fabricheck.core import nodelists, show
from fabricheck.core.grouping import grouped
from fabricheck.core.nodelists import titled
from fabricheck.core.show import cut, first_of
from fabricheck.judge.verdict import evidence
from fabricheck.judge.verdict.model import Reason, Row, Verdict, by_label
from fabricheck.report import demonstration, scheduler
from fabricheck.site.deviations import NAMES

if TYPE_CHECKING:
    from rich.text import Text

#: The most passed nodes that have a row of their own.
MOST_ROWS = 8

#: Longest reason in the table; the full reasons are below it and in the documents.
LONGEST_CELL = 120

#: Longest reason below the table: a missing device has a sentence for each of its metrics.
LONGEST_REASON = 400

#: The most printed reasons of one node; its document has all.
MOST_REASONS = 10


def text(total: Verdict, began: Sequence[datetime], written: Path) -> Iterator[show.Block]:
    """Yield a verdict: the headline, a row for each node, why, what to do next, and the lists.

    :param began: when its sessions began.
    :param written: the document of all nodes.
    """
    judged = [*total.nodes, *total.networks]
    if demonstration.is_demonstration(judged):
        yield demonstration.SENTENCE
    yield from evidence.software_first(total.nodes)
    yield headline(total)
    # The folder of the session that started last; if that could not begin, an earlier one.
    times = dict.fromkeys(f"{start:%Y-%m-%d %H:%M:%S}" for start in (*began[:1], *began[-1:]))
    if times:
        yield f"Began {' to '.join(times)}"
    passed = [row for row in judged if row.status == "PASS"]
    folded = len(passed) > MOST_ROWS
    rows = [_cells(row) for row in judged if not (folded and row.status == "PASS")]
    columns = ("Node", "Status", "Of", "Set", "Checks", "Time", "First reason")
    yield show.Table(columns, rows, ("Checks", "Time"))
    yield from _reasons(judged)
    yield from _next_steps(judged)
    yield from _caveats(judged)
    yield from (f"Note: {note}" for note in total.notes)
    yield from _lists(total)
    yield f"Verdict: {written}"


def headline(total: Verdict) -> Text:
    """Return the line that counts the nodes of a verdict by their status."""
    is_mixed = len({row.simulated is not None for row in total.nodes}) > 1
    statuses = []
    for rows in by_label(total.nodes):
        clock = " (simulated)" if is_mixed and rows[0].simulated is not None else ""
        statuses.append((f"{len(rows)} {rows[0].label}{clock}", rows[0].badge))
    statuses += [(f"{titled(row.node)} {row.label}", row.badge) for row in total.networks]
    heading = show.plain(f"Verdict on {total.of}: ")
    for number, (label, badge) in enumerate(statuses):
        heading = show.joined(heading, ", " if number else "", show.status(label, badge))
    return heading if statuses else show.joined(heading, "no node")


def _cells(row: Row) -> tuple[show.Cell, ...]:
    checks = row.checks
    less = ((len(checks.skipped), "skipped"), (len(checks.missing), "missing"))
    more = "".join(f", {number} {what}" for number, what in less if number)
    ran = f"{checks.passed}/{checks.passed + checks.failed}{more}"
    time = "-" if row.duration_s is None else f"{row.duration_s:.0f} s"
    first = cut(row.reasons[0].sentence, LONGEST_CELL) if row.reasons else ""
    status = show.status(row.label, row.badge)
    return titled(row.node), status, row.clock or "nothing", row.set or "-", ran, time, first


def _is_below(reason: Reason) -> bool:
    """Whether a reason stands below the table: it is long, or a site accepts it by its rule."""
    return len(reason.sentence) > LONGEST_CELL or reason.rule in NAMES


def _reasons(rows: Sequence[Row]) -> Iterator[show.Block]:
    """Yield why nodes did not pass, if the table does not; equal reasons once."""
    same = grouped(
        ((row.simulated, tuple(row.reasons)), row)
        for row in rows
        if len(row.reasons) > 1 or any(map(_is_below, row.reasons))
    )
    for (simulated, reasons), equals in same.items():
        by = f", simulated by {simulated.label}" if simulated else ""
        yield show.joined(
            f"{nodelists.folded(titled(row.node) for row in equals)}{by}: ",
            show.status(equals[0].label, equals[0].badge),
        )
        sentences = [
            f"{reason.status} ({reason.rule}): {cut(reason.sentence, LONGEST_REASON)}"
            for reason in _each_first(reasons)
        ]
        yield from (
            f"  {each}" for each in first_of(sentences, MOST_REASONS, f" in {equals[0].file}")
        )


def _next_steps(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what to do next, by the rule of a node's first reason; once for all nodes with it."""
    first = [(row.reasons[0], titled(row.node)) for row in rows if row.reasons]
    by_rule = grouped(((reason.rule, reason.next_step), node) for reason, node in first)
    for (rule, step), nodes in by_rule.items():
        yield f"Next for {nodelists.folded(dict.fromkeys(nodes))} ({rule}): {step}"


def _each_first(reasons: Sequence[Reason]) -> list[Reason]:
    """Return reasons with one of each check and rule first, where not all of them are shown."""
    if len(reasons) <= MOST_REASONS:
        return [*reasons]
    first, further = {}, []
    for reason in reasons:
        if (reason.check, reason.rule) in first:
            further.append(reason)
        else:
            first[reason.check, reason.rule] = reason
    return [*first.values(), *further]


def _caveats(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what PASS does not prove and what can explain a miss, once for all nodes with it."""
    passed = [row for row in rows if row.status == "PASS"]
    caveats = [(caveat, titled(row.node)) for row in passed for caveat in row.caveats]
    settings = [(setting, titled(row.node)) for row in rows for setting in row.settings]
    by_sentence = grouped([*caveats, *settings])
    for sentence, nodes in by_sentence.items():
        yield f"Caveat on {nodelists.folded(nodes)}: {sentence}"


def _lists(total: Verdict) -> Iterator[str]:
    for rows in by_label(total.nodes):
        clock = ", simulated" if rows[0].simulated is not None else ""
        names = nodelists.folded(row.node for row in rows)
        yield f"{rows[0].label}{clock} ({len(rows)}): {names}"
    yield from (f"Run again: {again}" for again in scheduler.to_run_again(total))
    yield from scheduler.drain_lines(total.nodes)
