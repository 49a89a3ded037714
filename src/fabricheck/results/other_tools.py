"""Consistency of series measured by third-party benchmarks: OSU, rccl-tests, nccl-tests.

Each launch of a document has its own ranks, so a series names its ranks and devices, and the
document has no list of ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabricheck.results.model import ResultDocument, Series

Findings = Iterator[tuple[str, str]]

#: Programs of this suite that do not use a runtime: what they know of devices, others told them.
RECORDERS = ("topology", "nics")

#: The experiments of RCCL and NCCL: in a node, and between nodes.
OF_RCCL = ("E11", "E17")


def of_another_tool(document: ResultDocument) -> bool:
    """Whether a document was made of a third-party tool's output, by ``fabricheck tools run``."""
    return bool(document["options"].get("tool") == document["program"]["name"])


def by_tool(series: Series) -> bool:
    """Whether a third-party tool measured the series and compared the data."""
    return series["verification"].get("by") == "tool"


def contradictions(series: Series, of_tool: bool) -> Findings:
    """Yield the field and the reason of each fault.

    :param of_tool: whether the document is that of a third-party tool.
    """
    if by_tool(series) != of_tool:
        word = "another tool" if of_tool else "a program of this suite"
        yield "verification.by", f"contradicts the document, which is from {word}"
    rccl = series["engine"] == "rccl"
    if (series["experiment"] not in OF_RCCL) if rccl else (series["experiment"] == "E11"):
        yield "engine", f"is {series['engine']}, but the experiment is {series['experiment']}"
    if rccl != (series.get("in_place") is not None):
        yield "in_place", f"must be set exactly when RCCL moves the data, not {series['engine']}"
    bandwidth = rccl and series["unit"] == "GB/s"
    if (series["bytes_counted"] == "bus") != bandwidth:
        yield "bytes_counted", f"is {series['bytes_counted']}, but only RCCL's bandwidths count bus"
    if of_tool:
        yield from _of_the_ranks(series)
        if len(series["samples"]) != 1:
            yield (
                "samples",
                f"has {len(series['samples'])} samples, but a third-party tool reports one mean",
            )


def _of_the_ranks(series: Series) -> Findings:
    ranks, devices = series.get("ranks"), series["device_set"]
    if not ranks:
        yield "ranks", "is missing, but a third-party tool measures between ranks"
        return
    if series["device"] is not None:
        yield "device", f"is {series['device']}, but messages have none"
    ends = [series["source"], series["destination"]]
    pair = series["direction"] != "collective" and series["role"] == "single"
    held = [place["device"] for place in ends]
    # Two ranks can share a device, which the set names once.
    if devices and len(devices) != len(ranks) and not (pair and held == [*devices, *devices]):
        yield "device_set", f"has {len(devices)} devices, but there are {len(ranks)} ranks"
    if any((place["memory"] == "device") != bool(devices) for place in ends):
        yield "device_set", f"is {devices}, which does not fit the kinds of memory"
    if pair and devices and list(dict.fromkeys(held)) != devices:
        yield "device_set", f"is {devices}, but both ends are on other devices"
