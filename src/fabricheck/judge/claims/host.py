"""Claims on copies between host memory and one device (E2)."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from fabricheck.core.amounts import about
from fabricheck.judge.claims import needs
from fabricheck.judge.claims.judging import high, low, middle
from fabricheck.judge.claims.model import Claim, Finding, NotTestable, computed, number, verdict
from fabricheck.judge.claims.published import value
from fabricheck.results.observed import Observed, Point
from fabricheck.results.observed.point import curve, largest

KIB, MIB, GIB = 2**10, 2**20, 2**30

#: Sizes and machines of the documents differ from those of a session; three points of the host
#: link's peak are 1 GB/s of 36.
LINK_POINTS = 3.0

#: The paper's figure 3 is of these sizes; a drop below 5 % would hardly show in it.
FIGURE_SIZES, DROP = (4 * KIB, GIB), 0.05

#: EPICURE's values from 128 MiB to 32 GiB differ by 0.13 %, "roughly the same" is no number.
FLAT = 0.02

#: EPICURE's two directions differ by 0.7 %, which it calls minimal; noise of another machine.
ALIKE = 0.03


def copies(observed: Observed, operation: str, memory: str) -> list[Point]:
    """Return the copies by engine of one device at a time between it and memory near it.

    :param memory: pinned or pageable.
    """
    found = observed.select(
        experiment="E2",
        operation=operation,
        role="single",
        memory=f"host-{memory}",
        unit="GB/s",
        engines=True,
    )
    names = {"h2d": "to the device", "d2h": "to the host"}
    return list(needs.some(found, f"copies of {memory} memory {names[operation]}", "E2"))


def by_device(observed: Observed, operation: str, memory: str) -> dict[int | None, Point]:
    """Return the copies of the largest size of each device."""
    found = needs.large(
        copies(observed, operation, memory), f"copies of {memory} memory ({operation})", "E2"
    )
    return dict(largest(found, lambda point: point.device))


def _curves(observed: Observed, operation: str, memory: str) -> dict[int | None, dict[int, Point]]:
    """Return by device the copies by size."""
    by_owner: dict[int | None, list[Point]] = {}
    for point in copies(observed, operation, memory):
        by_owner.setdefault(point.device, []).append(point)
    return {owner: {one.bytes: one for one in curve(own)} for owner, own in by_owner.items()}


def sizes(observed: Observed, operation: str, memory: str) -> dict[int, Point]:
    """Return by size the copies of the device with most sizes."""
    return max(_curves(observed, operation, memory).values(), key=len)


def there_and_back(
    h2d: Point, d2h: Point, end: Callable[[Point], float] = lambda point: point.median
) -> float:
    """Return the bandwidth of a copy to the device and back, in GB/s, as EPICURE counts it.

    :param end: what of the two counts: their medians, or the ends `low` or `high` of the intervals.
    """
    return 2 / (1 / end(h2d) + 1 / end(d2h))


def _round_trips(observed: Observed) -> dict[int, tuple[Point, Point]]:
    """Return by size both directions of pageable memory, of the device with most sizes of both."""
    to, back = (_curves(observed, operation, "pageable") for operation in ("h2d", "d2h"))
    trips = [
        {size: (own[size], back[device][size]) for size in sorted(own) if size in back[device]}
        for device, own in to.items()
        if device in back
    ]
    return max(trips, key=len, default={})


def _pinned_part(observed: Observed) -> Finding:
    node = needs.fabric_to_host(observed)
    points = by_device(observed, "h2d", "pinned")
    wanted = 100 * value("paper-h2d-pinned") / value("paper-cpugpu-uni")
    rate = middle(points.values())
    part = 100 * rate / node.host_peak_gbs(0)
    return verdict(
        abs(part - wanted) <= LINK_POINTS,
        f"Copies of pinned memory reach {rate:.2f} GB/s, {part:.1f} % of the host link's peak, the "
        f"median of {len(points)} device(s); published are {value('paper-h2d-pinned'):g} of "
        f"{value('paper-cpugpu-uni'):g} GB/s, {wanted:.1f} %.",
        computed("of the host link's peak", part, "percent", *points.values()),
        *(number(f"pinned to device {device}", point) for device, point in points.items()),
    )


def _pageable_part(observed: Observed) -> Finding:
    node = needs.fabric_to_host(observed)
    to, back = (by_device(observed, operation, "pageable") for operation in ("h2d", "d2h"))
    both = [device for device in to if device in back]
    if not both:
        raise NotTestable("no device has copies of pageable memory in both directions (E2)")
    wanted = 100 * value("epicure-lumi-single-full") / value("epicure-lumi-if-peak")
    rate = statistics.median(there_and_back(to[device], back[device]) for device in both)
    part = 100 * rate / node.host_peak_gbs(0)
    return verdict(
        abs(part - wanted) <= LINK_POINTS,
        f"A copy of pageable memory there and back reaches {rate:.2f} GB/s, {part:.1f} % of the "
        f"host link's peak, the median of {len(both)} device(s); published are "
        f"{value('epicure-lumi-single-full'):.2f} of {value('epicure-lumi-if-peak'):g} GB/s, "
        f"{wanted:.1f} %.",
        computed(
            "of the host link's peak",
            part,
            "percent",
            *(one[device] for one in (to, back) for device in both),
        ),
        *(number(f"pageable to device {device}", to[device]) for device in both),
        *(number(f"pageable from device {device}", back[device]) for device in both),
    )


def _pageable_varies(observed: Observed) -> Finding:
    needs.devices(observed)
    least, most = FIGURE_SIZES
    found = sizes(observed, "h2d", "pageable")
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
    needs.devices(observed)
    trips = _round_trips(observed)
    if 64 * KIB not in trips or 128 * KIB not in trips:
        raise NotTestable("the session has no copies of 64 and 128 KiB of pageable memory (E2)")
    small, large = trips[64 * KIB], trips[128 * KIB]
    here, there = there_and_back(*small), there_and_back(*large)
    return verdict(
        there_and_back(*small, low) > there_and_back(*large, high),
        f"Pageable memory there and back gives {here:.2f} GB/s with 64 KiB and {there:.2f} with "
        f"128 KiB; published are {value('epicure-lumi-size-64KiB'):.2f} and "
        f"{value('epicure-lumi-size-128KiB'):.2f}.",
        computed("64 KiB there and back", here, "GB/s", *small),
        computed("128 KiB there and back", there, "GB/s", *large),
    )


def _small_far_below(observed: Observed) -> Finding:
    needs.devices(observed)
    trips = _round_trips(observed)
    if 64 * KIB not in trips or max(trips) < 128 * MIB:
        raise NotTestable("the session has no copies of 64 KiB and 128 MiB of pageable memory (E2)")
    small, large = trips[64 * KIB], trips[max(trips)]
    here, there = there_and_back(*small), there_and_back(*large)
    return verdict(
        there_and_back(*small, high) < there_and_back(*large, low) / 2,
        f"Pageable memory there and back gives {here:.2f} GB/s with 64 KiB and {there:.2f} with "
        f"{about(max(trips))}, {100 * here / there:.0f} %.",
        computed("64 KiB there and back", here, "GB/s", *small),
        computed("largest size there and back", there, "GB/s", *large),
    )


def _flat(observed: Observed) -> Finding:
    needs.devices(observed)
    trips = {size: trip for size, trip in _round_trips(observed).items() if size >= 128 * MIB}
    if len(trips) < 2 or max(trips) < 512 * MIB:
        raise NotTestable(
            "the session has no copies of pageable memory over sizes from 128 to 512 MiB (E2)"
        )
    first = trips[min(trips)]
    start = there_and_back(*first)
    inside = all(
        there_and_back(*trip, low) <= start * (1 + FLAT)
        and there_and_back(*trip, high) >= start * (1 - FLAT)
        for trip in trips.values()
    )
    rates = {size: there_and_back(*trip) for size, trip in trips.items()}
    away = max(rates, key=lambda size: abs(rates[size] - start))
    return verdict(
        inside,
        f"From {about(min(trips))} to {about(max(trips))} pageable memory there and back "
        f"is at most {100 * abs(rates[away] / start - 1):.1f} % away from {start:.2f} GB/s.",
        *(
            computed(f"{about(size)} there and back", rate, "GB/s", *trips[size])
            for size, rate in rates.items()
        ),
    )


def _directions_alike(observed: Observed) -> Finding:
    needs.devices(observed)
    to, back = (by_device(observed, operation, "pageable") for operation in ("h2d", "d2h"))
    both = [device for device in to if device in back]
    if not both:
        raise NotTestable("no device has copies of pageable memory in both directions (E2)")
    apart = [
        device
        for device in both
        if low(to[device]) > high(back[device]) * (1 + ALIKE)
        or low(back[device]) > high(to[device]) * (1 + ALIKE)
    ]
    there, here = middle(to[one] for one in both), middle(back[one] for one in both)
    return verdict(
        not apart,
        f"Pageable memory gives {there:.2f} GB/s to the device and {here:.2f} back, medians of "
        f"{len(both)} device(s); on {len(apart)} of them they are more than 3 % apart.",
        *(number(f"to device {device}", to[device]) for device in both),
        *(number(f"from device {device}", back[device]) for device in both),
    )


CLAIMS = (
    Claim(
        id="pinned-79-of-link",
        statement="Copies of pinned memory reach 79 % of the host link's peak.",
        document="paper",
        where="IV.A, figure 3",
        rule="the median over the devices is 28.3 / 36 of the node model's host link, 3 points "
        "either way: the document prints one number, of another node and its largest size of 1 GB",
        judge=_pinned_part,
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
        judge=_pageable_part,
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
        'beyond the intervals: published is a quarter, "much worse" is no number',
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
        judge=_directions_alike,
        experiments=("E2",),
        records=("epicure-lumi-single-h2d", "epicure-lumi-single-d2h"),
        built_in="both directions of pageable memory have the same rate",
    ),
)
