"""The reasons against PASS of one node, from its facts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fabricheck.core import nodelists
from fabricheck.core.show import enumerated, listed
from fabricheck.core.text import count
from fabricheck.judge.diagnosis.model import Diagnosis
from fabricheck.judge.verdict import counters, deviations, diagnosing, grounds, model
from fabricheck.judge.verdict.next_steps import NEXT_STEPS
from fabricheck.judge.verdict.node_facts import NodeFacts
from fabricheck.judge.verdict.rules import Finding, finding, in_order
from fabricheck.judge.verdict.subjects import UNPLACED
from fabricheck.results import state
from fabricheck.results.requested_nodes import RequestedNode
from fabricheck.results.session_checks import CHECKS_FILE


def against_pass(facts: NodeFacts, diagnosis: Diagnosis | None) -> list[model.Reason]:
    """Return the reasons against PASS, the worst first, with the diagnosis among them."""
    # Within a status, the cause that ended the session comes before the checks that it ended.
    refused = [deviation for deviation, accepted in facts.deviations if not accepted]
    left_out = [deviation for deviation in refused if deviation.rule.name == deviations.LEFT_OUT]
    others = [deviation for deviation in refused if deviation.rule.name != deviations.LEFT_OUT]
    of_node = [
        *_of_node(facts),
        *_of_errors_between(facts),
        *_of_lines_together(facts),
    ]
    findings = in_order([*of_node, *_of_checks(facts), *others])
    if not findings:
        # What keeps a node from being accepted of which nothing else is wrong.
        findings = [*left_out, *_of_gpus(facts)]
    return [
        model.Reason(
            status=reason.status,
            rule=reason.rule.name,
            sentence=reason.with_check,
            check=reason.check,
            metric=reason.metric,
            partition=reason.partition,
            component=reason.component,
            next_step=NEXT_STEPS[reason.rule.name],
            stands_for=reason.stands_for,
        )
        for reason in diagnosing.with_diagnosis(findings, diagnosis)
    ]


def _of_node(facts: NodeFacts) -> Iterator[Finding]:
    node = facts.subject.node
    yield from facts.named
    problems = [
        problem for problem in facts.all_results.problems if (problem.node or UNPLACED) == node
    ]
    for problem in problems:
        yield finding("report", problem.sentence)
    explained_by_problems = node == UNPLACED and bool(problems)
    if not facts.results.attempts and not facts.named and not explained_by_problems:
        lacking = f"There is no result of {_title(facts)}"
        yield finding("silent", f"{lacking}{_as_requested(facts.requested)}.")
    else:
        yield from _of_its_end(facts)
    if facts.results.attempts:
        for part in facts.silent_in:
            lacking = f"There is no result of {_title(facts)} in {part.archive or part.home}"
            yield finding("silent", f"{lacking}{_as_requested(part.requested[node])}.")
    for source in facts.results.sources:
        if source.killed:
            yield finding(
                "session",
                f"Session {source.name} on {node} has no run report: it was killed, or is "
                "still running.",
            )
        if source.record_lost and not facts.several:
            yield finding(
                "report",
                f"The record of the checks of session {source.name} ({CHECKS_FILE}) is lost or "
                "damaged, so what it left out or changed is unknown.",
            )
    if facts.missing:
        should = f"missing that should have run on {node}: {listed(facts.missing)}."
        yield finding("missing", f"{count(len(facts.missing), 'check')} {should}")


def _title(facts: NodeFacts) -> str:
    return f"{'the' if facts.several else 'node'} {nodelists.titled(facts.subject.node)}"


def _as_requested(requested: RequestedNode | None) -> str:
    """Return the known facts of a requested node without a result, as the rest of a sentence."""
    if requested is None:
        return ""
    if requested.how_ended:
        return f": {requested.how_ended.rstrip('.')}"
    if requested.state:
        return f", which the scheduler called {requested.reported} when the session began"
    return ""


def _of_its_end(facts: NodeFacts) -> Iterator[Finding]:
    """Yield how the session of a requested node ended, where no check tells it."""
    requested = facts.requested
    if requested is None:
        return
    if requested.how_ended is not None:
        yield finding("session", requested.how_ended)
        return
    # On this node, or on a node that it simulates.
    sessions = [source.reported for source in facts.results.sources]
    failed_anywhere = any(session is None or session.failed for session in sessions)
    if requested.status and not failed_anywhere:
        yield finding(
            "session",
            f"The session on {_title(facts)} ended with exit status {requested.status}, but no "
            "check of it failed: its log states the reason.",
        )


def _of_errors_between(facts: NodeFacts) -> Iterator[Finding]:
    """Yield the uncorrected errors that came while no program ran."""
    for errors in facts.errors_between:
        if errors.weighs == "uncorrected":
            yield counters.of_errors(errors)


def _of_lines_together(facts: NodeFacts) -> Iterator[Finding]:
    """Yield the lines on hardware of which each program of a session met too few."""
    if facts.several:
        return
    for _, attempts in facts.results.by_source:
        documents = [each.document for each in attempts if each.document is not None]
        alone = {logged.key for document in documents for logged in state.logged(document)}
        for logged in state.logged(*documents):
            if logged.kind == "hardware" and logged.key not in alone:
                yield counters.of_logged(logged)


def _of_checks(facts: NodeFacts) -> Iterator[Finding]:
    """Yield the reasons against PASS of the checks, except missing ones."""
    if not facts.outcomes:
        return
    for (where, _, _), outcome in facts.outcomes.items():
        for reason in outcome.reasons:
            yield replace(reason, partition=where) if reason.check and where else reason
    if facts.sets:
        for where, recorded in facts.recorded.items():
            for sentence in recorded.losses(where):
                yield finding("missing", sentence)
    for where, recorded in facts.recorded.items():
        for sentence in recorded.valueless(where):
            yield finding("no-value", sentence)
    if all(outcome.skipped for outcome in facts.outcomes.values()):
        yield finding("nothing-passed", "No check passed or failed.")


def _of_gpus(facts: NodeFacts) -> Iterator[Finding]:
    """Yield the reasons against accepting a machine of whose GPUs nothing was judged."""
    if facts.simulated is not None or facts.several or not facts.outcomes:
        return
    if facts.gpus == "not-measured" and facts.expected_gpus is not None:
        sentence = f"No GPU of {_title(facts)} was measured, but {facts.expected_gpus}."
        yield finding("nothing-judged", sentence)
    for where in facts.results.partitions:
        if facts.measures_gpus(where):
            yield from _unjudged(facts, where)


def _unjudged(facts: NodeFacts, where: str) -> Iterator[Finding]:
    lacking = grounds.unjudged(
        facts.outcomes_on(where), facts.recorded.get(where), facts.sets, facts.node_model(where)
    )
    names = [ground.name for ground in lacking]
    if names:
        metrics = enumerated(names, last="or")
        sentence = f"No value of {metrics} was compared with a limit on {where}."
        yield replace(finding("nothing-judged", sentence), partition=where)
