"""What a series must satisfy that another tool measured, and what bounds it."""

from __future__ import annotations

import json

import factories
from fabricheck.node import load as load_node
from fabricheck.results import document
from fabricheck.rfm.acceptance import node_bound

BY_TOOL = {"bytes_checked": 1 << 20, "errors": 0, "first_mismatch": None, "by": "tool"}
ON_HOST = factories.place("host-pageable", None)


def of_ranks(**changes):
    """Build an allreduce of OSU on two devices."""
    nowhere = factories.place(device=None)
    return (
        factories.series(
            [12.5],
            experiment="E10",
            operation="allreduce",
            device=None,
            device_set=[0, 1],
            ranks=[0, 1],
            source=nowhere,
            destination=nowhere,
            engine="mpi",
            direction="collective",
            bytes=1 << 20,
            bytes_moved=1 << 20,
            bytes_counted="once",
            block_size=None,
            unit="us",
            better="lower",
            host_clock=None,
            verification=BY_TOOL,
        )
        | changes
    )


def of_pair(**changes):
    ends = {"source": factories.place(device=0), "destination": factories.place(device=1)}
    kind = {"experiment": "E9", "operation": "latency", "direction": "one-way"}
    return of_ranks(**kind) | ends | changes


def of_rccl(unit="GB/s", **changes):
    bus = {"unit": unit, "better": "higher", "bytes_counted": "bus"} if unit == "GB/s" else {}
    return of_ranks(experiment="E11", engine="rccl", in_place=False) | bus | changes


def read(series, name="osu"):
    program = factories.document()["program"] | {"name": name}
    content = factories.document(series=[series], program=program, options={"tool": name})
    return document.parse(json.dumps(content))


def test_wrong_data_of_a_tool_is_told_by_the_outcome_alone():
    wrong = {"exit_code": 5, "status": "wrong-data", "message": "osu_bw: wrong data"}
    content = factories.document(series=[], outcome=wrong)
    content["program"]["name"] = content["options"]["tool"] = "osu"
    document.parse(json.dumps(content))


def test_a_bus_bandwidth_is_bounded_by_all_links_of_a_device():
    mi250x, h200 = load_node("mi250x"), load_node("h200")
    bound = node_bound(mi250x, of_rccl())
    links = mi250x.direct_peaks_gbs
    assert bound.value == max(sum(links[0]), sum(links[1]))
    # Recorded on eight H200 with NVLink SHARP: 473 GB/s, more than the links of a device have.
    assert h200.direct_peaks_gbs[0][1] < 473 < node_bound(h200, of_rccl()).value
    assert node_bound(mi250x, of_rccl("us")).value == 0
