"""What vendors and clouds demand at least of a device, beside the limits of the set for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fabricheck.core.checkout import ROOT
from fabricheck.references import published
from fabricheck.references.stated import References

FOLDER = ROOT / "reference_values"
STATED = References(FOLDER)
DEMANDS = [
    one for one in published.of_folder(FOLDER).records.values() if one.role == published.THRESHOLD
]

#: By device the set of references that judges it.
SETS = {
    "MI300A": "amd-mi300a",
    "MI300X": "amd-mi300x",
    "MI325X": "amd-mi300x",
    "MI355X": "amd-mi355x",
    "H100": "nvidia",
    "H200": "nvidia",
    "B200": "nvidia-b200",
    "GB200": "nvidia-b200",
}

#: Demands that a limit of the set is above, each with why it is no floor of what we measure.
STRICTER = {
    "aznhc-host-mi300x": "AMD's documentation shows 57 GB/s; 48 are demanded of a virtual machine",
    "aznhc-peer-h100": "an H200 with the same links reached 396 GB/s by the same tool",
    "aznhc-peer-h200": "an H200 reached 396 GB/s by the same tool",
    "dcgm-b200-memory": "three quarters of what a kernel of its own reached",
    "dcgm-gb200-memory": "three quarters of what a kernel of its own reached",
}


def metrics(demand: published.Record) -> Iterator[tuple[str, str]]:
    """Yield the checks and metrics that measure what is demanded, by experiment."""
    tool = str(demand.conditions.get("tool", ""))
    if demand.experiment == "stream_local":
        kernel = "scale" if "mul" in demand.conditions["kernel"] else demand.conditions["kernel"]
        yield "stream_local", f"{kernel}_worst"
    elif demand.experiment == "device_memory":
        yield "stream_local", "copy_worst"
        yield "stream_local", "add_worst"
    elif demand.experiment in ("h2d_and_d2h_nvbandwidth_ce", "h2d_and_d2h_rocm_bandwidth_test"):
        yield "memcpy_near", "h2d_pinned_near_worst"
        yield "memcpy_near", "d2h_pinned_near_worst"
    elif demand.experiment == "p2p_transferbench":
        yield "p2p_kernel", "read_*" if "read from a peer" in tool else "write_*"
    elif demand.experiment in ("p2p_transferbench_engine", "p2p_rocm_bandwidth_test_least",
                               "p2p_nvbandwidth_read_ce"):  # fmt: skip
        yield "p2p_engine", "engine_*"
        yield "p2p_defaults", "engine_*"
    elif demand.experiment == "ccl_all_reduce_busbw" and demand.conditions.get("nodes") == 1:
        yield "rccl_scan", f"allreduce_{demand.conditions.get('ranks', 8)}_devices_busbw"


def limits(check: str, key: str, metric: str) -> Iterator[float]:
    """Yield the least values of a metric that a set allows; a star is for a class of links."""
    wanted = re.compile(metric.replace("*", r"(links\d|switch18)_worst"))
    for name, (reference, lower, _, _) in STATED.entries(check, key).items():
        if lower is not None and wanted.fullmatch(name):
            yield reference * (1 + lower)


def test_no_limit_is_above_a_demand_but_where_something_was_measured():
    """A node that a health check accepts passes by what only another health check demands."""
    compared, above = set(), set()
    for demand in DEMANDS:
        key = SETS.get(demand.accelerator)
        for check, metric in metrics(demand) if key is not None else ():
            for least in limits(check, key, metric):
                compared.add(demand.id)
                if demand.value < least:
                    above.add(demand.id)
    assert above == set(STRICTER)
    assert len(compared) > 30
    assert {SETS[one.accelerator] for one in DEMANDS if one.id in compared} == set(SETS.values())
