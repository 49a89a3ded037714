"""Odd nodes of drawn fleets, and the rule on fleets whose values are chosen."""

from __future__ import annotations

import math
import random

import polars as pl
import pytest

from fabricheck.judge.fleet import outliers, reading
from fabricheck.judge.fleet.reading import Metric, Partition
from fleet import drawn_fleets
from fleet.drawn_fleets import Fault

#: A quarter of the metrics, so that a test may draw all nodes.
CHECKS = ("stream_local", "p2p_kernel", "memcpy_near", "mpi_collectives")

FAULTS = (
    Fault(100, "everything", 0.03),
    Fault(200, "everything", 0.10),
    Fault(1000, "device 3", 0.03),
    Fault(2000, "device 5", 0.06),
    Fault(3000, "pair 0-6", 0.03),
    Fault(4000, "pair 2-3", 0.10),
    Fault(5000, "device 0", 0.04),
    Fault(6000, "domain 2", 0.10),
    Fault(7000, "p2p_kernel read_links4_worst", 0.05),
    Fault(8000, "stream_local triad_median", 0.03),
)


def judged_table(tmp_path, rows):
    rows.write_parquet(tmp_path / "fleet.parquet")
    fleet = reading.read([str(tmp_path / "fleet.parquet")])
    return outliers.judge(fleet.partitions[0])


@pytest.mark.full
def test_ten_faults_among_9408_nodes_are_found_and_no_other_node(tmp_path):
    rows = drawn_fleets.fleet(9408, 20, FAULTS, checks=CHECKS)
    found = {one.node for one in judged_table(tmp_path, rows).outliers}
    planted = {drawn_fleets.names(9408)[fault.node] for fault in FAULTS}
    assert found >= planted
    assert len(found - planted) <= 1


def partition(columns, unit="GB/s"):
    """Return a partition whose metrics have these values."""
    metrics = [Metric("rocm", "E7", "check", f"m{at}", unit) for at in range(len(columns))]
    frame = pl.DataFrame(
        [pl.Series(str(at), own, dtype=pl.Float64) for at, own in enumerate(columns)]
    )
    nodes = [f"n{at}" for at in range(frame.height)]
    return Partition("north:gpu", "measured", nodes, metrics, frame)


def healthy(nodes, metrics=8, seed=1, spread=0.001):
    rng = random.Random(seed)
    return [[100 * (1 + rng.gauss(0, spread)) for _ in range(nodes)] for _ in range(metrics)]


def names(judged):
    return [one.node for one in judged.outliers]


@pytest.mark.parametrize("nodes", [5, 8, 24, 100, 1000])
def test_one_slow_node_stands_out_of_few_and_of_many(nodes):
    columns = healthy(nodes)
    assert names(outliers.judge(partition(columns))) == []
    for own in columns:
        own[1] *= 0.95
    judged = outliers.judge(partition(columns))
    assert names(judged) == ["n1"]
    assert judged.outliers[0].behind == pytest.approx([0.05] * 8, abs=0.01)


def test_of_many_nodes_and_noisy_metrics_none_stands_out():
    judged = outliers.judge(partition(healthy(1000, metrics=30, spread=0.03)))
    assert names(judged) == []
    assert all(0.1 < one.limit < 0.4 for one in judged.distributions)
    assert [one.spread for one in judged.distributions] == pytest.approx([0.03] * 30, rel=0.15)


def test_of_two_nodes_none_stands_out():
    assert names(outliers.judge(partition([[100, 50], [100, 50]]))) == []


def test_several_small_distances_count_together():
    columns = healthy(1000, metrics=40, spread=0.01)
    for own in columns[:20]:
        own[7] = 100 * (own[7] / 100 - 0.03)  # three spreads: one alone is noise
    assert names(outliers.judge(partition(columns))) == ["n7"]
    for own in columns[1:20]:
        own[7] = 100
    assert names(outliers.judge(partition(columns))) == []


@pytest.mark.parametrize("value", [0.0, 1e9, math.nan, -1.0, math.inf])
def test_a_value_that_cannot_be_is_named_and_moves_nobody(value):
    columns = healthy(300)
    for own in columns:
        own[5] *= 0.9
    before = outliers.judge(partition(columns))
    columns[0][9] = value
    after = outliers.judge(partition(columns))
    assert names(before) == ["n5"]
    assert sorted(names(after)) == ["n5", "n9"]
    (bogus,) = (one for one in after.outliers if one.node == "n9")
    assert [one.metric.name for one in bogus.implausible] == ["m0"]
    one, other = before.distributions[0], after.distributions[0]
    assert other.limit == pytest.approx(one.limit, rel=0.05)
    assert other.median == pytest.approx(one.median, rel=1e-4)


