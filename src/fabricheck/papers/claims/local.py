"""Claims on a device's own memory (E1)."""

from __future__ import annotations

from fabricheck.core.amounts import about
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.judging import curves, high, low, median_of
from fabricheck.papers.claims.model import Claim, Finding, NotTestable, computed, number, verdict
from fabricheck.papers.claims.published import value
from fabricheck.papers.claims.rules import (
    MEMORY,
    Group,
    Points,
    each_above,
    memory_peak,
    part_between,
    part_of_peak,
)
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series, largest

#: The sizes of JSC's arrays: 0.5 to 8 GiB.
LARGE = 2**29
#: The smallest of JSC's four block sizes, in threads. The loss of A100 counts from there.
LEAST_BLOCK = 128

#: Fractions that count as reached, as a size step in either direction, and as a loss, and
#: percentage points; the rules give the reasons.
SATURATED, STEP, BLOCK_LOSS, RANGE_POINTS = 0.95, 2.0, 0.02, 2.0


def _stream(operation: str) -> Group:
    """Return by device the series of a kernel with the largest arrays."""

    def choose(observed: Observed) -> Points:
        found = observed.select(
            experiment="E1", operation=operation, role="single", regime="memory"
        )
        needs.some(found, f"STREAM {operation} on the memory of a device", "E1")
        return largest(found, lambda point: point.device)

    return Group(f"STREAM {operation}", choose)


def _a100_triad(observed: Observed) -> Finding:
    # Both of JSC's numbers are of the GPU with a peak of 1555 GB/s.
    low_end = value("jsc-a100-stream-util")
    high_end = low_end * value("jsc-a100-triad-final") / value("jsc-a100-triad")
    said = f"{low_end:.0f} to {high_end:.0f} %"
    return part_between(observed, _stream("triad"), MEMORY, low_end - 1, high_end + 1, said)


def _scan(observed: Observed) -> dict[int | None, dict[int, Series]]:
    """Return by block size and array size the triad of one device."""
    found = observed.select(experiment="E1", operation="triad", role="single")
    first = min((point.device for point in found if point.device is not None), default=None)
    return curves((one for one in found if one.device == first), lambda one: one.block_size)


def _saturation(observed: Observed) -> Finding:
    wanted = value("jsc-sat-size")
    blocks = _scan(observed)
    sizes = blocks.get(256) or next(iter(blocks.values()), {})
    if not sizes or min(sizes) >= wanted / STEP or max(sizes) < 4 * wanted:
        raise NotTestable("the session has no triad over array sizes from 32 MiB to 256 MiB (E1)")
    *_, plateau = sizes.values()
    reached = plateau
    for point in reversed(sizes.values()):
        if high(point) < SATURATED * low(plateau):
            break
        reached = point
    return verdict(
        wanted / STEP <= reached.bytes <= wanted * STEP,
        f"From {about(reached.bytes)} on triad has {100 * SATURATED:.0f} % of the "
        f"{plateau.value:.0f} GB/s of its largest array; published are {about(int(wanted))}.",
        computed("smallest array of the plateau", reached.bytes, "B", plateau),
        number("triad there", reached),
        number("triad with the largest array", plateau),
    )


def _good_block(observed: Observed) -> Finding:
    block = int(value("jsc-blocksize"))
    blocks = _scan(observed)
    if len(blocks) < 2 or block not in blocks:
        raise NotTestable(
            f"the session has no triad with blocks of {block} threads and of others (E1)"
        )
    common = set.intersection(
        *({size for size in own if own[size].regime == "memory"} for own in blocks.values())
    )
    if not common:
        raise NotTestable(
            "the session has no triad with all its block sizes and one size beyond the caches (E1)"
        )
    ends = {name: points[max(common)] for name, points in blocks.items()}
    best = max(ends.values(), key=median_of)
    own = ends[block]
    loss = 100 * (1 - own.value / best.value)
    return verdict(
        high(own) >= (1 - BLOCK_LOSS) * low(best),
        f"Of {about(own.bytes)} triad with blocks of {block} threads gives {own.value:.1f} "
        f"GB/s, {loss:.1f} % less than with the best of {len(ends)}, of {best.block_size}.",
        *(
            number(f"triad with blocks of {name}", point)
            for name, point in sorted(ends.items(), key=lambda item: item[0] or 0)
        ),
    )


