"""docs/evidence/limits-of-models.md is what a dry run of each node model tells.

`make snapshots` writes it anew, as after a new node model, reference, rule or check.
"""

from __future__ import annotations

import os

import pytest
from limits_of_models import PAGE, SITE, page

from fabricheck.node import available
from fabricheck.references import listing
from fabricheck.references.published import folder
from fabricheck.references.stated import references_in
from fabricheck.site import partitions


@pytest.mark.slow
def test_the_page_has_the_limits_of_today(dry_run_of_models, sites_of_models, monkeypatch):
    """Where this fails, the limits of the node models changed: run make snapshots, and read it."""
    monkeypatch.setenv("FABRICHECK_SITES", str(sites_of_models))
    told = dry_run_of_models().told
    rows = listing.of_system(SITE, partitions.choose(SITE), told, references_in(folder()))
    assert {row.partition for row in rows.references} == {f"{SITE}:{name}" for name in available()}
    made = page(rows.references)
    if "WRITE_SNAPSHOTS" in os.environ:
        PAGE.write_text(made)
    assert PAGE.read_text() == made
