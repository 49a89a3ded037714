"""Each member of a comparison of peers in percent of the others, not the worst alone."""

from __future__ import annotations

from typing import Any

from fabricheck.rfm import relative


def percents(metric: relative.PeerRatio, document: Any, population: Any) -> list[float]:
    """Return each member in percent of the median of the others."""
    ways = (metric.compared, *metric.ways)
    return relative._least_behind([metric._members(document, population, way) for way in ways])
