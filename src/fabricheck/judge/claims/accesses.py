"""Claims on kernels that access the memory of another device (E8)."""

from __future__ import annotations

from itertools import pairwise

from fabricheck.judge.claims import needs
from fabricheck.judge.claims.between import (
    DUAL,
    QUAD,
    TIERS,
    accesses,
    of_class,
    of_classes,
    peak_of,
)
from fabricheck.judge.claims.judging import high, low, middle, middle_number, pairs, span
from fabricheck.judge.claims.model import Claim, Finding, computed, verdict
from fabricheck.judge.claims.published import value
from fabricheck.judge.claims.rules import Points, ratio
from fabricheck.node import LinkClass
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

#: LUMI accepts nodes whose kernels reach these link rates within 5 %, which is 2 points of 43.
POINTS = 2.0
#: Each tier has twice the links of the next; half of that gain distinguishes two tiers.
NEXT_TIER = 1.5

_LINKS_ONLY = "kernels are limited by the links and by their accesses in flight, not by an engine"


def _copies(observed: Observed) -> Points:
    return accesses(observed, "copy")


def _tiers(observed: Observed) -> dict[LinkClass, list[Series]]:
    """Return the kernel copies over direct links, by link class from single to quad."""
    return of_classes(needs.node(observed), _copies(observed), TIERS, "kernel copies", "E8")


def _three_tiers(observed: Observed) -> Finding:
    tiers = _tiers(observed)
    holds = all(
        min(low(one) for one in wider) >= NEXT_TIER * max(high(one) for one in narrower)
        for narrower, wider in pairwise(tiers.values())
    )
    spans = [f"{kind.name} {span(tier)} ({pairs(tier)})" for kind, tier in tiers.items()]
    return verdict(
        holds,
        f"Kernel copies in a peer's memory are in tiers: {', '.join(spans)}.",
        *(middle_number(f"{kind.name} links, median", tier) for kind, tier in tiers.items()),
    )


def _parts_of_peak(observed: Observed) -> Finding:
    node = needs.node(observed)
    least, most = value("paper-stream-p2p-pct-low"), value("paper-stream-p2p-pct-high")
    holds, texts, numbers = True, [], []
    for kind, tier in _tiers(observed).items():
        both_ways = 2 * peak_of(node, tier)
        part = 100 * middle(tier) / both_ways
        holds &= least - POINTS <= part <= most + POINTS
        texts.append(f"{part:.1f} % of {both_ways:g} GB/s over {kind.name} links ({pairs(tier)})")
        numbers.append(computed(f"{kind.name} links, of the peak", part, "percent", *tier))
    return verdict(
        holds,
        f"Kernel copies reach {', '.join(texts)}; published are {least:g} to {most:g} %.",
        *numbers,
    )


CLAIMS = (
    Claim(
        id="kernel-three-tiers",
        statement="Kernel copies in a peer's memory show three tiers, those of the links.",
        document="paper",
        where="V.B and figure 8",
        rule="every pair with a wider direct link is at least half as fast again as every one of "
        "the next tier, half of what twice the links could give",
        requires=needs.tiers,
        judge=_three_tiers,
        experiments=("E8",),
        built_in=_LINKS_ONLY,
    ),
    Claim(
        id="kernel-43-percent",
        statement="Kernel copies in a peer's memory reach 43 to 44 % of the peak of both "
        "directions, over each kind of link.",
        document="paper",
        where="V.B and figure 9",
        rule="the median of each class of direct pairs is in that range, 2 points either way: LUMI "
        "accepts its nodes within 5 % of such rates",
        requires=needs.tiers,
        judge=_parts_of_peak,
        experiments=("E8",),
        records=("paper-stream-p2p-pct-low", "paper-stream-p2p-pct-high"),
        rests_on=("simulation.kernel_window",),
    ),
    Claim(
        id="kernel-no-engine-limit",
        statement="Kernels do not have the copy engines' limit: a quad link gives them more than a "
        "dual one.",
        document="paper",
        where="V.B",
        rule="the median over quad links is at least half as much again as over dual ones, half of "
        "what twice the links could give",
        requires=needs.tiers,
        judge=ratio(
            of_class("a kernel copy", _copies, QUAD, "kernel copies", "E8"),
            of_class("one", _copies, DUAL, "kernel copies", "E8"),
            lambda found, _: found >= NEXT_TIER,
        ),
        experiments=("E8",),
        built_in=_LINKS_ONLY,
    ),
)
