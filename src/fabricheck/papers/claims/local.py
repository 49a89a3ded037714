"""Claims on a device's own memory (E1)."""

from __future__ import annotations

from fabricheck.core.amounts import about
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.groups import (
    MEMORY,
    WHOLE,
    Group,
    Values,
    by_subject,
    combined,
    curves,
    group,
    series,
)
from fabricheck.papers.claims.kinds import Limits, at_least, at_most, equal, level, order
from fabricheck.papers.claims.model import Claim, NotTestable, value
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series

#: The smallest of JSC's arrays, of 0.5 to 8 GiB, and of its four block sizes, in threads. The loss
#: of A100 counts from there.
LARGE, LEAST_BLOCK = 2**29, 128

#: The fraction of the rate of its largest array with which an array saturates the memory.
SATURATED = 0.95


def _stream(operation: str) -> Group:
    """Return by device the series of a kernel with the largest arrays."""
    name = f"STREAM {operation} on a device's own memory"
    return series(
        name, rate=False, experiment="E1", operation=operation, role="single", regime="memory"
    )


def _scan(observed: Observed) -> dict[int | None, dict[int, Series]]:
    """Return by block size and array size the triad of one device."""
    points = observed.select(experiment="E1", operation="triad", role="single")
    first = min((point.device for point in points if point.device is not None), default=None)
    return curves(
        (point for point in points if point.device == first), lambda point: point.block_size
    )


@group("the smallest array that saturates the memory with triad", WHOLE)
def _saturated(observed: Observed) -> Values:
    """Return the smallest array from which on triad has about the rate of its largest one."""
    wanted = value("jsc-sat-size")
    blocks = _scan(observed)
    sizes = by_subject(blocks.get(256) or next(iter(blocks.values()), {}))
    if not sizes or min(sizes) >= wanted / 2 or max(sizes) < 4 * wanted:
        raise NotTestable("the session has no triad over array sizes from 32 MiB to 256 MiB (E1)")
    plateau = sizes[max(sizes)]
    below = [size for size in sizes if sizes[size].high < SATURATED * plateau.low]
    size = min(size for size in sizes if size > max(below, default=0))
    return {WHOLE: combined(size, "B", [sizes[size], plateau])}


@group("triad by threads a block", "block size", "each")
def _blocks(observed: Observed) -> Values:
    """Return by block size the triad of the largest arrays that all of them have."""
    block = int(value("jsc-blocksize"))
    blocks = _scan(observed)
    if len(blocks) < 2 or block not in blocks:
        raise NotTestable(
            f"the session has no triad with blocks of {block} threads and of others (E1)"
        )
    common = set.intersection(
        *(
            {size for size in points if points[size].regime == "memory"}
            for points in blocks.values()
        )
    )
    if not common:
        raise NotTestable(
            "the session has no triad with all its block sizes and one size beyond the caches (E1)"
        )
    return by_subject({name: points[max(common)] for name, points in blocks.items()})


_GOOD_BLOCK = Group(
    "triad with 256 threads a block",
    lambda observed: {256: _blocks.choose(observed)[int(value("jsc-blocksize"))]},
    "block size",
)


@group("STREAM of every kernel and block size", "kernel")
def _kernels(observed: Observed) -> Values:
    """Return every kernel of large arrays by device, operation, size and block size."""
    fastest = {
        (point.device, point.operation, about(point.bytes), f"{point.block_size} threads"): point
        for point in observed.select(experiment="E1", role="single")
        if point.bytes >= LARGE
        and point.device is not None
        and (point.block_size or 0) >= LEAST_BLOCK
    }
    if len({point.block_size for point in fastest.values()}) < 2:
        raise NotTestable(
            f"the session has no STREAM with several block sizes of {LEAST_BLOCK} threads and more "
            "and with 0.5 GiB (E1)"
        )
    return by_subject(fastest)


CLAIMS = (
    Claim(
        id="local-stream-87",
        statement="STREAM copy on a device's own memory reaches 87 % of the peak.",
        document="paper",
        where="V.B",
        rule="the median over the devices is 87 % of the node model's peak, 3 points either way: "
        "1400 GB/s are 87.5 % of the paper's 1600 and 85.4 % of a model's 1638.4, and rounded",
        requires=needs.packages_of_two,
        judge=level(
            (_stream("copy").part_of(MEMORY), Limits("paper-stream-local-pct", points=3.0))
        ),
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
        judge=level((_stream("triad").part_of(MEMORY), Limits("jsc-triad-util", points=2.5))),
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
        judge=order(_stream("copy"), _stream("triad")),
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
        judge=level(
            (
                _stream("triad").part_of(MEMORY),
                # Both of JSC's numbers are of the GPU with a peak of 1555 GB/s.
                Limits(
                    "jsc-a100-stream-util",
                    lambda: (
                        value("jsc-a100-stream-util")
                        * (value("jsc-a100-triad-final") / value("jsc-a100-triad"))
                    ),
                    points=1.0,
                ),
            )
        ),
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
        judge=level((_saturated, Limits("jsc-sat-size", factor=2.0))),
        experiments=("E1",),
        records=("jsc-sat-size",),
    ),
    Claim(
        id="blocks-of-256",
        statement="256 threads a block is a good choice for STREAM.",
        document="jsc",
        where="Threads and Data Sizes",
        rule="with the largest arrays that all block sizes have triad with 256 threads is at most "
        "2 % below the best of the scan, allowing for noise: JSC's blocks differ by up to 7 "
        "points of 88",
        requires=needs.devices,
        judge=equal(_GOOD_BLOCK, _blocks.whole("greatest"), at_least(1.0, part=0.02)),
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
        judge=level(
            (_kernels.part_of(MEMORY).whole("least"), at_least("jsc-block-util-lo", points=2.0)),
            (_kernels.part_of(MEMORY).whole("greatest"), at_most("jsc-block-util-hi", points=2.0)),
        ),
        experiments=("E1",),
        records=("jsc-block-util-lo", "jsc-block-util-hi"),
    ),
)
