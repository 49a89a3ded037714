"""Figures of ranks: bars of every one in each placement, and the slowest over size."""

from __future__ import annotations

from typing import Any

import factories
from fabricheck.report.figures import placement
from figure_runs import MIB, drawn, partition, rank_copy, values
from wording import Wording


def ranked(**domains: int) -> dict[str, Any]:
    """Return devices of domain 0 and ranks of the domains given, domain 0 otherwise."""
    rank = {"host": "node1", "cores": [0], "memory_domain": 0, "visible_devices": [0]}
    return {
        "devices": [factories.device(index) for index in range(8)],
        "ranks": [
            {**rank, "rank": i, "device": i, "numa_domain": domains.get(f"rank{i}", 0)}
            for i in range(8)
        ],
    }


def test_every_rank_is_there_and_the_odd_one_is_named(wording: Wording) -> None:
    speeds = [18.0, 18.1, 18.2, 15.0, 18.0, 18.1, 18.0, 18.1]
    ranks = [rank_copy(i, value) for i, value in enumerate(speeds)]
    figure = drawn(placement.figures, partition({"pingpong_right": ranks}, **ranked()))[
        "placement-pageable"
    ]
    assert values(figure) == {"right": speeds}
    wording(figure.says)
    assert ">rank 3<" in figure.svg


def test_none_is_odd_where_all_scatter(wording: Wording) -> None:
    speeds = [13.4, 8.2, 15.5, 8.0, 16.1, 10.2, 16.0, 10.1]
    ranks = [rank_copy(i, value, "in_order") for i, value in enumerate(speeds)]
    figure = drawn(placement.figures, partition({"pingpong_in_order": ranks}, **ranked()))[
        "placement-pageable"
    ]
    wording(figure.says)
    assert ">rank" not in figure.svg


def test_ranks_on_cores_of_another_domain_are_compared_with_each_other(wording: Wording) -> None:
    speeds = [18.0, 18.0, 18.0, 12.0, 12.0, 12.0]
    ranks = [rank_copy(i, value, "spread") for i, value in enumerate(speeds)]
    far = ranked(rank3=1, rank4=1, rank5=1)
    figure = drawn(placement.figures, partition({"pingpong_spread": ranks}, **far))[
        "placement-pageable"
    ]
    wording(figure.says)


def test_published_ranks_stand_beside_pageable_memory_only() -> None:
    ranks = [rank_copy(i, 12.0, "in_order") for i in range(8)]
    pinned = [rank_copy(i, 25.0, "in_order", "host-pinned") for i in range(8)]
    runs = {"pingpong_in_order": [*ranks, *pinned]}
    found = drawn(placement.figures, partition(runs, **ranked()))
    assert len(values(found["placement-pageable"], "published")["in order"]) == 8
    assert values(found["placement-pinned"]) == {"in order": [25.0] * 8}
    assert not values(found["placement-pinned"], "published")
    elsewhere = drawn(placement.figures, partition(runs, "mi250-two-sockets", **ranked()))
    assert not values(elsewhere["placement-pageable"], "published")


def test_published_ranks_that_the_session_has_not_are_drawn_too() -> None:
    ranks = [rank_copy(i, 12.0, "in_order") for i in range(4)]
    found = drawn(placement.figures, partition({"pingpong_in_order": ranks}, **ranked()))
    figure = found["placement-pageable"]
    assert len(values(figure, "published")["in order"]) == 8
    assert figure.svg.count('stroke="black" stroke-width="1"') >= 8


def test_the_curve_is_of_the_slowest_rank_and_its_data_of_all(wording: Wording) -> None:
    curve = {64 << 10: (5.0, 6.0), 128 << 10: (3.0, 2.0), MIB: (9.0, 10.0)}
    scan = [
        rank_copy(rank, value, bytes=size)
        for size, both in curve.items()
        for rank, value in enumerate(both)
    ]
    found = drawn(placement.figures, partition({"pingpong_scan": scan}, **ranked()))
    assert list(found) == ["placement-curves"]
    figure = found["placement-curves"]
    assert values(figure)["pageable"] == [value for both in curve.values() for value in both]
    wording(figure.says)
    assert "published, one rank alone" in figure.svg
