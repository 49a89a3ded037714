"""Builders of what a session has of one partition, for tests of claims; and the cases' shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import check_rows
import factories
from fabricheck.node import load
from fabricheck.papers.claims import CLAIMS, Verdict, evaluate
from fabricheck.results.observed import Observed

#: A series, as `factories` builds it.
Series = dict[str, Any]

BY_ID = {claim.id: claim for claim in CLAIMS}


class Cases(NamedTuple):
    """Of a claim a partition that reproduces it, one that refutes it, and one that lacks data."""

    reproduced: Callable[[], Observed]
    refuted: Callable[[], Observed]
    missing: Callable[[], Observed]


def document(*series: Series, runtime: str = "rocm", **changes: Any) -> dict[str, Any]:
    """Build a document of a real device; ``changes`` replace whole fields (``environment=``)."""
    program = factories.document()["program"] | {"runtime": runtime, "name": "stream"}
    return factories.document(**{"program": program, "series": list(series)} | changes)


def simulated(*series: Series, **changes: Any) -> dict[str, Any]:
    """Build a document of the simulated node; ``changes`` replace whole fields."""
    return factories.simulated_document(**{"series": list(series)} | changes)


def partition(*documents: dict[str, Any], node: str | None = "mi250x") -> Observed:
    """Build a partition of documents, and of a node model by its name."""
    checks = check_rows.checks(*documents)
    return Observed("site:partition", checks, load(node) if node else None)


def of(*series: Series, node: str | None = "mi250x", **changes: Any) -> Observed:
    """Build a partition of one document of a real device; ``changes`` are of the document."""
    return partition(document(*series, **changes), node=node)


def around(value: float, spread: float = 0.001) -> Sequence[float]:
    """Return nine samples whose median is ``value``, with a 95 % interval of about ``spread``."""
    steps = (-4, -3, -2, -1, 0, 1, 2, 3, 4)
    return [value * (1 + spread * step / 3) for step in steps]


def judged(name: str, observed: Observed) -> Verdict:
    """Return what a partition says of a claim."""
    (verdict,) = evaluate([BY_ID[name]], observed)
    return verdict


def outcome(name: str, observed: Observed) -> str:
    """Return only whether a claim is reproduced there."""
    return judged(name, observed).outcome


def because(name: str, observed: Observed) -> str:
    """Return only the sentence that says why."""
    return judged(name, observed).because
