"""The figures of the documents, and the session's figures of the same quantity."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fabricheck.judge.coverage import COMPARING, Coverage
from fabricheck.report.figure import Shown


@dataclass(frozen=True)
class DocumentFigure:
    """A published figure; document_figures.yaml describes its fields."""

    document: str
    figure: str
    shows: str
    experiments: tuple[str, ...]
    ours: tuple[str, ...] = ()
    takes: str | None = None
    nodes: tuple[str, ...] = ()
    node_with: str | None = None
    note: str = ""
    never: str | None = None


@dataclass(frozen=True)
class Counterpart:
    """A figure of a document, and its counterparts here; ``why_not`` if there are none."""

    theirs: DocumentFigure
    ours: tuple[Shown, ...]
    why_not: str


@functools.cache
def figures() -> tuple[DocumentFigure, ...]:
    """Return every figure of the documents, in their order."""
    text = Path(__file__).with_name("document_figures.yaml").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = yaml.safe_load(text)
    return tuple(
        DocumentFigure(
            **row | {key: tuple(row.get(key, ())) for key in ("experiments", "ours", "nodes")}
        )
        for row in rows
    )  # fmt: skip


def counterparts(ours: Sequence[Shown], coverage: Iterable[Coverage]) -> list[Counterpart]:
    """Return a row for each figure of the documents.

    :param ours: the figures of the page.
    :param coverage: the experiments, whose sentence is the reason for a missing figure.
    """
    rows = {row.experiment.id: row for row in coverage}
    return [
        Counterpart(theirs, here, "" if here else _why_not(theirs, ours, rows))
        for theirs in figures()
        for here in [tuple(shown for shown in ours if _shows(shown, theirs))]
    ]


def _shows(ours: Shown, theirs: DocumentFigure) -> bool:
    """Whether a figure is a counterpart of a document's figure.

    A figure with published values only is no counterpart, nor is a figure of several experiments
    without any of the document's. A drawing of a node shows its model.
    """
    figure = ours.figure
    drawn = set(theirs.experiments) <= {COMPARING} or bool(ours.measured & set(theirs.experiments))
    fits = any(fnmatch.fnmatchcase(figure.id, pattern) for pattern in theirs.ours)
    there = not theirs.nodes or _is_of(ours, theirs.nodes)
    return fits and drawn and there and figure.kind != "published"


def _is_of(ours: Shown, nodes: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(ours.node, pattern) for pattern in nodes)


def _why_not(theirs: DocumentFigure, ours: Sequence[Shown], rows: Mapping[str, Coverage]) -> str:
    if theirs.never is not None:
        return theirs.never
    if theirs.nodes and not any(_is_of(shown, theirs.nodes) for shown in ours):
        return (
            f"it is of a node with {theirs.node_with}; no partition with figures here is such a "
            "node"
        )
    why = "; ".join(f"{name}: {rows[name].sentence}" for name in theirs.experiments)
    if any(rows[name].measured_anything for name in theirs.experiments):
        why += f". No figure shows it{f': that needs {theirs.takes}' if theirs.takes else ''}"
    return why
