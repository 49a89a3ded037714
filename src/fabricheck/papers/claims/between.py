"""Series of transfers between devices for rules: by pair, and by the links between them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

from fabricheck.core.vocabulary import ENV_PEER_ENGINES
from fabricheck.node import LinkClass
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.groups import Group, Values, by_subject, series
from fabricheck.papers.claims.model import NotTestable
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Pair, Series, largest

#: The direct links of a node with three tiers, by the number of links.
TIERS = SINGLE, DUAL, QUAD = LinkClass(1, 1), LinkClass(2, 1), LinkClass(4, 1)


def by_engine(point: Series) -> bool:
    """Whether copy engines may move data between devices in this run."""
    stated = point.engine == "copy-engine" and "engines" in point.measured
    environment = point.document["environment"]
    return point.by_engines and (stated or environment.get(ENV_PEER_ENGINES) != "0")


def by_one_engine(points: Iterable[Series]) -> list[Series]:
    """Return the copies that use one engine, for every pair with copy-engine transfers.

    :raises NotTestable: for a pair whose copies are shared by several engines, or by an unknown
        number: the documents measured one engine.
    """
    by_engines = [point for point in points if by_engine(point)]
    chosen = [
        point
        for point in by_engines
        if not point.ganged
        and not (point.check_row.runtime == "rocm" and point.measured.get("engines", 1) is None)
    ]
    pairs = {point.pair for point in chosen}
    for point in by_engines:
        if point.pair not in pairs:
            count = point.measured.get("engines")
            engines = f"{count} copy engines share" if count else "an unknown number of engines has"
            raise NotTestable(
                f"{engines} a copy from device {point.devices[0]} to {point.devices[-1]}; one "
                "engine is required: set HSA_ENABLE_SDMA_GANG=0"
            )
    return chosen


def by_pair(points: Iterable[Series]) -> dict[Pair, Series]:
    """Return the point of the largest size of each ordered pair."""
    fastest = largest(points, lambda point: point.pair)
    return {pair: point for pair, point in fastest.items() if pair is not None}


def between_devices(observed: Observed, operation: str) -> list[Series]:
    """Return copies or latencies of the runtime's peer call, without those within one device."""
    points = observed.select(experiment="E7", operation=operation, role="single")
    return [point for point in points if point.pair is not None]


def copies(observed: Observed, engine: bool = True) -> dict[Pair, Series]:
    """Return the copies of each ordered pair, with copy engines or, if requested, without.

    :raises NotTestable: when there are none.
    """
    points = between_devices(observed, "engine")
    off = [point for point in points if not by_engine(point)]
    # Copies with all engines off take precedence over those with only the peer engines off.
    off = [point for point in off if not point.by_peer_switch_alone] or off
    chosen = by_one_engine(points) if engine else off
    what = "copy-engine transfers" if engine else "copies with the engines off"
    return by_pair(needs.large(chosen, f"{what} between devices", "E7"))


def latencies(observed: Observed) -> dict[Pair, Series]:
    """Return the latencies of copy-engine transfers of each ordered pair.

    :raises NotTestable: when there are none.
    """
    chosen = by_one_engine(between_devices(observed, "latency"))
    return by_pair(needs.some(chosen, "latencies of copy-engine transfers", "E7"))


COPIES = Group(
    "copy-engine transfers", lambda observed: by_subject(copies(observed)), "ordered pair"
)


def accesses(operation: str) -> Group:
    """Return the reads, writes or copies by kernels of one device in the memory of another."""
    name = {"read": "reads", "write": "writes", "copy": "copies"}[operation]
    return series(
        f"{name} of a peer's memory by kernel",
        each="ordered pair",
        keep=lambda point: point.pair is not None,
        experiment="E8",
        operation=operation,
        role="single",
    )


KERNEL_COPIES = accesses("copy")


def over(group: Group, kind: LinkClass, experiment: str) -> Group:
    """Return the values of the pairs of one link class."""
    name = f"{group.name} over a {kind.word} link"
    return group.where(lambda node, pair: node.link_class(*pair) == kind, name, experiment)


def wide(group: Group, experiment: str) -> Group:
    """Return the values of the pairs whose widest path has several links."""
    name = f"{group.name} over several links"
    return group.where(lambda node, pair: node.link_class(*pair).links > 1, name, experiment)


def every_pair(group: Group, experiment: str) -> Group:
    """Return a group that requires all ordered pairs."""

    def choose(observed: Observed) -> Values:
        values = group.choose(observed)
        wanted = list(permutations(range(len(needs.node(observed).devices)), 2))
        missing = [pair for pair in wanted if pair not in values]
        if missing:
            raise NotTestable(
                f"the session has {group.name} of {len(wanted) - len(missing)} of {len(wanted)} "
                f"ordered pairs ({experiment}), {missing[0][0]}-{missing[0][1]} is not among them"
            )
        return {pair: values[pair] for pair in wanted}

    return Group(group.name, choose, "ordered pair")
