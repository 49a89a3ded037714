"""Drafting of a node model from the description of a node by `inventory`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from fabricheck.core import yaml_files
from fabricheck.core.amounts import about
from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidInputError, NotFoundError, UsageError
from fabricheck.core.models import StrictModel, validated
from fabricheck.core.show import listed
from fabricheck.core.text import printable_line
from fabricheck.core.vocabulary import UNKNOWN
from fabricheck.node import format_cores, products
from fabricheck.node.loading import OF_DRIVER, from_content
from fabricheck.node.model import SHARED_MEMORY
from fabricheck.node.products import Product
from fabricheck.results.model import node_name
from fabricheck.results.other_devices import divided_sentence, divides, mode_of_parts
from fabricheck.site import this_machine
from fabricheck.tools.topology.reported import Reported

#: The links between the two devices of an MI250 or MI250X; no others have as many.
_WITHIN_A_PACKAGE = 4

#: The speeds of a lane of PCIe 3.0 to 5.0, in GT/s, which all send 128 bits of data in 130.
_PCIE_GT_PER_S = (8.0, 16.0, 32.0)

_HEADER = "# Drafted from {origin}. The format is explained in docs/reference/node-model.md.\n"

_UNKNOWN = {"value": None, "kind": "unknown", "note": "not told by the driver"}

_SEEN = {"kind": "measured", "source": OF_DRIVER}


class LinkSheet(StrictModel):
    """What documents state of one link between devices: its peak in GB/s, one way."""

    peak_gbs: float
    source: str


def link_sheets() -> Mapping[str, LinkSheet]:
    """Return the links of config/links.yaml by the architecture of their devices.

    :raises InvalidFile: when the file has something else.
    """
    file = ROOT / "config" / "links.yaml"
    return validated(dict[str, LinkSheet], yaml_files.read(file), file)


def drafted(report: Reported, name: str) -> str:
    """Return the text of a drafted file; what the driver and data sheets do not tell is unknown.

    :raises InvalidInputError: when the node is not described by `inventory`, its devices are parts
        of GPUs, or it has no links.
    :raises InvalidFile: when what the driver tells is impossible.
    """
    content = _draft(report, name)
    from_content(content, "", Path(f"{name}.yaml"))
    body = yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=100)
    return _HEADER.format(origin=printable_line(report.origin)) + body


def notes(report: Reported) -> list[str]:
    """Return a sentence for each limit that a draft lacks because of what its devices are."""
    devices = report.description["devices"] if report.description is not None else ()
    sentences = [_missing_limits(device) for device in devices]
    return [*dict.fromkeys(sentence for sentence in sentences if sentence is not None)]


def _missing_limits(device: Mapping[str, Any]) -> str | None:
    product = products.product(device)
    if product is None:
        return products.missing_limits(device, has_peak=False)
    if product.has_part(device["memory_bytes"]):
        return (
            f"A device has {about(device['memory_bytes'])} of the {product.memory_gb:g} GB of "
            f"{product.name}, so that it is a part of one: the peak of its memory is unknown, and "
            "its memory has no limit by its peak."
        )
    if product.memory_peak_gbs is None:
        return (
            f"No source states the memory's peak of {product.name}: its memory has no limit by its "
            "peak."
        )
    return None


def write_draft(text: str, path: Path) -> Path:
    """Write the text of a draft into a new file; return its path.

    :raises UsageError: when it exists.
    :raises NotFoundError: when it cannot be written.
    """
    try:
        if path == this_machine.draft():
            path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} already exists.") from None
    except OSError as error:
        raise NotFoundError(f"{path} cannot be written ({error.strerror}).") from None
    return path


def _draft(report: Reported, name: str) -> dict[str, Any]:
    description = report.description
    if description is None:
        raise InvalidInputError(
            f"{report.origin} does not tell enough of a node: run this suite's program inventory "
            "there, and draft from the file that its --output names."
        )
    node = node_name(description["host"])
    for mode in filter(divides, (device["compute_partition"] for device in description["devices"])):
        raise InvalidInputError(divided_sentence(node, mode, report.count))
    addresses = [device["pci_address"] for device in description["devices"]]
    cards = {address.rpartition(".")[0] for address in addresses if address}
    if None not in addresses and len(cards) < report.count:
        # In a virtual machine or a container the driver need not tell the mode.
        mode = "MIG" if report.vendor == "nvidia" else mode_of_parts(report.count, len(cards))
        raise InvalidInputError(divided_sentence(node, mode or "DPX or CPX", report.count))
    kinds = sorted({_kind(device) for device in description["devices"]})
    if len(kinds) > 1:
        raise InvalidInputError(
            f"Node {node} has devices of {len(kinds)} kinds ({listed(kinds)}), and a node model "
            "has one: such a node cannot be judged as a whole."
        )
    if report.links is None:
        raise InvalidInputError(f"The number of links is not reported in {report.origin}.")
    first = description["devices"][0]
    product, model = products.product(first), products.label(first)
    sources = {OF_DRIVER: {"title": f"inventory on node {node}, {description['at']}"}}
    memory_peak = _memory_peak(sources, product, first)
    content: dict[str, Any] = {
        "format": 1,
        "name": name,
        "title": f"{report.count} x {model}",
        "vendor": report.vendor,
        "systems": [],
        "sources": sources,
        "devices": {
            "count": report.count,
            "model": model,
            "architecture": first["architecture"].split(":")[0],
            "memory_bytes": {"value": first["memory_bytes"], **_SEEN},
            "memory_peak_gbs": memory_peak,
        },
        "packages": _packages(report.links, product),
        "domains": _domains(description),
    }
    if report.pci is not None:
        content["devices"]["pci"] = {**_SEEN, "addresses": dict(enumerate(report.pci))}
    unique_ids = [device.get("unique_id") for device in description["devices"]]
    if all(unique_ids):
        content["devices"]["unique_ids"] = {**_SEEN, "ids": dict(enumerate(unique_ids))}
    if any(way["kind"] == "nvswitch" for way in description["links"]):
        links = max(map(max, report.links))
        link_peak = _link_peak(sources, content["devices"]["architecture"], report.link_peak_gbs)
        content["switch"] = {**_SEEN, "links_per_device": links, "peak_gbs": link_peak}
    elif report.count > 1:
        content["links"] = {
            **_SEEN,
            "peak_gbs": _link_peak(
                sources, content["devices"]["architecture"], report.link_peak_gbs
            ),
            "matrix": [list(row) for row in report.links],
        }
    content["host_link"] = _host_link(first, memory_peak)
    content["copy_engine"] = {"peak_gbs": {**_UNKNOWN}, "count": {**_UNKNOWN}}
    return content


def _kind(device: Mapping[str, Any]) -> str:
    """Return what a device is called among others; without a name and an id its architecture."""
    named = products.label(device)
    return str(device["architecture"]) if named == UNKNOWN else named


def _memory_peak(
    sources: dict[str, Any], product: Product | None, device: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the peak of a device's memory by its data sheet, and add that to the sources."""
    if product is None or product.memory_peak_gbs is None:
        return {**_UNKNOWN}
    if product.has_part(device["memory_bytes"]):
        return {**_UNKNOWN, "note": f"less memory than {product.name} has"}
    sources["data-sheet"] = {"title": product.source}
    return {"value": product.memory_peak_gbs, "kind": "published", "source": "data-sheet"}


