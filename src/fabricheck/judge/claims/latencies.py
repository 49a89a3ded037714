"""Claims on the latency of copies between devices by copy engine (E7)."""

from __future__ import annotations

from collections.abc import Sequence

from fabricheck.judge.claims import needs
from fabricheck.judge.claims.between import (
    QUAD,
    SINGLE,
    every_pair,
    latencies,
    middle_number,
    named,
    of_classes,
    span,
    within,
)
from fabricheck.judge.claims.judging import above, high, low
from fabricheck.judge.claims.model import Claim, Finding, NotTestable, computed, number, verdict
from fabricheck.judge.claims.published import value
from fabricheck.node import NodeModel
from fabricheck.results.observed import Observed, Point

#: Packages that are alike have 10.5 to 10.8 us in the paper: 3 %.
ALIKE = 0.03


def _lowest_over_one_link(observed: Observed) -> Finding:
    _, points, single, _ = _all(observed)
    most = value("paper-p2p-lat-single")
    slow = [one for one in single if low(one) >= most]
    others = [one for one in points if one not in single]
    quick = [one for one in others if high(one) < most]
    least = min(others, key=_median)
    return verdict(
        not slow and not quick,
        f"Over one direct link latencies are {span(single)}, of all other pairs {least.median:.1f} "
        f"us at least; published is that the former alone are below {most:g} us.",
        middle_number("one direct link, median", single),
        number("one direct link, greatest", max(single, key=_median)),
        number("other pairs, least", least),
    )


def _within_a_package(observed: Observed) -> Finding:
    _, points, _, _ = _all(observed)
    node = needs.tiers(observed)
    inside = [one for one in points if one.pair and node.link_class(*one.pair) == QUAD]
    least, most = value("paper-p2p-lat-samegpu-low"), value("paper-p2p-lat-samegpu-high")
    out = [one for one in inside if not within(one, least * (1 - ALIKE), most * (1 + ALIKE))]
    lowest = min(points, key=_median)
    lower = any(above(one, lowest) for one in inside)
    return verdict(
        not out and lower,
        f"Within a package latencies are {span(inside)}, published are {least:g} to {most:g}; the "
        f"lowest of all is {named([lowest])}.",
        middle_number("within a package, median", inside),
        number("lowest of all", lowest),
    )


def _outliers(observed: Observed) -> Finding:
    node, points, _, detours = _all(observed)
    if not detours:
        raise NotTestable(f"on {node.name} no widest path is longer than the shortest one")
    rest = [one for one in points if one not in detours]
    least, most = value("paper-p2p-lat-outlier-low"), value("paper-p2p-lat-outlier-high")
    out = [one for one in detours if not within(one, least * (1 - ALIKE), most * (1 + ALIKE))]
    first, last = min(detours, key=_median), max(rest, key=_median)
    names = " and ".join(f"{a}-{b}" for a, b in node.detour_pairs)
    return verdict(
        not out and above(first, last),
        f"{names}, the pairs whose widest path is not the shortest, have {span(detours)}, "
        f"published are {least:g} to {most:g}; the others reach {named([last])}.",
        middle_number(f"{names}, median", detours),
        number("other pairs, greatest", last),
    )


def _range(observed: Observed) -> Finding:
    _, points, _, _ = _all(observed)
    first, last = min(points, key=_median), max(points, key=_median)
    least, most = value("paper-p2p-lat-min"), value("paper-p2p-lat-max")
    holds = all(
        within(one, wanted * (1 - ALIKE), wanted * (1 + ALIKE))
        for one, wanted in ((first, least), (last, most))
    )
    return verdict(
        holds,
        f"Latencies are {first.median:.2f} to {last.median:.2f} us; published are {least:g} to "
        f"{most:g}.",
        number(f"least, {named([first])}", first),
        number(f"greatest, {named([last])}", last),
        computed("greatest over least", last.median / first.median, "ratio", first, last),
    )


def _all(
    observed: Observed,
) -> tuple[NodeModel, Sequence[Point], Sequence[Point], Sequence[Point]]:
    """Return the node, and the latencies of all pairs, of single links and of detours."""
    node = needs.tiers(observed)
    points = every_pair(node, latencies(observed), "latencies of copies", "E7")
    (single,) = of_classes(node, points, (SINGLE,), "latencies of copies", "E7")
    detours = [points[way] for a, b in node.detour_pairs for way in ((a, b), (b, a))]
    return node, tuple(points.values()), single, detours


def _median(point: Point) -> float:
    return point.median


CLAIMS = (
    Claim(
        id="latency-one-link-lowest",
        statement="The latency of a copy by engine is lowest over one direct link: these pairs, "
        "and no others, are below 10 us.",
        document="paper",
        where="V.A.1 and figure 6b",
        rule="every pair with one direct link is below 10 us and no other one is; as stated, "
        "without a tolerance",
        judge=_lowest_over_one_link,
        experiments=("E7",),
        records=("paper-p2p-lat-single",),
        rests_on=("simulation.copy_start_us",),
    ),
    Claim(
        id="latency-in-package",
        statement="Within a package the latency is 10.5 to 10.8 us, which is not the lowest.",
        document="paper",
        where="V.A.1 and figure 6b",
        rule="every pair of a package is in that range, 3 % either way as the paper's own packages "
        "differ, and another pair's latency is below one of them",
        judge=_within_a_package,
        experiments=("E7",),
        records=("paper-p2p-lat-samegpu-low", "paper-p2p-lat-samegpu-high"),
        rests_on=("simulation.copy_split_us",),
    ),
    Claim(
        id="latency-outliers",
        statement="The outliers of latency, 17.8 to 18.2 us, are the pairs whose widest path is "
        "not the shortest: 1-7 and 3-5.",
        document="paper",
        where="V.A.1 and figure 6b",
        rule="the pairs that the node model says so of are in that range, 3 % either way as the "
        "paper's like pairs differ, and above all others",
        judge=_outliers,
        experiments=("E7",),
        records=("paper-p2p-lat-outlier-low", "paper-p2p-lat-outlier-high"),
        rests_on=("simulation.copy_hop_us",),
        built_in="transfers between devices take the widest path",
    ),
    Claim(
        id="latency-range",
        statement="Latencies of copies by engine are within 8.7 to 18.2 us.",
        document="paper",
        where="V.A.1 and figure 6b",
        rule="the least and the greatest of all ordered pairs are these, 3 % either way as the "
        "paper's like pairs differ",
        judge=_range,
        experiments=("E7",),
        records=("paper-p2p-lat-min", "paper-p2p-lat-max"),
        rests_on=(
            "simulation.copy_start_us",
            "simulation.copy_hop_us",
        ),
    ),
)
