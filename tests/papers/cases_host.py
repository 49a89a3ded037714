"""Cases of the claims on copies between host memory and one device (E2, E3, E4)."""

from __future__ import annotations

from observations import Cases, of

import factories
from fabricheck.node import load
from fabricheck.papers.claims.host import two_sockets
from fabricheck.papers.claims.model import value

KIB, MIB, GIB = 2**10, 2**20, 2**30


def copy(operation, value, device=0, memory="pinned", **changes):
    """Build a copy between host memory near a device and it."""
    kind = f"host-{memory}"
    return factories.host_copy(operation, device, 3, kind, value, experiment="E2", **changes)


def pageable(to, back=None, **changes):
    """Build copies of pageable memory in both directions, the same rate unless told."""
    back = to if back is None else back
    pair = zip(("h2d", "d2h"), (to, back), strict=True)
    return [copy(operation, value, memory="pageable", **changes) for operation, value in pair]


def over_sizes(values):
    """Build copies of pageable memory by size in bytes."""
    return of(*(one for size, value in values.items() for one in pageable(value, bytes=size)))


#: As published of one rank, there and back.
EPICURE = {64 * KIB: 5.6999, 128 * KIB: 3.6881, 128 * MIB: 25.1895, 32 * GIB: 25.221}
RISING = {size * KIB: 20 * size / (size + 500) for size in (4, 16, 64, 128, 1024, 2**17, 2**20)}


#: Sizes on both sides of 32 MB.
SIZES = [2**power for power in range(18, 29)]


def zero_copy(value=25.5, **changes):
    """Build what a kernel reads of managed memory over the link."""
    return factories.managed_copy("read", value=value, **changes)


def migration(value=2.8, **changes):
    """Build what a kernel reads of managed memory whose pages move."""
    return factories.managed_copy("read", value=value, movement="page-migration", **changes)


def beside_pinned(part_below, part_above):
    """Build both over sizes, zero-copy as a part of pinned memory up to 32 MiB and above."""
    rates = {size: 28.3 * size / (size + 2**18) for size in SIZES}
    parts = {size: part_below if size <= 2**25 else part_above for size in SIZES}
    pinned = [copy("h2d", rate, bytes=size) for size, rate in rates.items()]
    return of(*pinned, *(zero_copy(rates[size] * parts[size], bytes=size) for size in SIZES))


def domains(near, far, memory="pinned", node="mi250x", of_domains=range(4), **changes):
    """Build copies to device 0 from each domain."""
    home = load(node).device(0).domain
    rates = {domain: near if domain == home else far for domain in of_domains}
    kind = f"host-{memory}"
    return of(
        *(factories.host_copy("h2d", 0, domain, kind, rate) for domain, rate in rates.items()),
        node=node,
        **changes,
    )


def leonardo(near, far, of_domains=range(2)):
    """Build copies of pageable memory on a node with all devices near one domain."""
    return domains(near, far, "pageable", "a100-booster", of_domains, runtime="cuda")


def sockets(near_part, far_part, part=1.0, devices=range(8)):
    """Build both directions as published, near and far ones times a part."""
    series = []
    for local, times in ((True, near_part), (False, far_part)):
        for device in devices:
            domain = device // 4 if local else 1 - device // 4
            rate = value(two_sockets(local)[device]) * times * part
            series += factories.both_ways(device, rate, domain=domain)
    return of(*series, node="mi250-two-sockets")


CASES = {
    "pinned-79-of-link": Cases(
        lambda: of(copy("h2d", 28.3)),
        lambda: of(copy("h2d", 24.0)),
        lambda: of(copy("d2h", 28.3)),
    ),
    "pageable-70-of-link": Cases(
        lambda: of(*pageable(25.2833, 25.0964)),
        lambda: of(*pageable(25.2833, 17.0)),
        lambda: of(copy("h2d", 25.2833, memory="pageable")),
    ),
    "pageable-varies": Cases(
        lambda: over_sizes(EPICURE | {MIB: 15.0, 16 * MIB: 20.0}),
        lambda: over_sizes(RISING),
        lambda: of(*pageable(25.2)),
    ),
    "64kib-above-128kib": Cases(
        lambda: over_sizes(EPICURE),
        lambda: over_sizes(EPICURE | {128 * KIB: 5.7}),
        lambda: over_sizes({128 * KIB: 3.7, 128 * MIB: 25.2}),
    ),
    "small-copies-below-half": Cases(
        lambda: over_sizes(EPICURE),
        lambda: over_sizes(EPICURE | {64 * KIB: 13.0}),
        lambda: over_sizes({64 * KIB: 5.7, 128 * KIB: 3.7}),
    ),
    "flat-from-128mib": Cases(
        lambda: over_sizes(EPICURE),
        lambda: over_sizes(EPICURE | {GIB: 24.5}),
        lambda: over_sizes({64 * KIB: 5.7, 128 * MIB: 25.2}),
    ),
    "directions-alike": Cases(
        lambda: of(*pageable(25.2833, 25.0964)),
        lambda: of(*pageable(8.5, 16.6)),
        lambda: of(copy("h2d", 25.2833, memory="pageable")),
    ),
    "pinned-above-zero-copy": Cases(
        lambda: of(copy("h2d", 28.3), zero_copy()),
        lambda: of(copy("h2d", 28.3), zero_copy(28.5)),
        lambda: of(copy("h2d", 28.3), migration()),
    ),
    "zero-copy-above-migration": Cases(
        lambda: of(zero_copy(), migration()),
        lambda: of(zero_copy(), migration(25.6)),
        lambda: of(zero_copy(), migration(device=1, device_set=[1])),
    ),
    "migration-ten-times-slower": Cases(
        lambda: of(copy("h2d", 28.3), migration()),
        lambda: of(copy("h2d", 55.4), migration(12.6)),
        lambda: of(copy("h2d", 28.3), zero_copy()),
    ),
    "zero-copy-follows-pinned": Cases(
        lambda: beside_pinned(0.98, 0.9),
        lambda: beside_pinned(0.9, 0.9),
        lambda: of(copy("h2d", 28.3), zero_copy()),
    ),
    "zero-copy-71-of-link": Cases(
        lambda: of(zero_copy()),
        lambda: of(zero_copy(20.0)),
        lambda: of(migration()),
    ),
    "numa-of-single-transfer": Cases(
        lambda: domains(28.3, 28.2),
        lambda: domains(28.3, 27.0),
        lambda: domains(28.3, 28.2, of_domains=[3]),
    ),
    "numa-of-single-rank": Cases(
        lambda: domains(25.1895, 25.182, "pageable"),
        lambda: domains(25.1895, 20.0, "pageable"),
        lambda: domains(28.3, 28.2),
    ),
    "far-domain-small-loss": Cases(
        lambda: leonardo(10.7288, 10.3974),
        lambda: leonardo(10.7288, 9.5),
        lambda: leonardo(10.7288, 10.3974, of_domains=[0]),
    ),
    "two-sockets-47-to-36": Cases(
        lambda: sockets(1.0, 1.0),
        lambda: sockets(1.0, 1.2),
        lambda: domains(28.3, 28.2, node="mi250-two-sockets", of_domains=[0]),
    ),
}
