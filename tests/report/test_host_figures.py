"""Figures between host and device: bars, curves, several devices at once."""

from __future__ import annotations

from typing import Any

import pytest

import factories
from fabricheck.report.figures import host, sections
from figure_runs import GIB, MIB, copies, drawn, partition, peer, values
from wording import Wording

PINNED = {64 << 10: 5.0, MIB: 20.0, GIB: 28.0}
PAGEABLE = {64 << 10: 5.7, 128 << 10: 3.7, GIB: 25.0}


def runs() -> dict[str, list[dict[str, Any]]]:
    managed = {"bytes": GIB, "movement": "page-migration"}
    return {
        "memcpy_scan": [*copies("host-pinned", PINNED), *copies("host-pageable", PAGEABLE)],
        "managed_migration": [
            factories.managed_copy("read", value=2.8, **managed),
            factories.managed_copy("write", value=2.9, **managed),
            factories.managed_copy("host-read", value=1.9, **managed),
        ],
    }


def test_bars_have_the_best_of_each_interface() -> None:
    figure = drawn(host.figures, partition(runs()))["host-best-h2d"]
    assert values(figure) == {
        "pinned copy": [28.0],
        "pageable copy": [25.0],
        "page migration": [2.8],
    }
    assert "pinned copy, at 1 GiB" in figure.says and "2.8" not in figure.says


def test_what_fits_the_caches_is_best_only_where_there_is_nothing_else() -> None:
    scan = copies("host-pinned", {MIB: 40.0, GIB: 28.0})
    scan[0]["regime"] = "cache"
    figure = drawn(host.figures, partition({"memcpy_scan": scan}))["host-best-h2d"]
    assert values(figure) == {"pinned copy": [28.0]} and "fits the caches" not in figure.says
    figure = drawn(host.figures, partition({"memcpy_scan": scan[:1]}))["host-best-h2d"]
    assert values(figure) == {"pinned copy": [40.0]}
    assert "fit the caches: pinned copy" in figure.says


def test_pages_that_a_kernel_writes_do_not_go_to_the_host() -> None:
    figure = drawn(host.figures, partition(runs()))["host-best-d2h"]
    assert values(figure) == {"page migration": [1.9]}


def test_curves_say_where_they_saturate_and_fall(wording: Wording) -> None:
    figure = drawn(host.figures, partition(runs()))["host-curves-h2d"]
    assert values(figure) == {
        "pinned copy": list(PINNED.values()),
        "pageable copy": list(PAGEABLE.values()),
    }, "one size of migration is no curve"
    wording(figure.says)


def test_a_curve_is_of_one_run() -> None:
    found = runs()
    found["memcpy_near"] = copies("host-pinned", {2 * GIB: 99.0})
    figure = drawn(host.figures, partition(found))["host-curves-h2d"]
    assert values(figure)["pinned copy"] == list(PINNED.values())


@pytest.mark.parametrize("node", ["h200", "mi250", None])
def test_published_values_are_beside_such_nodes_only(node: str | None) -> None:
    at_home = drawn(host.figures, partition(runs()))["host-best-h2d"]
    assert values(at_home, "published") == {
        "pinned copy": [28.3],
        "pageable copy": [pytest.approx(25.2833)],
        "page migration": [2.8],
    }
    elsewhere = drawn(host.figures, partition(runs(), node))["host-best-h2d"]
    assert {row["kind"] for row in elsewhere.rows} == {"simulated"}
    assert "published" not in elsewhere.says + elsewhere.svg


def test_sizes_that_are_not_published_stay_empty() -> None:
    figure = drawn(host.figures, partition(runs()))["host-curves-h2d"]
    sizes = {row["record"]: row["bytes"] for row in figure.rows if row["kind"] == "published"}
    assert sizes["paper-h2d-pinned"] is None
    assert sizes["epicure-lumi-single-h2d"] == 128 * MIB


def concurrent(*sets: tuple[tuple[int, ...], float]) -> dict[str, list[dict[str, Any]]]:
    pinned = factories.place("host-pinned", None, 0)
    return {
        "stream_concurrent": [
            factories.series(
                [value],
                experiment="E5",
                role="sum" if len(devices) > 1 else "single",
                device=None if len(devices) > 1 else devices[0],
                device_set=list(devices),
                source=pinned,
                destination=pinned,
                host_clock=None,
            )
            for devices, value in sets
        ]
    }


def test_sums_have_their_percentage_of_all_links(wording: Wording) -> None:
    sets = (((0,), 51.0), ((0, 1), 52.0), ((0, 4), 100.0), (tuple(range(8)), 200.0))
    found = drawn(host.figures, partition(concurrent(*sets)))
    two = found["host-two-devices"]
    percent = {row["series"]: row["percent_of_peak"] for row in two.rows if row["n"]}
    assert percent == {
        "1 device": pytest.approx(100 * 51 / 72),
        "2, one package": pytest.approx(100 * 52 / 144),
        "2, spread": pytest.approx(100 * 100 / 144),
    }
    assert values(two, "derived") == {"2, one package": [51.0], "2, spread": [102.0]}
    everything = found["host-scaling"]
    assert values(everything) == {"1 device": [51.0], "2, spread": [100.0], "all devices": [200.0]}
    wording(everything.says)
    assert "all devices" not in values(everything, "derived"), "its base, four devices, is missing"


def test_without_a_node_model_there_is_no_percentage() -> None:
    found = drawn(host.figures, partition(concurrent(((0,), 30.0), ((0, 1), 45.0)), node=None))
    assert list(found) == ["host-scaling"]
    assert {row["percent_of_peak"] for row in found["host-scaling"].rows} == {None}


def test_one_set_is_no_scaling() -> None:
    assert not drawn(host.figures, partition(concurrent(((0,), 30.0))))


@pytest.mark.parametrize("clock", ["simulated", "measured"])
def test_what_is_built_into_a_simulation_is_no_evidence(clock: str) -> None:
    runs = {"memcpy_near": copies("host-pageable", {GIB: 25.0}, "d2h")}
    found = sections(partition(runs, clock=clock))[0]["Between host and device"]
    said = "1 claim on these values rests on what was fitted or is built in, which is no evidence."
    assert (said in found[0].says) == (clock == "simulated")


@pytest.mark.parametrize("clock", ["simulated", "measured"])
def test_a_matrix_says_itself_what_it_was_fitted_to(clock: str) -> None:
    runs = {"p2p_engine": [peer(pair, GIB, 37.6) for pair in ((0, 2), (2, 0))]}
    mine, _ = sections(partition(runs, clock=clock))[0]["Between devices"]
    assert ("fitted to 1 published value here" in mine.says) == (clock == "simulated")
