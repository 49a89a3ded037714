"""Claims on copies between host memory and one device: E2, managed memory (E3), domains (E4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fabricheck.core.amounts import about
from fabricheck.core.show import enumerated
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.groups import (
    HOST_LINK,
    STATISTICS,
    WHOLE,
    Group,
    Value,
    Values,
    by_subject,
    combined,
    curves,
    group,
    measured,
    pairs,
    series,
)
from fabricheck.papers.claims.kinds import (
    Judge,
    Limits,
    at_least,
    both,
    equal,
    level,
    mean_of,
    order,
    quotient,
    ratio,
)
from fabricheck.papers.claims.model import Claim, NotTestable, value
from fabricheck.results.observed import Observed
from fabricheck.results.rows import Series

KIB, MIB, GIB = 2**10, 2**20, 2**30

#: The tolerance of a part of the host link's peak, in percentage points, and the fraction within
#: which both directions count as equal; the rules give the reasons. Three points are 1 GB/s of 36.
LINK_POINTS, ALIKE = 3.0, 0.03


def _copying(operation: str, memory: str) -> dict[str, Any]:
    """Return the fields of copy-engine transfers of one device at a time with near memory."""
    return {
        "experiment": "E2",
        "operation": operation,
        "role": "single",
        "host_memory": f"host-{memory}",
        "unit": "GB/s",
        "by_engines": True,
    }


def _reading(movement: str) -> dict[str, Any]:
    """Return the fields of reads by kernels from managed memory that lies on the host."""
    return {
        "experiment": "E3",
        "operation": "read",
        "engine": "kernel",
        "host_memory": "managed",
        "movement": movement,
    }


_TO_DEVICE, _TO_HOST = (f"copies of pageable memory to the {end}" for end in ("device", "host"))
_PAGEABLE_TO = series(_TO_DEVICE, **_copying("h2d", "pageable"))
_PAGEABLE_BACK = series(_TO_HOST, **_copying("d2h", "pageable"))
PINNED = series("copies of pinned memory to the device", **_copying("h2d", "pinned"))
ZERO_COPY = series("zero-copy access by kernels", **_reading("zero-copy"))
MIGRATION = series("page migration by kernels", **_reading("page-migration"))


def _there_and_back(to: Value, back: Value) -> Value:
    """Return a round trip as EPICURE counts it: the bytes of both directions over the time."""

    def together(end: Callable[[Value], float]) -> float:
        return 2 / (1 / end(to) + 1 / end(back))

    ends = (together(lambda value: value.low), together(lambda value: value.high))
    return Value(together(lambda value: value.value), *ends, to.unit, parts=(to, back))


@group("copies of pageable memory there and back")
def round_trips(observed: Observed) -> Values:
    """Return the round trips of pageable memory by device."""
    both_ways = pairs(observed, _PAGEABLE_TO, _PAGEABLE_BACK)
    return {device: _there_and_back(*pair) for device, pair in both_ways.items()}


def _trips(observed: Observed) -> Values:
    """Return the round trips of pageable memory by size, of the device with the most sizes."""
    needs.series(observed, _TO_DEVICE, **_copying("h2d", "pageable"))
    to, back = (
        {
            device: by_subject(curve)
            for device, curve in curves(observed.select(**_copying(way, "pageable"))).items()
        }
        for way in ("h2d", "d2h")
    )
    of_device = [
        {size: _there_and_back(there[size], back[device][size])
         for size in there if size in back[device]}
        for device, there in to.items() if device in back
    ]  # fmt: skip
    return max(of_device, key=len, default={})


def _trip(size: int | None, least: int = 0) -> Group:
    """Return the round trip of one size, or of the largest one.

    :param least: the least size of the largest one.
    """
    what = "the largest size" if size is None else about(size)

    def choose(observed: Observed) -> Values:
        trips = _trips(observed)
        chosen = max(trips, default=0) if size is None else size
        if chosen not in trips or chosen < least:
            raise NotTestable(
                f"the session has no copies of {about(size or least)} of pageable memory (E2)"
            )
        return {WHOLE: trips[chosen]}

    return Group(f"copies of {what} of pageable memory there and back", choose, WHOLE)


@group("copies of pageable memory there and back", "size")
def _large_trips(observed: Observed) -> Values:
    trips = {size: trip for size, trip in _trips(observed).items() if size >= 128 * MIB}
    if len(trips) < 2 or max(trips) < 512 * MIB:
        raise NotTestable(
            "the session has no copies of pageable memory over sizes from 128 to 512 MiB (E2)"
        )
    return trips


def _by_size(observed: Observed, name: str, fields: dict[str, Any]) -> Values:
    """Return the series by size of the device with the most sizes."""
    return by_subject(max(curves(needs.series(observed, name, **fields)).values(), key=len))


@group("the greatest drop of pageable memory to a larger size", WHOLE)
def _drop(observed: Observed) -> Values:
    """Return by how much a larger size of the paper's figure 3 is below a smaller one at most."""
    by_size = _by_size(observed, _TO_DEVICE, _copying("h2d", "pageable"))
    points = [by_size[size] for size in sorted(by_size) if 4 * KIB <= size <= GIB]
    if len(points) < 4:
        raise NotTestable("the session has no copies of pageable memory over sizes (E2)")
    drops = [
        combined(100 * (1 - later.high / smaller.low), "percent", [smaller, later])
        for index, later in enumerate(points)
        for smaller in points[:index]
    ]
    return {WHOLE: STATISTICS["greatest"](drops)}


