"""What a fleet may be read from, and what is said of what cannot be read."""

from __future__ import annotations

import polars as pl
import pytest

from fabricheck.core.errors import FabricheckError, InvalidInputError, NotFoundError
from fabricheck.judge.fleet import findings, reading
from fleet import drawn_fleets
from session_builder import write_job

CHECKS = ("stream_local", "mpi_collectives")
NODES = 12


@pytest.fixture(scope="module")
def rows():
    return drawn_fleets.as_exported(drawn_fleets.fleet(NODES, 4, checks=CHECKS).lazy()).collect()


@pytest.fixture(scope="module")
def places(rows, tmp_path_factory):
    """Give the same fleet as one table, one table a node, CSV, and a list."""
    folder = tmp_path_factory.mktemp("fleet")
    rows.write_parquet(folder / "all.parquet")
    rows.write_csv(folder / "all.csv")
    (folder / "nodes").mkdir()
    for (node,), own in rows.group_by("node"):
        own.write_parquet(folder / "nodes" / f"{node}.parquet")
    names = "\n".join(str(one) for one in sorted((folder / "nodes").iterdir()))
    (folder / "list.txt").write_text(f"# the nodes of north\n{names}\n\n", encoding="utf-8")
    return folder


def the_only(*names):
    (partition,) = reading.read([str(one) for one in names]).partitions
    return partition


def test_a_table_has_a_matrix_of_its_metrics(places, rows):
    partition = the_only(places / "all.parquet")
    assert partition.where == "drawn:gpu" and partition.clock == "measured"
    assert partition.nodes == sorted(drawn_fleets.names(NODES))
    assert partition.values.shape == (NODES, rows["metric"].n_unique())
    for number, metric in enumerate(partition.metrics):
        own = rows.filter(pl.col("check") == metric.check, pl.col("metric") == metric.name)
        assert partition.values.to_series(number).to_list() == own.sort("node")["value"].to_list()


@pytest.mark.parametrize("name", ["all.csv", "nodes", "nodes/*.parquet", "list.txt"])
def test_the_same_fleet_from_elsewhere_has_the_same_matrix(places, name):
    one, other = the_only(places / "all.parquet"), the_only(places / name)
    assert set(other.metrics) == set(one.metrics) and other.nodes == one.nodes
    for number, metric in enumerate(one.metrics):
        theirs = other.values.to_series(other.metrics.index(metric))
        assert theirs.to_list() == one.values.to_series(number).to_list()


def test_a_node_of_several_sessions_has_their_median(places, rows, tmp_path):
    (tmp_path / "later").mkdir()
    for factor in (1.2, 1.5):
        changed = rows.with_columns(value=pl.col("value") * factor)
        changed.write_parquet(tmp_path / "later" / f"{factor}.parquet")
    one = the_only(places / "all.parquet")
    partition = the_only(places / "all.parquet", tmp_path / "later")
    ratio = partition.values.to_series(0) / one.values.to_series(0)
    assert ratio.to_list() == pytest.approx([1.2] * NODES)


def test_a_damaged_table_among_others_costs_its_node_only(places, tmp_path):
    for path in (places / "nodes").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    bad = tmp_path / "n03.parquet"
    bad.write_bytes(bad.read_bytes()[:200])
    fleet = reading.read([str(tmp_path)])
    assert len(fleet.nodes) == NODES - 1 and "n03" not in fleet.nodes
    (problem,) = fleet.problems
    assert problem.startswith(f"{bad}: cannot be read (")


def test_a_table_without_a_column_is_named_with_it(rows, tmp_path):
    rows.drop("unit").write_parquet(tmp_path / "other.parquet")
    with pytest.raises(InvalidInputError, match=r"other.parquet: .* the column unit is missing"):
        reading.read([str(tmp_path / "other.parquet")])


