"""Published findings as rules on results: reproduced, not reproduced, or not testable."""

from collections.abc import Iterable, Iterator

from fabricheck.core.errors import FabricheckError
from fabricheck.core.show import listed
from fabricheck.node import NodeModel
from fabricheck.papers.claims import (
    collectives,
    devices,
    host,
    links,
    local,
    messages,
    network,
    ranks,
)
from fabricheck.papers.claims.model import (
    NOT_TESTABLE,
    REPRODUCED,
    Claim,
    Claims,
    Finding,
    NotTestable,
    Number,
    Verdict,
)
from fabricheck.papers.claims.model import published as published_number
from fabricheck.results.observed import Observed

#: Every claim, in the order of the experiments.
CLAIMS: tuple[Claim, ...] = (
    *local.CLAIMS,
    *host.CLAIMS,
    *ranks.CLAIMS,
    *devices.CLAIMS,
    *messages.CLAIMS,
    *collectives.CLAIMS,
    *network.CLAIMS,
    *links.CLAIMS,
)

__all__ = ["CLAIMS", "Claim", "Verdict", "evaluate", "fitted_keys", "of_partition"]


def evaluate(claims: Iterable[Claim], observed: Observed) -> Iterator[Verdict]:
    """Yield a verdict for each claim."""
    for claim in claims:
        published: tuple[Number, ...] = ()
        try:
            published = tuple(published_number(record) for record in claim.records)
            if claim.requires is not None:
                claim.requires(observed)
            finding = claim.judge(observed)
        except (NotTestable, FabricheckError) as lacking:
            # For example, results of a device that the node model does not have.
            finding = Finding(NOT_TESTABLE, str(lacking))
        because = finding.because
        if left_out := _left_out(claim, observed):
            because = f"{because.rstrip('.')}. {left_out}"
        fitted = tuple(fitted_keys(claim, observed.node)) if observed.simulated else ()
        assumed = bool(fitted or (observed.simulated and claim.built_in))
        yield Verdict(
            claim,
            finding.outcome,
            because,
            by_construction=finding.outcome == REPRODUCED and assumed,
            fitted=fitted,
            noisy=any(number.noisy for number in finding.numbers),
            numbers=finding.numbers,
            published=published,
        )


def of_partition(
    observed: Observed, verdicts: Iterable[Verdict], defects: Iterable[str] = ()
) -> Claims:
    """Return the verdicts on a partition's results, with what they are of."""
    return Claims(
        where=observed.where,
        on=observed.on,
        clock=observed.clock_in_words,
        runtimes=sorted(observed.runtimes),
        node=observed.node.name if observed.node else None,
        overlay=observed.overlay,
        verdicts=tuple(verdicts),
        defects=tuple(defects),
    )


def _left_out(claim: Claim, observed: Observed) -> str:
    """Return the sentence about series with wrong data, which are left out; E12 judges them."""
    names = [
        experiment
        for experiment in claim.experiments
        if experiment != "E12" and observed.left_out.get(experiment)
    ]
    number = sum(observed.left_out[name] for name in names)
    sentence = f"Left out for wrong data or an injected fault: {number} series ({listed(names)})."
    return sentence if names else ""


def fitted_keys(claim: Claim, node: NodeModel | None) -> Iterator[str]:
    """Yield the node model keys of a claim that were fitted to published values."""
    for key in claim.rests_on:
        fact = node.facts.get(key) if node else None
        if fact is not None and fact.kind == "fitted":
            yield key
