"""Cases of the claims on links (E13) and on the best devices to use together (E14)."""

from __future__ import annotations

from dataclasses import replace

from device_pairs import MI250X, by, changed, every, peak
from observations import Cases, partition

WRITES = peak(0.75)


def told(node="mi250x", differences=(), compared=True):
    """Build a partition whose links were compared with its node model."""
    options = {"node": node if compared else None}
    topology = by("topology", differences=list(differences), options=options)
    return partition(topology, node=node)


def writes(rate, node="mi250x"):
    """Build a partition with writes by kernel of every pair."""
    return partition(by("p2p", *every(rate, operation="write")), node=node)


def in_a_row():
    """Build a partition whose packages are linked in a row, by links of one and two."""
    links = {pair: link for pair, link in MI250X.links.items() if link.count == 4}
    two, one = MI250X.links[0, 6], MI250X.links[0, 2]
    row = links | {(1, 2): two, (3, 4): one, (5, 6): one}
    return replace(told(), node=replace(MI250X, links=row))


def nothing():
    """Build a partition without a comparison of its links."""
    return writes(WRITES)


CASES = {
    "shortest-path-two-hops": Cases(told, in_a_row, nothing),
    "rocm-smi-link-table": Cases(lambda: told("mi250-two-sockets"), lambda: told("mi250"), nothing),
    "best-sets-predicted": Cases(told, lambda: told("mi250"), nothing),
    "best-sets-measured": Cases(
        lambda: writes(WRITES),
        lambda: writes(changed(WRITES, (0, 1), to=120.0)),
        told,
    ),
}
