"""One result document of a results folder, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fabricheck.errors import FabricheckError
from fabricheck.results.document import load
from fabricheck.results.model import ResultDocument
from fabricheck.results.session import Case


@dataclass(frozen=True)
class Entry:
    """A document, or the sentence that says why there is none.

    ``case`` is the check that it belongs to; None for a document outside any session.
    """

    case: Case | None
    path: Path | None
    document: ResultDocument | None
    problem: FabricheckError | None


def read_entry(path: Path, case: Case | None = None) -> Entry:
    """Load one document; what is wrong with it becomes the entry's problem."""
    try:
        return Entry(case, path, load(path), None)
    except FabricheckError as problem:
        return Entry(case, path, None, problem)
