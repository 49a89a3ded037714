"""Comparison of what is told of a node with its node model.

The kind of a fact decides what a difference from it is: a finding where it is published or measured
of this kind of machine, a note where it is assumed or derived, or where it is of the NUMA domains,
cores or addresses of another host. What a model has from the driver itself is not judged by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from fabricheck.core.errors import InvalidInputError
from fabricheck.node import NodeModel, format_cores, parse_cores
from fabricheck.node.loading import OF_DRIVER
from fabricheck.tools.topology import inventory
from fabricheck.tools.topology.reported import (
    UNKNOWN_TYPES,
    Mismatch,
    Reported,
    by_pci,
    links_text,
)

_BY_NUMBER = "devices were matched by number: {reason}"

#: What is added where a tool of the vendor told the devices.
_OTHER_ORDER = ", and a tool may number them differently from HIP"

#: Facts that differ from host to host with the same devices: measured on one, they are that host's.
_OF_A_HOST = ("domains", "devices.pci")


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    ``differences``, one per pair or device, make it fail. ``compared`` lists what was compared,
    ``notes`` what could not be, what differs from a fact of no weight, and how the devices were
    matched.
    """

    differences: tuple[Mismatch, ...]
    compared: tuple[str, ...]
    notes: tuple[str, ...]


def weighs(model: NodeModel, fact: str) -> bool:
    """Whether a difference from a fact of a model is a finding.

    :param fact: its key: ``links``, ``switch``, ``domains``, ``devices.pci``.
    """
    kinds = ("published",) if fact in _OF_A_HOST else ("published", "measured")
    return fact in model.facts and model.facts[fact].kind in kinds and not of_driver(model, fact)


def of_driver(model: NodeModel, fact: str) -> bool:
    """Whether a model has a fact from the driver itself, as a draft does."""
    return fact in model.facts and model.facts[fact].source == OF_DRIVER


def compare(model: NodeModel, report: Reported) -> Comparison:
    """Compare a report with a model: devices, links, NUMA domains, cores.

    Devices are matched by PCI address where model and report have them all, else by number. The
    peak of a link is recorded only: drivers print a constant for it.
    """
    n = len(model.devices)
    if report.vendor != model.vendor or report.count != n:
        shown = f"{report.count} {report.vendor} devices in {report.origin}"
        sentence = f"The node has {n} {model.vendor} devices in {model.name}, {shown}."
        gone = report.vendor == model.vendor and report.count < n
        return Comparison((Mismatch(sentence, lost=gone),), ("devices",), ())
    differences: list[Mismatch] = []
    compared = ["devices"]
    facts = ("links", "switch", "domains", "devices.pci")
    notes = [f"not judged: {fact}, which {model.name} has from the driver" for fact in facts
             if of_driver(model, fact)]  # fmt: skip
    report, how = _matched(model, report, differences, notes)
    notes.append(how)
    of_links = list(_links(model, report))
    if report.links is not None:
        compared.append("links")
    elif report.link_types is not None:
        single = all(links <= 1 for row in model.link_matrix for links in row)
        compared.append("links" if single else "link types")
        notes.append("the number of links is not reported, only their type")
    else:
        notes.append("links are not reported")
    fact = "switch" if model.switch is not None else "links"
    gone = _is_gone(model, report, of_links)
    if not weighs(model, fact):
        differences += unlike_each_other(report)
    by_weight(model, fact, [replace(link, lost=gone) for link in of_links], differences, notes)
    if report.link_peak_gbs is not None and model.links:
        modelled = max(link.peak_gbs for link in model.links.values())
        if abs(modelled - report.link_peak_gbs) <= 1e-6 * modelled:
            compared.append("peak of a link")
        else:
            # Drivers print a constant, and another one after an update.
            notes.append(
                f"one link has {modelled:g} GB/s in {model.name}, and {report.link_peak_gbs:g} by "
                f"the driver in {report.origin}"
            )
    of_domains: list[Mismatch] = []
    if report.numa is not None and any(domain is not None for domain in report.numa):
        compared.append("NUMA domains")
        of_domains += _numa(model, report)
    else:
        notes.append("NUMA domains are not reported")
    if report.cpus is not None:
        compared.append("cores")
        of_domains += _cores(model, report)
    by_weight(model, "domains", of_domains, differences, notes)
    return Comparison(tuple(differences), tuple(compared), tuple(notes))


