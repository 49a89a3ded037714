"""Bounds that no true measurement on a known node passes: the peaks of its node model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricheck.node import NodeModel
from fabricheck.results.host_copies import host_domains
from fabricheck.results.model import Series
from fabricheck.rfm.plausible import Bound

#: The part of the bytes that caches can hold of arrays that are past them (`regime` memory: at
#: least four times the last-level cache).
CACHED = 0.25


def node_bound(node: NodeModel, series: Series) -> Bound | None:
    """Return the bound of a series from the theoretical peaks of a node.

    A bandwidth between devices is bounded by the widest path of the pair, one with the host by the
    host link, a local one by device memory; that of a sum by its members together. Where bytes
    are counted read plus written, a link that carries each byte once bounds twice its peak: both
    directions, or the local half of a one-way transfer. Past the caches a transfer with the host
    is also bounded by the memory of the NUMA domains that it was proved to use. A latency is
    bounded by zero only.

    :param node: the healthy node, without an overlay.
    :returns: ``None`` where the model states no peak of what the data passes.
    """
    if series["unit"] == "us":
        return Bound(0.0, "derived", "a time is positive")
    if series["bytes_counted"] == "bus":
        return _of_a_bus(node, series["device_set"])
    active = series["device_set"]
    places = {series["source"]["memory"], series["destination"]["memory"]}
    if "peer" in places or (series["engine"] == "mpi" and places == {"device"}):
        return _between_devices(node, series)
    executing = active if series["device"] is None else [series["device"]]
    if places == {"device"}:
        peak = sum(node.device(device).memory_peak_gbs for device in executing)
        return Bound(peak, "derived", f"{node.name}: {peak:g} GB/s of device memory")
    bounds = _with_the_host(node, series, executing)
    return min(bounds, key=lambda bound: bound.value, default=None)


def _between_devices(node: NodeModel, series: Series) -> Bound:
    active = series["device_set"]
    ways = 2 if series["bytes_counted"] == "read+write" else 1
    source, destination = series["source"]["device"], series["destination"]["device"]
    if series["engine"] == "mpi" and source is not None and destination is not None:
        active = [source, destination]  # of a share device_set has all that work at the same time
    pairs = list(zip(active[::2], active[1::2], strict=True))
    peak = sum(node.peer_peak_gbs(*pair) for pair in pairs)
    if series["role"] == "sum" and len(pairs) == 1:
        ways = 2  # both directions of the one pair
    how = f"{ways} x {peak:g} GB/s of the widest path"
    return Bound(ways * peak, "derived", f"{node.name}: {how}")


def _of_a_bus(node: NodeModel, devices: Sequence[int]) -> Bound:
    """Bound a bus bandwidth, which is what a device sends and receives where others only pass on.

    A switch that reduces and copies by itself (NVLink SHARP) halves what devices send.
    """
    peaks = node.direct_peaks_gbs
    if node.switch is not None:
        peak, ways = max(max(row) for row in peaks), 2
    else:
        peak, ways = max(sum(peaks[device]) for device in devices), 1
    how = f"{ways} x {peak:g} GB/s of all links of a device"
    return Bound(ways * peak, "derived", f"{node.name}: {how}")


def _with_the_host(node: NodeModel, series: Series, executing: Sequence[int]) -> Iterator[Bound]:
    """Yield what bounds a transfer between host memory and devices: the link, and the memory."""
    read_and_written = series["bytes_counted"] == "read+write"
    both_ways = series["direction"] == "both-ways" and series["role"] == "sum"
    ways = 2 if read_and_written or both_ways else 1
    if not _within_the_host(series):
        peak = sum(node.host_peak_gbs(device) for device in executing)
        how = f"{ways} x {peak:g} GB/s of the host link"
        yield Bound(ways * peak, "derived", f"{node.name}: {how}")
    domains = host_domains(series)
    peaks = [one.memory_peak_gbs for one in node.domains if one.index in domains]
    stated = [peak for peak in peaks if peak is not None]
    if series["regime"] == "memory" and stated and len(stated) == len(domains):
        how = f"{sum(stated):g} GB/s of NUMA domain {', '.join(map(str, domains))}"
        part = f"and at most {CACHED:g} of the bytes from caches"
        yield Bound(sum(stated) / (1 - CACHED), "derived", f"{node.name}: {how}, {part}")


def _within_the_host(series: Series) -> bool:
    """Whether no device has a part: what a CPU does with managed memory that is on the host."""
    places = (series["source"], series["destination"])
    return series["engine"] == "cpu" and all(place["device"] is None for place in places)