def test_a_node_that_lacks_most_metrics_is_judged_by_those_it_has():
    columns = healthy(300)
    for number, values in enumerate(columns):
        values[5] = 0.9 * values[5] if number < 2 else None
    (outlier,) = outliers.judge(partition(columns)).outliers
    assert [value.metric.name for value in outlier.values] == ["m0", "m1"]


def test_a_missing_value_is_no_bad_value():
    columns = healthy(300)
    columns[0][9] = None
    judged = outliers.judge(partition(columns))
    assert names(judged) == []
    assert {node: [one.name for one in own] for node, own in judged.missing_metrics.items()} == {
        "n9": ["m0"]
    }


@pytest.mark.parametrize(
    "slow, minority", [(30, "slow minority"), (150, "two groups"), (270, "slow majority")]
)
def test_two_groups_of_nodes_are_told_and_an_odd_node_of_either_is_found(slow, minority):
    columns = healthy(300)
    for own in columns:
        own[:slow] = [0.9 * value for value in own[:slow]]
        own[2] *= 0.95
        own[298] *= 0.95
    judged = outliers.judge(partition(columns))
    groups = [one.groups for one in judged.distributions if one.groups is not None]
    assert len(groups) == 8 and {one.minority for one in groups} == {minority}
    assert all(len(set(one.slow) - {2, 298}) in (slow - 1, slow) for one in groups)
    assert {"n2", "n298"} <= set(names(judged))
    assert len(names(judged)) == 2


@pytest.mark.parametrize(("nodes", "are_groups"), [(11, False), (12, True)])
def test_groups_are_looked_for_in_twelve_nodes_and_more(nodes, are_groups):
    columns = healthy(nodes)
    for own in columns:
        own[:5] = [0.9 * value for value in own[:5]]
    judged = outliers.judge(partition(columns))
    assert {one.groups is not None for one in judged.distributions} == {are_groups}


def test_of_times_the_longer_ones_are_behind():
    columns = healthy(300, spread=0.01)
    for own in columns:
        own[3] *= 1.3
        own[4] /= 1.3
    assert names(outliers.judge(partition(columns, "us"))) == ["n3"]


def test_a_counted_fault_that_others_do_not_have_stands_out():
    counts = [[0.0] * 20]
    assert names(outliers.judge(partition(counts, "count"))) == []
    counts[0][4] = 1.0
    assert names(outliers.judge(partition(counts, "count"))) == ["n4"]


def test_equal_values_have_no_odd_node():
    assert names(outliers.judge(partition([[100.0] * 50] * 4))) == []


def test_of_24_recorded_sessions_the_one_with_a_slow_copy_and_a_slowed_one_stand_out(tmp_path):
    rows = drawn_fleets.recorded()
    assert rows["node"].n_unique() == 24
    (one,) = judged_table(tmp_path, rows).outliers
    assert one.node == "h10"
    assert {f"{far.metric.check} {far.metric.name[:15]}" for far in one.values} == {
        "memcpy_near h2d_pinned_near"
    }
    kernel = (pl.col("node") == "h07") & (pl.col("check") == "p2p_kernel")
    slower = pl.when(kernel).then(0.95).otherwise(1.0)
    judged = judged_table(tmp_path, rows.with_columns(pl.col("value") * slower))
    assert set(names(judged)) == {"h07", "h10"}


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [3, 5, 8, 12, 40])
def test_of_few_healthy_nodes_none_is_named(nodes):
    for seed in range(5):
        assert (
            outliers.judge(partition(healthy(nodes, metrics=60, seed=seed, spread=0.005))).outliers
            == ()
        )


def test_of_four_nodes_none_is_named():
    columns = healthy(4)
    for own in columns:
        own[1] *= 0.8
    assert outliers.judge(partition(columns)).outliers == ()


def test_of_few_nodes_one_that_is_three_per_cent_slower_is_named():
    columns = healthy(12, metrics=20, spread=0.003)
    for own in columns:
        own[7] *= 0.97
    assert [one.node for one in outliers.judge(partition(columns)).outliers] == ["n7"]
