"""Claims on what kernels do in the memory of another device (E8)."""

from __future__ import annotations

from itertools import pairwise

from fabricheck.judge.claims import needs
from fabricheck.judge.claims.between import (
    DUAL,
    QUAD,
    SINGLE,
    accesses,
    count,
    middle_number,
    of_classes,
    span,
)
from fabricheck.judge.claims.judging import high, low, middle
from fabricheck.judge.claims.model import Claim, Finding, computed, verdict
from fabricheck.judge.claims.published import value
from fabricheck.results.observed import Observed, Point

#: LUMI accepts its nodes with kernels' rates over these links within 5 %, 2 points of 43.
POINTS = 2.0
#: Each tier has twice the links of the next; half of that gain tells tiers apart.
NEXT_TIER = 1.5

_CLASSES = (SINGLE, DUAL, QUAD)
_LINKS_ONLY = "kernels are limited by the links and by what they have in flight, by no engine"


def _tiers(observed: Observed) -> tuple[list[Point], list[Point], list[Point]]:
    node = needs.tiers(observed)
    found = accesses(observed, "copy")
    single, dual, quad = of_classes(node, found, _CLASSES, "copies by kernel", "E8")
    return single, dual, quad


def _three_tiers(observed: Observed) -> Finding:
    tiers = _tiers(observed)
    holds = all(
        min(low(one) for one in wider) >= NEXT_TIER * max(high(one) for one in narrower)
        for narrower, wider in pairwise(tiers)
    )
    spans = [
        f"{kind.name} {span(tier)} ({count(tier)})"
        for kind, tier in zip(_CLASSES, tiers, strict=True)
    ]
    return verdict(
        holds,
        f"Copies by kernel in a peer's memory are in tiers: {', '.join(spans)}.",
        *(
            middle_number(f"{kind.name} links, median", tier)
            for kind, tier in zip(_CLASSES, tiers, strict=True)
        ),
    )


def _part_of_peak(observed: Observed) -> Finding:
    tiers = _tiers(observed)
    node = needs.tiers(observed)
    least, most = value("paper-stream-p2p-pct-low"), value("paper-stream-p2p-pct-high")
    holds, texts, numbers = True, [], []
    for kind, tier in zip(_CLASSES, tiers, strict=True):
        both_ways = 2 * node.peer_peak_gbs(*(tier[0].pair or (0, 0)))
        part = 100 * middle(tier) / both_ways
        holds &= least - POINTS <= part <= most + POINTS
        texts.append(f"{part:.1f} % of {both_ways:g} GB/s over {kind.name} links ({count(tier)})")
        numbers.append(computed(f"{kind.name} links, of the peak", part, "percent", *tier))
    return verdict(
        holds,
        f"Copies by kernel reach {', '.join(texts)}; published are {least:g} to {most:g} %.",
        *numbers,
    )


def _quad_above_dual(observed: Observed) -> Finding:
    _, dual, quad = _tiers(observed)
    ratio = middle(quad) / middle(dual)
    return verdict(
        ratio >= NEXT_TIER,
        f"By kernel a quad link gives {middle(quad):.1f} GB/s and a dual one {middle(dual):.1f}, "
        f"{ratio:.2f} times as much, medians of {count(quad)} and {len(dual)}.",
        middle_number("quad links, median", quad),
        middle_number("dual links, median", dual),
        computed("quad over dual", ratio, "ratio", *quad, *dual),
    )


CLAIMS = (
    Claim(
        id="kernel-three-tiers",
        statement="Copies by kernel in a peer's memory show three tiers, those of the links.",
        document="paper",
        where="V.B and figure 8",
        rule="every pair with a wider direct link is at least half as fast again as every one of "
        "the next tier, half of what twice the links could give",
        judge=_three_tiers,
        experiments=("E8",),
        built_in=_LINKS_ONLY,
    ),
    Claim(
        id="kernel-43-percent",
        statement="Copies by kernel in a peer's memory reach 43 to 44 % of the peak of both "
        "directions, over each kind of link.",
        document="paper",
        where="V.B and figure 9",
        rule="the median of each class of direct pairs is in that range, 2 points either way: LUMI "
        "accepts its nodes within 5 % of such rates",
        judge=_part_of_peak,
        experiments=("E8",),
        records=("paper-stream-p2p-pct-low", "paper-stream-p2p-pct-high"),
        rests_on=("simulation.kernel_window",),
    ),
    Claim(
        id="kernel-no-engine-limit",
        statement="Kernels do not have the engines' limit: a quad link gives them more than a dual "
        "one.",
        document="paper",
        where="V.B",
        rule="the median over quad links is at least half as much again as over dual ones, half of "
        "what twice the links could give",
        judge=_quad_above_dual,
        experiments=("E8",),
        built_in=_LINKS_ONLY,
    ),
)
