"""Each member of a comparison of peers in percent of the others, not the worst alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fabricheck.rfm import relative

#: The members of a metric by each way that they are compared.
Ways = Sequence[Sequence[relative._Member]]


def ways(metric: relative.PeerRatio, document: Any, population: Any) -> Ways:
    """Return the members by each way that they are compared."""
    return [metric._members(document, population, way) for way in (metric.compared, *metric.ways)]


def percents_of(members: Ways) -> list[float]:
    """Return each member in percent of the median of the others."""
    return relative._least_behind(members)


def percents(metric: relative.PeerRatio, document: Any, population: Any) -> list[float]:
    """Return each member of a document in percent of the median of the others."""
    return percents_of(ways(metric, document, population))
