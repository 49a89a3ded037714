"""Each claim where it is reproduced, where it is refuted, and where data is missing."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from observations import Cases, judged

from fabricheck.core.documents import documents
from fabricheck.papers.claims import CLAIMS
from fabricheck.papers.claims.model import NOT_TESTABLE, REFUTED, REPRODUCED
from fabricheck.papers.claims.model import published as number

#: Each cases_*.py has CASES, by the claim's id.
MODULES = [path.stem for path in sorted(Path(__file__).parent.glob("cases_*.py"))]
EVERY: list[tuple[str, Cases]] = [
    entry for name in MODULES for entry in importlib.import_module(name).CASES.items()
]
CASES = dict(EVERY)
OUTCOMES = {"reproduced": REPRODUCED, "refuted": REFUTED, "missing": NOT_TESTABLE}


@pytest.mark.slow
@pytest.mark.parametrize("which", OUTCOMES)
@pytest.mark.parametrize("name", sorted(CASES))
def test_claim(name, which):
    verdict = judged(name, getattr(CASES[name], which)())
    assert verdict.outcome == OUTCOMES[which], verdict.because
    assert verdict.because
    if which != "missing":
        assert verdict.numbers


def test_every_claim_has_its_cases_and_every_case_a_claim():
    assert sorted(name for name, _ in EVERY) == sorted(claim.id for claim in CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_claim_names_document_place_rule_and_records_that_there_are(claim):
    assert claim.document in documents()
    assert claim.where and claim.rule and claim.statement.endswith(".") and claim.experiments
    for record in claim.records:
        assert number(record).place
    for key in claim.rests_on:
        assert key.startswith("simulation.")