def _link_peak(
    sources: dict[str, Any], architecture: str, by_driver: float | None
) -> dict[str, Any]:
    """Return the peak of a link by a document, and add that to the sources; else the driver's.

    :param by_driver: a constant of the driver, in GB/s; None where it tells none.
    """
    stated = link_sheets().get(architecture)
    if stated is not None:
        sources["link-sheet"] = {"title": stated.source}
        note = "half of both ways" if by_driver is None else f"the driver tells {by_driver:g}"
        return {"value": stated.peak_gbs, "kind": "published", "source": "link-sheet", "note": note}
    if by_driver is None:
        return {**_UNKNOWN}
    note = "by the driver, which prints a constant"
    return {"value": by_driver, "kind": "assumed", "note": note}


def _packages(links: Sequence[Sequence[int]], product: Product | None) -> dict[str, Any]:
    """Return the devices of each package, which no driver tells."""
    devices = range(len(links))
    pairs = [[a, b] for a, b in combinations(devices, 2) if links[a][b] == _WITHIN_A_PACKAGE]
    in_pairs = sorted(device for pair in pairs for device in pair) == list(devices)
    if product is not None and product.package == 2 and in_pairs:
        note = "the two devices that four links join"
        return {"kind": "assumed", "note": note, "devices": pairs}
    alone = [[index] for index in devices]
    return {"kind": "assumed", "note": "one device in each", "devices": alone}


def _host_link(device: Mapping[str, Any], memory_peak: Mapping[str, Any]) -> dict[str, Any]:
    link, pcie = device["host_link"] or {"kind": None}, device["pcie"]
    # A slot may have fewer lanes than the device.
    width = pcie and min(pcie["width_max"] or 0, pcie["width_max_port"] or math.inf)
    kind = link["kind"]
    if kind == "xgmi" and link["gb_per_s"]:
        note = "by the driver, which prints a constant"
        peak = {"value": link["gb_per_s"], "kind": "assumed", "note": note}
        return {"type": "Infinity Fabric", "peak_gbs": peak}
    if kind == "pcie" and width and pcie["gt_per_s_max"] in _PCIE_GT_PER_S:
        rate = pcie["gt_per_s_max"]
        value = round(rate * width * 128 / 130 / 8, 3)
        note = f"{rate:g} GT/s x {width} lanes x 128/130 / 8"
        return {
            "type": f"PCIe {rate:g} GT/s x{width}",
            "peak_gbs": {"value": value, "kind": "derived", "note": note},
        }
    if kind == "package" and memory_peak["value"] is not None:
        note = "there is no link: a copy between host and device is one within the package's memory"
        peak = {"value": memory_peak["value"], "kind": "derived", "note": note}
        return {"type": SHARED_MEMORY, "peak_gbs": peak}
    return {"type": kind or UNKNOWN, "peak_gbs": {**_UNKNOWN}}


def _domains(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the NUMA domains; a device of which none is told is in the first one with cores."""
    cores = {
        domain["index"]: format_cores(domain["cores"])
        for domain in description["domains"]
        if domain["cores"]
    }
    cores = cores or {0: format_cores(description["host"]["cores_allowed"])}
    homes = [device["numa_domain"] for device in description["devices"]]
    lost = [str(device) for device, home in enumerate(homes) if home not in cores]
    homes = [home if home in cores else min(cores) for home in homes]
    note = f"the driver does not tell that of device {listed(lost)}"
    domains = [
        {"index": index, "cores": near,
         "devices": {device: near for device, home in enumerate(homes) if home == index}}
        for index, near in sorted(cores.items())
    ]  # fmt: skip
    how = {"kind": "assumed", "note": note} if lost else _SEEN
    return {**how, "memory_peak_gbs": {**_UNKNOWN}, "list": domains}


class _Dumper(yaml.SafeDumper):
    """Writes lists of plain values on one line."""


def _list(dumper: _Dumper, values: list[Any]) -> yaml.Node:
    """Write a list; one of plain values, such as a row of the link matrix, on one line."""
    plain = not any(isinstance(value, dict | list) for value in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=plain)


_Dumper.add_representer(list, _list)
