"""Published findings as rules on results: reproduced, not reproduced, or not testable."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

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
    Claim,
    Finding,
    NotTestable,
    Number,
    Verdict,
)
from fabricheck.papers.claims.published import number
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

__all__ = ["CLAIMS", "Claim", "Verdict", "evaluate", "fitted_keys"]


def evaluate(claims: Iterable[Claim], observed: Observed) -> Iterator[Verdict]:
    """Yield a verdict for each claim."""
    for claim in claims:
        published: tuple[Number, ...] = ()
        try:
            published = tuple(number(record) for record in claim.records)
            if claim.requires is not None:
                claim.requires(observed)
            finding = claim.judge(observed)
        except (NotTestable, FabricheckError) as lacking:
            # For example, results of a device that the node model does not have.
            finding = Finding(NOT_TESTABLE, str(lacking))
        left_out = _left_out(claim, observed)
        if left_out:
            finding = replace(finding, because=f"{finding.because.rstrip('.')}. {left_out}")
        fitted = tuple(fitted_keys(claim, observed.node)) if observed.simulated else ()
        yield Verdict(claim, observed.where, observed.kind, finding, fitted, published)


def _left_out(claim: Claim, observed: Observed) -> str:
    """Return the sentence about series with wrong data, which are left out; E12 judges them."""
    names = [
        experiment
        for experiment in claim.experiments
        if experiment != "E12" and observed.left_out.get(experiment)
    ]
    if not names:
        return ""
    count = sum(observed.left_out[name] for name in names)
    return f"Left out for wrong data or an injected fault: {count} series ({listed(names)})."


def fitted_keys(claim: Claim, node: NodeModel | None) -> Iterator[str]:
    """Yield the node model keys of a claim that were fitted to published values."""
    for key in claim.rests_on:
        fact = node.facts.get(key) if node else None
        if fact is not None and fact.kind == "fitted":
            yield key