def _all_blocks(observed: Observed) -> Finding:
    node = needs.node(observed)
    found = observed.select(experiment="E1", role="single")
    found = [
        point
        for point in found
        if point.bytes >= LARGE
        and point.device is not None
        and (point.block_size or 0) >= LEAST_BLOCK
    ]
    kernels = ", ".join(sorted({point.operation for point in found}))
    blocks = {point.block_size for point in found}
    if len(blocks) < 2:
        raise NotTestable(
            f"the session has no STREAM with several block sizes of {LEAST_BLOCK} threads and more "
            "and with 0.5 GiB (E1)"
        )
    least, most = value("jsc-block-util-lo"), value("jsc-block-util-hi")
    parts = [(100 * point.value / memory_peak(node, point.device or 0), point) for point in found]
    worst, best = (choose(parts, key=lambda part: part[0]) for choose in (min, max))
    return verdict(
        worst[0] >= least - RANGE_POINTS and best[0] <= most + RANGE_POINTS,
        f"{len(parts)} series of {kernels} with {len(blocks)} block "
        f"sizes reach {worst[0]:.1f} to {best[0]:.1f} % of the memory's peak; published are "
        f"{least:.0f} to {most:.0f} %.",
        *(
            number(f"{point.operation}, {about(point.bytes)}, {point.block_size} threads", point)
            for _, point in (worst, best)
        ),
    )


CLAIMS = (
    Claim(
        id="local-stream-87",
        statement="STREAM copy on a device's own memory reaches 87 % of the peak.",
        document="paper",
        where="V.B",
        rule="the median over the devices is 87 % of the node model's peak, 3 points either way: "
        "1400 GB/s are 87.5 % of the paper's 1600 and 85.4 % of a model's 1638.4, and rounded",
        requires=needs.packages_of_two,
        judge=part_of_peak(_stream("copy"), MEMORY, ("paper-stream-local-pct",), 3.0),
        experiments=("E1",),
        records=("paper-stream-local-pct", "paper-stream-local", "jsc-copy"),
        rests_on=("simulation.memory_efficiency",),
    ),
    Claim(
        id="local-triad-82",
        statement="STREAM triad on a die's own memory reaches 82 % of the peak.",
        document="jsc",
        where="GPU STREAM Variant, Data Size Scan",
        rule="the median over the devices is 82 % of the node model's peak, 2.5 points either way: "
        "JSC's two values are half a point apart, JSC's and the paper's copy nearly two",
        requires=needs.packages_of_two,
        judge=part_of_peak(_stream("triad"), MEMORY, ("jsc-triad-util",), 2.5),
        experiments=("E1",),
        records=("jsc-triad-util", "jsc-triad", "jsc-mi250-triad-final"),
        built_in="all four kernels reach the same part of the peak",
    ),
    Claim(
        id="local-copy-above-triad",
        statement="On a die of MI250 STREAM copy is faster than triad.",
        document="jsc",
        where="GPU STREAM Variant, Data Size Scan",
        rule="on every device copy is above triad, and their intervals do not meet; no tolerance, "
        "as JSC's two differ by 6 %",
        requires=needs.packages_of_two,
        judge=each_above(_stream("copy"), _stream("triad")),
        experiments=("E1",),
        records=("jsc-copy", "jsc-triad"),
        built_in="all four kernels reach the same part of the peak",
    ),
    Claim(
        id="a100-triad-87",
        statement="STREAM triad on A100 reaches 87 % of the peak.",
        document="jsc",
        where="GPU STREAM Variant, Data Size Scan",
        rule="the median over the devices is between 86 and 91 % of the node model's peak: 87 % is "
        "JSC's 1.35 TB/s, its 1.399 TB/s is 90 %, and percents are rounded",
        requires=needs.architecture("sm_80", "A100"),
        judge=_a100_triad,
        experiments=("E1",),
        records=("jsc-a100-stream-util", "jsc-a100-triad", "jsc-a100-triad-final"),
    ),
    Claim(
        id="saturation-64mib",
        statement="A die's memory is saturated by arrays of about 64 MiB.",
        document="jsc",
        where="GPU STREAM Variant, Data Size Scan",
        rule="the smallest array from which on triad has 95 % of its value with the largest is of "
        "32 to 128 MiB: about 64 MiB is one step of doubled sizes either way, and 5 % is what a "
        "linear plot shows",
        requires=needs.packages_of_two,
        judge=_saturation,
        experiments=("E1",),
        records=("jsc-sat-size",),
    ),
    Claim(
        id="blocks-of-256",
        statement="256 threads a block is a good choice for STREAM.",
        document="jsc",
        where="Threads and Data Sizes",
        rule="with the largest arrays that all block sizes have triad with 256 threads is at most "
        "2 % below the best of the scan, noise counting for it: JSC's blocks differ by up to 7 "
        "points of 88",
        requires=needs.devices,
        judge=_good_block,
        experiments=("E1",),
        records=("jsc-blocksize", "jsc-block-gain"),
    ),
    Claim(
        id="blocks-76-to-88",
        statement="All STREAM kernels and block sizes reach 76 to 88 % of a die's peak.",
        document="jsc",
        where="Threads and Data Sizes",
        rule="with arrays of 0.5 GiB and more and blocks of 128 threads and more, JSC's least, "
        "every kernel and block size is in the published range, 2 points more either way: it is "
        "that of one device",
        requires=needs.packages_of_two,
        judge=_all_blocks,
        experiments=("E1",),
        records=("jsc-block-util-lo", "jsc-block-util-hi"),
    ),
)
