"""What `fabricheck fleet` says of damaged tables, strange names, values that cannot be, and
partitions that are not there any more."""

from __future__ import annotations

import json

import polars as pl
import pytest

from fabricheck.cli import app
from fabricheck.judge.calibration import rule
from fabricheck.judge.fleet import outliers, reading
from fleet import drawn_fleets

NODES = 40
METRIC = (pl.col("check") == "stream_local") & (pl.col("metric") == "copy_median")


def run(capsys, *arguments):
    """Run the command; return exit code, standard output and standard error."""
    with pytest.raises(SystemExit) as ended:
        app(["fleet", *map(str, arguments)])
    out, err = capsys.readouterr()
    return ended.value.code or 0, out, err


@pytest.fixture(scope="module")
def healthy():
    told = {"session_id": "run-0", "driver": "0", "result": "pass"}
    rows = drawn_fleets.fleet(NODES, 3, checks=["stream_local"])
    return rows.with_columns(pl.lit(cell).alias(name) for name, cell in told.items())


@pytest.fixture
def table(tmp_path, healthy):
    """Give a folder for tables, of which one has all nodes."""
    healthy.write_parquet(tmp_path / "fleet.parquet")
    return tmp_path / "fleet.parquet"


@pytest.fixture
def write(tmp_path):
    def written(rows, name="other.parquet"):
        rows.write_parquet(tmp_path / name)
        return tmp_path / name

    return written


@pytest.fixture
def folder(tmp_path, healthy):
    """Give a folder with a table for each of six nodes."""
    (tmp_path / "nodes").mkdir()
    for node in (f"n{one:02}" for one in range(1, 7)):
        healthy.filter(pl.col("node") == node).write_parquet(tmp_path / "nodes" / f"{node}.parquet")
    return tmp_path / "nodes"


def changed(rows, value, where=METRIC):
    return rows.with_columns(value=pl.when(where).then(value).otherwise("value"))


def faulty(healthy, node="n17"):
    """Return a fleet with a count of faults, 3 on one node."""
    number = pl.when(pl.col("node") == node).then(3.0).otherwise(0.0)
    told = {"check": "p2p_kernel", "metric": "differences", "unit": "count"}
    rows = healthy.filter(METRIC).with_columns(
        *(pl.lit(cell).alias(name) for name, cell in told.items()), value=number
    )
    return pl.concat([healthy, rows])


@pytest.mark.parametrize("name", ["fleet.parquet", "page", "page.csv"])
def test_a_page_that_would_be_no_html_is_refused(table, capsys, name, wording):
    before = table.read_bytes()
    code, out, err = run(capsys, table, "--output", table.parent / name)
    assert (code, out) == (2, "")
    wording(err)
    assert table.read_bytes() == before


@pytest.mark.parametrize("name", ["file/page.html", "folder.html"])
def test_of_a_page_that_cannot_be_written_the_findings_are_said(table, capsys, name):
    (table.parent / "file").write_text("")
    (table.parent / "folder.html").mkdir()
    code, out, err = run(capsys, table, "--output", table.parent / name)
    assert code == 3
    assert "No node stands out.\n" in out and "Page" not in out
    assert f"{table.parent / name} cannot be written (" in err


def test_another_partition_is_only_before_or_after(table, capsys, healthy, write):
    other = write(healthy.with_columns(partition=pl.lit("cpu")))
    page = table.parent / "page.html"
    code, out, _ = run(capsys, table, "--after", other, "--output", page)
    assert code == 11
    for said in (
        "No partition is in both, so no metric was compared.",
        f"Only before: drawn:gpu, {NODES} nodes",
        f"Only after: drawn:cpu, {NODES} nodes",
    ):
        assert f"{said}\n" in out and said in page.read_text(encoding="utf-8")
    code, out, _ = run(capsys, table, "--after", other, "--json")
    (one,) = json.loads(out)["changes"]["only_before"]
    assert (code, one["partition"], len(one["nodes"])) == (11, "drawn:gpu", NODES)


def test_a_node_that_one_of_two_partitions_lost_is_named_there(table, capsys, healthy, write):
    cpu = healthy.with_columns(partition=pl.lit("cpu"))
    both = write(pl.concat([healthy, cpu]), "both.parquet")
    less = write(pl.concat([healthy, cpu.filter(pl.col("node") != "n05")]), "less.parquet")
    page = table.parent / "page.html"
    code, out, _ = run(capsys, both, "--after", less, "--output", page)
    assert code == 11
    assert lines_from(out, "drawn:cpu")[1] == "  disappeared: 1 node, n05"
    assert "Disappeared: 1 node: n05" in page.read_text(encoding="utf-8")
    code, out, _ = run(capsys, both, "--after", table)
    assert code == 11 and f"Only before: drawn:cpu, {NODES} nodes\n" in out


