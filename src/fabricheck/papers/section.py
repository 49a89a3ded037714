"""The claims and the documents' figures on the page (`fabricheck.report.added`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fabricheck.papers import document_figures
from fabricheck.papers.claims import CLAIMS, Verdict, evaluate, fitted_keys
from fabricheck.papers.claims.model import NOT_TESTABLE, REFUTED, REPRODUCED
from fabricheck.papers.document_figures import Counterpart
from fabricheck.report.contents import Contents
from fabricheck.report.figure import defect
from fabricheck.results.observed import Observed

ID, TITLE = "claims", "Claims"
SECTIONS = {ID: TITLE, "documents": "Documents\u2019 figures"}
TEMPLATES = Path(__file__).with_name("templates")

#: The most claims that a figure names.
_MOST = 4


@dataclass(frozen=True)
class Claims:
    """The outcome of every claim on the results of a partition.

    defects: a sentence for each claim whose rule failed by a defect of the suite.
    """

    verdicts: tuple[Verdict, ...]
    defects: tuple[str, ...] = ()

    @cached_property
    def judged(self) -> list[Verdict]:
        """The judged claims: claims that do not hold first, claims that are no evidence last."""
        found = [one for one in self.verdicts if one.outcome != NOT_TESTABLE]
        return sorted(found, key=lambda one: (one.outcome == REPRODUCED, one.by_construction))

    @cached_property
    def not_testable(self) -> dict[str, list[Verdict]]:
        """The claims that this partition cannot test, by reason."""
        found: dict[str, list[Verdict]] = {}
        for one in self.verdicts:
            if one.outcome == NOT_TESTABLE:
                found.setdefault(one.finding.because, []).append(one)
        return found

    @property
    def by_construction(self) -> int:
        """The number of claims that hold on a simulated node by construction: no evidence."""
        return sum(one.by_construction for one in self.verdicts)

    @property
    def says(self) -> str:
        """The counts in words."""
        count = Counter(one.outcome for one in self.verdicts)
        made = self.by_construction
        by_construction = f", {made} agree by construction" if made else ""
        return (
            f"{count[REPRODUCED] - made} reproduced{by_construction}, {count[REFUTED]} not "
            f"reproduced, {count[NOT_TESTABLE]} not testable here, of {len(self.verdicts)} claims"
        )


def of(observed: Observed) -> Claims:
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
    return Claims(tuple(verdicts), tuple(defects))


def counterparts(page: Contents) -> list[Counterpart]:
    """Return the documents' figures, and their places on a page."""
    shown = [one for part in page.parts for one in part.shown]
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
    more = f" ({len(claims) - _MOST} more)" if len(claims) > _MOST else ""
    return (
        " Of the claims on published values here, these rest on what was fitted or is built in, "
        f"so that it is no evidence where they hold: {', '.join(claims[:_MOST])}{more}."
    )