def test_a_table_of_an_older_version_lacks_columns(places, rows, tmp_path):
    rows.select("row_type", "node", "check", "metric", "value", "unit").write_parquet(
        tmp_path / "old.parquet"
    )
    fleet = reading.read([str(tmp_path / "old.parquet")])
    assert len(fleet.nodes) == NODES
    assert fleet.facts.is_empty()


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_table_of_an_older_version_has_todays_names_of_metrics(rows, tmp_path, suffix):
    older = rows.with_columns(metric=pl.lit("both_pinned_worst"))
    path = tmp_path / f"old.{suffix}"
    older.write_csv(path) if suffix == "csv" else older.write_parquet(path)
    names = {metric.name for metric in the_only(path).metrics}
    assert names == {"there_and_back_pinned_worst"}


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_table_of_an_older_version_has_the_type_of_rows_as_their_kind(rows, tmp_path, suffix):
    older = rows.rename({"row_type": "kind"})
    path = tmp_path / f"old.{suffix}"
    older.write_csv(path) if suffix == "csv" else older.write_parquet(path)
    assert len(the_only(path).nodes) == NODES


@pytest.mark.parametrize("name", ["gone.parquet", "gone/*.parquet", "gone.csv"])
def test_what_is_not_there_is_named(tmp_path, name):
    with pytest.raises(NotFoundError, match=r"gone"):
        reading.read([str(tmp_path / name)])


def test_a_table_without_metrics_is_refused(rows, tmp_path):
    rows.with_columns(row_type=pl.lit("series")).write_parquet(tmp_path / "series.parquet")
    with pytest.raises(FabricheckError, match="has no metric of any node"):
        reading.read([str(tmp_path / "series.parquet")])


def test_values_that_are_no_numbers_are_kept_as_such(rows, tmp_path):
    text = rows.with_columns(value=pl.col("value").cast(pl.String))
    bad = (pl.col("node") == "n05") & (pl.col("metric") == "copy_worst")
    text.with_columns(value=pl.when(bad).then(pl.lit("broken")).otherwise("value")).write_csv(
        tmp_path / "fleet.csv"
    )
    partition = the_only(tmp_path / "fleet.csv")
    number = next(
        at for at, one in enumerate(partition.metrics) if one.title == "stream_local copy_worst"
    )
    values = partition.values.to_series(number)
    assert [node for node, nan in zip(partition.nodes, values.is_nan(), strict=True) if nan] == [
        "n05"
    ]


def test_a_job_over_nodes_has_a_node_without_any_result(tmp_path):
    values = {"node1": 10.0, "node2": 7.0, "node3": None, "node10": 10.1}
    write_job(tmp_path, values, node3={"state": "DOWN"})
    fleet = reading.read([str(tmp_path / "every-node" / "17")])
    (partition,) = fleet.partitions
    assert partition.nodes == ["node1", "node2", "node10"]
    assert fleet.lost == ["node3"]
    sessions = fleet.sessions(["node2"])
    assert [session for session, _ in sessions["node2"]] == ["run-0"]


def test_networks_are_a_partition_of_their_own(rows, tmp_path):
    between = rows.filter(pl.col("node") == "n01", pl.col("metric") == "copy_worst")
    file = tmp_path / "fleet.parquet"
    pl.concat([rows, between.with_columns(node=pl.lit("n[01-02]"))]).write_parquet(file)
    fleet = reading.read([str(file)])
    nodes, networks = fleet.partitions
    assert "n[01-02]" not in nodes.nodes
    assert (networks.title, networks.size) == (f"{nodes.where} (networks)", "1 network")
    # Metrics of nodes are not missing of it.
    assert findings.findings(fleet).missing_metrics == {}


def test_sessions_and_documents_are_read_as_everywhere():
    session = drawn_fleets.OUTPUTS / "h200" / "session-x2"
    fleet = reading.read([str(session), str(drawn_fleets.SIMULATED)])
    assert [one.title for one in fleet.partitions] == [
        "h200:x2",
        "local:sim-mi250x (simulated)",
    ]
    assert [len(one.metrics) for one in fleet.partitions] == [125, 254]
    facts = dict(fleet.facts.filter(pl.col("node") == "vm").select("fact", "value").iter_rows())
    assert facts["driver"] == "nvidia 580.159.04"
    assert fleet.sessions(["vm"]) == {"vm": [("run-0", str(session))]}
