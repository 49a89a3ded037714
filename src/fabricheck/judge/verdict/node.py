"""The verdict on one node, put together of its facts, its reasons and its caveats."""

from __future__ import annotations

from fabricheck.judge.verdict import caveats, diagnosing, model, node_reasons, provenance
from fabricheck.judge.verdict.node_facts import NodeFacts
from fabricheck.judge.verdict.outcomes import why_skipped
from fabricheck.judge.verdict.rules import worst
from fabricheck.site.sets import Choice


def node_verdict(facts: NodeFacts) -> model.NodeVerdict:
    """Return the verdict."""
    node, results, documents = facts.subject.node, facts.results, facts.documents
    diagnosis = diagnosing.node_diagnosis(facts.outcomes, facts.recorded)
    reasons = node_reasons.against_pass(facts, diagnosis)
    measured = [] if facts.simulated is not None else results.partitions
    start, duration = provenance.times(results)
    status = worst(reason.status for reason in reasons)
    return model.NodeVerdict(
        node=node,
        scheduled=results.scheduled or node in facts.all_results.requested,
        reached_by=facts.reached_by,
        status=status,
        gpus=facts.gpus,
        accepted=status == "PASS" and facts.gpus == "measured" and not facts.only_a_load,
        uncalibrated=facts.uncalibrated,
        provisional=model.provisional_partitions(reasons, measured, facts.uncalibrated),
        clock=facts.clock,
        simulated=facts.simulated,
        partitions=results.partitions,
        set=_label(facts.choice) if facts.outcomes else "",
        start=start,
        duration_s=duration,
        reasons=reasons,
        caveats=list(caveats.node_caveats(facts)),
        settings=list(caveats.settings(results.attempts)),
        diagnosis=diagnosis,
        checks=_counts(facts),
        devices=provenance.devices(documents),
        versions=provenance.versions(documents, results.sources),
        sessions=[
            model.RanIn(
                id=source.name or "documents",
                uuid=source.session.uuid or None,
                results=str(source.results),
            )
            for source in results.sources
        ],
        faults_injected=sorted(
            {fault for document in documents for fault in document["faults_injected"]}
        ),
    )


def _label(choice: Choice) -> str:
    return choice.set or " ".join(choice.words) or "unknown"


def _counts(facts: NodeFacts) -> model.Checks:
    outcomes = facts.outcomes.values()
    return model.Checks(
        passed=sum(not outcome.skipped and not outcome.reasons for outcome in outcomes),
        failed=sum(bool(outcome.reasons) for outcome in outcomes),
        skipped=[
            model.SkippedCheck(check=outcome.check, why=why_skipped(outcome))
            for outcome in facts.skipped
        ],
        missing=facts.missing,
    )