def lines_from(out, start):
    """Return the lines from the one that starts so on."""
    every = out.splitlines()
    return every[next(at for at, one in enumerate(every) if one.startswith(start)) :]


def test_a_file_that_is_neither_table_nor_result_costs_nothing_else(table, capsys, wording):
    page = table.parent / "page.html"
    page.write_text("<!doctype html>")
    for names in ((table, page), (table.parent / "*.*",)):
        code, out, err = run(capsys, *names)
        assert code == 4 and f": drawn:gpu: {NODES} nodes" in out
        wording(err)
    code, out, err = run(capsys, page)
    assert (code, out) == (4, "")
    wording(err)


def test_a_session_that_cannot_be_read_costs_nothing_else(table, capsys, tmp_path):
    report = tmp_path / "results" / "reports" / "run-0.json"
    report.parent.mkdir(parents=True)
    report.write_text("{")
    code, out, err = run(capsys, table, tmp_path / "results")
    assert code == 4 and f": drawn:gpu: {NODES} nodes" in out
    assert str(report) in err


def test_suffixes_are_those_of_tables_in_capitals_too(folder, healthy):
    (folder / "n01.parquet").rename(folder / "n01.PARQUET")
    assert len(reading.read([str(folder)]).nodes) == 6


def bad_page(path, rows):
    """Write a table whose cells are damaged while its schema is not."""
    rows.write_parquet(path, compression="uncompressed", statistics=False)
    whole = bytearray(path.read_bytes())
    whole[4:100] = b"\xff" * 96
    path.write_bytes(whole)


def nested(path, rows):
    rows.with_columns(value=pl.struct("value")).write_parquet(path)


def lists(path, rows):
    rows.with_columns(node=pl.concat_list("node")).write_parquet(path)


@pytest.mark.parametrize("damage", [bad_page, nested, lists])
def test_a_damaged_table_costs_its_node_only(folder, healthy, damage):
    damage(folder / "n03.parquet", healthy.filter(pl.col("node") == "n03"))
    fleet = reading.read([str(folder)])
    assert len(fleet.nodes) == 5 and "n03" not in fleet.nodes
    (problem,) = fleet.problems
    assert problem.startswith(f"{folder / 'n03.parquet'}: ")


@pytest.mark.parametrize("damage", [b"n01,\xe9", b'"n01'])
def test_a_damaged_csv_costs_its_node_only(tmp_path, healthy, damage):
    for node in ("n01", "n02"):
        path = tmp_path / f"{node}.csv"
        healthy.filter(pl.col("node") == node).write_csv(path)
    path = tmp_path / "n01.csv"
    path.write_bytes(path.read_bytes().replace(b"n01", damage, 1))
    fleet = reading.read([str(tmp_path)])
    assert fleet.nodes == ["n02"]
    (problem,) = fleet.problems
    assert problem.startswith(f"{path}: cannot be read (")


@pytest.mark.parametrize("name, kind", [("value", pl.Float32), ("node", pl.Categorical)])
def test_tables_with_other_types_are_read_together(folder, healthy, name, kind):
    rows = healthy.filter(pl.col("node") == "n03").with_columns(pl.col(name).cast(kind))
    rows.write_parquet(folder / "n03.parquet")
    fleet = reading.read([str(folder)])
    assert len(fleet.nodes) == 6 and fleet.problems == ()


def test_a_column_that_few_questions_need_may_be_of_another_type(folder, capsys, healthy):
    rows = healthy.filter(pl.col("node") == "n03").with_columns(driver=pl.lit(3))
    rows.write_parquet(folder / "n03.parquet")
    code, out, err = run(capsys, folder, "--after", folder)
    assert (code, err) == (0, "") and "drawn:gpu: 6 nodes" in out


def test_a_bracket_in_the_path_of_a_table_is_no_glob(tmp_path, healthy):
    (tmp_path / "q[1]").mkdir()
    healthy.write_parquet(tmp_path / "q[1]" / "a.parquet")
    assert len(reading.read([str(tmp_path / "q[1]")]).nodes) == NODES


