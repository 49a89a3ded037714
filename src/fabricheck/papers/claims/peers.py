"""Claims on copy-engine transfers between devices (E7): rates, paths, latencies."""

from __future__ import annotations

from fabricheck.core.amounts import about
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.between import (
    DUAL,
    QUAD,
    SINGLE,
    TIERS,
    between_devices,
    by_class,
    by_one_engine,
    by_pair,
    copies,
    detour_pairs,
    every_pair,
    latencies,
    of_class,
    of_classes,
    peak_of,
)
from fabricheck.papers.claims.judging import (
    above,
    high,
    low,
    median_of,
    middle,
    middle_number,
    named,
    pairs,
    span,
    within,
)
from fabricheck.papers.claims.model import Claim, Finding, NotTestable, computed, number, verdict
from fabricheck.papers.claims.published import value
from fabricheck.papers.claims.rules import Group, Points, each_above, near, ratio
from fabricheck.results.observed import Observed

#: The fractions by which rates of one level differ, also relative to the upper rate; the rules give
#: the reasons.
LEVEL, SAME_LEVEL = 0.02, 0.03
#: The range of "about 1.7 times": 1.5 to 1.9.
BRIDGE = 0.2
#: The paper has 10.5 to 10.8 us for equal packages: 3 %.
ALIKE = 0.03
#: The fewest sizes of a scan.
SIZES = 3

_ENGINE = (
    "a copy takes one engine, of the 50 GB/s that AMD's lab notes state; which class has which "
    "level follows from it"
)


def _two_levels(observed: Observed) -> Finding:
    node = needs.node(observed)
    points = every_pair(node, copies(observed), "copy-engine transfers", "E7").values()
    least, most = value("paper-p2p-bw-lo-low"), value("paper-p2p-bw-lo-high")
    top = value("paper-p2p-bw-hi")
    lower = [one for one in points if within(one, least, most, LEVEL)]
    upper = [one for one in points if within(one, top, top, LEVEL)]
    neither = [one for one in points if one not in lower and one not in upper]
    return verdict(
        bool(lower and upper and not neither),
        f"Of {len(points)} ordered pairs {len(lower)} are in the level of {least:g} to {most:g} "
        f"GB/s and {len(upper)} in that of {top:g}; in neither: {named(neither)}.",
        *(
            middle_number(f"{name} level, median of {len(found)} pairs", found)
            for name, found in (("lower", lower), ("upper", upper))
            if found
        ),
        *(number(f"in neither: {named([one])}", one) for one in neither[:3]),
    )


def _parts_of_peak(observed: Observed) -> Finding:
    node = needs.node(observed)
    found = of_classes(node, copies(observed), TIERS, "copy-engine transfers", "E7")
    holds, parts, numbers = True, [], []
    for kind, points in found.items():
        record = f"paper-commscope-util-{kind.word}"
        part = 100 * middle(points) / peak_of(node, points)
        holds &= abs(part / value(record) - 1) <= LEVEL
        parts.append(
            f"{part:.1f} % of {kind.name} links ({pairs(points)}; {value(record):g} % published)"
        )
        numbers.append(computed(f"of the peak of a {kind.word} link", part, "percent", *points))
    return verdict(holds, f"Copy-engine transfers reach {', '.join(parts)}.", *numbers)


def _limited_at_every_size(observed: Observed) -> Finding:
    node = needs.node(observed)
    pairs = by_one_engine(between_devices(observed, "engine"))
    found = [one for one in pairs if node.link_class(*one.devices[:2]) == QUAD]
    needs.large(found, "copy-engine transfers over a quad link", "E7")
    sizes = {one.bytes for one in found}
    if len(sizes) < SIZES:
        raise NotTestable(f"the session has copies over a quad link of {len(sizes)} size only (E7)")
    top = value("paper-p2p-bw-hi")
    above = [one for one in found if low(one) > top * (1 + LEVEL)]
    most = max(found, key=median_of)
    return verdict(
        not above,
        f"Over quad links copy-engine transfers of {len(sizes)} sizes reach {most.value:.1f} "
        f"GB/s at most, at {about(most.bytes)}; of an engine {top:g} are published.",
        number(f"the most, at {about(most.bytes)}", most),
    )


