"""Claims on kernels that access the memory of another device (E8), also all at the same time."""

from __future__ import annotations

from itertools import pairwise

from fabricheck.node import LinkClass
from fabricheck.node.sharing import left_to_the_slowest
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.between import (
    DUAL,
    QUAD,
    TIERS,
    accesses,
    every_pair,
    of_class,
    of_classes,
    peak_of,
)
from fabricheck.papers.claims.judging import (
    above_by,
    high,
    low,
    median_of,
    middle,
    middle_number,
    named,
    pairs,
    span,
)
from fabricheck.papers.claims.model import Claim, Finding, NotTestable, computed, number, verdict
from fabricheck.papers.claims.published import value
from fabricheck.papers.claims.rules import Points, ratio
from fabricheck.results import table
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series

#: LUMI accepts nodes whose kernels reach these link rates within 5 %, which is 2 points of 43.
POINTS = 2.0
#: Each tier has twice the links of the next; half of that gain distinguishes two tiers.
NEXT_TIER = 1.5

#: The sum of all pairs at once is within this fraction of what the links leave: pairs that share a
#: link need not share it evenly, and the check p2p_all_to_all requires 75 %.
ALL_AT_ONCE = 0.25
#: The fraction by which kernels are above copy engines, as far apart as rates of one level.
FASTER = 0.02
#: One compute unit moves less than this fraction of what all together do.
ONE_UNIT = 0.5

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


def _all_at_once(observed: Observed, operation: str) -> Series:
    pairs = len(needs.node(observed).devices) * (len(needs.node(observed).devices) - 1)
    own = "E7" if operation == "engine" else "E8"
    sums = observed.select(experiment=own, operation=operation, role="sum", direction="one-way")
    # Both pairs of two devices are the check of both directions.
    found = [one for one in sums if one.bytes_moved == pairs * one.bytes and pairs > 2]
    what = f"{operation} of every pair of devices at the same time"
    return max(needs.large(found, what, own), key=lambda one: one.bytes)


def _by_links(observed: Observed) -> Finding:
    node = needs.node(observed)
    holds, texts, numbers = True, [], []
    for operation in ("read", "write"):
        total = _all_at_once(observed, operation)
        alone = every_pair(node, accesses(observed, operation), f"{operation} by kernel", "E8")
        left, _ = left_to_the_slowest(node, {pair: one.value for pair, one in alone.items()})
        part = total.value / (left * len(alone))
        holds &= abs(part - 1) <= ALL_AT_ONCE
        texts.append(f"{operation}s {total.value:.1f} GB/s, {100 * part:.1f} % of what links leave")
        numbers.append(number(f"sum of {operation}s", total))
        numbers.append(computed(f"{operation}s, of links", 100 * part, "percent", total))
    return verdict(holds, f"Every pair at the same time: {'; '.join(texts)}.", *numbers)


def _above_engines(observed: Observed) -> Finding:
    engine = _all_at_once(observed, "engine")
    if not engine.by_engines:
        raise NotTestable("the copies of every pair at the same time were not by copy engine (E7)")
    kernels = [_all_at_once(observed, operation) for operation in ("read", "write")]
    listed = [*((f"{one.operation}s by kernel", one) for one in kernels), ("by engine", engine)]
    rates = ", ".join(f"{what} {one.value:.1f} GB/s" for what, one in listed)
    return verdict(
        all(above_by(one, engine, FASTER) for one in kernels),
        f"Every pair at the same time: {rates}.",
        *(number(f"sum, {what}", one) for what, one in listed),
    )


def _compute_units(observed: Observed) -> Finding:
    needs.devices(observed)
    if observed.simulated:
        raise NotTestable("compute units of devices are not simulated")
    sweeps: dict[object, list[Series]] = {}
    for one in table.select(observed.variants, experiment="E8", operation={"read", "write"}):
        if one.grid is not None and one.pair is not None:
            sweeps.setdefault((one.operation, one.pair, one.bytes, one.block_size), []).append(one)
    paths = [
        (one, max(sweep, key=median_of))
        for sweep in sweeps.values()
        for one in sweep
        if one.grid == 1
    ]
    needs.some([one for one, _ in paths], "kernels of one block between devices", "E8")
    few, many = max(paths, key=lambda path: path[0].value / path[1].value)
    part = few.value / many.value
    return verdict(
        all(high(one) < ONE_UNIT * low(best) for one, best in paths),
        f"One block moves at most {100 * part:.1f} % of the best rate of its path "
        f"({few.operation} {named([few])}; with {many.grid} blocks {many.value:.1f} GB/s).",
        number("one block", few),
        number("the best number of blocks", many),
        computed("one block, of the best", 100 * part, "percent", few, many),
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
    Claim(
        id="all-pairs-by-links",
        statement="The highest rate between devices depends on the number of links and of hops "
        "between them.",
        document="lab-notes",
        where="GPU-to-GPU communication options",
        rule="the sum of reads, and that of writes, by kernel of every ordered pair at the same "
        "time is within 25 % of what the links leave the slowest pair, times the pairs: pairs "
        "that share a link need not share it evenly",
        judge=_by_links,
        experiments=("E8",),
        built_in="simulated transfers that share a link share it evenly",
    ),
    Claim(
        id="all-pairs-kernels-faster",
        statement="Kernels provide a higher rate between devices than copy engines.",
        document="lab-notes",
        where="GPU-to-GPU communication options",
        rule="the sums of reads and of writes by kernel of every ordered pair at the same time are "
        "2 % above that of copy-engine transfers, beyond the noise",
        judge=_above_engines,
        experiments=("E7", "E8"),
    ),
    Claim(
        id="kernels-need-compute-units",
        statement="Kernels require compute units to move data between devices.",
        document="lab-notes",
        where="GPU-to-GPU communication options",
        rule="on each path a grid of one block, which uses one compute unit, has less than half of "
        "the best rate of a sweep of grids, beyond the noise",
        judge=_compute_units,
        experiments=("E8",),
    ),
)
