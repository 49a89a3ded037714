"""Parity has a row and a check for each figure, table and listing (papers/parity.yaml)."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from dataclasses import dataclass

import pytest

from fabricheck.core import yaml_files
from fabricheck.core.checkout import ROOT
from fabricheck.core.documents import documents
from fabricheck.papers import document_figures
from fabricheck.references.published import FILE, OWN_FOLDER

PARITY = yaml_files.read(ROOT / "src" / "fabricheck" / "papers" / "parity.yaml")
PUBLISHED = yaml_files.read(OWN_FOLDER / FILE)
CHECKS = {
    name
    for path in (ROOT / "reframe_checks").glob("*/*.py")
    for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)
}
WORDS = ("same", "differs", "not yet", "refused")

#: How the titles of the documents' records begin; the paper's data are in its repository, too.
TITLES = ("Schieffer et al.", "KTH-ScaLab/multi-gpu-comm", "AMD lab notes: GPU-aware", "EPICURE",
          "JSC Accelerating", "Hugging Face")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A row: what the document did (`document`), what the suite does (`suite`), the difference."""

    item: str
    published: list[str]
    checks: list[str]
    document: str
    suite: str
    parity: str


ROWS = [Row(**row) for rows in PARITY.values() for row in rows]


def items() -> list[str]:
    """Return the figures of the documents, and what else they measure or state."""
    short = {name: one.short for name, one in documents().items()}
    figures = [f"{short[one.document]}, figure {one.figure}" for one in document_figures.figures()]
    others = [f"{short[one['document']]}, {one['item']}" for one in PUBLISHED["listings"]]
    return [*figures, *others]


def test_each_figure_table_and_listing_has_one_row():
    assert Counter(row.item for row in ROWS) == Counter(items())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.item)
def test_a_row_names_checks_that_there_are_or_says_why_there_is_none(row):
    assert set(row.checks) <= CHECKS
    word = next(one for one in WORDS if row.parity.startswith(one))
    assert row.document and row.suite
    if word == "same":
        assert row.checks
    else:
        # What differs, what is missing or the reason stands behind the word.
        assert re.match(rf"{word}: .{{8,}}", row.parity)
    assert word != "refused" or not row.checks


def test_every_measured_value_of_the_documents_has_its_row():
    patterns = [pattern for row in ROWS for pattern in row.published]
    names = [one["id"] for one in PUBLISHED["records"]]
    for pattern in patterns:
        assert fnmatch.filter(names, pattern), f"{pattern} is of no record"
    measured = [
        one["id"]
        for one in PUBLISHED["records"]
        if one.get("kind") == "measured"
        and one.get("source", {}).get("title", "").startswith(TITLES)
    ]
    lacking = [
        name for name in measured if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
    ]
    assert len(measured) > 250
    assert lacking == []
