"""What rules ask of a partition first; each raises NotTestable with the sentence that says why."""

from __future__ import annotations

from collections.abc import Sequence

from fabricheck.claims.model import NotTestable
from fabricheck.node import NodeModel
from fabricheck.observed import Observed, Point


def devices(observed: Observed) -> None:
    """Ask for devices with memory of their own, real or simulated."""
    if not observed.documents:
        raise NotTestable("it has no result that can be read")
    if observed.runtimes <= {"host"}:
        raise NotTestable("its devices are virtual ones that share the memory of the host")


def node(observed: Observed) -> NodeModel:
    """Ask for a node model."""
    devices(observed)
    if observed.node is None:
        raise NotTestable("it has no node model, so nobody says how its devices are linked")
    return observed.node


def packages_of_two(observed: Observed) -> NodeModel:
    """Ask for a node whose devices are two to a package, as those of MI250X."""
    model = node(observed)
    if any(len(package) != 2 for package in model.packages):
        raise NotTestable(f"it is of packages with two devices, and {model.name} has none")
    return model


def tiers(observed: Observed) -> NodeModel:
    """Ask for direct links of one, two and four, as those of MI250X."""
    model = packages_of_two(observed)
    if {link.count for link in model.links.values()} != {1, 2, 4}:
        raise NotTestable(f"it is of single, dual and quad links, and {model.name} has others")
    return model


def some(points: Sequence[Point], what: str, experiment: str) -> Sequence[Point]:
    """Ask for at least one point.

    :param what: what is missing otherwise, as "copies by engine".
    """
    if not points:
        raise NotTestable(f"the session has no {what} ({experiment})")
    return points
