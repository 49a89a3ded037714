"""`fabricheck papers claims`: which published findings a session's results reproduce."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from fabricheck.cli import commands
from fabricheck.cli.output import AsJson, Name, OnNodes
from fabricheck.cli.results import choose, end, entries_of, heading
from fabricheck.core import show
from fabricheck.core.documents import documents
from fabricheck.core.errors import InvalidInputError
from fabricheck.core.show import listed
from fabricheck.core.vocabulary import EXIT_GOOD
from fabricheck.papers.claims import CLAIMS, Claim, Verdict, evaluate, of_partition
from fabricheck.papers.claims.model import NOT_TESTABLE, Claims
from fabricheck.results.observed import observe

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
    for claim in CLAIMS:
        if claim.document not in documents():
            raise InvalidInputError(
                f"Claim {claim.id} is of the document {claim.document!r}, which documents.yaml "
                f"does not have; it has {listed(documents())}."
            )
    if rules:
        _show_rules(as_json)
        return EXIT_GOOD
    results = choose(what, on)
    entries = entries_of(results)
    judged = [
        of_partition(observed, evaluate(CLAIMS, observed))
        for observed in observe(results.checks)
        if observed.documents or observed.cases
    ]
    problems = [str(problem) for entry in entries for problem in entry.problems]
    text = (block for claims in judged for block in _text(claims, show_all))
    result = {"partitions": judged, "documents": documents(), "problems": problems}
    show.result(result, (*heading(results), *text), as_json)
    return end(results, entries, None if entries else f"There is no result document in {what}.")


def _show_rules(as_json: bool) -> None:
    rows = [
        (claim.id, _place(claim), f"{claim.statement} {claim.rule[0].upper()}{claim.rule[1:]}.")
        for claim in CLAIMS
    ]
    table = show.Table(("Claim", "Of", "Reproduced when"), rows, widths=WIDTHS[:2])
    show.result({"claims": CLAIMS, "documents": documents()}, [table], as_json)


def _place(claim: Claim) -> str:
    return f"{documents()[claim.document].short}, {claim.where}"


def _text(claims: Claims, show_all: bool) -> Iterator[show.Block]:
    node = f", node {claims.node}" if claims.node else ""
    overlay = f" with the fault {claims.overlay}" if claims.overlay else ""
    # Documents outside any session can have several runtimes, each of which is judged separately.
    where = claims.where or f"documents outside any session ({listed(claims.runtimes)})"
    on = f" on {claims.on}" if claims.on else ""
    yield ""
    yield f"{claims.clock.capitalize()}: {claims.says}."
    yield f"{where}{on}, {claims.clock}{node}{overlay}"
    rows = [
        (verdict.claim.id, _place(verdict.claim), _outcome(verdict), _why(verdict, claims.clock))
        for verdict in claims.verdicts
        if show_all or verdict.outcome != NOT_TESTABLE
    ]
    yield show.Table(COLUMNS, rows, widths=WIDTHS)
    if not show_all:
        for reason, verdicts in claims.not_testable.items():
            ids = listed(verdict.claim.id for verdict in verdicts)
            yield f"Not testable here, because {reason}: {ids}."


def _outcome(verdict: Verdict) -> str:
    if not verdict.by_construction:
        return verdict.outcome
    return f"agrees by construction, {'fitted' if verdict.fitted else 'built in'}"


def _why(verdict: Verdict, clock: str) -> str:
    because = verdict.because.rstrip(".") + "."
    sentences = [because[0].upper() + because[1:]]
    if clock == "simulated" and verdict.claim.built_in and verdict.outcome != NOT_TESTABLE:
        sentences.append(f"The simulated node assumes that {verdict.claim.built_in}.")
    if verdict.noisy:
        sentences.append("One of its series is noisy.")
    return " ".join(sentences)