def _over_sizes(*, zero_copy: bool, beyond: bool) -> Group:
    """Return pinned memory or zero-copy access by size, to 32 MB or beyond, of sizes of both."""
    names = ("copies of pinned memory", "zero-copy access")

    def choose(observed: Observed) -> Values:
        pinned = _by_size(observed, PINNED.name, _copying("h2d", "pinned"))
        access = _by_size(observed, ZERO_COPY.name, _reading("zero-copy"))
        # The figure starts at 4 KB. 32 MiB are 33.6 MB, the 32 MB of the paper's axis.
        limit = value("paper-h2d-zerocopy-crossover") * 1e6 * 1.05
        common = [size for size in sorted(access) if size in pinned and size >= 4000]
        parts = [[size for size in common if (size > limit) == after] for after in (False, True)]
        if len(parts[False]) < 3 or not parts[True]:
            raise NotTestable(
                "the session has no zero-copy and copies of pinned memory over the same sizes on "
                "both sides of 32 MB (E2, E3)"
            )
        return {size: (access if zero_copy else pinned)[size] for size in parts[beyond]}

    return Group(f"{names[zero_copy]} {'beyond' if beyond else 'to'} 32 MB", choose, "size")


Ends = tuple[str, int, int]


def _far_and_near(
    observed: Observed, operations: tuple[str, ...], memory: str, role: str
) -> dict[Ends, tuple[Value, Value]]:
    """Return by operation, device and far domain its copies and those with its own domain.

    Both copies have the largest size that both domains share, at least 16 MiB.
    """
    node = needs.node(observed)
    cells: dict[Ends, dict[int, Series]] = {}
    for point in observed.select(
        experiment={"E2", "E4"},
        operation=frozenset(operations),
        host_memory=f"host-{memory}",
        role=role,
        unit="GB/s",
        by_engines=True,
    ):
        if point.devices and point.host_domain is not None and point.bytes >= needs.LARGE:
            ends = (point.operation, point.devices[0], point.host_domain)
            cells.setdefault(ends, {}).setdefault(point.bytes, point)
    both = {}
    for ends, far in sorted(cells.items()):
        home = (*ends[:2], node.device(ends[1]).domain)
        common = far.keys() & cells.get(home, {}).keys()
        if ends != home and common:
            both[ends] = measured(far[max(common)]), measured(cells[home][max(common)])
    if not both:
        raise NotTestable(
            f"the session has no copies of {memory} memory, {enumerated(operations, last='or')}, "
            "with near and far NUMA domains (E4)"
        )
    return both


