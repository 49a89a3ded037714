"""What a session has of each partition, as the claims and the report read it."""

from fabricheck.observed.partition import Observed, observe
from fabricheck.observed.point import Pair, Point

__all__ = ["Observed", "Pair", "Point", "observe"]
