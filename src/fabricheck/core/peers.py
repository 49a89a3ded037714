"""The rule for what is unlike its peers: devices, pairs and ranks of a node, and nodes of a job.

A member is unlike the others if it is farther from their median than a hundredth of it and than 3.5
robust standard deviations, the limit of Iglewicz and Hoaglin (How to Detect and Handle Outliers,
1993). Where another number is needed, there is a reason:

- The page's list of what is behind its class (`report.findings`) has all that is a hundredth
  behind, the farthest first: of four devices two may be bad, which widens the deviation, and a list
  accuses nobody.
- Limits of members that are alike by the node model (`references.rules.alike`) fail a node, so they
  are the recorded spread of each kind of transfer, not that of a few members. The diagnosis
  (`diagnosis.diagnose`) asks it too: it looks for what explains values beyond these limits.
- Of a fleet (`fleet.outliers`) thousands of nodes show how far a healthy one can be: the limit is
  extrapolated from their distribution, whose tails are longer than those of normal values.
- A calibration (`calibration.rule`) leaves nodes out only where a gap splits them off, since a
  limit from too few of them is too narrow.
- Rates between nodes (`fabric.fit`) are of two nodes each, so the effects of all are fitted
  together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from fabricheck.core.statistics import deviation, median

#: The least distance from the median, as a fraction of it: less is noise of the programs.
LEAST = 0.01

#: The distance from the median in robust standard deviations.
DEVIATIONS = 3.5

#: The fewest members: of two it is unknown which one is unlike.
FEWEST = 3

_K = TypeVar("_K")


def away(values: Mapping[_K, float]) -> dict[_K, float]:
    """Return the distance of each member from the median, as a fraction of it; none of few."""
    middle = median(list(values.values())) if len(values) >= FEWEST else 0.0
    return {name: (value - middle) / middle for name, value in values.items()} if middle > 0 else {}


def limit(spread: float, least: float = LEAST, deviations: float = DEVIATIONS) -> float:
    """Return the distance beyond which a member is unlike the others.

    :param spread: the standard deviation of members that are alike; `least` is in its unit.
    """
    return max(least, deviations * spread)


def unlike(values: Mapping[_K, float]) -> dict[_K, float]:
    """Return the members unlike the others, with their distance as `away` has it."""
    distances = away(values)
    beyond = limit(deviation([*distances.values()])) if distances else 0.0
    return {name: part for name, part in distances.items() if abs(part) > beyond}
