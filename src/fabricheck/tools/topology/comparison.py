"""Comparison of a node's topology tools with its node model, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from fabricheck.core.errors import InvalidInputError
from fabricheck.core.text import count
from fabricheck.node import NodeModel, format_cores, parse_cores
from fabricheck.tools.topology.reported import Reported, by_pci

_MATCHED_BY_NUMBER = (
    "devices were matched by number: {reason}, and a tool may number them differently from HIP"
)


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    ``differences`` are sentences, one per pair or device, that make it fail. ``compared`` lists
    what was compared, ``notes`` what could not be, and how the devices were matched.
    """

    differences: tuple[str, ...]
    compared: tuple[str, ...]
    notes: tuple[str, ...]


def compare(model: NodeModel, report: Reported) -> Comparison:
    """Compare a report with a model: devices, links, their peak, NUMA domains, cores.

    Devices are matched by PCI address where model and report have them all, else by number.
    """
    n = len(model.devices)
    if report.vendor != model.vendor or report.count != n:
        shown = f"{report.count} {report.vendor} devices in {report.origin}"
        sentence = f"The node has {n} {model.vendor} devices in {model.name}, {shown}."
        return Comparison((sentence,), ("devices",), ())
    differences: list[str] = []
    compared = ["devices"]
    notes: list[str] = []
    report, how = _matched(model, report, differences)
    notes.append(how)
    if report.links is not None:
        compared.append("links")
        differences += _links(model, report)
    elif report.link_types is not None:
        compared.append("link types")
        differences += _types(model, report)
        notes.append("the number of links is not reported, only their type")
    else:
        notes.append("links are not reported")
    if report.link_peak_gbs is not None and model.links:
        compared.append("peak of a link")
        modelled = max(link.peak_gbs for link in model.links.values())
        if abs(modelled - report.link_peak_gbs) > 1e-6 * modelled:
            differences.append(
                f"One link has {modelled:g} GB/s in {model.name}, "
                f"{report.link_peak_gbs:g} in {report.origin}."
            )
    if report.numa is not None and any(domain is not None for domain in report.numa):
        compared.append("NUMA domains")
        differences += _numa(model, report)
    else:
        notes.append("NUMA domains are not reported")
    if report.cpus is not None:
        compared.append("cores")
        differences += _cores(model, report)
    return Comparison(tuple(differences), tuple(compared), tuple(notes))


def _matched(model: NodeModel, report: Reported, differences: list[str]) -> tuple[Reported, str]:
    addresses = [device.pci_address for device in model.devices]
    known = [address for address in addresses if address is not None]
    if report.pci is None:
        reason = "the tools report no PCI addresses"
        return report, _MATCHED_BY_NUMBER.format(reason=reason)
    if len(known) != len(addresses):
        reason = f"{model.name} does not have all PCI addresses"
        return report, _MATCHED_BY_NUMBER.format(reason=reason)
    try:
        return by_pci(report, known) or report, "devices were matched by PCI address"
    except InvalidInputError as error:
        differences.append(str(error))
        reason = "their PCI addresses differ from those of the model"
        return report, _MATCHED_BY_NUMBER.format(reason=reason)


def _links(model: NodeModel, report: Reported) -> Iterator[str]:
    assert report.links is not None
    for a, b in combinations(range(report.count), 2):
        expected, seen = model.link_matrix[a][b], report.links[a][b]
        if expected != seen:
            yield (
                f"Pair {a}-{b}: {_count(expected)} in {model.name}, "
                f"{_count(seen)} in {report.origin}."
            )


def _types(model: NodeModel, report: Reported) -> Iterator[str]:
    assert report.link_types is not None
    for a, b in combinations(range(report.count), 2):
        expected, seen = model.link_matrix[a][b], report.link_types[a][b]
        if expected and seen != "XGMI":
            yield (
                f"Pair {a}-{b}: {_count(expected)} in {model.name}, "
                f"a connection of type {seen} in {report.origin}."
            )


def _count(links: int) -> str:
    return "no direct link" if links == 0 else count(links, "link")


def _numa(model: NodeModel, report: Reported) -> Iterator[str]:
    assert report.numa is not None
    for device, domain in zip(model.devices, report.numa, strict=True):
        if domain != device.domain:
            yield (
                f"Device {device.index}: NUMA domain {device.domain} in {model.name}, "
                f"{'none' if domain is None else domain} in {report.origin}."
            )


def _cores(model: NodeModel, report: Reported) -> Iterator[str]:
    """Compare the affinity; tools also list the second hardware threads, which models leave out."""
    assert report.cpus is not None
    domains = {domain.index: domain for domain in model.domains}
    for device, cpus in zip(model.devices, report.cpus, strict=True):
        own = set(domains[device.domain].cores)
        if cpus is not None and not own <= set(parse_cores(cpus)):
            yield (
                f"Device {device.index}: near the cores {format_cores(own)} in {model.name}, "
                f"{cpus} in {report.origin}."
            )
