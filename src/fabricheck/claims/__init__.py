"""The findings of the documents as rules over results: reproduced, refuted, or not testable."""

from fabricheck.claims import local
from fabricheck.claims.evaluate import evaluate
from fabricheck.claims.model import Claim, Finding, NotTestable, Number, Verdict

#: Every claim, in the order of the experiments.
CLAIMS: tuple[Claim, ...] = (*local.CLAIMS,)

__all__ = ["CLAIMS", "Claim", "Finding", "NotTestable", "Number", "Verdict", "evaluate"]
