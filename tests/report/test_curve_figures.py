"""Curves between devices, of ranks over size, and of collectives."""

from __future__ import annotations

import re
from typing import Any

import pytest

import factories
from fabricheck.report.figures import collectives, peers
from figure_runs import GIB, MIB, drawn, partition, peer, values

SIZES = (MIB, GIB)


def test_one_neighbour_of_each_link_class() -> None:
    pairs = {(0, 1): 50.0, (0, 2): 37.5, (0, 6): 49.0, (0, 3): 1.0, (1, 3): 2.0}
    scan = [peer(pair, size, value) for pair, value in pairs.items() for size in SIZES]
    figure = drawn(peers.curves, partition({"p2p_scan": scan}))["peer-curves-engine"]
    assert values(figure) == {
        "single link": [37.5, 37.5],
        "dual link": [49.0, 49.0],
        "quad link": [50.0, 50.0],
    }
    assert values(figure, "published").keys() == values(figure).keys()
    assert "Single link: 37.5 GB/s at 1 GiB" in figure.says
    assert "(0 to 2)" in figure.says


def test_a_published_value_without_a_size_is_a_line_across_and_no_point() -> None:
    scan = [peer((0, 1), size, 50.0) for size in SIZES]
    svg = drawn(peers.curves, partition({"p2p_scan": scan}))["peer-curves-engine"].svg
    words = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert words.count("published") == 1  # beside its line; a legend of points has none
    *_, points = re.findall(r'<g class="mark-symbol role-mark[^>]*?(/?)>', svg)
    assert points == "/", "a point of a published value is drawn"


def test_copies_by_kernel_stand_beside_their_part_of_the_peak() -> None:
    scan = [peer((0, 1), size, 175.0, "copy") for size in SIZES]
    figure = drawn(peers.curves, partition({"p2p_scan": scan}))["peer-curves-kernel"]
    assert values(figure, "derived") == {"quad link": [pytest.approx(172), pytest.approx(176)]}


def test_of_several_block_sizes_the_papers_stands_beside_its_values() -> None:
    """The one of the check with most sizes would be drawn otherwise."""
    scan = [peer((0, 1), size, 180.0, "copy") for size in (MIB // 2, *SIZES)]
    of_128 = [peer((0, 1), size, 170.0, "copy") | {"block_size": 128} for size in SIZES]
    both = partition({"p2p_scan": scan, "p2p_block_128": of_128})
    figure = drawn(peers.curves, both)["peer-curves-kernel"]
    assert values(figure) == {"quad link": [170.0, 170.0]}


def test_a_device_that_the_node_model_lacks_stands_for_itself() -> None:
    scan = [peer((0, 9), size, 80.0, "copy") for size in SIZES]
    figure = drawn(peers.curves, partition({"p2p_scan": scan}))["peer-curves-kernel"]
    assert {row["kind"] for row in figure.rows} == {"simulated"}
    assert values(figure) == {"0 to 9": [80.0, 80.0]}


def test_copies_with_engines_off_are_no_copies_by_engine() -> None:
    scan = [peer((0, 1), size, 50.0) for size in SIZES]
    off = partition({"p2p_scan": scan}, environment={"HSA_ENABLE_SDMA": "0"})
    assert not drawn(peers.curves, off)


def test_one_size_is_no_curve() -> None:
    assert not drawn(peers.curves, partition({"p2p_engine": [peer((0, 1), GIB, 50.0)]}))


def test_collectives_are_of_all_devices_and_of_one_way_to_receive() -> None:
    def bus(size: int, value: float, in_place: bool, devices: int = 4) -> dict[str, Any]:
        return factories.series(
            [value],
            experiment="E11",
            operation="allreduce",
            engine="rccl",
            device=None,
            device_set=list(range(devices)),
            direction="collective",
            bytes=size,
            bytes_counted="bus",
            in_place=in_place,
            host_clock=None,
        )

    scan = [bus(size, 5.0, True) for size in SIZES]
    scan += [bus(size, size / GIB, False) for size in SIZES]
    scan += [bus(size, 99.0, False, devices=2) for size in SIZES]
    program = factories.simulated_document()["program"] | {"name": "rccl-tests"}
    found = partition({"rccl_scan": scan}, program=program)
    figure = drawn(collectives.bandwidths, found)["collectives-bus-bandwidth"]
    assert values(figure) == {"allreduce": [MIB / GIB, 1.0]}
    assert figure.title == "RCCL's bus bandwidth over size, 4 devices"
