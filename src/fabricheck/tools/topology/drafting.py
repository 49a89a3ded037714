"""Drafting of a node model from the reports of a node's tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from fabricheck.core.errors import InvalidFile, InvalidInputError
from fabricheck.node import format_cores, parse_cores
from fabricheck.node.loading import TO_FILL, from_content
from fabricheck.tools.topology.reported import Reported

#: The most NVLinks of one device, up to Hopper: more to its peers require a switch.
_MOST_NVLINKS = 18

_HEADER = """\
# Drafted from: {origin}.
# What no tool tells is marked "{mark}". The format is explained in docs/node-models.md.
"""


def write_draft(report: Reported, name: str) -> tuple[str, str]:
    """Return the text of a drafted file, and the validator's sentence about it.

    Values that no tool reports are marked as to be filled in.

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
    seen = {"kind": "measured", "source": "tools"}
    devices: dict[str, Any] = {
        "count": report.count,
        "model": TO_FILL,
        "architecture": TO_FILL,
        "memory_bytes": TO_FILL,
        "memory_peak_gbs": TO_FILL,
    }
    if report.pci is not None:
        devices["pci"] = {**seen, "addresses": dict(enumerate(report.pci))}
    content: dict[str, Any] = {
        "format": 1,
        "name": name,
        "title": TO_FILL,
        "vendor": report.vendor,
        "systems": [],
        "sources": {"tools": {"title": f"Tools of the node: {report.origin}"}},
        "devices": devices,
        "packages": {**seen, "devices": TO_FILL},
        "domains": {**seen, "memory_peak_gbs": TO_FILL, "list": _domains(report)},
    }
    peak: Any = TO_FILL
    if report.link_peak_gbs is not None:
        note = "by the driver, which prints a constant"
        peak = {"value": report.link_peak_gbs, "kind": "assumed", "note": note}
    per_device = {sum(row) for row in report.links}
    if report.vendor == "nvidia" and max(per_device) > _MOST_NVLINKS:
        links = {cell for row in report.links for cell in row if cell}
        count: Any = links.pop() if len(links) == 1 else TO_FILL
        content["switch"] = {**seen, "links_per_device": count, "peak_gbs": peak}
    else:
        matrix = [list(row) for row in report.links]
        content["links"] = {**seen, "peak_gbs": peak, "matrix": matrix}
    content["host_link"] = {"type": TO_FILL, "peak_gbs": TO_FILL}
    content["copy_engine"] = {"peak_gbs": TO_FILL, "count": TO_FILL}
    return content


def _domains(report: Reported) -> Any:
    if report.numa is None or None in report.numa:
        return TO_FILL
    found: list[dict[str, Any]] = []
    for index in sorted({domain for domain in report.numa if domain is not None}):
        attached = [i for i, domain in enumerate(report.numa) if domain == index]
        cpus = {report.cpus[i] for i in attached} if report.cpus is not None else {None}
        told = cpus.pop() if len(cpus) == 1 else None
        cores = TO_FILL if told is None else format_cores(parse_cores(told))
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
