"""Series of transfers between devices for rules: by pair, by link class, and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations

from fabricheck.core.vocabulary import ENV_PEER_ENGINES
from fabricheck.node import LinkClass, NodeModel
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.model import NotTestable
from fabricheck.papers.claims.rules import Group, Points
from fabricheck.results.observed import Observed
from fabricheck.results.table import Pair, Series, largest

#: The direct links of a node with three tiers, by the number of links.
TIERS = SINGLE, DUAL, QUAD = LinkClass(1, 1), LinkClass(2, 1), LinkClass(4, 1)


def by_engine(point: Series) -> bool:
    """Whether copy engines may move data between devices in this run."""
    told = point.engine == "copy-engine" and "engines" in point.measured
    environment = point.document["environment"]
    return point.by_engines and (told or environment.get(ENV_PEER_ENGINES) != "0")


def by_one_engine(points: Iterable[Series]) -> list[Series]:
    """Return the copies that use one engine, for every pair with copy-engine transfers.

    :raises NotTestable: for a pair whose copies are shared by several engines, or by an unknown
        number: the documents measured one engine.
    """
    found = [point for point in points if by_engine(point)]
    one = [point for point in found if not point.ganged and not _is_unknown(point)]
    pairs = {point.pair for point in one}
    for point in found:
        if point.pair not in pairs:
            count = point.measured.get("engines")
            engines = f"{count} copy engines share" if count else "an unknown number of engines has"
            raise NotTestable(
                f"{engines} a copy from device {point.devices[0]} to {point.devices[-1]}; one "
                "engine is required: set HSA_ENABLE_SDMA_GANG=0"
            )
    return one


def _is_unknown(point: Series) -> bool:
    rocm = point.document["program"]["runtime"] == "rocm"
    return rocm and point.measured.get("engines", 1) is None


def by_pair(points: Iterable[Series]) -> dict[Pair, Series]:
    """Return the point of the largest size of each ordered pair."""
    found = largest(points, lambda point: point.pair)
    return {pair: point for pair, point in found.items() if pair is not None}


def between_devices(observed: Observed, operation: str) -> list[Series]:
    """Return copies or latencies of the runtime's peer call, without those within one device."""
    found = observed.select(experiment="E7", operation=operation, role="single")
    return [one for one in found if one.pair is not None]


def copies(observed: Observed, engine: bool = True) -> dict[Pair, Series]:
    """Return the copies of each ordered pair, with copy engines or, if requested, without.

    :raises NotTestable: when there are none.
    """
    found = between_devices(observed, "engine")
    off = [one for one in found if not by_engine(one)]
    # Copies with all engines off take precedence over those with only the peer engines off.
    off = [one for one in off if not one.by_peer_switch_alone] or off
    chosen = by_one_engine(found) if engine else off
    what = "copy-engine transfers" if engine else "copies with the engines off"
    return by_pair(needs.large(chosen, f"{what} between devices", "E7"))


def latencies(observed: Observed) -> dict[Pair, Series]:
    """Return the latencies of copy-engine transfers of each ordered pair.

    :raises NotTestable: when there are none.
    """
    chosen = by_one_engine(between_devices(observed, "latency"))
    return by_pair(needs.some(chosen, "latencies of copy-engine transfers", "E7"))


def accesses(observed: Observed, operation: str) -> dict[Pair, Series]:
    """Return the reads, writes or copies by kernels of one device in the memory of another.

    :raises NotTestable: when there are none.
    """
    found = observed.select(experiment="E8", operation=operation, role="single")
    return by_pair(needs.large(found, f"{operation} of a peer's memory by kernel", "E8"))


def every_pair(node: NodeModel, points: Points, what: str, experiment: str) -> Points:
    """Require all ordered pairs.

    :raises NotTestable: when some are missing.
    """
    wanted = list(permutations(range(len(node.devices)), 2))
    there = [pair for pair in wanted if pair in points]
    if len(there) < len(wanted):
        missing = next(pair for pair in wanted if pair not in points)
        raise NotTestable(
            f"the session has {what} of {len(there)} of {len(wanted)} ordered pairs "
            f"({experiment}), {missing[0]}-{missing[1]} is not among them"
        )
    return {pair: points[pair] for pair in wanted}


def of_class(
    name: str, read: Callable[[Observed], Points], kind: LinkClass, what: str, experiment: str
) -> Group:
    """Return the group of series of pairs of one link class.

    :param name: the name of one of the series, without the link.
    """

    def choose(observed: Observed) -> Points:
        found = of_classes(needs.node(observed), read(observed), (kind,), what, experiment)
        return {point.pair: point for point in found[kind]}

    return Group(f"{name} over a {kind.word} link", choose, "ordered pair")


def peak_of(node: NodeModel, points: Sequence[Series]) -> float:
    """Return the peak of the links of pairs of one link class, in GB/s per direction."""
    source, destination = points[0].devices
    return node.peer_peak_gbs(source, destination)


def detour_pairs(node: NodeModel) -> tuple[list[Pair], str]:
    """Return the ordered pairs whose widest path is longer than the shortest, and their names.

    :raises NotTestable: when there are none.
    """
    if not node.detour_pairs:
        raise NotTestable(
            f"{node.name} has no pair whose widest path is longer than its shortest one"
        )
    pairs = [way for a, b in node.detour_pairs for way in ((a, b), (b, a))]
    return pairs, " and ".join(f"{a}-{b}" for a, b in node.detour_pairs)


def by_class(node: NodeModel, points: Points) -> dict[LinkClass, list[Series]]:
    """Return the points by the link class of the pair's widest path."""
    found: dict[LinkClass, list[Series]] = {}
    for pair, point in points.items():
        found.setdefault(node.link_class(*pair), []).append(point)
    return found


def of_classes(
    node: NodeModel,
    points: Points,
    classes: Sequence[LinkClass],
    what: str,
    experiment: str,
) -> dict[LinkClass, list[Series]]:
    """Return the points of some link classes, in the order of the classes.

    :raises NotTestable: when a class has none.
    """
    found = by_class(node, points)
    for wanted in classes:
        if wanted not in found:
            raise NotTestable(
                f"the session has {what} of no pair with a {wanted.name} link ({experiment})"
            )
    return {wanted: found[wanted] for wanted in classes}
