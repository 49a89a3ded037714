"""Cases of the claims on devices that use host memory at the same time (E5)."""

from __future__ import annotations

from observations import Cases, around, of

import factories


def at_once(total, *devices):
    """Build STREAM copy between host arrays by devices at once: all their bytes."""
    host = factories.place("host-pinned", None, None)
    alone = len(devices) == 1
    return factories.series(
        around(total),
        experiment="E5",
        role="single" if alone else "sum",
        device=devices[0] if alone else None,
        device_set=list(devices),
        source=host,
        destination=host,
    )


ONE, SAME, SPREAD = (0,), (0, 1), (0, 4)
FOUR, EIGHT = (0, 2, 4, 6), tuple(range(8))

CASES = {
    "one-package-no-gain": Cases(
        lambda: of(at_once(51.0, *ONE), at_once(51.2, *SAME)),
        lambda: of(at_once(51.0, *ONE), at_once(80.0, *SAME)),
        lambda: of(at_once(51.0, *ONE), at_once(102.0, *SPREAD)),
    ),
    "spread-doubles": Cases(
        lambda: of(at_once(51.0, *ONE), at_once(102.0, *SPREAD)),
        lambda: of(at_once(51.0, *ONE), at_once(80.0, *SPREAD)),
        lambda: of(at_once(51.0, *ONE), at_once(51.2, *SAME)),
    ),
    "scaling-1-2-4": Cases(
        lambda: of(at_once(51.0, *ONE), at_once(102.0, *SPREAD), at_once(204.0, *FOUR)),
        lambda: of(at_once(51.0, *ONE), at_once(102.0, *SPREAD), at_once(160.0, *FOUR)),
        lambda: of(at_once(51.0, *ONE), at_once(102.0, *SPREAD)),
    ),
    "eight-as-four": Cases(
        lambda: of(at_once(204.0, *FOUR), at_once(204.8, *EIGHT)),
        lambda: of(at_once(204.0, *FOUR), at_once(300.0, *EIGHT)),
        lambda: of(at_once(204.0, *FOUR)),
    ),
}
