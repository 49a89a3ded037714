"""Bounds that no true measurement on a known node passes: the peaks of its node model."""

from __future__ import annotations

from fabricheck.node import NodeModel
from fabricheck.results.model import Series
from fabricheck.rfm.plausible import Bound


def node_bound(node: NodeModel, series: Series) -> Bound:
    """Return the bound of a series from the theoretical peaks of a node.

    A bandwidth between devices is bounded by the widest path of the pair, one with the host by the
    host link, a local one by device memory; that of a sum by its members together. Where bytes
    are counted read plus written, a link that carries each byte once bounds twice its peak: both
    directions, or the local half of a one-way transfer. A latency is bounded by zero only.

    :param node: the healthy node, without an overlay.
    """
    if series["unit"] == "us":
        return Bound(0.0, "derived", "a time is positive")
    ways = 2 if series["bytes_counted"] == "read+write" else 1
    active = series["device_set"]
    places = {series["source"]["memory"], series["destination"]["memory"]}
    if "peer" in places:
        pairs = list(zip(active[::2], active[1::2], strict=True))
        peak = sum(node.peer_peak_gbs(*pair) for pair in pairs)
        if series["role"] == "sum" and len(pairs) == 1:
            ways = 2  # both directions of the one pair
        how = f"{ways} x {peak:g} GB/s of the widest path"
        return Bound(ways * peak, "derived", f"{node.name}: {how}")
    executing = active if series["device"] is None else [series["device"]]
    if places == {"device"}:
        peak = sum(node.device(device).memory_peak_gbs for device in executing)
        return Bound(peak, "derived", f"{node.name}: {peak:g} GB/s of device memory")
    peak = sum(node.host_peak_gbs(device) for device in executing)
    return Bound(ways * peak, "derived", f"{node.name}: {ways} x {peak:g} GB/s of the host link")
