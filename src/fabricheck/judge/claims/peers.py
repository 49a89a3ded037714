"""Claims on copies between devices by copy engine (E7): levels, parts of peaks, paths."""

from __future__ import annotations

from fabricheck.core.amounts import about
from fabricheck.judge.claims import needs
from fabricheck.judge.claims.between import (
    DUAL,
    QUAD,
    SINGLE,
    by_class,
    by_one_engine,
    copies,
    count,
    every_pair,
    middle_number,
    named,
    of_classes,
    span,
    within,
)
from fabricheck.judge.claims.judging import above, high, low, middle
from fabricheck.judge.claims.model import Claim, Finding, NotTestable, computed, number, verdict
from fabricheck.judge.claims.published import value
from fabricheck.results.observed import Observed

#: The paper calls 49.0 to 50.4 GB/s one level of 50 (the matrix of its figure 6c): 2 %.
LEVEL = 0.02
#: The lowest of that level is 2.7 % below the highest.
SAME_LEVEL = 0.03
#: What "about 1.7 times" leaves open: 1.5 to 1.9.
BRIDGE = 0.2
#: A scan over sizes has at least so many.
SIZES = 3

_ENGINE = (
    "a copy takes one engine, of the 50 GB/s that AMD's lab notes state; which class has which "
    "level follows from it"
)


def _two_levels(observed: Observed) -> Finding:
    node = needs.tiers(observed)
    points = every_pair(node, copies(observed), "copies by engine", "E7").values()
    least, most = value("paper-p2p-bw-lo-low"), value("paper-p2p-bw-lo-high")
    top = value("paper-p2p-bw-hi")
    lower = [one for one in points if within(one, least * (1 - LEVEL), most * (1 + LEVEL))]
    upper = [one for one in points if within(one, top * (1 - LEVEL), top * (1 + LEVEL))]
    neither = [one for one in points if one not in lower and one not in upper]
    because = (
        f"Of {len(points)} ordered pairs {len(lower)} are in the level of {least:g} to {most:g} "
        f"GB/s and {len(upper)} in that of {top:g}; in neither: {named(neither)}."
    )
    return verdict(
        bool(lower and upper and not neither),
        because,
        *(
            middle_number(f"{name} level, median of {len(found)} pairs", found)
            for name, found in (("lower", lower), ("upper", upper))
            if found
        ),
        *(number(f"in neither: {named([one])}", one) for one in neither[:3]),
    )


def _parts_of_peak(observed: Observed) -> Finding:
    node = needs.tiers(observed)
    classes = (SINGLE, DUAL, QUAD)
    found = of_classes(node, copies(observed), classes, "copies by engine", "E7")
    holds, parts, numbers = True, [], []
    for kind, points in zip(classes, found, strict=True):
        record = f"paper-commscope-util-{kind.name}"
        first = points[0].pair or (0, 0)
        part = 100 * middle(points) / node.peer_peak_gbs(*first)
        holds &= abs(part / value(record) - 1) <= LEVEL
        parts.append(
            f"{part:.1f} % of {kind.name} links ({count(points)}; {value(record):g} % published)"
        )
        numbers.append(computed(f"of the peak of a {kind.name} link", part, "percent", *points))
    return verdict(holds, f"Copies by engine reach {', '.join(parts)}.", *numbers)


def _quad_no_more_than_dual(observed: Observed) -> Finding:
    node = needs.tiers(observed)
    dual, quad = of_classes(node, copies(observed), (DUAL, QUAD), "copies by engine", "E7")
    ratio = middle(quad) / middle(dual)
    return verdict(
        abs(ratio - 1) <= LEVEL,
        f"A quad link gives a copy by engine {middle(quad):.1f} GB/s and a dual one "
        f"{middle(dual):.1f}, {ratio:.3f} times as much, medians of {count(quad)} and {len(dual)}.",
        middle_number("quad links, median", quad),
        middle_number("dual links, median", dual),
        computed("quad over dual", ratio, "ratio", *quad, *dual),
    )


def _limited_at_every_size(observed: Observed) -> Finding:
    node = needs.tiers(observed)
    copied = observed.select(experiment="E7", operation="engine", role="single")
    found = [one for one in by_one_engine(copied) if node.link_class(*one.devices[:2]) == QUAD]
    needs.large(found, "copies by engine over a quad link", "E7")
    sizes = {one.bytes for one in found}
    if len(sizes) < SIZES:
        raise NotTestable(f"the session has copies over a quad link of {len(sizes)} size only (E7)")
    top = value("paper-p2p-bw-hi")
    above = [one for one in found if low(one) > top * (1 + LEVEL)]
    most = max(found, key=lambda one: one.value)
    return verdict(
        not above,
        f"Over quad links copies by engine of {len(sizes)} sizes reach {most.value:.1f} GB/s at "
        f"most, at {about(most.bytes)}; of an engine {top:g} are published.",
        number(f"the most, at {about(most.bytes)}", most),
    )


def _widest_path(observed: Observed) -> Finding:
    node = needs.tiers(observed)
    if not node.detour_pairs:
        raise NotTestable(f"on {node.name} no widest path is longer than the shortest one")
    points = every_pair(node, copies(observed), "copies by engine", "E7")
    single, dual, quad = of_classes(node, points, (SINGLE, DUAL, QUAD), "copies", "E7")
    upper, lower = middle([*dual, *quad]), middle(single)
    if lower >= upper * (1 - SAME_LEVEL):
        raise NotTestable(
            f"copies over one link ({lower:.1f} GB/s) are as fast as those over several "
            f"({upper:.1f}), so the bandwidth does not tell the path"
        )
    pairs = [way for a, b in node.detour_pairs for way in ((a, b), (b, a))]
    detours = [points[pair] for pair in pairs]
    short = [one for one in detours if high(one) < upper * (1 - SAME_LEVEL)]
    names = " and ".join(f"{a}-{b}" for a, b in node.detour_pairs)
    hops = node.link_class(*node.detour_pairs[0]).hops
    return verdict(
        not short,
        f"{names}, whose widest path has {hops} hops and whose shortest one is of single links, "
        f"reach {span(detours)}; over direct links of two and four it is {upper:.1f}, of one "
        f"{lower:.1f}.",
        middle_number(f"{names}, median", detours),
        computed("direct links of two and four, median", upper, "GB/s", *dual, *quad),
        middle_number("direct links of one, median", single),
    )