def unlike_each_other(report: Reported) -> list[Mismatch]:
    """Return the links that differ where those of all devices should be alike, on any machine."""
    description = report.description
    if description is None:
        return []
    return [
        *inventory.one_sided(description, report.origin),
        *inventory.unlike(description, report.origin),
    ]


def by_weight(
    model: NodeModel,
    fact: str,
    mismatches: Iterable[Mismatch],
    differences: list[Mismatch],
    notes: list[str],
) -> None:
    """Add differences from a fact to the differences, or to the notes."""
    if weighs(model, fact):
        differences += mismatches
    else:
        why = "another host" if fact in _OF_A_HOST else "what is assumed"
        why = "the driver as drafted" if of_driver(model, fact) else why
        notes += [f"differs from {why}: {difference.sentence}" for difference in mismatches]


def _is_gone(model: NodeModel, report: Reported, differing: Sequence[Mismatch]) -> bool:
    """Whether links are gone: of one pair, or of several that have a device in common.

    With more links elsewhere the cables are others. Where pairs without a common device differ, the
    devices are numbered otherwise, or the driver tells all links otherwise. A connection of which
    the driver tells no type proves nothing.
    """
    for link in differing:
        a, b = link.devices
        unknown = report.link_types is not None and report.link_types[a][b] in UNKNOWN_TYPES
        if (link.found or 0) > model.link_matrix[a][b] or (unknown and not link.found):
            return False
    return bool(differing) and bool(set.intersection(*(set(link.devices) for link in differing)))


def _matched(
    model: NodeModel, report: Reported, differences: list[Mismatch], notes: list[str]
) -> tuple[Reported, str]:
    addresses = [device.pci_address for device in model.devices]
    known = [address for address in addresses if address is not None]
    by_number = _BY_NUMBER + ("" if report.description else _OTHER_ORDER)
    if report.pci is None:
        return report, by_number.format(reason="no PCI addresses are reported")
    if len(known) != len(addresses):
        return report, by_number.format(reason=f"{model.name} does not have all PCI addresses")
    try:
        return by_pci(report, known), "devices were matched by PCI address"
    except InvalidInputError as error:
        if weighs(model, "devices.pci"):
            differences.append(Mismatch(str(error)))
        else:
            notes.append(str(error))
        reason = "their PCI addresses differ from those of the model"
        return report, by_number.format(reason=reason)


def _links(model: NodeModel, report: Reported) -> Iterator[Mismatch]:
    """Yield the pairs with other links; where only types are told, those without the type."""
    for a, b in combinations(range(report.count), 2):
        expected = model.link_matrix[a][b]
        links = None if report.links is None else report.links[a][b]
        if links is not None:
            differs, seen = expected != links, links_text(links)
        elif report.link_types is not None:
            differs = expected > 0 and report.link_types[a][b] != "XGMI"
            seen = f"a connection of type {report.link_types[a][b]}"
        else:
            return
        if differs:
            sentence = (
                f"Pair {a}-{b}: {links_text(expected)} in {model.name}, {seen} in {report.origin}."
            )
            yield Mismatch(sentence, (a, b), links)


def _numa(model: NodeModel, report: Reported) -> Iterator[Mismatch]:
    assert report.numa is not None
    for device, domain in zip(model.devices, report.numa, strict=True):
        if domain != device.domain:
            sentence = (
                f"Device {device.index}: NUMA domain {device.domain} in {model.name}, "
                f"{'none' if domain is None else domain} in {report.origin}."
            )
            yield Mismatch(sentence, (device.index,), domain)


def _cores(model: NodeModel, report: Reported) -> Iterator[Mismatch]:
    """Compare the affinity; tools also list the second hardware threads, which models leave out."""
    assert report.cpus is not None
    domains = {domain.index: domain for domain in model.domains}
    for device, cpus in zip(model.devices, report.cpus, strict=True):
        if report.numa is not None and report.numa[device.index] != device.domain:
            continue  # the cores of another domain
        if cpus is None:
            continue
        expected, listed = set(domains[device.domain].cores), set(parse_cores(cpus))
        if expected <= listed:
            continue
        others = {core for domain in model.domains for core in domain.cores} - expected
        # A vendor's tool lists only the cores that its job may use.
        is_part = bool(listed & expected) and not listed & others
        if report.description is not None or not is_part:
            sentence = (
                f"Device {device.index}: near the cores {format_cores(expected)} in {model.name}, "
                f"{cpus} in {report.origin}."
            )
            yield Mismatch(sentence, (device.index,))
