"""The claims and the documents' figures on the page (`fabricheck.report.rendering`)."""

from __future__ import annotations

from pathlib import Path

from fabricheck.core.text import count
from fabricheck.papers import document_figures
from fabricheck.papers.claims import CLAIMS, Verdict, evaluate, fitted_keys, of_partition
from fabricheck.papers.claims.model import Claims
from fabricheck.papers.document_figures import Counterpart
from fabricheck.report.contents import Contents
from fabricheck.report.figure import defect
from fabricheck.results.observed import Observed

ID, TITLE = "claims", "Claims"
SECTIONS = {ID: TITLE, "documents": "Documents\u2019 figures"}
TEMPLATES = Path(__file__).with_name("templates")


def judged_claims(observed: Observed) -> Claims:
    """Judge every claim by a partition's results; a rule with a defect loses only its own claim."""
    verdicts: list[Verdict] = []
    defects = []
    for claim in CLAIMS:
        try:
            verdicts += evaluate([claim], observed)
        # Any exception: unexpected results must not hide all other claims.
        except Exception as error:
            where = f" of {observed.where}" if observed.where else ""
            defects.append(defect(f"Claim {claim.id}{where} could not be judged", error))
    return of_partition(observed, verdicts, defects)


def counterparts(page: Contents) -> list[Counterpart]:
    """Return the documents' figures, and their places on a page."""
    shown = [verdict for part in page.parts for verdict in part.shown]
    return document_figures.counterparts(shown, page.coverage)


def fitted(observed: Observed, records: frozenset[str]) -> str:
    """Return a sentence on claims that are no evidence for a simulation, or nothing.

    :param records: the published values of a figure that the simulation was not fitted to.
    """
    claims = [
        claim.id
        for claim in CLAIMS
        if records.intersection(claim.records)
        and (claim.built_in or any(fitted_keys(claim, observed.node)))
    ]
    if not claims:
        return ""
    rest = "rests" if len(claims) == 1 else "rest"
    return (
        f" {count(len(claims), 'claim')} on these values {rest} on what was fitted or is built in, "
        "which is no evidence."
    )
