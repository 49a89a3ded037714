"""The attribution: fits, then names."""

from __future__ import annotations

from fabricheck.judge.fabric.model import Attribution, Measured
from fabricheck.results.model import ResultDocument


def attribution(document: ResultDocument) -> Attribution:
    """Name the NICs, nodes and switches that are at fault in the rounds of a document.

    :raises NotFoundError: when the document has no rounds.
    """
    raise NotImplementedError


def attribute(measured: Measured) -> Attribution:
    """Name the NICs, nodes and switches that are at fault."""
    raise NotImplementedError
