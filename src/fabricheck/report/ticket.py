"""The text for a ticket: what a node is, what is wrong with it, and how to see it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from fabricheck.core.amounts import short
from fabricheck.core.show import listed
from fabricheck.core.text import printable_line
from fabricheck.judge.verdict.model import NodeVerdict
from fabricheck.report import findings
from fabricheck.report.identity import identity
from fabricheck.report.rerun import command_line
from fabricheck.results.rows import Metric

#: The most metrics and other reasons; the page has all.
MOST = 5


def ticket(part: findings.Partition) -> str:
    """Return the text; empty where the node passed."""
    if part.verdict.status == "PASS":
        return ""
    blocks = (_head(part), _facts(part), _degraded(part.verdict), _missed(part.missed),
              _others(part), _again(part))  # fmt: skip
    # A text of others with a line feed would look like several lines of ours.
    texts = ["\n".join(map(printable_line, lines)) for lines in blocks]
    return "\n\n".join(filter(None, texts))


def command(where: str, checks: Iterable[str]) -> str:
    """Return the command that runs checks on a partition, as a person types it."""
    return shlex.join(command_line(where, checks))


def _head(part: findings.Partition) -> Iterator[str]:
    verdict = part.verdict
    yield f"{verdict.label}: {verdict.node}"
    if verdict.diagnosis is not None:
        yield verdict.diagnosis.sentence
    if verdict.simulated is not None:
        yield f"Simulated by {verdict.simulated.label}: this says nothing about a machine."
    when = "" if verdict.start is None else f"{verdict.start:%Y-%m-%d %H:%M} UTC"
    sessions = [f"session {name}" for name in _sessions(verdict)]
    versions = [f"fabricheck {version}" for version in verdict.versions.fabricheck]
    yield listed(filter(None, (when, part.name, *sessions, *versions)))


def _sessions(verdict: NodeVerdict) -> list[str]:
    """Return the names of the sessions that have a run report."""
    return [session.id for session in verdict.sessions if session.uuid is not None]


def _facts(part: findings.Partition) -> Iterator[str]:
    for fact in identity(part.verdict, part.observed.node):
        yield f"{fact.name}: {fact.value}"


def _degraded(verdict: NodeVerdict) -> Iterator[str]:
    diagnosis = verdict.diagnosis
    if diagnosis is None or not diagnosis.degraded:
        return
    yield "Degraded, perhaps:" if diagnosis.unsure else "Degraded:"
    for each in diagnosis.degraded:
        loss = f", down by {each.loss}" if each.loss else ""
        explains = f"explains {each.explains} of {diagnosis.misses} missed limits"
        yield f"  {each.component.label}{loss}: {explains}, odds {each.odds_in_words}"
        if each.equals:
            yield f"    or as well: {listed(equal.label for equal in each.equals)}"


def _missed(missed: list[Metric]) -> Iterator[str]:
    shown = findings.by_check(missed)[:MOST]
    if shown:
        yield f"Beyond their limit, the worst of each check ({len(shown)} of {len(missed)}):"
    for metric in shown:
        limit = metric.recorded.nearest_limit
        required = "" if limit is None else f", {limit[1]} {short(limit[0])} required"
        where = findings.missed_at(metric)
        at = f"; {where}" if where else ""
        value = "" if metric.value is None else f"{short(metric.value)} {metric.unit}"
        yield f"  {metric.check_row.title} {metric.metric}: {value}{required}{at}"


def _others(part: findings.Partition) -> Iterator[str]:
    first = [each[0] for each in part.failures if each[0].status != "PERF-FAIL"]
    if first:
        yield "Other reasons:"
    for reason in first[:MOST]:
        yield f"  {reason.status}: {reason.sentence}"


def _again(part: findings.Partition) -> Iterator[str]:
    # ReFrame names a repeated check "name %$REPEAT_NUM=0".
    checks = [each[0].check.split()[0] for each in part.failures if each[0].check]
    sessions = _sessions(part.verdict)
    if checks or sessions:
        yield "To see it again:"
    if checks:
        yield f"  {command(part.observed.where, checks)}"
    if checks and part.observed.overlay:
        yield "  with the same overlay (-S overlay=FILE)"
    for name in sessions:
        yield f"  fabricheck verdict {shlex.quote(name)}"
        yield f"  fabricheck diagnose {shlex.quote(name)}"