def test_lists_that_name_each_other_are_read_once(table, capsys):
    one, other = table.parent / "one.txt", table.parent / "other.txt"
    one.write_text(f"{other}\n{one}\n")
    other.write_text(f"{one}\n")
    assert run(capsys, one) == (3, "", f"fabricheck: {one} lists no name.\n")
    other.write_text(f"{one}\n{table}\n")
    assert len(reading.read([str(one)]).nodes) == NODES


def test_a_problem_is_said_once(table, capsys):
    (table.parent / "bad.parquet").write_bytes(b"PAR1")
    code, _, err = run(capsys, table.parent, "--after", table.parent)
    assert code == 4 and len(err.splitlines()) == 1
    (table.parent / "x.json").write_text("{}")
    assert len(reading.read([str(table), str(table.parent / "x.json")]).problems) == 1


def test_an_absurd_value_hides_no_groups():
    assert rule.split([*(100.0 + at for at in range(19)), 1e300], "GB/s", 5) is None
    # Two groups without a gap between them.
    values = [near + at / 1000 for near in (100.0, 110.0) for at in range(20)]
    values += [100.0 + 1.5 * at for at in range(1, 7)]
    metric = reading.Metric("rocm", "E1", "a", "b", "GB/s")
    part = reading.Partition(
        "a:b", "measured", [f"n{at}" for at in range(47)], [metric],
        pl.DataFrame({"0": [*values, 1e300]}),
    )  # fmt: skip
    (one,) = outliers.judge(part).distributions
    assert one.groups is not None and 20 <= len(one.groups.slow) <= 26


def test_an_unknown_unit_and_a_strange_series_cell_are_compared(table, capsys, healthy, write):
    unit = pl.when(pl.col("unit") == "GB/s").then(pl.lit("TB/h")).otherwise("unit")
    rows = healthy.with_columns(unit=unit, series=pl.lit("[one, 2]"))
    before, after = write(rows), write(changed(rows, 0.9 * pl.col("value")), "after.parquet")
    code, out, _ = run(capsys, before, "--after", after)
    assert code == 10 and ": 1 metrics worse, 0 better" in out


def test_a_metric_of_two_modes_that_moved_between_them_is_undetermined(capsys, healthy, write):
    few = METRIC & (pl.col("node") < "n07")
    before = write(changed(healthy, 0.9 * pl.col("value"), few), "before.parquet")
    after = write(changed(healthy, 0.95 * pl.col("value")), "after.parquet")
    _, out, _ = run(capsys, before, "--after", after)
    assert ": 0 metrics worse, 0 better, 11 unchanged, 1 undetermined;" in out


def test_a_count_of_faults_is_said_as_a_count(capsys, healthy, write):
    path = write(faulty(healthy))
    code, out, _ = run(capsys, path)
    assert code == 14 and lines_from(out, "  n17: ")[0].endswith(
        "more faults in 1 of 13 metrics; farthest p2p_kernel differences 3 (median 0)"
    )
    (line,) = (one for one in out.splitlines() if one.startswith("  n17: "))
    assert "%" not in line
    code, out, _ = run(capsys, path, "--json")
    (one,) = json.loads(out)["partitions"][0]["outliers"]
    assert one["values"][0]["behind"] is None and one["values"][0]["value"] == 3
    code, out, _ = run(capsys, write(faulty(healthy, ""), "none.parquet"), "--after", path)
    assert code == 10 and "n17 by 3 in p2p_kernel differences" in out


def test_of_a_node_without_numbers_one_value_is_named(capsys, healthy, write):
    path = write(changed(healthy, float("nan"), pl.col("node") == "n05"))
    code, out, _ = run(capsys, path)
    metrics = healthy.filter(pl.col("node") == "n05").height
    assert code == 14 and lines_from(out, "  n05: ")[0].endswith(f") and {metrics - 1} more")


@pytest.mark.parametrize("unit", ["GB/s", "count"])
def test_a_metric_without_a_usable_value_is_said_once(table, capsys, healthy, write, unit):
    rows = healthy.with_columns(unit=pl.when(METRIC).then(pl.lit(unit)).otherwise("unit"))
    before, path = write(rows, "before.parquet"), write(changed(rows, float("nan")))
    page = table.parent / "page.html"
    code, out, _ = run(capsys, before, "--after", path, "--output", page)
    assert code == 11 and "No node stands out.\n" in out
    assert "\nNo node has a usable value of stream_local copy_median\n" in out
    assert " 1 undetermined; " in out
    assert "No node has a usable value of stream_local copy_median" in page.read_text()
    code, out, _ = run(capsys, before, "--after", path, "--json")
    assert code == 11 and "NaN" not in out