def _far_as_near(memory: str, loss: float) -> Judge:
    """Rule: no copy loses more than a fraction with far memory, beyond the noise."""

    def domain(which: int, name: str) -> Group:
        def choose(observed: Observed) -> Values:
            both = _far_and_near(observed, ("h2d", "d2h"), memory, "single")
            return {ends: pair[which] for ends, pair in both.items()}

        return Group(f"copies of {memory} memory with {name}", choose, "transfer")

    return equal(domain(0, "a far domain"), domain(1, "the near one"), at_least(1.0, part=loss))


def two_sockets(near: bool) -> tuple[str, ...]:
    """Return the records of copies in both directions with the near or the far socket."""
    return tuple(
        f"hf-rbt-bidir-gpu{device}-cpu{device // 4 if near else 1 - device // 4}"
        for device in range(8)
    )


def _socket(name: str, *, near: bool) -> Group:
    def choose(observed: Observed) -> Values:
        both = _far_and_near(observed, ("both",), "pinned", "sum")
        return {ends[1] if near else ends[1:]: pair[near] for ends, pair in both.items()}

    return Group(f"copies both ways with the {name} socket's memory", choose, statistic="mean")


CLAIMS = (
    Claim(
        id="pinned-79-of-link",
        statement="Copies of pinned memory reach 79 % of the host link's peak.",
        document="paper",
        where="IV.A, figure 3",
        rule="the median over the devices is 28.3 / 36 of the node model's host link, 3 points "
        "either way: the document prints one number, of another node and its largest size of 1 GB",
        requires=needs.fabric_to_host,
        judge=level(
            (
                PINNED.part_of(HOST_LINK),
                Limits(quotient("paper-h2d-pinned", "paper-cpugpu-uni", 100), points=LINK_POINTS),
            )
        ),
        experiments=("E2",),
        records=("paper-h2d-pinned", "paper-cpugpu-uni"),
        rests_on=("simulation.host_link_efficiency",),
    ),
    Claim(
        id="pageable-70-of-link",
        statement="A single rank's copies of pageable memory reach 70 % of the host link's peak.",
        document="epicure",
        where="Single task",
        rule="there and back, the median over the devices is 25.19 / 36 of the node model's host "
        "link, 3 points either way: the document's is one device of one node",
        requires=needs.fabric_to_host,
        judge=level(
            (
                round_trips.part_of(HOST_LINK),
                Limits(
                    quotient("epicure-lumi-single-full", "epicure-lumi-if-peak", 100),
                    points=LINK_POINTS,
                ),
            )
        ),
        experiments=("E2",),
        records=("epicure-lumi-single-full", "epicure-lumi-if-peak"),
        rests_on=("simulation.pageable_efficiency",),
    ),
    Claim(
        id="pageable-varies",
        statement="The bandwidth of pageable memory varies with the size of the transfer.",
        document="paper",
        where="IV.A, figure 3",
        rule="somewhere from 4 KiB to 1 GiB a larger size has at least 5 % less than a smaller "
        "one, beyond the intervals: the document prints no value, and its figure hides less",
        requires=needs.devices,
        judge=level((_drop, at_least(5.0))),
        experiments=("E2",),
        rests_on=("simulation.pageable_pin_us",),
    ),
    Claim(
        id="64kib-above-128kib",
        statement="Of pageable memory copies of 64 KiB are faster than those of 128 KiB.",
        document="epicure",
        where="Bandwidth and message size",
        rule="there and back, from the medians of both directions, 64 KiB is above 128 KiB with "
        "intervals that do not meet; no tolerance, as the published drop is 35 %",
        requires=needs.devices,
        judge=order(_trip(64 * KIB), _trip(128 * KIB)),
        experiments=("E2",),
        records=("epicure-lumi-size-64KiB", "epicure-lumi-size-128KiB"),
        rests_on=("simulation.pageable_pin_us",),
        built_in="from more than 64 KiB on a copy of pageable memory pins its pages first",
    ),
    Claim(
        id="small-copies-below-half",
        statement="Small copies of pageable memory are far slower than large ones.",
        document="epicure",
        where="Bandwidth and message size",
        rule="there and back, 64 KiB has less than half of the largest size, of at least 128 MiB, "
        'beyond the intervals: published is a quarter, "much worse" is not a number',
        requires=needs.devices,
        judge=order(_trip(None, least=128 * MIB), _trip(64 * KIB), times=2.0),
        experiments=("E2",),
        records=("epicure-lumi-size-64KiB", "epicure-lumi-single-full"),
        rests_on=("simulation.pageable_efficiency",),
    ),
    Claim(
        id="flat-from-128mib",
        statement="From 128 MiB on the bandwidth of pageable memory stays the same.",
        document="epicure",
        where="Bandwidth and message size",
        rule="there and back, all sizes from 128 MiB on, to 512 MiB at least, are within 2 % of "
        "the first, allowing for noise: published values to 32 GiB differ by 0.13 %",
        requires=needs.devices,
        judge=equal(_large_trips, _large_trips.whole("first"), Limits(1.0, part=0.02)),
        experiments=("E2",),
        records=("epicure-lumi-single-full", "epicure-lumi-size-32GiB"),
        built_in="a large copy takes a fixed start and its bytes over a constant rate",
    ),
    Claim(
        id="directions-alike",
        statement="Pageable memory is copied to the device and back at about the same rate.",
        document="epicure",
        where="Single task",
        rule="on every device the two are at most 3 % apart, allowing for noise: published are "
        "0.7 %, called minimal",
        requires=needs.devices,
        judge=equal(_PAGEABLE_TO, _PAGEABLE_BACK, Limits(1 / (1 + ALIKE), 1 + ALIKE)),
        experiments=("E2",),
        records=("epicure-lumi-single-h2d", "epicure-lumi-single-d2h"),
        built_in="both directions of pageable memory have the same rate",
    ),
    Claim(
        id="pinned-above-zero-copy",
        statement="Copies of pinned memory are faster than zero-copy access.",
        document="paper",
        where="IV.A, figures 2 and 3",
        rule="on every device that has both, with its largest size, pinned is above zero-copy and "
        "the intervals do not meet; no tolerance, as published ones differ by 10 %",
        requires=needs.devices,
        judge=order(PINNED, ZERO_COPY),
        experiments=("E2", "E3"),
        records=("paper-h2d-pinned", "paper-h2d-managed-zerocopy"),
        rests_on=("simulation.host_link_efficiency", "simulation.host_kernel_efficiency"),
    ),
    Claim(
        id="zero-copy-above-migration",
        statement="Zero-copy access is faster than page migration.",
        document="paper",
        where="IV.A, figures 2 and 3",
        rule="on every device that has both, with its largest size, zero-copy is above migration "
        "and the intervals do not meet; no tolerance, as the published ratio is 9",
        requires=needs.devices,
        judge=order(ZERO_COPY, MIGRATION),
        experiments=("E3",),
        records=("paper-h2d-managed-zerocopy", "paper-h2d-managed-migration"),
        rests_on=("simulation.host_kernel_efficiency", "simulation.migration_gbs"),
    ),
    Claim(
        id="migration-ten-times-slower",
        statement="Page migration is an order of magnitude slower than copies of pinned memory.",
        document="paper",
        where="IV.A, figure 2",
        rule="the ratio of the medians over the devices is 5 to 20: the published one, 10.1, to a "
        "factor of two, as the document calls it no number",
        requires=needs.devices,
        judge=ratio(
            PINNED,
            MIGRATION,
            Limits(quotient("paper-h2d-pinned", "paper-h2d-managed-migration"), factor=2.0),
        ),
        experiments=("E2", "E3"),
        records=("paper-h2d-pinned", "paper-h2d-managed-migration"),
        rests_on=("simulation.host_link_efficiency", "simulation.migration_gbs"),
    ),
    Claim(
        id="zero-copy-follows-pinned",
        statement="Zero-copy keeps up with pinned memory to 32 MB; above that pinned is faster.",
        document="paper",
        where="IV.A, figure 3",
        rule="from 4 KB to 32 MB zero-copy is nowhere more than 5 % below pinned, half of what the "
        "peaks above differ by, allowing for noise; at every larger size pinned is above it "
        "and the intervals do not meet; to be faster than pinned counts as keeping up",
        requires=needs.devices,
        judge=both(
            equal(
                _over_sizes(zero_copy=True, beyond=False),
                _over_sizes(zero_copy=False, beyond=False),
                at_least(1.0, part=0.05),
            ),
            order(
                _over_sizes(zero_copy=False, beyond=True), _over_sizes(zero_copy=True, beyond=True)
            ),
        ),
        experiments=("E2", "E3"),
        records=("paper-h2d-zerocopy-crossover",),
        rests_on=("simulation.host_link_efficiency", "simulation.host_kernel_efficiency"),
    ),
    Claim(
        id="zero-copy-71-of-link",
        statement="Zero-copy access reaches 71 % of the host link's peak.",
        document="paper",
        where="IV.A",
        rule="the median over the devices is 25.5 / 36 of the node model's host link, 3 points "
        "either way: the document prints one number, of another node",
        requires=needs.fabric_to_host,
        judge=level(
            (
                ZERO_COPY.part_of(HOST_LINK),
                Limits(
                    quotient("paper-h2d-managed-zerocopy", "paper-cpugpu-uni", 100),
                    points=LINK_POINTS,
                ),
            )
        ),
        experiments=("E3",),
        records=("paper-h2d-managed-zerocopy", "paper-cpugpu-uni"),
        rests_on=("simulation.host_kernel_efficiency",),
    ),
    Claim(
        id="numa-of-single-transfer",
        statement="The NUMA domain of pinned memory does not affect a single transfer.",
        document="paper",
        where="IV.B",
        rule="no device loses more than 2 % with memory of a far domain, allowing for noise: "
        "the document found no difference and prints no number",
        requires=needs.own_domains,
        judge=_far_as_near("pinned", 0.02),
        experiments=("E4",),
        records=("paper-numa-nonlocal",),
        built_in="host memory is reached alike whatever domain it is on",
    ),
    Claim(
        id="numa-of-single-rank",
        statement="A single rank loses nothing with its pageable memory on a far NUMA domain.",
        document="epicure",
        where="Single task, Placement on an empty node",
        rule="no device loses more than 2 % with pageable memory of a far domain, noise counting "
        "for it: published values differ by 0.03 %",
        requires=needs.own_domains,
        judge=_far_as_near("pageable", 0.02),
        experiments=("E2", "E4"),
        records=("epicure-lumi-single-full", "epicure-lumi-single-gpu4"),
        built_in="host memory is reached alike whatever domain it is on; far pageable memory takes "
        "more of what several ranks share, and no more of what one has",
    ),
    Claim(
        id="far-domain-small-loss",
        statement="Where all devices are near one domain, a single rank loses little with another.",
        document="epicure",
        where="Leonardo Booster, Placement of 1 task",
        rule="no device loses more than 5 % with pageable memory of a far domain, noise counting "
        "for it: the published loss, called small, is 3.1 %",
        requires=needs.one_domain_of_several,
        judge=_far_as_near("pageable", 0.05),
        experiments=("E2", "E4"),
        records=("epicure-leo-single-correct", "epicure-leo-single-incorrect"),
    ),
    Claim(
        id="two-sockets-47-to-36",
        statement="With two sockets both directions move 47 GB/s with near memory, 36 with far.",
        document="hugging-face",
        where="NUMA nodes, bidirectional copy table",
        rule="the means of near and of far memory are each within 5 % of the means of the page's "
        "eight values: those differ from their mean by up to 4 %",
        requires=needs.shared_domains,
        judge=level(
            (_socket("near", near=True), Limits(mean_of(two_sockets(near=True)), part=0.05)),
            (_socket("far", near=False), Limits(mean_of(two_sockets(near=False)), part=0.05)),
        ),
        experiments=("E4",),
        records=(*two_sockets(near=True), *two_sockets(near=False)),
        rests_on=("simulation.host_link_efficiency", "simulation.interconnect_gbs"),
    ),
)
