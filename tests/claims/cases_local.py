"""Cases of the claims on a device's own memory (E1)."""

from __future__ import annotations

from observations import Cases, of

import factories


def stream(value, device=0, **changes):
    """Build a series of STREAM on the memory of a device, without noise."""
    own = {"device": device, "device_set": [device]}
    places = {
        "source": factories.place(device=device),
        "destination": factories.place(device=device),
    }
    return factories.series([value], **own | places | changes)


CASES = {
    "local-stream-87": Cases(
        lambda: of(*(stream(1400.0, device) for device in range(8))),
        lambda: of(*(stream(1300.0, device) for device in range(8))),
        lambda: of(stream(1400.0, operation="triad")),
    ),
}