def _widest_path(observed: Observed) -> Finding:
    node = needs.node(observed)
    pairs, names = detour_pairs(node)
    points = every_pair(node, copies(observed), "copy-engine transfers", "E7")
    single, dual, quad = of_classes(node, points, TIERS, "copies", "E7").values()
    upper, lower = middle([*dual, *quad]), middle(single)
    if lower >= upper * (1 - SAME_LEVEL):
        raise NotTestable(
            f"copies over one link ({lower:.1f} GB/s) are as fast as those over several "
            f"({upper:.1f}), so the bandwidth does not tell the path"
        )
    detours = [points[pair] for pair in pairs]
    short = [one for one in detours if high(one) < upper * (1 - SAME_LEVEL)]
    hops = node.link_class(*pairs[0]).hops
    return verdict(
        not short,
        f"{names}, whose widest path has {hops} hops and whose shortest one is of single links, "
        f"reach {span(detours)}; over direct links of two and four it is {upper:.1f}, of one "
        f"{lower:.1f}.",
        middle_number(f"{names}, median", detours),
        computed("direct links of two and four, median", upper, "GB/s", *dual, *quad),
        middle_number("direct links of one, median", single),
    )


def _peer_switch(observed: Observed) -> Finding:
    node = needs.node(observed)
    alone = by_pair(
        point
        for point in between_devices(observed, "engine")
        if point.by_peer_switch_alone and point.bytes >= needs.LARGE
    )
    needs.some([*alone.values()], "copies between devices with HSA_ENABLE_PEER_SDMA=0 alone", "E7")
    wide = [pair for pair in alone if node.link_class(*pair).links > 1]
    by_engines = [alone[pair] for pair in wide if alone[pair].engine == "copy-engine"]
    if by_engines:
        raise NotTestable(
            f"its ROCm {by_engines[0].document['versions']['runtime']} copies between devices "
            f"{by_engines[0].devices[0]} and {by_engines[0].devices[-1]} by engines in spite of "
            "HSA_ENABLE_PEER_SDMA=0; the document is about ROCm 5.7"
        )
    known = copies(observed)
    both = [pair for pair in wide if pair in known]
    if not both:
        raise NotTestable("the session has no pair with both, over several links (E7)")
    slower = [alone[pair] for pair in both if not above(alone[pair], known[pair])]
    without, by_one = [alone[pair] for pair in both], [known[pair] for pair in both]
    return verdict(
        not slower,
        f"With HSA_ENABLE_PEER_SDMA=0 alone {len(both)} ordered pairs over several links have "
        f"{span(without)}, by one engine {span(by_one)}; not faster: {named(slower)}.",
        middle_number("with the variable alone, median", without),
        middle_number("by one engine, median", by_one),
    )


def _several_links(name: str, engine: bool) -> Group:
    def choose(observed: Observed) -> Points:
        node = needs.node(observed)
        found = copies(observed, engine)
        return {pair: found[pair] for pair in found if node.link_class(*pair).links > 1}

    return Group(name, choose, "ordered pair")


def _bridged(name: str, lacking: str, linked: bool) -> Group:
    """Return the copies between linked devices, or between devices without a link."""

    def choose(observed: Observed) -> Points:
        found = by_class(needs.node(observed), copies(observed))
        kinds = [kind for kind in found if (kind.direct if linked else not kind.links)]
        own = [one for kind in kinds for one in found[kind]]
        if not own:
            raise NotTestable(f"the session has no copy-engine transfers of {lacking} (E7)")
        return {point.pair: point for point in own}

    return Group(name, choose, "ordered pair")


def _latencies(observed: Observed) -> Points:
    """Return the latencies of all ordered pairs."""
    return every_pair(needs.node(observed), latencies(observed), "latencies of copies", "E7")


def _lowest_over_one_link(observed: Observed) -> Finding:
    points = _latencies(observed)
    node = needs.node(observed)
    single = of_classes(node, points, (SINGLE,), "latencies of copies", "E7")[SINGLE]
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
    points = _latencies(observed)
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
    points = _latencies(observed)
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


