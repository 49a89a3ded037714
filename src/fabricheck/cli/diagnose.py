"""`fabricheck diagnose`: the components of a node that explain its missed limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.diagnose_measure import command_line, measured, sessions_of
from fabricheck.cli.output import AsJson, Names
from fabricheck.core import nodelists, show
from fabricheck.core.errors import NotFoundError
from fabricheck.core.show import listed
from fabricheck.judge.diagnosis.model import Diagnosis
from fabricheck.judge.verdict import judging
from fabricheck.judge.verdict.model import NodeVerdict, by_label
from fabricheck.results import reading

#: The most names of one kind that are printed; --json has all.
MOST = 6


@commands.command("diagnose")
def diagnose(
    what: Names = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Run the checks that distinguish equal explanations, then diagnose again; one "
            "node only.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show which degraded components of a node explain its missed limits.

    Names the smallest set that does, how far each component is down, the evidence for and against
    it, and other explanations of equal weight. Exit status 3 if there is no session; 0 otherwise.
    """
    results = reading.read(what or ())
    verdicts = judging.judge(results)
    session = measured(verdicts) if measure else None
    if session is not None:
        before = sessions_of(verdicts)
        results = reading.read([*(what or dict.fromkeys(name for _, name in before)), session])
        verdicts = judging.judge(results)
        if before == sessions_of(verdicts):
            raise NotFoundError("ReFrame left no session of these checks; its output is above.")
    problems = [problem.sentence for problem in results.problems]
    result = [
        {
            "node": verdict.node,
            "simulated": verdict.simulated,
            "status": verdict.status,
            "sentence": verdict.diagnosis and verdict.diagnosis.sentence,
            "diagnosis": verdict.diagnosis,
            "reason": verdict.reasons[0].sentence if verdict.reasons else None,
        }
        for verdict in verdicts
    ]
    show.result(result, _text(problems, verdicts), as_json, wrapped=False)


def _text(problems: Sequence[str], verdicts: Sequence[NodeVerdict]) -> Iterator[show.Block]:
    yield from problems
    for verdict in verdicts:
        if verdict.diagnosis is not None:
            yield from _explained(verdict, verdict.diagnosis)
    others = by_label(verdict for verdict in verdicts if verdict.diagnosis is None)
    for same in others:
        yield show.joined(
            f"{nodelists.folded(verdict.node for verdict in same)}: ",
            show.status(same[0].label, same[0].badge),
        )
        yield f"  {_unexplained(same)}"


def _unexplained(alike: Sequence[NodeVerdict]) -> str:
    """Return why nodes of one status have no diagnosis; of one node with its first reason."""
    status, reasons = alike[0].status, alike[0].reasons
    if status == "PERF-FAIL":
        return "What missed its limit has no result document: nothing can be located."
    if status == "PASS":
        return "No limit was missed: there is nothing to explain."
    if len(alike) == 1 and reasons:
        return f"No limit was missed, so no part can be named. {reasons[0].sentence}"
    return "No limit was missed, so no part can be named."


def _explained(verdict: NodeVerdict, diagnosis: Diagnosis) -> Iterator[show.Block]:
    by = f", simulated by {verdict.simulated.label}" if verdict.simulated else ""
    status = show.status(verdict.label, verdict.badge)
    yield show.joined(f"{verdict.node}{by}: ", status)
    yield f"  {diagnosis.sentence}"
    rows = [
        (
            each.component.label,
            each.loss or "-",
            f"{each.explains}/{diagnosis.misses}",
            each.odds_in_words,
            listed(equal.label for equal in each.equals),
        )
        for each in diagnosis.degraded
    ]
    columns = ("Component", "Loss", "Explains", "Odds", "Or as well")
    yield show.Table(columns, rows, ("Loss", "Explains", "Odds"))
    for degraded in diagnosis.degraded:
        yield from _names(f"For {degraded.component.label}", degraded.supporting)
        yield from _names(f"Against {degraded.component.label}", degraded.contradicting)
        if degraded.next:
            yield f"  To distinguish them, run: {' '.join(command_line(verdict, degraded.next))}"
    yield from _names("Not explained", diagnosis.unexplained)
    yield from (f"  {sentence}" for sentence in diagnosis.lacking)


def _names(label: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"  {label}: {listed(names, MOST)}"
