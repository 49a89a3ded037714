"""Claims on copies between host memory and one device (E2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fabricheck.core.amounts import about
from fabricheck.papers.claims import needs
from fabricheck.papers.claims.judging import (
    above,
    curves,
    high,
    longest,
    low,
    median_of,
    middle,
    within,
)
from fabricheck.papers.claims.model import Claim, Finding, NotTestable, computed, number, verdict
from fabricheck.papers.claims.published import value
from fabricheck.papers.claims.rules import HOST_LINK, Group, Points, part_of_peak
from fabricheck.results.observed import Observed
from fabricheck.results.table import Series, largest

KIB, MIB, GIB = 2**10, 2**20, 2**30

#: The sizes of the paper's figure 3; a drop below 5 % would hardly be visible in it.
FIGURE_SIZES, DROP = (4 * KIB, GIB), 0.05

#: The fractions within which values count as equal, and percentage points of the host link's peak;
#: the rules give the reasons. The documents' sizes and machines differ from those of a session.
#: Three points are 1 GB/s of 36.
FLAT, ALIKE, LINK_POINTS = 0.02, 0.03, 3.0


def copies(observed: Observed, operation: str, memory: str) -> list[Series]:
    """Return the copy-engine transfers of one device at a time to and from near host memory.

    :param memory: pinned or pageable.
    """
    found = observed.select(
        experiment="E2",
        operation=operation,
        role="single",
        host_memory=f"host-{memory}",
        unit="GB/s",
        by_engines=True,
    )
    names = {"h2d": "to the device", "d2h": "to the host"}
    return list(needs.some(found, f"copies of {memory} memory {names[operation]}", "E2"))


def by_device(observed: Observed, operation: str, memory: str) -> dict[int | None, Series]:
    """Return the copies of the largest size of each device."""
    found = needs.large(
        copies(observed, operation, memory), f"copies of {memory} memory ({operation})", "E2"
    )
    return dict(largest(found, lambda point: point.device))


def there_and_back(h2d: Series, d2h: Series) -> Series:
    """Return a round-trip copy as EPICURE counts it: the bytes of both directions over the time.

    The interval combines the ends of both intervals.
    """

    def both(end: Callable[[Series], float]) -> float:
        return 2 / (1 / end(h2d) + 1 / end(d2h))

    return replace(
        h2d,
        operation="both",
        value=both(median_of),
        ci_low=both(low),
        ci_high=both(high),
        noisy=h2d.noisy or d2h.noisy,
    )


def _both_ways(observed: Observed) -> dict[int | None, tuple[Series, Series]]:
    """Return the copies of pageable memory to and from each device."""
    to, back = (by_device(observed, operation, "pageable") for operation in ("h2d", "d2h"))
    both = {device: (to[device], back[device]) for device in to if device in back}
    if not both:
        raise NotTestable("no device has copies of pageable memory in both directions (E2)")
    return both


def _pageable(observed: Observed) -> Points:
    return {device: there_and_back(*both) for device, both in _both_ways(observed).items()}


#: Of one device at a time.
PINNED = Group("a copy of pinned memory", lambda observed: by_device(observed, "h2d", "pinned"))
PAGEABLE = Group("a copy of pageable memory there and back", _pageable, computed=True)


def _round_trips(observed: Observed) -> dict[int, Series]:
    """Return the round trips of pageable memory by size, of the device with the most sizes."""
    to, back = (curves(copies(observed, operation, "pageable")) for operation in ("h2d", "d2h"))
    by_owner = [
        {
            size: there_and_back(own[size], back[device][size])
            for size in own
            if size in back[device]
        }
        for device, own in to.items()
        if device in back
    ]
    return max(by_owner, key=len, default={})


def _pageable_varies(observed: Observed) -> Finding:
    least, most = FIGURE_SIZES
    found = longest(copies(observed, "h2d", "pageable"))
    points = [found[size] for size in sorted(found) if least <= size <= most]
    if len(points) < 4:
        raise NotTestable("the session has no copies of pageable memory over sizes (E2)")
    best, before, after = 0.0, points[0], points[1]
    for index, later in enumerate(points[1:], 1):
        peak = max(points[:index], key=low)
        drop = 1 - high(later) / low(peak)
        if drop > best:
            best, before, after = drop, peak, later
    return verdict(
        best >= DROP,
        f"With larger sizes pageable memory drops by {100 * max(best, 0):.0f} % at most, beyond "
        f"the noise, from {about(before.bytes)} to {about(after.bytes)}.",
        number(f"pageable, {about(before.bytes)}", before),
        number(f"pageable, {about(after.bytes)}", after),
    )


def _64_above_128(observed: Observed) -> Finding:
    trips = _round_trips(observed)
    if 64 * KIB not in trips or 128 * KIB not in trips:
        raise NotTestable("the session has no copies of 64 and 128 KiB of pageable memory (E2)")
    small, large = trips[64 * KIB], trips[128 * KIB]
    return verdict(
        above(small, large),
        f"Pageable memory there and back gives {small.value:.2f} GB/s with 64 KiB and "
        f"{large.value:.2f} with 128 KiB; published are {value('epicure-lumi-size-64KiB'):.2f} and "
        f"{value('epicure-lumi-size-128KiB'):.2f}.",
        computed("64 KiB there and back", small.value, "GB/s", small),
        computed("128 KiB there and back", large.value, "GB/s", large),
    )


def _small_far_below(observed: Observed) -> Finding:
    trips = _round_trips(observed)
    if 64 * KIB not in trips or max(trips) < 128 * MIB:
        raise NotTestable("the session has no copies of 64 KiB and 128 MiB of pageable memory (E2)")
    small, large = trips[64 * KIB], trips[max(trips)]
    return verdict(
        high(small) < low(large) / 2,
        f"Pageable memory there and back gives {small.value:.2f} GB/s with 64 KiB and "
        f"{large.value:.2f} with {about(large.bytes)}, {100 * small.value / large.value:.0f} %.",
        computed("64 KiB there and back", small.value, "GB/s", small),
        computed("largest size there and back", large.value, "GB/s", large),
    )


def _flat(observed: Observed) -> Finding:
    trips = [trip for size, trip in _round_trips(observed).items() if size >= 128 * MIB]
    if len(trips) < 2 or trips[-1].bytes < 512 * MIB:
        raise NotTestable(
            "the session has no copies of pageable memory over sizes from 128 to 512 MiB (E2)"
        )
    first, last = trips[0], trips[-1]
    away = max(trips, key=lambda trip: abs(trip.value - first.value))
    return verdict(
        all(within(trip, first.value, first.value, FLAT) for trip in trips),
        f"From {about(first.bytes)} to {about(last.bytes)} pageable memory there and back is at "
        f"most {100 * abs(away.value / first.value - 1):.1f} % away from {first.value:.2f} GB/s.",
        *(
            computed(f"{about(trip.bytes)} there and back", trip.value, "GB/s", trip)
            for trip in trips
        ),
    )


def _directions_alike(observed: Observed) -> Finding:
    both = _both_ways(observed)
    apart = [
        (to, back)
        for to, back in both.values()
        if low(to) > high(back) * (1 + ALIKE) or low(back) > high(to) * (1 + ALIKE)
    ]
    there, here = (middle(points) for points in zip(*both.values(), strict=True))
    return verdict(
        not apart,
        f"Pageable memory gives {there:.2f} GB/s to the device and {here:.2f} back, medians of "
        f"{len(both)} device(s); on {len(apart)} of them they are more than 3 % apart.",
        *(number(f"to device {device}", to) for device, (to, _) in both.items()),
        *(number(f"from device {device}", back) for device, (_, back) in both.items()),
    )


CLAIMS = (
    Claim(
        id="pinned-79-of-link",
        statement="Copies of pinned memory reach 79 % of the host link's peak.",
        document="paper",
        where="IV.A, figure 3",
        rule="the median over the devices is 28.3 / 36 of the node model's host link, 3 points "
        "either way: the document prints one number, of another node and its largest size of 1 GB",
        requires=needs.fabric_to_host,
        judge=part_of_peak(
            PINNED, HOST_LINK, ("paper-h2d-pinned", "paper-cpugpu-uni"), LINK_POINTS
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
        judge=part_of_peak(
            PAGEABLE, HOST_LINK, ("epicure-lumi-single-full", "epicure-lumi-if-peak"), LINK_POINTS
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
        judge=_pageable_varies,
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
        judge=_64_above_128,
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
        judge=_small_far_below,
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
        "the first, noise counting for it: published values to 32 GiB differ by 0.13 %",
        requires=needs.devices,
        judge=_flat,
        experiments=("E2",),
        records=("epicure-lumi-single-full", "epicure-lumi-size-32GiB"),
        built_in="a large copy takes a fixed start and its bytes over a constant rate",
    ),
    Claim(
        id="directions-alike",
        statement="Pageable memory is copied to the device and back at about the same rate.",
        document="epicure",
        where="Single task",
        rule="on every device the two are at most 3 % apart, noise counting for it: published are "
        "0.7 %, called minimal",
        requires=needs.devices,
        judge=_directions_alike,
        experiments=("E2",),
        records=("epicure-lumi-single-h2d", "epicure-lumi-single-d2h"),
        built_in="both directions of pageable memory have the same rate",
    ),
)
