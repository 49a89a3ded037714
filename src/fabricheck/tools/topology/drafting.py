"""Drafting of a node model from what is told of a node."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from fabricheck.core import yaml_files
from fabricheck.core.checkout import ROOT
from fabricheck.core.errors import InvalidFile, InvalidInputError
from fabricheck.core.models import StrictModel, validated
from fabricheck.node import format_cores, parse_cores
from fabricheck.node.loading import OF_DRIVER, TO_FILL, from_content
from fabricheck.node.model import SHARED_MEMORY
from fabricheck.tools.topology.reported import Reported

#: The most NVLinks of one device, up to Hopper: more to its peers require a switch.
_MOST_NVLINKS = 18

#: The links between the two devices of an MI250 or MI250X; no others have as many.
_WITHIN_A_PACKAGE = 4

#: The speeds of a lane of PCIe 3.0 to 5.0, in GT/s, which all send 128 bits of data in 130.
_PCIE_GT_PER_S = (8.0, 16.0, 32.0)

_HEADER = """\
# Drafted from: {origin}.
# What is not told is marked "{mark}". The format is explained in docs/reference/node-model.md.
"""

_UNKNOWN = {"value": None, "kind": "unknown", "note": "not told by the driver"}


class DeviceSheet(StrictModel):
    """What the data sheet of a device states: the peak of its memory in GB/s."""

    memory_peak_gbs: float
    source: str


def device_sheets() -> Mapping[str, DeviceSheet]:
    """Return the data sheets of config/devices.yaml by the driver's name of a device.

    :raises InvalidFile: when the file has something else.
    """
    file = ROOT / "config" / "devices.yaml"
    return validated(dict[str, DeviceSheet], yaml_files.read(file), file)


def write_draft(report: Reported, name: str) -> tuple[str, str]:
    """Return the text of a drafted file, and the validator's sentence about it.

    Values that are not told are marked as to be filled in.

    :raises InvalidInputError: when the report has no links.
    """
    content = _draft(report, name)
    body = yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=100)
    text = _HEADER.format(origin=report.origin, mark=TO_FILL) + body
    try:
        from_content(content, "", Path(f"{name}.yaml"))
    except InvalidFile as error:
        return text, str(error)
    return text, f"{name}.yaml is a valid node model."


def _draft(report: Reported, name: str) -> dict[str, Any]:
    if report.links is None:
        raise InvalidInputError(f"The number of links is not reported in {report.origin}.")
    told = report.description
    source = "tools" if told is None else OF_DRIVER
    seen = {"kind": "measured", "source": source}
    content: dict[str, Any] = {
        "format": 1,
        "name": name,
        "title": TO_FILL,
        "vendor": report.vendor,
        "systems": [],
        "sources": {source: {"title": _source(report)}},
        "devices": {
            "count": report.count,
            "model": TO_FILL,
            "architecture": TO_FILL,
            "memory_bytes": TO_FILL,
            "memory_peak_gbs": TO_FILL,
        },
        "packages": {**seen, "devices": TO_FILL},
        "domains": {**seen, "memory_peak_gbs": TO_FILL, "list": _domains(report)},
    }
    if report.pci is not None:
        content["devices"]["pci"] = {**seen, "addresses": dict(enumerate(report.pci))}
    peak: Any = TO_FILL
    if report.link_peak_gbs is not None:
        note = "by the driver, which prints a constant"
        peak = {"value": report.link_peak_gbs, "kind": "assumed", "note": note}
    per_device = {sum(row) for row in report.links}
    switched = report.vendor == "nvidia" and max(per_device) > _MOST_NVLINKS
    if told is not None:
        switched = any(way["kind"] == "nvswitch" for way in told["links"])
    if switched:
        links = {cell for row in report.links for cell in row if cell}
        count: Any = links.pop() if len(links) == 1 else TO_FILL
        content["switch"] = {**seen, "links_per_device": count, "peak_gbs": peak}
    elif report.count > 1:
        matrix = [list(row) for row in report.links]
        content["links"] = {**seen, "peak_gbs": peak, "matrix": matrix}
    content["host_link"] = {"type": TO_FILL, "peak_gbs": TO_FILL}
    content["copy_engine"] = {"peak_gbs": TO_FILL, "count": TO_FILL}
    if told is not None:
        _add_description(content, told, seen)
    return content


def _source(report: Reported) -> str:
    told = report.description
    if told is None:
        return f"Tools of the node: {report.origin}"
    return f"inventory on node {told['host']['hostname']}, {told['at']}"


def _add_description(
    content: dict[str, Any], told: Mapping[str, Any], seen: Mapping[str, str]
) -> None:
    """Fill in what `inventory` tells beyond the tools of the vendors."""
    first = told["devices"][0]
    name = first["name"] or TO_FILL
    content["title"] = f"{len(told['devices'])} x {name}"
    content["devices"] |= {
        "model": name,
        "architecture": first["architecture"].split(":")[0],
        "memory_bytes": {"value": first["memory_bytes"], **seen},
        "memory_peak_gbs": _memory_peak(content, name),
    }
    content["packages"] = _packages(content, name, len(told["devices"]))
    content["domains"]["memory_peak_gbs"] = {**_UNKNOWN}
    content["copy_engine"] = {"peak_gbs": {**_UNKNOWN}, "count": {**_UNKNOWN}}
    content["host_link"] = _host_link(first, content["devices"]["memory_peak_gbs"])


def _memory_peak(content: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the peak of a device's memory by its data sheet, and add that to the sources."""
    stated = device_sheets().get(name)
    if stated is None:
        return {**_UNKNOWN}
    content["sources"]["data-sheet"] = {"title": stated.source}
    return {"value": stated.memory_peak_gbs, "kind": "published", "source": "data-sheet"}


