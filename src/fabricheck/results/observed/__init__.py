"""What a session has of each partition, as the claims and the report read it."""

from fabricheck.results.observed.partition import Observed, observe
from fabricheck.results.observed.point import Pair, Point

__all__ = ["Observed", "Pair", "Point", "observe"]
