"""What the slow values of an odd node have in common, by its series and by its metrics."""

from __future__ import annotations

import random

import polars as pl
import pytest

from fabricheck.judge.fleet import odd, reading, shapes
from fleet import drawn
from fleet.drawn import Fault, Member

NODES = 30
SLOW = 17
CHECKS = ["stream_local", "memcpy_near", "memcpy_numa", "p2p_engine", "p2p_kernel"]


@pytest.fixture(scope="module")
def simulated():
    rows = drawn.exported().filter(pl.col("check").is_in(CHECKS))
    metrics = rows.filter(pl.col("kind") == "metric", pl.col("reduce").is_not_null())
    return rows.filter(pl.col("kind") == "series"), metrics


def rows_of_fleet(simulated, fault):
    """Return the rows of a fleet in which one node has a fault, with metrics made of its series."""
    series, metrics = simulated
    nodes = pl.DataFrame({"node": [f"n{one:02}" for one in range(NODES)]})
    members = [drawn.member(one) for one in series.iter_rows(named=True)]
    struck = pl.Series("struck", [fault.strikes(one) for one in members])
    part = pl.when(pl.col("better") == "lower").then(1 / (1 - fault.part)).otherwise(1 - fault.part)
    slow = pl.col("struck") & (pl.col("node") == f"n{SLOW}")
    every = series.with_columns(struck).drop("node").join(nodes, how="cross")
    rng = random.Random(3)
    noise = pl.Series("noise", [1 + rng.gauss(0, 0.001) for _ in range(len(every))])
    every = every.with_columns(noise).with_columns(
        value=pl.col("value") * pl.col("noise") * pl.when(slow).then(part).otherwise(1.0)
    )
    made_of = metrics.select(
        "check", "metric", "reduce", index=pl.col("series").str.extract_all("[0-9]+")
    ).explode("index", empty_as_null=True)
    values = made_of.with_columns(pl.col("index").cast(pl.Int64)).join(
        every.drop("metric", "reduce"), on=["check", "index"]
    )
    worst = pl.when(pl.col("better").first() == "lower").then(pl.col("value").max())
    reduced = values.group_by("check", "metric", "node").agg(
        pl.when(pl.col("reduce").first() == "worst")
        .then(worst.otherwise(pl.col("value").min()))
        .otherwise(pl.col("value").median())
        .alias("value")
    )
    own = metrics.drop("node", "value").join(reduced, on=["check", "metric"])
    return pl.concat([one.select(metrics.columns) for one in (every, own)])


def shape_of(tmp_path, rows):
    rows.write_parquet(tmp_path / "fleet.parquet")
    fleet = reading.read([str(tmp_path / "fleet.parquet")])
    judged = odd.judge(fleet.partitions[0])
    assert [one.node for one in judged.odd] == [f"n{SLOW}"]
    return shapes.of(judged, fleet.rows.collect())[f"n{SLOW}"]


@pytest.mark.parametrize(
    "where, told",
    [
        ("device 3", "device 3"),
        ("pair 0-6", "pair 0-6"),
        ("domain 1", "NUMA domain 1"),
        ("everything", "everything"),
    ],
)
def test_the_part_that_is_slow_is_named_by_its_series(tmp_path, simulated, where, told):
    shape = shape_of(tmp_path, rows_of_fleet(simulated, Fault(SLOW, where, 0.06)))
    assert shape.what == told
    assert shape.of == "series" and shape.slow - 8 < shape.explained and shape.slow > 3
    assert shape.behind == pytest.approx(0.06, abs=0.01)


def test_without_series_the_names_of_metrics_tell_less(tmp_path, simulated):
    rows = rows_of_fleet(simulated, Fault(SLOW, "pair 0-6", 0.06))
    shape = shape_of(tmp_path, rows.filter(pl.col("kind") == "metric"))
    assert shape.of == "metrics"
    assert shape.what == "`links2`"


def test_one_metric_is_one_metric(tmp_path, simulated):
    rows = rows_of_fleet(simulated, Fault(SLOW, "nothing", 0.06))
    one = (
        (pl.col("kind") == "metric")
        & (pl.col("metric") == "copy_median")
        & (pl.col("node") == f"n{SLOW}")
    )
    slower = pl.when(one).then(0.9).otherwise(1.0)
    rows = rows.with_columns(value=pl.col("value") * slower)
    assert shape_of(tmp_path, rows).what == "one metric, stream_local copy_median"


def test_a_member_is_a_device_a_pair_or_a_domain():
    assert Fault(0, "pair 6-0", 0.1).strikes(Member(0, (0, 6)))
    assert not Fault(0, "pair 0-6", 0.1).strikes(Member(0, (0, 5)))
