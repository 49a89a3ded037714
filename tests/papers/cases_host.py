"""Cases of the claims on copies between host memory and one device (E2)."""

from __future__ import annotations

from observations import Cases, of

import factories

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
}
