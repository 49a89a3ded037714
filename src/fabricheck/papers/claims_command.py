"""`fabricheck papers claims`: which published findings a session's results reproduce."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson, Name, OnNodes
from fabricheck.cli.results import choose, end, entries_of, heading
from fabricheck.core import show
from fabricheck.core.documents import documents
from fabricheck.core.show import listed
from fabricheck.core.vocabulary import EXIT_GOOD
from fabricheck.papers.claims import CLAIMS, Claim, Verdict, evaluate
from fabricheck.papers.claims.model import NOT_TESTABLE, Claims
from fabricheck.results.observed import Observed, observe

#: The sentence gets the rest of the line.
COLUMNS, WIDTHS = ("Claim", "Of", "Outcome", "Why"), (26, 18, 11)


@commands.command("papers claims")
def claims_command(
    what: Name = "latest",
    on: OnNodes = None,
    as_json: AsJson = False,
    show_all: Annotated[
        bool,
        typer.Option("--all", help="List claims that are not testable one by one, not by reason."),
    ] = False,
    rules: Annotated[
        bool, typer.Option("--rules", help="List the claims and their rules; no session is read.")
    ] = False,
) -> int:
    """Show which published findings are reproduced here.

    Exit status 0 with any outcome, 4 if a document is unreadable, 3 if there is none.
    """
    if rules:
        _show_rules(as_json)
        return EXIT_GOOD
    results = choose(what, on)
    entries = entries_of(results)
    found = [
        (observed, Claims(tuple(evaluate(CLAIMS, observed))))
        for observed in observe(results.checks)
        if observed.documents or observed.cases
    ]
    rows = [
        _verdict(observed, verdict) for observed, claims in found for verdict in claims.verdicts
    ]
    problems = [str(problem) for entry in entries for problem in entry.problems]
    text = (block for observed, claims in found for block in _text(observed, claims, show_all))
    show.result({"claims": rows, "problems": problems}, (heading(results), *text), as_json)
    return end(results, entries, None if entries else f"There is no result document in {what}.")


def _show_rules(as_json: bool) -> None:
    claims = [
        {**_claim(claim), "rests_on": claim.rests_on, "built_in": claim.built_in}
        for claim in CLAIMS
    ]
    rows = [
        (claim.id, _place(claim), f"{claim.statement} {claim.rule[0].upper()}{claim.rule[1:]}.")
        for claim in CLAIMS
    ]
    table = show.Table(("Claim", "Of", "Reproduced when"), rows, widths=WIDTHS[:2])
    show.result({"claims": claims}, [table], as_json)


def _place(claim: Claim) -> str:
    return f"{documents()[claim.document].short}, {claim.where}"


def _text(observed: Observed, claims: Claims, show_all: bool) -> Iterator[show.Block]:
    yield f"\n{_name(observed)}"
    rows = [
        (verdict.claim.id, _place(verdict.claim), _outcome(verdict), _why(verdict))
        for verdict in claims.verdicts
        if show_all or verdict.outcome != NOT_TESTABLE
    ]
    yield show.Table(COLUMNS, rows, widths=WIDTHS)
    if not show_all:
        for reason, verdicts in claims.not_testable.items():
            ids = listed(verdict.claim.id for verdict in verdicts)
            yield f"Not testable here, because {reason}: {ids}."
    yield f"{_kind(observed).capitalize()}: {claims.says}."


def _name(observed: Observed) -> str:
    node = f", node {observed.node.name}" if observed.node else ""
    overlay = f" with the fault {observed.overlay}" if observed.overlay else ""
    # Documents outside any session can have several runtimes, each of which is judged separately.
    where = observed.where or f"documents outside any session ({listed(sorted(observed.runtimes))})"
    on = f" on {observed.on}" if observed.on else ""
    return f"{where}{on}, {_kind(observed)}{node}{overlay}"


def _kind(observed: Observed) -> str:
    return observed.kind if observed.documents else "no results"


def _outcome(verdict: Verdict) -> str:
    if not verdict.by_construction:
        return verdict.outcome
    return f"{verdict.outcome}, {'fitted' if verdict.fitted else 'built in'}"


def _why(verdict: Verdict) -> str:
    because = verdict.finding.because.rstrip(".") + "."
    sentences = [because[0].upper() + because[1:]]
    if verdict.kind == "simulated" and verdict.claim.built_in and verdict.outcome != NOT_TESTABLE:
        sentences.append(f"The simulated node assumes that {verdict.claim.built_in}.")
    if verdict.noisy:
        sentences.append("One of its series is noisy.")
    return " ".join(sentences)


def _claim(claim: Claim) -> dict[str, Any]:
    document = documents()[claim.document]
    return {
        "claim": claim.id,
        "statement": claim.statement,
        "document": {"key": claim.document, "title": document.title, "url": document.url},
        "where": claim.where,
        "rule": claim.rule,
        "experiments": claim.experiments,
        "records": claim.records,
    }


def _verdict(observed: Observed, verdict: Verdict) -> dict[str, Any]:
    return {
        "partition": observed.where,
        "scheduler_node": observed.on,
        "kind": verdict.kind,
        "runtimes": observed.runtimes,
        "node": observed.node.name if observed.node else None,
        "overlay": observed.overlay,
        **_claim(verdict.claim),
        "outcome": verdict.outcome,
        "because": verdict.finding.because,
        "by_construction": verdict.by_construction,
        "fitted": verdict.fitted,
        "built_in": verdict.claim.built_in if verdict.kind == "simulated" else None,
        "noisy": verdict.noisy,
        "numbers": verdict.finding.numbers,
        "published": verdict.published,
    }
