"""What a series must satisfy that another tool measured: OSU, rccl-tests, nccl-tests."""

from __future__ import annotations

from collections.abc import Iterator

from fabricheck.results.model import Series

#: Names of programs in documents that are made of another tool's output.
TOOLS = ("osu", "rccl-tests", "nccl-tests")

Findings = Iterator[tuple[str, str]]


def by_tool(series: Series) -> bool:
    """Whether another tool measured the series, and compared the data."""
    return series["verification"].get("by") == "tool"


def contradictions(series: Series) -> Findings:
    """Yield the field and the reason of each fault."""
    rccl = series["engine"] == "rccl"
    if rccl != (series["experiment"] == "E11"):
        yield "engine", f"is {series['engine']}, and the experiment is {series['experiment']}"
    if rccl != (series.get("in_place") is not None):
        yield "in_place", f"must be set exactly when RCCL moves the data, not {series['engine']}"
    bandwidth = rccl and series["unit"] == "GB/s"
    if (series["bytes_counted"] == "bus") != bandwidth:
        yield "bytes_counted", f"is {series['bytes_counted']}, and bus is of RCCL's bandwidths"
    if by_tool(series) and len(series["samples"]) != 1:
        yield "samples", f"has {len(series['samples'])} samples, and another tool tells one mean"
