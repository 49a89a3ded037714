"""Node models and reports as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

from fabricheck.core.show import Table, enumerated, listed
from fabricheck.node import NodeModel, Quantity, format_cores
from fabricheck.node.placement import placements
from fabricheck.tools.topology.reported import Reported


def _matrix(cells: Sequence[Sequence[object]]) -> Table:
    names = [str(device) for device in range(len(cells))]
    rows = [(f"  {name}", *map(str, row)) for name, row in zip(names, cells, strict=True)]
    return Table(("", *names), rows, names)


def _links(links: Sequence[Sequence[int]]) -> Table:
    return _matrix([
        ["-" if a == b else cell or "." for b, cell in enumerate(row)]
        for a, row in enumerate(links)
    ])  # fmt: skip


def _rate(peak_gbs: float) -> str:
    return "unknown" if math.isinf(peak_gbs) else f"{peak_gbs:g}"


def model_text(model: NodeModel) -> Iterator[str | Table]:
    """Describe a node model: devices, NUMA domains, links, classes, peaks, sources."""
    yield f"{model.name}: {model.title}"
    if model.systems:
        yield f"found in: {listed(model.systems)}"
    if model.overlay is not None:
        yield f"changed by the overlay '{model.overlay.name}': {model.overlay.parts.description}"
    yield ""
    yield f"Devices: {len(model.devices)} x {model.device_model} ({model.architecture})"
    for device in model.devices:
        pci = "" if device.pci_address is None else f", PCI {device.pci_address}"
        peak = device.memory_peak_gbs
        rate = "its peak unknown" if peak is None else f"at {peak:g} GB/s"
        yield (
            f"  {device.index}: package {device.package}, NUMA domain {device.domain}, "
            f"memory {device.memory_bytes / 2**30:.1f} GiB {rate}, "
            f"nearest cores {format_cores(device.near_cores)}{pci}"
        )
    yield ""
    yield "NUMA domains"
    for domain in model.domains:
        peak = domain.memory_peak_gbs
        memory = "memory peak unknown" if peak is None else f"memory {peak:g} GB/s"
        reserved = f" (reserved {format_cores(domain.reserved)})" if domain.reserved else ""
        attached = listed(domain.devices) or "none"
        yield (
            f"  {domain.index}: cores {format_cores(domain.cores)}{reserved}, {memory}, "
            f"devices {attached}"
        )
    yield ""
    yield f"Host link of each device: {model.host_link_type}, " + _peaks(
        _rate(device.host_link_gbs) for device in model.devices
    )
    engine = model.copy_engine
    yield "Copy engine: " + (
        "peak unknown" if engine.peak_gbs is None else f"{engine.peak_gbs:g} GB/s per transfer"
    )
    if model.switch is not None:
        yield ""
        yield (
            f"Switch: {model.switch.links_per_device} links per device, "
            f"{_rate(model.switch.peak_gbs)} GB/s each and per direction"
        )
    else:
        yield ""
        yield "Links between devices (. none), " + _peaks(
            _rate(link.peak_gbs) for link in model.links.values()
        )
        yield _links(model.link_matrix)
        yield ""
        yield "Hops of the shortest path"
        yield _matrix(model.hop_matrix)
    yield ""
    yield "Link classes (theoretical peak of the widest path, GB/s per direction)"
    for link_class, pairs in model.link_classes.items():
        peaks = {model.peer_peak_gbs(a, b) for a, b in pairs if link_class.links}
        shown = enumerated(map(_rate, sorted(peaks))) or "none"
        which = " ".join(f"{a}-{b}" for a, b in pairs)
        yield f"  {link_class.name} ({shown}): {which}"
    if model.detour_pairs:
        which = " ".join(f"{a}-{b}" for a, b in model.detour_pairs)
        yield f"  widest path longer than the shortest: {which}"
    yield ""
    yield "Placements (one rank per device)"
    for name, placement in placements(model).items():
        devices = ",".join(map(str, placement.devices))
        yield f"  {name}: devices {devices}, cores {placement.map_cpu}"
    yield ""
    yield "Numbers and their sources"
    for key, fact in model.facts.items():
        shown = f" = {fact.value}" if isinstance(fact, Quantity) else ""
        place = listed(filter(None, (fact.source, fact.where, fact.record)))
        note = f" ({fact.note})" if fact.note else ""
        yield f"  {key}{shown}: {fact.kind}{f', {place}' if place else ''}{note}"
    yield ""
    yield "Sources"
    for key, source in model.sources.items():
        yield f"  {key}: {source.title}{f', {source.url}' if source.url else ''}"


def _peaks(values: Iterator[str]) -> str:
    return f"{enumerated(dict.fromkeys(values))} GB/s per direction"


def report_text(report: Reported) -> Iterator[str | Table]:
    """Describe what the tools reported."""
    yield f"{report.origin}: {report.count} {report.vendor} devices"
    if report.links is not None:
        peak = report.link_peak_gbs
        each = "" if peak is None else f", {peak:g} GB/s each and per direction"
        yield ""
        yield f"Direct links (. none){each}"
        yield _links(report.links)
    elif report.link_types is not None:
        yield ""
        yield "Link types (the number of links is not reported)"
        yield _matrix(report.link_types)
    for title, values in (
        ("NUMA domain", report.numa),
        ("CPU affinity", report.cpus),
        ("PCI address", report.pci),
    ):
        if values is not None:
            yield ""
            yield f"{title} of each device"
            yield from (f"  {i}: {'-' if v is None else v}" for i, v in enumerate(values))


def model_json(model: NodeModel) -> dict[str, Any]:
    """Return a model with its derived quantities, for programs.

    Bandwidths are in GB/s per direction, sizes in bytes; each pair has its widest path.
    """
    pairs = permutations(range(len(model.devices)), 2)
    return {
        "identity": model.identity,
        "title": model.title,
        "systems": model.systems,
        "overlay": model.overlay and model.overlay.parts.description,
        "vendor": model.vendor,
        "device_model": model.device_model,
        "architecture": model.architecture,
        "devices": model.devices,
        "domains": model.domains,
        "links": [
            {"pair": pair, "count": link.count, "peak_gbs": link.peak_gbs}
            for pair, link in model.links.items()
        ],
        "host_link": model.host_link_type,
        "switch": model.switch,
        "copy_engine": model.copy_engine,
        "pairs": [
            {
                "source": a,
                "destination": b,
                "class": model.link_class(a, b).name,
                "widest_path": model.widest_path(a, b),
            }
            for a, b in pairs
        ],
        "hops": model.hop_matrix,
        "placements": placements(model),
        "facts": model.facts,
        "sources": model.sources,
    }
