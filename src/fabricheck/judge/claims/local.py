"""Claims on a device's own memory (E1)."""

from __future__ import annotations

import statistics

from fabricheck.core.amounts import about
from fabricheck.judge.claims import needs
from fabricheck.judge.claims.judging import high, low, middle
from fabricheck.judge.claims.model import Claim, Finding, NotTestable, computed, number, verdict
from fabricheck.judge.claims.published import value
from fabricheck.node import NodeModel
from fabricheck.results.observed import Observed, Point
from fabricheck.results.observed.point import curve, largest

#: The paper's 1400 GB/s are 87.5 % of the 1600 that it states and 85.4 % of a node model's 1638.4;
#: a point more is what rounding allows.
COPY_POINTS = 3.0

#: JSC states 1.34 and 1.349 TB/s, half a point apart; copy on the same GPU is 85.4 % for the paper
#: and 86.7 % for JSC, so that other software and another sample are good for two points more.
TRIAD_POINTS = 2.5

#: JSC states 1.35 TB/s, 87 %, in the text, and 1.399 TB/s, 90 %, in a caption: whole percents.
A100_POINTS = 1.0

#: JSC's differences between block sizes are of up to 7 points of 88: less than a third is good.
BLOCK_LOSS = 0.02

#: JSC's range of all blocks and kernels is of one device; another sample differs by two points.
RANGE_POINTS = 2.0

#: JSC's arrays are of 0.5 to 8 GiB.
LARGE = 2**29

#: What counts as reached, on a plot with a linear axis, and a step of sizes either way.
SATURATED, SATURATION_STEP = 0.95, 2.0


def _alone(observed: Observed, operation: str) -> dict[int | None, Point]:
    """Return by device the series of a kernel with the largest arrays."""
    found = observed.select(experiment="E1", operation=operation, role="single")
    found = [point for point in found if point.series["regime"] == "memory"]
    what = f"STREAM {operation} on the memory of a device"
    return dict(largest(needs.some(found, what, "E1"), lambda point: point.device))


def _part_of_peak(
    observed: Observed, node: NodeModel, operation: str, least: float, most: float, said: str
) -> Finding:
    points = _alone(observed, operation)
    parts = {
        device: 100 * point.median / node.device(device).memory_peak_gbs
        for device, point in points.items()
        if device is not None
    }
    median = statistics.median(parts.values())
    return verdict(
        least <= median <= most,
        f"STREAM {operation} reaches {median:.1f} % of the memory's peak, the median of "
        f"{len(parts)} device(s); published are {said}.",
        computed("of the memory's peak, median", median, "percent", *points.values()),
        *(number(f"{operation} on device {device}", point) for device, point in points.items()),
    )


def _copy_part(observed: Observed) -> Finding:
    node = needs.packages_of_two(observed)
    wanted = value("paper-stream-local-pct")
    least, most = wanted - COPY_POINTS, wanted + COPY_POINTS
    return _part_of_peak(observed, node, "copy", least, most, f"{wanted:.0f} %")


def _triad_part(observed: Observed) -> Finding:
    node = needs.packages_of_two(observed)
    wanted = value("jsc-triad-util")
    least, most = wanted - TRIAD_POINTS, wanted + TRIAD_POINTS
    return _part_of_peak(observed, node, "triad", least, most, f"{wanted:.0f} %")


def _a100_part(observed: Observed) -> Finding:
    node = needs.architecture(observed, "sm_80", "A100")
    # Both of JSC's numbers are of the GPU with 1555 GB/s.
    low_end = value("jsc-a100-stream-util")
    high_end = low_end * value("jsc-a100-triad-final") / value("jsc-a100-triad")
    least, most = low_end - A100_POINTS, high_end + A100_POINTS
    said = f"{low_end:.0f} to {high_end:.0f} %"
    return _part_of_peak(observed, node, "triad", least, most, said)


def _copy_above_triad(observed: Observed) -> Finding:
    needs.packages_of_two(observed)
    copies, triads = _alone(observed, "copy"), _alone(observed, "triad")
    both = [device for device in copies if device in triads]
    if not both:
        raise NotTestable("no device has both STREAM copy and triad (E1)")
    slower = [device for device in both if low(copies[device]) <= high(triads[device])]
    copy, triad = (middle(one[device] for device in both) for one in (copies, triads))
    return verdict(
        not slower,
        f"Copy gives {copy:.0f} GB/s and triad {triad:.0f}, medians of {len(both)} device(s); copy "
        f"is above triad beyond the noise on {len(both) - len(slower)} of them.",
        computed("copy, median of the devices", copy, "GB/s", *(copies[one] for one in both)),
        computed("triad, median of the devices", triad, "GB/s", *(triads[one] for one in both)),
    )


