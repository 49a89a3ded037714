"""Cases of the claims on devices at once (E5) and on ranks' placement (E6)."""

from __future__ import annotations

from cases_host import pageable
from observations import Cases, around, document, of, partition

import factories
from fabricheck.papers.claims import ranks as placement
from fabricheck.papers.claims.model import value


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


#: What `ranks` of a document has of each; the rules count them.
NOBODY = {"host": "node1", "cores": [0], "numa_domain": 0, "memory_domain": 0}


def launch(name, rates):
    """Build the document of one launch: a rank per rate, copying there and back."""
    ends = {"experiment": "E6", "operation": "there-and-back", "role": "share", "placement": name}
    devices = list(range(len(rates)))
    series = [
        factories.host_copy("h2d", rank, 0, "host-pageable", rate)
        | ends
        | {"ranks": [rank], "device_set": devices}
        for rank, rate in enumerate(rates)
    ]
    ranks = [NOBODY | {"rank": rank, "visible_devices": [0], "device": 0} for rank in devices]
    return document(*series, ranks=ranks)


def published(name, records):
    """Build a launch with the published rates of its ranks."""
    return launch(name, [value(record) for record in records])


def right():
    """Build EPICURE's correct placement."""
    return published("right", placement.RIGHT)


def alone(rate=25.1895):
    """Build a device alone, its copies to and from it."""
    return document(*pageable(rate))


def lumi(*documents):
    """Build a partition of such nodes."""
    return partition(*documents)


def leonardo(*documents):
    """Build a partition of nodes with all devices near one of two domains."""
    return partition(*documents, node="a100-booster")


def near():
    """Build all ranks near the devices, on Leonardo."""
    return published("right", placement.NEAR)


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
    "right-above-wrong-mean": Cases(
        lambda: lumi(right(), published("in_order", placement.WRONG)),
        lambda: lumi(right(), launch("in_order", [18.0] * 8)),
        lambda: lumi(right()),
    ),
    "right-above-wrong-each": Cases(
        lambda: lumi(right(), published("in_order", placement.WRONG)),
        lambda: lumi(right(), launch("in_order", [12.0] * 7 + [18.0])),
        lambda: lumi(right(), launch("in_order", [12.0] * 4)),
    ),
    "eight-ranks-below-one": Cases(
        lambda: lumi(right(), alone()),
        lambda: lumi(launch("right", [25.0] * 8), alone()),
        lambda: lumi(right()),
    ),
    "half-right-as-one": Cases(
        lambda: lumi(published("half_right", placement.HALF), alone()),
        lambda: lumi(launch("half_right", [25.2, 25.2, 22.0, 25.2]), alone()),
        lambda: lumi(published("half_right", placement.HALF)),
    ),
    "half-wrong-some-lose": Cases(
        lambda: lumi(
            published("half_right", placement.HALF),
            published("half_rotated", placement.HALF_WRONG),
        ),
        lambda: lumi(published("half_right", placement.HALF), launch("half_rotated", [22.0] * 4)),
        lambda: lumi(published("half_rotated", placement.HALF_WRONG)),
    ),
    "half-wrong-13": Cases(
        lambda: lumi(
            published("half_right", placement.HALF),
            published("half_rotated", placement.HALF_WRONG),
        ),
        lambda: lumi(
            published("half_right", placement.HALF),
            launch("half_rotated", [25.0, 12.0, 25.0, 12.0]),
        ),
        lambda: lumi(published("half_right", placement.HALF)),
    ),
    "shared-device-loses": Cases(
        lambda: lumi(right(), launch("shared_device", [12.6, 12.6])),
        lambda: lumi(right(), launch("shared_device", [12.6, 17.0])),
        lambda: lumi(right()),
    ),
    "shared-domain-loses": Cases(
        lambda: lumi(right(), launch("shared_domain", [6.4] * 8)),
        lambda: lumi(right(), launch("shared_domain", [6.4] * 7 + [17.0])),
        lambda: lumi(launch("shared_domain", [6.4] * 8)),
    ),
    "spread-over-domains-helps": Cases(
        lambda: leonardo(near(), published("spread", placement.SPREAD)),
        lambda: leonardo(near(), launch("spread", [7.9] * 4)),
        lambda: lumi(near(), published("spread", placement.SPREAD)),
    ),
    "near-or-far-domain": Cases(
        lambda: leonardo(near(), published("far", placement.FAR)),
        lambda: leonardo(near(), launch("far", [6.5] * 4)),
        lambda: leonardo(near()),
    ),
}
