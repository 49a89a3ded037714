"""One result document of a results folder, or the reason why it is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fabricheck.core import nodelists
from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.results import metric_records
from fabricheck.results.document import load
from fabricheck.results.metric_records import CheckRecord, MetricRecord
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
        problems = (self.problem, self._beside[1])
        return tuple(error for error in problems if error is not None)

    @property
    def metrics(self) -> Mapping[str, MetricRecord]:
        """Return what the check recorded of each metric; empty where it recorded nothing."""
        return self._beside[0].metrics

    @property
    def not_intended(self) -> Sequence[str]:
        """Return the variables that neither the check nor its site set; empty where unknown."""
        return self._beside[0].not_intended or ()

    @cached_property
    def _beside(self) -> tuple[CheckRecord, FabricheckError | None]:
        if self.path is None or self.document is None:
            return metric_records.NONE, None
        try:
            return metric_records.read(self.path, self.document), None
        except FabricheckError as problem:
            return metric_records.NONE, problem

    @property
    def node(self) -> str | None:
        """Return the scheduler's name of the document's node, where it is recorded.

        Several nodes have their host list in its place.
        """
        if self.case is not None and self.case.node is not None:
            return self.case.node
        return None if self.document is None else scheduled_node(self.document)


def scheduled_node(document: ResultDocument) -> str | None:
    """Return the scheduler's name of a document's node; of several measured nodes their host list.

    None without a scheduler. Nodes of a simulated system are none of a scheduler.
    """
    hosts = dict.fromkeys(rank["host"] for rank in document.get("ranks") or ())
    if len(hosts) > 1:
        return nodelists.folded(hosts) if document["clock"] == "measured" else None
    return document["host"].get("scheduler_node")


def _is_among(node: str | None, nodes: str) -> bool:
    """Whether a document's node may be that of its case, or one of several."""
    if node in (None, nodes):
        return True
    several = nodelists.is_several(nodes)
    return several and node in nodelists.unfolded(nodes)


def no_document(case: Case, why: str) -> Entry:
    """Return the entry of a check that left no document."""
    sentence = f"{case.name} @{case.place} ({case.result}) left no result document{why}."
    return Entry(case, None, None, NotFoundError(sentence))


def read_entry(path: Path, case: Case | None = None) -> Entry:
    """Load one document; an error becomes the entry's problem.

    So does a document that was measured on another node than its case.
    """
    try:
        document = load(path)
    except FabricheckError as problem:
        return Entry(case, path, None, problem)
    node = scheduled_node(document)
    if case is not None and case.node is not None and not _is_among(node, case.node):
        sentence = f"{case.name} @{case.place}: {path} was measured on node {node}."
        return Entry(case, path, None, InvalidInputError(sentence))
    return Entry(case, path, document, None)