def _latency_range(observed: Observed) -> Finding:
    points = _latencies(observed).values()
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
        id="engine-two-levels",
        statement="Copy-engine transfers have two levels: 50 GB/s, and 37 to 38.",
        document="paper",
        where="V.A.2 and figure 6c",
        rule="each ordered pair is in one of the levels, 2 % either way as the paper's own 49.0 to "
        "50.4 are one level, and both levels occur",
        requires=needs.tiers,
        judge=_two_levels,
        experiments=("E7",),
        records=("paper-p2p-bw-hi", "paper-p2p-bw-lo-low", "paper-p2p-bw-lo-high"),
        rests_on=("simulation.link_efficiency",),
        built_in=_ENGINE,
    ),
    Claim(
        id="engine-parts-of-peak",
        statement="Copy-engine transfers reach 75 % of a single link, 50 % of a dual and 25 % of a "
        "quad one.",
        document="paper",
        where="V.A.2 and figure 7",
        rule="the median of each class of direct pairs is that part of the links' peak, 2 % of it "
        "either way, by which the paper's own values of one level differ",
        requires=needs.tiers,
        judge=_parts_of_peak,
        experiments=("E7",),
        records=(
            "paper-commscope-util-single",
            "paper-commscope-util-dual",
            "paper-commscope-util-quad",
        ),
        rests_on=("simulation.link_efficiency",),
        built_in=_ENGINE,
    ),
    Claim(
        id="engine-quad-as-dual",
        statement="A quad link gives a copy-engine transfer no more than a dual one.",
        document="paper",
        where="V.A.2 and V.B",
        rule="the medians of both classes differ by 2 % at most, as the paper's own values of one "
        "level do",
        requires=needs.tiers,
        judge=ratio(
            of_class("a copy-engine transfer", copies, QUAD, "copy-engine transfers", "E7"),
            of_class("one", copies, DUAL, "copy-engine transfers", "E7"),
            near(LEVEL),
        ),
        experiments=("E7",),
        records=("paper-p2p-bw-samegpu",),
        built_in=_ENGINE,
    ),
    Claim(
        id="engine-limited-at-every-size",
        statement="A copy-engine transfer cannot use a quad link at any size.",
        document="paper",
        where="V.A.2 and figure 7",
        rule="over quad links no size of three or more, the largest of 16 MiB at least, is above "
        "50 GB/s, 2 % allowed, by which the paper's own values of that level differ",
        requires=needs.tiers,
        judge=_limited_at_every_size,
        experiments=("E7",),
        records=("paper-p2p-bw-hi",),
        built_in=_ENGINE,
    ),
    Claim(
        id="engine-widest-path",
        statement="Copy-engine transfers take the path of the most bandwidth, also where it is "
        "longer: 1-7 and 3-5 reach the upper level over three hops.",
        document="paper",
        where="V.A.1 and V.A.2",
        rule="pairs whose widest path is longer than the shortest one, by the node model, have the "
        "bandwidth of direct links of two and four, less 3 % at most, by which the paper's own "
        "values of that level differ",
        requires=needs.tiers,
        judge=_widest_path,
        experiments=("E7",),
        records=("paper-p2p-bw-3hop",),
        built_in="transfers between devices take the widest path",
    ),
    Claim(
        id="engine-off-faster",
        statement="Kernels copy faster between devices than engines do.",
        document="lab-notes",
        where="GPU-to-GPU communication options",
        rule="each pair whose widest path has several links is faster with the engines off, the "
        "intervals apart; over one link the document's own values are slower",
        requires=needs.tiers,
        judge=each_above(
            _several_links("a copy over several links without the engine", engine=False),
            _several_links("one with it", engine=True),
        ),
        experiments=("E7",),
        records=("lab-sdma-max",),
        built_in="kernels are limited by the links alone, engines by their peak too",
    ),
    Claim(
        id="peer-switch-alone",
        statement="HSA_ENABLE_PEER_SDMA=0 alone has kernels copy between devices, not engines.",
        document="paper",
        where="V.A.2",
        rule="with it alone each pair whose widest path has several links is faster than by one "
        "engine, the intervals apart; of ROCm 5.7, the document's, and 6.0: older ones do not have "
        "the variable, and from 6.1 on several engines that share a copy do not ask for it",
        requires=needs.tiers,
        judge=_peer_switch,
        experiments=("E7",),
        built_in="the simulated runtime reads the variable as the version of ROCm does",
    ),
    Claim(
        id="bridge-over-pcie",
        statement="Devices linked by Infinity Fabric communicate about 1.7 times as fast as over a "
        "PCIe switch (MI210).",
        document="hugging-face",
        where="Infinity Fabric",
        rule="the median copy of linked pairs is 1.5 to 1.9 times that of pairs without a link, "
        "what about 1.7 leaves open",
        requires=needs.bridges,
        judge=ratio(
            _bridged("a copy between linked devices", "linked pairs", linked=True),
            _bridged("one over PCIe", "pairs without a link", linked=False),
            lambda found, wanted: abs(found - wanted) <= BRIDGE,
            lambda: value("hf-mi210-gain"),
        ),
        experiments=("E7",),
        records=("hf-mi210-gain",),
    ),
    Claim(
        id="latency-one-link-lowest",
        statement="The latency of a copy-engine transfer is lowest over one direct link: these "
        "pairs, and no others, are below 10 us.",
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
        statement="Latencies of copy-engine transfers are within 8.7 to 18.2 us.",
        document="paper",
        where="V.A.1 and figure 6b",
        rule="the least and the greatest of all ordered pairs are these, 3 % either way as the "
        "paper's like pairs differ",
        requires=needs.tiers,
        judge=_latency_range,
        experiments=("E7",),
        records=("paper-p2p-lat-min", "paper-p2p-lat-max"),
        rests_on=("simulation.copy_start_us", "simulation.copy_hop_us"),
    ),
)
