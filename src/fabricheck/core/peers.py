"""The rule for what is unlike its peers: devices, pairs and ranks of a node, and nodes of a job.

A member is unlike the others if it is farther from their median than a least distance and than some
standard deviations of members that are alike: a hundredth and 3.5 of their own, the limit of
Iglewicz and Hoaglin (How to Detect and Handle Outliers, 1993). Other places give other ones, by
what is named of drawn values (``python -m proof.peers --write`` makes docs/evidence/peers.md):

- Members of a node (`references.rules.alike`) have the recorded deviation of their kind of
  transfer. By that of the members 493 of 500 healthy sessions have a name (6 by the recorded one),
  a loss of 40 % in one member is missed 4 times as often, and of two members none is named. The
  diagnosis (`judge.diagnosis.diagnose`) looks for what explains values beyond these limits.
- NICs between nodes (`judge.fabric.attributing`) have that of the fitted effects, with the error of
  each. By the members' own 128 good ones are named in 500 systems of 16 nodes, in place of 6.
- What is measured again (src/bench/fabric/choosing.cpp) is not yet named: 1.5 % and 2.02. At 1 %
  and 3.5 the same faults are missed, of 500 systems of 16 nodes; larger ones were not drawn so.

Two places have another rule:

- Of a fleet (`judge.fleet.outliers`) the limit is extrapolated from the nodes, whose tails are
  longer than those of normal values. By this rule 2,049 of 5,973 healthy nodes are named, and 1,406
  with as many deviations as one false name in 100 fleets of normal values takes; by its own none.
- A calibration (`judge.calibration.rule`) leaves nodes out where a gap splits them off. This rule
  leaves out 1,480 of 41,760 healthy nodes, its own 616, and 3,214 healthy sessions are then below
  the limit in place of 1,783; 1,203 of 3,480 nodes that are 10 % slow stay in, by its own 1,486.

The page's list of what is behind its class (`report.findings`) has all that is a hundredth behind,
the farthest first: of four devices two may be bad, which widens the deviation, and a list accuses
nobody.
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