def _faster_without_engine(observed: Observed) -> Finding:
    node = needs.tiers(observed)
    on, off = copies(observed), copies(observed, engine=False)
    wide = [pair for pair in on if pair in off and node.link_class(*pair).links > 1]
    if not wide:
        raise NotTestable("the session has no pair of several links with the engines on and off")
    not_faster = [off[pair] for pair in wide if not above(off[pair], on[pair])]
    with_engine = [on[pair] for pair in wide]
    without = [off[pair] for pair in wide]
    return verdict(
        not not_faster,
        f"Over several links {len(wide)} ordered pairs have {span(with_engine)} with the engine "
        f"and {span(without)} without; not faster without it: {named(not_faster)}.",
        middle_number("with the engine, median", with_engine),
        middle_number("without the engine, median", without),
    )


def _bridge(observed: Observed) -> Finding:
    node = needs.node(observed)
    if node.vendor != "amd":
        raise NotTestable(f"it is of AMD's devices, and {node.name} has {node.device_model}")
    kinds = {kind.links > 0 for kind in node.link_classes}
    if kinds != {True, False}:
        raise NotTestable(
            f"it is of devices of which some are linked and others are not, and those of "
            f"{node.name} are not so"
        )
    found = by_class(node, copies(observed))
    linked = [one for kind, points in found.items() if kind.direct for one in points]
    apart = [one for kind, points in found.items() if not kind.links for one in points]
    if not linked or not apart:
        lacking = "linked pairs" if not linked else "pairs without a link"
        raise NotTestable(f"the session has no copies by engine of {lacking} (E7)")
    ratio, wanted = middle(linked) / middle(apart), value("hf-mi210-gain")
    return verdict(
        abs(ratio - wanted) <= BRIDGE,
        f"Copies between linked devices are {ratio:.2f} times as fast as over PCIe, medians of "
        f"{count(linked)} and {len(apart)}; published are about {wanted:g}.",
        middle_number("linked devices, median", linked),
        middle_number("devices without a link, median", apart),
        computed("linked over not linked", ratio, "ratio", *linked, *apart),
    )


CLAIMS = (
    Claim(
        id="engine-two-levels",
        statement="Copies by engine have two levels: 50 GB/s, and 37 to 38.",
        document="paper",
        where="V.A.2 and figure 6c",
        rule="each ordered pair is in one of the levels, 2 % either way as the paper's own 49.0 to "
        "50.4 are one level, and both levels occur",
        judge=_two_levels,
        experiments=("E7",),
        records=("paper-p2p-bw-hi", "paper-p2p-bw-lo-low", "paper-p2p-bw-lo-high"),
        rests_on=("simulation.link_efficiency",),
        built_in=_ENGINE,
    ),
    Claim(
        id="engine-parts-of-peak",
        statement="Copies by engine reach 75 % of a single link, 50 % of a dual and 25 % of a quad "
        "one.",
        document="paper",
        where="V.A.2 and figure 7",
        rule="the median of each class of direct pairs is that part of the links' peak, 2 % of it "
        "either way, by which the paper's own values of one level differ",
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
        statement="A quad link gives a copy by engine no more than a dual one.",
        document="paper",
        where="V.A.2 and V.B",
        rule="the medians of both classes differ by 2 % at most, as the paper's own values of one "
        "level do",
        judge=_quad_no_more_than_dual,
        experiments=("E7",),
        records=("paper-p2p-bw-samegpu",),
        built_in=_ENGINE,
    ),
    Claim(
        id="engine-limited-at-every-size",
        statement="A copy by engine cannot use a quad link at any size.",
        document="paper",
        where="V.A.2 and figure 7",
        rule="over quad links no size of three or more, the largest of 16 MiB at least, is above "
        "50 GB/s, 2 % allowed, by which the paper's own values of that level differ",
        judge=_limited_at_every_size,
        experiments=("E7",),
        records=("paper-p2p-bw-hi",),
        built_in=_ENGINE,
    ),
    Claim(
        id="engine-widest-path",
        statement="Copies by engine take the path of the most bandwidth, also where it is longer: "
        "1-7 and 3-5 reach the upper level over three hops.",
        document="paper",
        where="V.A.1 and V.A.2",
        rule="pairs whose widest path is longer than the shortest one, by the node model, have the "
        "bandwidth of direct links of two and four, less 3 % at most, by which the paper's own "
        "values of that level differ",
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
        judge=_faster_without_engine,
        experiments=("E7",),
        records=("lab-sdma-max",),
        built_in="kernels are limited by the links alone, engines by their peak too",
    ),
    Claim(
        id="bridge-over-pcie",
        statement="Devices linked by Infinity Fabric communicate about 1.7 times as fast as over a "
        "PCIe switch (MI210).",
        document="hugging-face",
        where="Infinity Fabric",
        rule="the median copy of linked pairs is 1.5 to 1.9 times that of pairs without a link, "
        "what about 1.7 leaves open",
        judge=_bridge,
        experiments=("E7",),
        records=("hf-mi210-gain",),
    ),
)
