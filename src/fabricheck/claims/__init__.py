"""The findings of the documents as rules over results: reproduced, refuted, or not testable."""

from fabricheck.claims import concurrent, host, local, managed, numa, placement
from fabricheck.claims.evaluate import evaluate
from fabricheck.claims.model import Claim, Finding, NotTestable, Number, Verdict

#: Every claim, in the order of the experiments.
CLAIMS: tuple[Claim, ...] = (
    *local.CLAIMS,
    *host.CLAIMS,
    *managed.CLAIMS,
    *numa.CLAIMS,
    *concurrent.CLAIMS,
    *placement.CLAIMS,
)

__all__ = ["CLAIMS", "Claim", "Finding", "NotTestable", "Number", "Verdict", "evaluate"]