def _scan(observed: Observed) -> dict[int | None, list[Point]]:
    """Return by block size the triad of one device over array sizes."""
    found = observed.select(experiment="E1", operation="triad", role="single")
    by_block: dict[int | None, list[Point]] = {}
    first = min((point.device for point in found if point.device is not None), default=None)
    for point in found:
        if point.device == first:
            by_block.setdefault(point.block, []).append(point)
    return {block: curve(points) for block, points in by_block.items()}


def _saturation(observed: Observed) -> Finding:
    needs.packages_of_two(observed)
    wanted = value("jsc-sat-size")
    curves = _scan(observed)
    points = curves.get(256) or next(iter(curves.values()), [])
    sizes = [point.bytes for point in points]
    if not sizes or min(sizes) >= wanted / SATURATION_STEP or max(sizes) < 4 * wanted:
        raise NotTestable("the session has no triad over array sizes from 32 MiB to 256 MiB (E1)")
    plateau = points[-1]
    reached = plateau
    for point in reversed(points):
        if high(point) < SATURATED * low(plateau):
            break
        reached = point
    return verdict(
        wanted / SATURATION_STEP <= reached.bytes <= wanted * SATURATION_STEP,
        f"From {about(reached.bytes)} on triad has {100 * SATURATED:.0f} % of the "
        f"{plateau.median:.0f} GB/s of its largest array; published are {about(int(wanted))}.",
        computed("smallest array of the plateau", reached.bytes, "B", plateau),
        number("triad there", reached),
        number("triad with the largest array", plateau),
    )


def _good_block(observed: Observed) -> Finding:
    needs.devices(observed)
    block = int(value("jsc-blocksize"))
    curves = _scan(observed)
    if len(curves) < 2 or block not in curves:
        raise NotTestable(
            f"the session has no triad with blocks of {block} threads and of others (E1)"
        )
    by_size = {
        name: {point.bytes: point for point in points if point.series["regime"] == "memory"}
        for name, points in curves.items()
    }
    common = set.intersection(*(set(points) for points in by_size.values()))
    if not common:
        raise NotTestable(
            "the session has no triad with all its block sizes and one size beyond the caches (E1)"
        )
    ends = {name: points[max(common)] for name, points in by_size.items()}
    best = max(ends.values(), key=lambda point: point.median)
    own = ends[block]
    loss = 100 * (1 - own.median / best.median)
    return verdict(
        high(own) >= (1 - BLOCK_LOSS) * low(best),
        f"Of {about(own.bytes)} triad with blocks of {block} threads gives {own.median:.1f} "
        f"GB/s, {loss:.1f} % less than with the best of {len(ends)}, of {best.block}.",
        *(
            number(f"triad with blocks of {name}", point)
            for name, point in sorted(ends.items(), key=lambda item: item[0] or 0)
        ),
    )


def _all_blocks(observed: Observed) -> Finding:
    node = needs.packages_of_two(observed)
    found = [
        point
        for point in observed.select(experiment="E1", role="single")
        if point.bytes >= LARGE and point.device is not None
    ]
    kernels = ", ".join(sorted({point.operation for point in found}))
    if len({point.block for point in found}) < 2:
        raise NotTestable("the session has no STREAM with several block sizes and 0.5 GiB (E1)")
    least, most = value("jsc-block-util-lo"), value("jsc-block-util-hi")
    parts = [
        (100 * point.median / node.device(point.device or 0).memory_peak_gbs, point)
        for point in found
    ]
    worst, best = (choose(parts, key=lambda part: part[0]) for choose in (min, max))
    return verdict(
        worst[0] >= least - RANGE_POINTS and best[0] <= most + RANGE_POINTS,
        f"{len(parts)} series of {kernels} with {len({point.block for point in found})} block "
        f"sizes reach {worst[0]:.1f} to {best[0]:.1f} % of the memory's peak; published are "
        f"{least:.0f} to {most:.0f} %.",
        *(
            number(f"{point.operation}, {about(point.bytes)}, {point.block} threads", point)
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
        judge=_copy_part,
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
        judge=_triad_part,
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
        judge=_copy_above_triad,
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
        judge=_a100_part,
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
        judge=_good_block,
        experiments=("E1",),
        records=("jsc-blocksize", "jsc-block-gain"),
    ),
    Claim(
        id="blocks-76-to-88",
        statement="All STREAM kernels and block sizes reach 76 to 88 % of a die's peak.",
        document="jsc",
        where="Threads and Data Sizes",
        rule="with arrays of 0.5 GiB and more every kernel and block size is in the published "
        "range, 2 points more either way: it is that of one device",
        judge=_all_blocks,
        experiments=("E1",),
        records=("jsc-block-util-lo", "jsc-block-util-hi"),
    ),
)
