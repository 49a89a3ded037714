"""The findings of the documents as rules over results: reproduced, refuted, or not testable."""

from fabricheck.judge.claims import (
    accesses,
    collectives,
    concurrent,
    host,
    latencies,
    links,
    local,
    managed,
    message_tiers,
    messages,
    numa,
    peers,
    placement,
    right_data,
    subsets,
)
from fabricheck.judge.claims.evaluate import evaluate
from fabricheck.judge.claims.model import Claim, Finding, NotTestable, Number, Verdict

#: Every claim, in the order of the experiments.
CLAIMS: tuple[Claim, ...] = (
    *local.CLAIMS,
    *host.CLAIMS,
    *managed.CLAIMS,
    *numa.CLAIMS,
    *concurrent.CLAIMS,
    *placement.CLAIMS,
    *peers.CLAIMS,
    *latencies.CLAIMS,
    *accesses.CLAIMS,
    *messages.CLAIMS,
    *message_tiers.CLAIMS,
    *collectives.CLAIMS,
    *right_data.CLAIMS,
    *links.CLAIMS,
    *subsets.CLAIMS,
)

__all__ = ["CLAIMS", "Claim", "Finding", "NotTestable", "Number", "Verdict", "evaluate"]
