"""The lines about a check above its measured values: its run, its result, its notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fabricheck.core import amounts
from fabricheck.core.show import first_of, joined, listed, status
from fabricheck.core.text import count
from fabricheck.results import state
from fabricheck.results.causes import sentence_of
from fabricheck.results.model import ResultDocument, describe_ranks
from fabricheck.results.rows import Check
from fabricheck.results.session import Case

if TYPE_CHECKING:
    from rich.text import Text


def _outcome(case: Case) -> Text:
    return status(case.outcome, "pass" if case.passed else case.result)


def without_document(check: Check) -> Iterator[str | Text]:
    """Yield a line about a check that leaves no document, as a plain test of ReFrame."""
    case = check.case
    if case is not None and check.entry is None and not case.skipped:
        yield ""
        yield joined(f"{case.name} @{case.place} (", _outcome(case), "), without a document")
        yield from (f"  {name}: {amounts.number(value)} {unit}"
                    for name, (value, unit) in case.values.items())  # fmt: skip
        yield from (f"  check: {why}" for why in first_of(case.why))


def with_document(check: Check, document: ResultDocument) -> Iterator[str | Text]:
    """Yield the lines about a check with a document."""
    program, outcome, case = document["program"], document["outcome"], check.case
    ran = (
        f"{program['name']} {program['version']} on {document['host']['hostname']}, runtime "
        f"{program['runtime']}, {count(len(document['devices']), 'device')}, "
        f"clock {document['clock']}"
    )
    if case is None:
        yield ran
    else:
        yield joined(f"{case.name} @{case.place} (", _outcome(case), f"): {ran}")
    if case is not None:
        yield from _earlier_attempts(case)
    if outcome["status"] != "good":
        message = f": {outcome['message']}" if outcome["message"] else ""
        yield f"  outcome {outcome['status']}{message}"
    differences = document.get("differences")
    if case is not None and not case.passed:
        # A check mostly repeats the program's message and differences, which have their own lines.
        repeated = [each["sentence"] for each in differences or ()]
        if outcome["message"] is not None:
            repeated.append(outcome["message"])
        reasons = [why for why in case.why if not any(sentence in why for sentence in repeated)]
        yield from (f"  check: {why}" for why in first_of(reasons))
    yield from (f"  log: {sentence_of(logged)}" for logged in state.logged(document))
    if not document["complete"]:
        yield "  incomplete: the series are only those finished"
    if document["faults_injected"]:
        yield f"  injected faults: {listed(document['faults_injected'])}"
    if differences is not None:
        yield f"  differences from the node model: {len(differences) or 'none'}"
        yield from (f"    {difference['sentence']}" for difference in differences)
    if not document["series"]:
        for line in describe_ranks(document):
            yield f"  {line}"
    for note in document["notes"]:
        yield f"  note: {note}"


def _earlier_attempts(case: Case) -> Iterator[str]:
    for number, attempt in enumerate(case.earlier, 1):
        if attempt.passed:
            continue
        why = listed(first_of(attempt.why, what=" sentences"), separator=" ")
        yield f"  attempt {number} ({attempt.result}){': ' if why else ''}{why}"
        if attempt.document_path is not None:
            yield f"  attempt {number} left {attempt.document_path}"
