"""The documents' figures beside those of a session: where each is, or why it is not here."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml

from fabricheck import coverage_text
from fabricheck.coverage import COMPARING, Coverage


@dataclass(frozen=True)
class DocumentFigure:
    """A figure of a document, as document_figures.yaml has it."""

    document: str
    figure: str
    shows: str
    experiments: tuple[str, ...]
    ours: tuple[str, ...] = ()
    never: str | None = None


@dataclass(frozen=True)
class Ours:
    """A figure of this page: its id in the page, its title, its partition and its kind.

    measured: the experiments that the partition has series or comparisons of.
    """

    anchor: str
    id: str
    title: str
    where: str
    kind: str
    measured: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Counterpart:
    """A document's figure, and what shows the same here; ``why_not`` where nothing does."""

    theirs: DocumentFigure
    ours: tuple[Ours, ...]
    why_not: str


@functools.cache
def figures() -> tuple[DocumentFigure, ...]:
    """Return every figure of the documents, in their order."""
    rows: list[dict[str, Any]] = yaml.safe_load(_text("report/document_figures.yaml"))
    return tuple(
        DocumentFigure(
            **row | {key: tuple(row.get(key, ())) for key in ("experiments", "ours")}
        )
        for row in rows
    )  # fmt: skip


def _text(name: str) -> str:
    return resources.files("fabricheck").joinpath(name).read_text(encoding="utf-8")


def counterparts(ours: Sequence[Ours], coverage: Iterable[Coverage]) -> list[Counterpart]:
    """Return a row for each figure of the documents.

    :param ours: the figures of the page.
    :param coverage: the experiments; of a figure that is not here their sentence is the reason.
    """
    rows = {row.experiment.id: row for row in coverage}
    found = []
    for theirs in figures():
        here = tuple(one for one in ours if _shows(one, theirs))
        found.append(Counterpart(theirs, here, "" if here else _why_not(theirs, rows)))
    return found


def _shows(ours: Ours, theirs: DocumentFigure) -> bool:
    """Whether a figure is a counterpart: one of published values alone is none.

    Nor is one that draws several experiments, and has none of those that the document's is of. A
    node is drawn by its model.
    """
    drawn = set(theirs.experiments) <= {COMPARING} or bool(ours.measured & set(theirs.experiments))
    fits = any(fnmatch.fnmatchcase(ours.id, pattern) for pattern in theirs.ours)
    return fits and drawn and ours.kind != "published"


def _why_not(theirs: DocumentFigure, rows: Mapping[str, Coverage]) -> str:
    if theirs.never is not None:
        return theirs.never
    return "; ".join(
        f"{name}: {coverage_text.sentence(rows[name])}"
        + (", but no figure shows it" if rows[name].measured_anything else "")
        for name in theirs.experiments
    )
