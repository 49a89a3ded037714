"""Cases of the claims on messages between nodes (E17), and what decides none of them."""

from __future__ import annotations

from typing import Any

from device_pairs import by, pair
from observations import Cases, Series, partition

import factories
from fabricheck.papers.claims.model import value as published
from fabricheck.results.observed import Observed

MIB = 1 << 20
#: Two nodes with a rank beside each NIC: rank i and its counterpart i + 4, on the same device.
DEVICES = (1, 3, 5, 7)
COUNTERPARTS = [(i, (i + 4) % 8) for i in range(8)]


def between(
    a: int,
    b: int,
    rate: float,
    operation: str = "bandwidth",
    memory: str = "device",
    **changes: Any,
) -> Series:
    """Build messages of rank a to its counterpart b on the other node, by default of 64 MiB."""
    on = DEVICES[a % 4]
    place = factories.place() if memory == "device" else factories.place(memory, None, 0)
    size = 8 if operation == "latency" else 64 * MIB
    own = {
        "experiment": "E17",
        "operation": operation,
        "device": None,
        "device_set": [on],
        "ranks": [a, b],
        "source": place | {"device": on if memory == "device" else None},
        "destination": place | {"device": on if memory == "device" else None},
        "engine": "mpi",
        "direction": "both-ways" if operation == "bandwidth-both" else "one-way",
        "bytes": size,
        "bytes_moved": size,
        "unit": "us" if operation == "latency" else "GB/s",
        "better": "lower" if operation == "latency" else "higher",
    }
    return pair(on, on, rate, **own | changes)


def all_nics(rate: float, operation: str = "bandwidth", **changes: Any) -> list[Series]:
    """Build all NICs of a node at once, from each node to the other."""
    return [
        between(there, back, rate, operation, role="sum", **changes)
        | {"ranks": ranks, "device_set": list(DEVICES)}
        for there, back, ranks in (
            (0, 4, [0, 4, 1, 5, 2, 6, 3, 7]),
            (4, 0, [4, 0, 5, 1, 6, 2, 7, 3]),
        )
    ]


def apart(rate: float, operation: str = "bandwidth", **changes: Any) -> list[Series]:
    """Build each NIC apart, from each node to the other."""
    return [between(a, b, rate, operation, **changes) for a, b in COUNTERPARTS]


def rank(number: int, transport: str | None = "nic") -> dict[str, Any]:
    """Build a rank of two nodes with the NIC beside it, or one whose messages went otherwise."""
    used = f"cxi{number % 4}" if transport == "nic" else "hsn0"
    return {
        "rank": number,
        "host": f"node{number // 4}",
        "network": {
            "nics": [{"name": used, "part": 1.0}],
            "transport": transport,
            "provider": "cxi" if transport == "nic" else "tcp",
            "place": None,
        },
    }


def nodes(
    *series: Series,
    transport: str | None = "nic",
    program: str = "mpi",
    node: str = "mi250x",
    **changes: Any,
) -> Observed:
    """Build the partition of a document of two nodes, whose messages left them by the transport."""
    ranks = [rank(number, transport) for number in range(8)]
    return partition(by(program, *series, **changes) | {"ranks": ranks}, node=node)


def distances(**latencies: float) -> Observed:
    """Build latencies by distance, those of each for a NIC of its own and its counterpart."""
    return nodes(
        *(
            between(a, b, took, "latency", distance=name.replace("_", "-"))
            for nic, (name, took) in enumerate(latencies.items())
            for a, b in (COUNTERPARTS[nic], COUNTERPARTS[nic + 4])
        )
    )


ONE = published("thesis-lumi-bw-mean-64MiB")

CASES = {
    "one-nic-93-to-97-percent": Cases(
        lambda: nodes(*apart(ONE)),
        lambda: nodes(*apart(22.0)),
        lambda: nodes(*apart(2.0), transport="kernel"),
    ),
    "nic-both-ways-below-twice": Cases(
        lambda: nodes(*apart(ONE), *apart(published("thesis-lumi-bibw-mean"), "bandwidth-both")),
        lambda: nodes(*apart(24.55), *apart(34.55, "bandwidth-both")),
        lambda: nodes(*apart(ONE)),
    ),
    "node-nics-95-percent": Cases(
        lambda: nodes(*all_nics(95.0)),
        lambda: nodes(*all_nics(50.0)),  # two ranks on one NIC
        lambda: nodes(*apart(ONE)),
    ),
    "nics-from-devices-not-below-host": Cases(
        lambda: nodes(
            *all_nics(181.0, "bandwidth-both"),
            *all_nics(128.0, "bandwidth-both", memory="host-pageable"),
        ),
        lambda: nodes(
            *all_nics(58.75, "bandwidth-both"),
            *all_nics(59.49 * 2, "bandwidth-both", memory="host-pageable"),
        ),
        lambda: nodes(*all_nics(181.0, "bandwidth-both")),
    ),
    "distance-below-30-percent": Cases(
        lambda: distances(same_switch=2.4, same_group=2.5, other_group=2.9),
        lambda: distances(same_switch=2.4, other_group=4.8),
        lambda: distances(same_group=2.5),
    ),
    "tcp-an-eighth-of-a-nic": Cases(
        lambda: nodes(*apart(published("cscsdocs-tcp-bw-hh")), transport="kernel"),
        lambda: nodes(*apart(12.0), transport="kernel"),
        lambda: nodes(*apart(ONE)),
    ),
    "wrong-network-right-data": Cases(
        lambda: nodes(*apart(2.0), transport="kernel"),
        lambda: nodes(
            *apart(2.0, verification=factories.mismatched(checked=64 * MIB)), transport="kernel"
        ),
        lambda: nodes(*apart(ONE)),
    ),
}
