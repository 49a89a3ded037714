"""Claims on the latency of copies between devices by copy engine (E7)."""

from __future__ import annotations

from fabricheck.judge.claims import needs
from fabricheck.judge.claims.between import (
    QUAD,
    SINGLE,
    by_class,
    detour_pairs,
    every_pair,
    latencies,
    of_classes,
)
from fabricheck.judge.claims.judging import (
    above,
    high,
    low,
    median_of,
    middle_number,
    named,
    span,
    within,
)
from fabricheck.judge.claims.model import Claim, Finding, computed, number, verdict
from fabricheck.judge.claims.published import value
from fabricheck.judge.claims.rules import Points
from fabricheck.results.observed import Observed

#: Packages that are alike have 10.5 to 10.8 us in the paper: 3 %.
ALIKE = 0.03


def _pairs(observed: Observed) -> Points:
    """Return the latencies of all ordered pairs."""
    return every_pair(needs.node(observed), latencies(observed), "latencies of copies", "E7")


def _lowest_over_one_link(observed: Observed) -> Finding:
    points = _pairs(observed)
    (single,) = of_classes(needs.node(observed), points, (SINGLE,), "latencies of copies", "E7")
    most = value("paper-p2p-lat-single")
    slow = [one for one in single if low(one) >= most]
    others = [one for one in points.values() if one not in single]
    quick = [one for one in others if high(one) < most]
    least = min(others, key=median_of)
    return verdict(
        not slow and not quick,
        f"Over one direct link latencies are {span(single)}, of all other pairs {least.value:.1f} "
        f"us at least; published is that the former alone are below {most:g} us.",
        middle_number("one direct link, median", single),
        number("one direct link, greatest", max(single, key=median_of)),
        number("other pairs, least", least),
    )


def _within_a_package(observed: Observed) -> Finding:
    points = _pairs(observed)
    inside = by_class(needs.node(observed), points)[QUAD]
    least, most = value("paper-p2p-lat-samegpu-low"), value("paper-p2p-lat-samegpu-high")
    lowest = min(points.values(), key=median_of)
    return verdict(
        all(within(one, least, most, ALIKE) for one in inside)
        and any(above(one, lowest) for one in inside),
        f"Within a package latencies are {span(inside)}, published are {least:g} to {most:g}; the "
        f"lowest of all is {named([lowest])}.",
        middle_number("within a package, median", inside),
        number("lowest of all", lowest),
    )


def _outliers(observed: Observed) -> Finding:
    points = _pairs(observed)
    pairs, names = detour_pairs(needs.node(observed))
    detours = [points[pair] for pair in pairs]
    least, most = value("paper-p2p-lat-outlier-low"), value("paper-p2p-lat-outlier-high")
    first = min(detours, key=median_of)
    last = max((points[pair] for pair in points if pair not in pairs), key=median_of)
    return verdict(
        all(within(one, least, most, ALIKE) for one in detours) and above(first, last),
        f"{names}, the pairs whose widest path is not the shortest, have {span(detours)}, "
        f"published are {least:g} to {most:g}; the others reach {named([last])}.",
        middle_number(f"{names}, median", detours),
        number("other pairs, greatest", last),
    )


def _range(observed: Observed) -> Finding:
    points = _pairs(observed).values()
    first, last = min(points, key=median_of), max(points, key=median_of)
    least, most = value("paper-p2p-lat-min"), value("paper-p2p-lat-max")
    return verdict(
        within(first, least, least, ALIKE) and within(last, most, most, ALIKE),
        f"Latencies are {first.value:.2f} to {last.value:.2f} us; published are {least:g} to "
        f"{most:g}.",
        number(f"least, {named([first])}", first),
        number(f"greatest, {named([last])}", last),
        computed("greatest over least", last.value / first.value, "ratio", first, last),
    )


CLAIMS = (
    Claim(
        id="latency-one-link-lowest",
        statement="The latency of a copy by engine is lowest over one direct link: these pairs, "
        "and no others, are below 10 us.",
        document="paper",
        where="V.A.1 and figure 6b",
        rule="every pair with one direct link is below 10 us and no other one is; as stated, "
        "without a tolerance",
        requires=needs.tiers,
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
        requires=needs.tiers,
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
        requires=needs.tiers,
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
        requires=needs.tiers,
        judge=_range,
        experiments=("E7",),
        records=("paper-p2p-lat-min", "paper-p2p-lat-max"),
        rests_on=("simulation.copy_start_us", "simulation.copy_hop_us"),
    ),
)
