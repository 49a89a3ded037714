"""One result document of a results folder, or the reason why it is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fabricheck.core.errors import FabricheckError, InvalidInputError
from fabricheck.results import made_of
from fabricheck.results.document import load
from fabricheck.results.made_of import MadeOf
from fabricheck.results.model import ResultDocument
from fabricheck.results.session import Case


@dataclass(frozen=True)
class Entry:
    """A document, or the sentence that states why there is none.

    ``case`` is the check that it belongs to; None for a document outside any session. ``problems``
    also has what is damaged beside a document.
    """

    case: Case | None
    path: Path | None
    document: ResultDocument | None
    problem: FabricheckError | None

    @property
    def problems(self) -> tuple[FabricheckError, ...]:
        """Return why there is no document, or what is damaged beside it."""
        every = (self.problem, self._beside[1])
        return tuple(one for one in every if one is not None)

    @property
    def metrics_made_of(self) -> Mapping[str, MadeOf]:
        """Return the series of each metric; empty where the check did not record them."""
        return self._beside[0]

    @cached_property
    def _beside(self) -> tuple[Mapping[str, MadeOf], FabricheckError | None]:
        if self.path is None or self.document is None:
            return {}, None
        try:
            return made_of.kept(self.path, self.document), None
        except FabricheckError as problem:
            return {}, problem

    @property
    def node(self) -> str | None:
        """Return the scheduler's name of the document's node, where it is recorded."""
        if self.case is not None and self.case.node is not None:
            return self.case.node
        return None if self.document is None else self.document["host"].get("scheduler_node")


def read_entry(path: Path, case: Case | None = None) -> Entry:
    """Load one document; an error becomes the entry's problem.

    So does a document that was measured on another node than its case.
    """
    try:
        document = load(path)
    except FabricheckError as problem:
        return Entry(case, path, None, problem)
    node = document["host"].get("scheduler_node")
    if case is not None and case.node is not None and node not in (None, case.node):
        said = f"{case.name} @{case.place}: {path} was measured on node {node}."
        return Entry(case, path, None, InvalidInputError(said))
    return Entry(case, path, document, None)
