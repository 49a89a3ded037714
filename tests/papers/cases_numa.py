"""Cases of the claims on the NUMA domain of a single transfer (E4)."""

from __future__ import annotations

from observations import Cases, of

import factories
from fabricheck.node import load
from fabricheck.papers.claims.host import two_sockets
from fabricheck.papers.claims.published import value


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
