"""Cases of the claims on managed memory beside copies (E3, with E2)."""

from __future__ import annotations

from cases_host import copy
from observations import Cases, of

import factories

#: Sizes on both sides of 32 MB.
SIZES = [2**power for power in range(18, 29)]


def zero_copy(value=25.5, **changes):
    """Build what a kernel reads of managed memory over the link."""
    return factories.managed_copy("read", value=value, **changes)


def migration(value=2.8, **changes):
    """Build what a kernel reads of managed memory whose pages move."""
    return factories.managed_copy("read", value=value, movement="page-migration", **changes)


def over_sizes(part_below, part_above):
    """Build both over sizes, zero-copy as a part of pinned memory up to 32 MiB and above."""
    rates = {size: 28.3 * size / (size + 2**18) for size in SIZES}
    parts = {size: part_below if size <= 2**25 else part_above for size in SIZES}
    pinned = [copy("h2d", rate, bytes=size) for size, rate in rates.items()]
    return of(*pinned, *(zero_copy(rates[size] * parts[size], bytes=size) for size in SIZES))


CASES = {
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
        lambda: over_sizes(0.98, 0.9),
        lambda: over_sizes(0.9, 0.9),
        lambda: of(copy("h2d", 28.3), zero_copy()),
    ),
    "zero-copy-71-of-link": Cases(
        lambda: of(zero_copy()),
        lambda: of(zero_copy(20.0)),
        lambda: of(migration()),
    ),
}
