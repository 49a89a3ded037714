"""Claims on transfers between devices: copies (E7), accesses by kernel (E8), both at once."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace

from fabricheck.core.grouping import grouped
from fabricheck.core.show import listed
from fabricheck.core.vocabulary import COMPUTE
from fabricheck.node import LinkClass, NodeModel
from fabricheck.node.contention import left_to_the_slowest
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.between import (
    COPIES,
    DUAL,
    KERNEL_COPIES,
    QUAD,
    SINGLE,
    TIERS,
    accesses,
    between_devices,
    by_one_engine,
    by_pair,
    copies,
    every_pair,
    latencies,
    over,
    wide,
)
from fabricheck.papers.claims.groups import (
    BOTH_WAYS,
    LINKS,
    WHOLE,
    Group,
    Value,
    Values,
    by_subject,
    combined,
    group,
    measured,
)
from fabricheck.papers.claims.kinds import (
    Limits,
    at_least,
    at_most,
    both,
    equal,
    level,
    order,
    ratio,
)
from fabricheck.papers.claims.model import Claim, Finding, NotTestable, verdict
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Pair, Series, select

#: The fractions by which rates of one level differ, also relative to the upper rate, and like
#: latencies: the paper has 10.5 to 10.8 us for equal packages. The rules give the reasons.
LEVEL, SAME_LEVEL, ALIKE = 0.02, 0.03, 0.03
#: The fewest sizes of a scan.
SIZES = 3
#: LUMI accepts nodes whose kernels reach these link rates within 5 %, which is 2 points of 43.
POINTS = 2.0
#: Each tier has twice the links of the next; half of that gain distinguishes two tiers.
NEXT_TIER = 1.5
#: The percentage of its own rate that an undisturbed operation keeps: the two may start 5 % of
#: their time apart.
KEPT = 95.0

_ENGINE = (
    "a copy takes one engine, of the 50 GB/s that AMD's lab notes state; which class has which "
    "level follows from it"
)
_LINKS_ONLY = "kernels are limited by the links and by their accesses in flight, not by an engine"

COPIES_OFF = Group(
    "copies with the engines off", lambda observed: by_subject(copies(observed, engine=False)),
    "ordered pair",
)  # fmt: skip
EVERY_COPY = every_pair(COPIES, "E7")
LATENCIES = every_pair(
    Group("latencies of copies", lambda observed: by_subject(latencies(observed)), "ordered pair"),
    "E7",
)


def _two_levels(observed: Observed) -> Finding:
    """Judge whether each copy is in one of two levels, and both occur."""
    levels = (
        Limits("paper-p2p-bw-lo-low", "paper-p2p-bw-lo-high", part=LEVEL),
        Limits("paper-p2p-bw-hi", part=LEVEL),
    )
    values = EVERY_COPY.choose(observed)
    inside = [
        {pair: value for pair, value in values.items() if value.low <= most and value.high >= least}
        for least, most in (limits.ends() for limits in levels)
    ]
    known = [pair for part in inside for pair in part]
    neither = {pair: value for pair, value in values.items() if pair not in known}
    texts = [f"{len(part)} in one ({limits})" for part, limits in zip(inside, levels, strict=True)]
    named = [f"{a}-{b} {value.value:.1f}" for (a, b), value in neither.items()]
    parts = [part for part in (*inside, neither) if part]
    numbers = [number for part in parts for number in EVERY_COPY.numbers(part)]
    return verdict(
        all(inside) and not neither,
        f"Levels in GB/s of {len(values)} ordered pairs: {listed(texts)}; in neither: "
        f"{listed(named, 3) or 'none'}.",
        *numbers,
    )


@group("copy-engine transfers over quad links of all sizes", "transfer")
def _engine_scan(observed: Observed) -> Values:
    """Return the copies over quad links of every size."""
    node = needs.node(observed)
    copies = [
        point
        for point in by_one_engine(between_devices(observed, "engine"))
        if point.pair is not None and node.link_class(*point.pair) == QUAD
    ]
    needs.large(copies, "copy-engine transfers over a quad link", "E7")
    sizes = {point.bytes for point in copies}
    if len(sizes) < SIZES:
        raise NotTestable(f"the session has copies over a quad link of {len(sizes)} size only (E7)")
    return {
        (*point.devices, point.bytes, index): measured(point) for index, point in enumerate(copies)
    }


def _detours(group: Group, *, others: bool = False) -> Group:
    """Return the pairs whose widest path is longer than the shortest, or the other ones."""

    def is_detour(node: NodeModel, pair: Pair) -> bool:
        if not node.detour_pairs:
            raise NotTestable(
                f"{node.name} has no pair whose widest path is longer than its shortest one"
            )
        return (tuple(sorted(pair)) in node.detour_pairs) != others

    which = "the shortest" if others else "longer than the shortest"
    chosen = group.where(is_detour, f"{group.name}, pairs whose widest path is {which}", "E7")
    return replace(chosen, statistic="each")


_WIDE_LINKS = EVERY_COPY.where(
    lambda node, pair: node.link_class(*pair) in (DUAL, QUAD),
    "copies over direct links of two and four",
    "E7",
)


@group("copies of pairs whose widest path is not the shortest", "ordered pair")
def _detour_copies(observed: Observed) -> Values:
    detours = _detours(EVERY_COPY).choose(observed)
    upper, lower = (
        statistics.median(value.value for value in group.choose(observed).values())
        for group in (_WIDE_LINKS, over(EVERY_COPY, SINGLE, "E7"))
    )
    if lower >= upper * (1 - SAME_LEVEL):
        raise NotTestable(
            f"copies over one link ({lower:.1f} GB/s) are as fast as those over several "
            f"({upper:.1f}), so the bandwidth does not tell the path"
        )
    return detours


@group("copies with HSA_ENABLE_PEER_SDMA=0 alone, over several links", "ordered pair")
def _peer_switch(observed: Observed) -> Values:
    """Return the copies over several links with the switch of peers alone, if by kernel."""
    node = needs.node(observed)
    alone = by_pair(
        point
        for point in between_devices(observed, "engine")
        if point.by_peer_switch_alone and point.bytes >= needs.LARGE
    )
    needs.some([*alone.values()], "copies between devices with HSA_ENABLE_PEER_SDMA=0 alone", "E7")
    several = {pair: value for pair, value in alone.items() if node.link_class(*pair).links > 1}
    for point in several.values():
        if point.engine == "copy-engine":
            raise NotTestable(
                f"its HIP {point.document['versions']['runtime']} copies between devices "
                f"{point.devices[0]} and {point.devices[-1]} by engines in spite of "
                "HSA_ENABLE_PEER_SDMA=0; the document is about ROCm 5.7"
            )
    return by_subject(several)


def _each(keep: Callable[[LinkClass], bool], name: str) -> Group:
    """Return the latencies of the pairs of some link classes, each to be judged."""
    chosen = LATENCIES.where(lambda node, pair: keep(node.link_class(*pair)), name, "E7")
    return replace(chosen, statistic="each")


_DIRECT_LATENCIES = _each(lambda kind: kind == SINGLE, "latencies over one direct link")
_OTHER_LATENCIES = _each(lambda kind: kind != SINGLE, "latencies over other paths")
_PACKAGE_LATENCIES = _each(lambda kind: kind == QUAD, "latencies within a package")


def _all_at_once(observed: Observed, operation: str) -> Series:
    """Return the sum of an operation of every ordered pair of devices at the same time."""
    devices = len(needs.node(observed).devices)
    pairs = devices * (devices - 1)
    experiment = "E7" if operation == "engine" else "E8"
    sums = observed.select(
        experiment=experiment, operation=operation, role="sum", direction="one-way"
    )
    # Both pairs of two devices are the check of both directions.
    totals = [series for series in sums if series.bytes_moved == pairs * series.bytes and pairs > 2]
    what = f"{operation} of every pair of devices at the same time"
    return max(needs.large(totals, what, experiment), key=lambda point: point.bytes)


@group("sums of every pair at the same time, of what links leave", "operation", "each")
def _sums_of_links(observed: Observed) -> Values:
    percents = {}
    for operation in ("read", "write"):
        total = measured(_all_at_once(observed, operation))
        alone = every_pair(accesses(operation), "E8").choose(observed)
        rates = {pair: value.value for pair, value in alone.items()}
        left, _ = left_to_the_slowest(needs.node(observed), rates)
        percents[operation] = combined(100 * total.value / (left * len(alone)), "percent", [total])
    return percents


@group("the sum by engine of every pair at the same time", WHOLE, "each")
def _engine_sum(observed: Observed) -> Values:
    engine = _all_at_once(observed, "engine")
    if not engine.by_engines:
        raise NotTestable("the copies of every pair at the same time were not by copy engine (E7)")
    return {WHOLE: measured(engine)}


_KERNEL_SUMS = Group(
    "sums by kernel of every pair at the same time",
    lambda observed: {
        operation: measured(_all_at_once(observed, operation)) for operation in ("read", "write")
    },
    "operation",
    "each",
)


def _blocks(name: str, *, fewest: bool = False) -> Group:
    """Return the rate of a path with one block, or that of the best grid of its sweep."""

    def choose(observed: Observed) -> Values:
        needs.devices(observed)
        if observed.simulated:
            raise NotTestable("compute units of devices are not simulated")
        accesses = select(observed.variants, experiment="E8", operation={"read", "write"})
        sweeps = grouped(
            ((series.operation, *series.pair, series.bytes, series.block_size), series)
            for series in accesses
            if series.grid is not None and series.pair is not None
        )
        by_path = {
            path: sweep
            for path, sweep in sweeps.items()
            if any(series.grid == 1 for series in sweep)
        }
        needs.some([*by_path.values()], "kernels of one block between devices", "E8")
        key = (lambda point: -(point.grid or 0)) if fewest else (lambda point: point.value)
        return {path: measured(max(sweep, key=key)) for path, sweep in by_path.items()}

    return Group(f"accesses by kernel with {name}", choose, "path", "each")


#: By destination of the copies, the experiments of copy-engine transfers and of kernel copies.
_TARGETS = {
    "a peer": ("E7", "E8"),
    "host memory": ("E2", "E3"),
}


def _rate_left(way: str) -> Group:
    """Return what the kernel and the copies keep of their own rate beside each other.

    Of kernel copies the lesser of both. Only targets count that have copies in both ways.
    """

    def choose(observed: Observed) -> Values:
        needs.devices(observed)
        if observed.simulated:
            raise NotTestable("computing of devices is not simulated")
        shares: dict[str, Value] = {}
        for target, experiments in _TARGETS.items():
            both_ways = {
                each: _beside(observed, each, experiment)
                for each, experiment in zip(("engine", "kernel"), experiments, strict=True)
            }
            if all(len(parts) == 2 for parts in both_ways.values()):
                parts = both_ways[way]
                if way == "kernel":
                    lesser = min(parts, key=lambda what: parts[what].value)
                    parts = {lesser: parts[lesser]}
                shares |= {
                    f"{what} with copies to {target}": number for what, number in parts.items()
                }
        if not shares:
            raise NotTestable(
                "the session has no kernel beside copies by copy engine and by kernel "
                "(E7 and E8, or E2 and E3: the checks overlap_*)"
            )
        return shares

    return Group(
        f"of their own rate a kernel and copies by {way} keep beside each other",
        choose,
        "part",
        "each",
    )


def _beside(observed: Observed, way: str, experiment: str) -> dict[str, Value]:
    """Return what the kernel, and what the copies keep, in percent, as medians of the devices.

    Kernel copies do not count as copy-engine transfers, even where the environment replaces engines
    by kernels.
    """
    mover = "copy-engine" if way == "engine" else "kernel"
    points = observed.select(experiment=experiment, program="overlap")
    shares = {}
    for what, some in (
        ("the kernel", [point for point in points if point.operation == COMPUTE]),
        (
            "the copies",
            [point for point in points if point.operation != COMPUTE and point.engine == mover],
        ),
    ):
        beside, alone = (
            {series.device: series for series in some if series.role == role}
            for role in ("beside", "single")
        )
        common = [device for device in beside if device in alone]
        if common:
            parts = [100 * _rate(beside[device]) / _rate(alone[device]) for device in common]
            used = [measured(by[device]) for by in (beside, alone) for device in common]
            shares[what] = combined(statistics.median(parts), "percent", used)
    return shares


def _rate(point: Series) -> float:
    return 1 / point.value if point.better == "lower" else point.value


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
        judge=level(
            *(
                (
                    over(COPIES, kind, "E7").part_of(LINKS),
                    Limits(f"paper-commscope-util-{kind.word}", part=LEVEL),
                )
                for kind in TIERS
            )
        ),
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
        judge=ratio(over(COPIES, QUAD, "E7"), over(COPIES, DUAL, "E7"), Limits(1.0, part=LEVEL)),
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
        judge=level((_engine_scan.whole("greatest"), at_most("paper-p2p-bw-hi", part=LEVEL))),
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
        judge=equal(_detour_copies, _WIDE_LINKS.whole("median"), at_least(1.0, part=SAME_LEVEL)),
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
        judge=order(wide(COPIES_OFF, "E7"), wide(COPIES, "E7")),
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
        judge=order(_peer_switch, COPIES),
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
            COPIES.where(
                lambda node, pair: node.link_class(*pair).direct,
                "copy-engine transfers of linked pairs",
                "E7",
            ),
            COPIES.where(
                lambda node, pair: not node.link_class(*pair).links,
                "copy-engine transfers of pairs without a link",
                "E7",
            ),
            # What "about 1.7 times" leaves open: 1.5 to 1.9.
            Limits("hf-mi210-gain", points=0.2),
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
        judge=level(
            (
                _DIRECT_LATENCIES,
                at_most("paper-p2p-lat-single"),
            ),
            (
                _OTHER_LATENCIES,
                at_least("paper-p2p-lat-single"),
            ),
        ),
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
        judge=both(
            level(
                (
                    _PACKAGE_LATENCIES,
                    Limits("paper-p2p-lat-samegpu-low", "paper-p2p-lat-samegpu-high", part=ALIKE),
                )
            ),
            order(_PACKAGE_LATENCIES.whole("greatest"), LATENCIES.whole("least")),
        ),
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
        judge=both(
            level(
                (
                    _detours(LATENCIES),
                    Limits("paper-p2p-lat-outlier-low", "paper-p2p-lat-outlier-high", part=ALIKE),
                )
            ),
            order(_detours(LATENCIES), _detours(LATENCIES, others=True).whole("greatest")),
        ),
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
        judge=level(
            (LATENCIES.whole("least"), Limits("paper-p2p-lat-min", part=ALIKE)),
            (LATENCIES.whole("greatest"), Limits("paper-p2p-lat-max", part=ALIKE)),
        ),
        experiments=("E7",),
        records=("paper-p2p-lat-min", "paper-p2p-lat-max"),
        rests_on=("simulation.copy_start_us", "simulation.copy_hop_us"),
    ),
    Claim(
        id="kernel-three-tiers",
        statement="Kernel copies in a peer's memory show three tiers, those of the links.",
        document="paper",
        where="V.B and figure 8",
        rule="every pair with a wider direct link is at least half as fast again as every one of "
        "the next tier, half of what twice the links could give",
        requires=needs.tiers,
        judge=both(
            order(
                over(KERNEL_COPIES, DUAL, "E8"),
                over(KERNEL_COPIES, SINGLE, "E8").whole("greatest"),
                NEXT_TIER,
            ),
            order(
                over(KERNEL_COPIES, QUAD, "E8"),
                over(KERNEL_COPIES, DUAL, "E8").whole("greatest"),
                NEXT_TIER,
            ),
        ),
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
        judge=level(
            *(
                (
                    over(KERNEL_COPIES, kind, "E8").part_of(BOTH_WAYS),
                    Limits("paper-stream-p2p-pct-low", "paper-stream-p2p-pct-high", points=POINTS),
                )
                for kind in TIERS
            )
        ),
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
            over(KERNEL_COPIES, QUAD, "E8"), over(KERNEL_COPIES, DUAL, "E8"), at_least(NEXT_TIER)
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
        judge=level((_sums_of_links, Limits(100.0, points=25.0))),
        experiments=("E8",),
        built_in="simulated transfers that share a link share it evenly",
    ),
    Claim(
        id="all-pairs-kernels-faster",
        statement="Kernels provide a higher rate between devices than copy engines.",
        document="lab-notes",
        where="GPU-to-GPU communication options",
        rule="the sums of reads and of writes by kernel of every ordered pair at the same time are "
        "above that of copy-engine transfers, the intervals apart",
        judge=order(_KERNEL_SUMS, _engine_sum),
        experiments=("E7", "E8"),
    ),
    Claim(
        id="kernels-need-compute-units",
        statement="Kernels require compute units to move data between devices.",
        document="lab-notes",
        where="GPU-to-GPU communication options",
        rule="on each path a grid of one block, which uses one compute unit, is slower than the "
        "best of a sweep of grids, the intervals apart",
        judge=order(_blocks("the best number of blocks"), _blocks("one block", fewest=True)),
        experiments=("E8",),
    ),
    Claim(
        id="engines-leave-compute-free",
        statement="Copy-engine transfers overlap computations without affecting the kernel; "
        "kernel copies take compute units from it.",
        document="paper",
        where="V.A.2 and V.C; of kernels AMD's lab notes, GPU-to-GPU communication options",
        rule="beside each other the kernel and copy-engine transfers keep 95 % of their own "
        "rates, as they may start 5 % of their time apart, and of the kernel and kernel "
        "copies one keeps less; medians of the devices",
        judge=level((_rate_left("engine"), at_least(KEPT)), (_rate_left("kernel"), at_most(KEPT))),
        experiments=("E2", "E3", "E7", "E8"),
    ),
)