def _packages(content: Mapping[str, Any], name: str, count: int) -> dict[str, Any]:
    """Return the devices of each package, which no driver tells."""
    if "MI250" not in name:
        alone = [[index] for index in range(count)]
        return {"kind": "assumed", "note": "one device in each", "devices": alone}
    links = content["links"]["matrix"] if count > 1 else []
    pairs = [[a, b] for a, b in combinations(range(count), 2) if links[a][b] == _WITHIN_A_PACKAGE]
    whole = sorted(device for pair in pairs for device in pair) == list(range(count))
    note = "the two devices that four links join"
    return {"kind": "assumed", "note": note, "devices": pairs if whole else TO_FILL}


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
    return {"type": TO_FILL if kind is None else kind, "peak_gbs": TO_FILL}


def _domains(report: Reported) -> Any:
    if report.numa is None or None in report.numa:
        return TO_FILL
    found: list[dict[str, Any]] = []
    told = report.description
    of_host = {one["index"]: one["cores"] for one in told["domains"]} if told else {}
    with_devices = {domain for domain in report.numa if domain is not None}
    for index in sorted(with_devices | {one for one, cores in of_host.items() if cores}):
        attached = [i for i, domain in enumerate(report.numa) if domain == index]
        near = {report.cpus[i] for i in attached} if report.cpus is not None else {None}
        text = near.pop() if len(near) == 1 else None
        cores = TO_FILL if text is None else format_cores(parse_cores(text))
        if of_host.get(index):
            cores = format_cores(of_host[index])
        found.append({"index": index, "cores": cores, "devices": dict.fromkeys(attached, cores)})
    return found


class _Dumper(yaml.SafeDumper):
    """Writes every value in place: YAML anchors would make a draft hard to edit."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _list(dumper: _Dumper, values: list[Any]) -> yaml.Node:
    """Write a list of plain values, such as a row of the link matrix, on one line."""
    plain = not any(isinstance(value, dict | list) for value in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=plain)


_Dumper.add_representer(list, _list)
