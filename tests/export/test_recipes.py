"""The queries of docs/export.md, as they stand there, on the table of a recorded session."""

import re
from pathlib import Path

import duckdb
import polars as pl
import pytest
from exported import run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "export.md").read_text()
RECORDED = ROOT / "tests" / "outputs" / "h200" / "session-x2"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def history(tmp_path, monkeypatch):
    """A folder with the table of a recorded session, under the name that the page has."""
    monkeypatch.chdir(tmp_path)
    assert run(RECORDED, "--output", "history.parquet").exit_code == 0


def test_both_queries_of_a_metric_give_the_same_values(history):
    names = {}
    exec(blocks("python")[0], names)
    by_polars = names["worst"].rows()
    by_duckdb = duckdb.sql(blocks("sql")[0]).fetchall()
    assert by_polars == by_duckdb and by_polars
    table = pl.read_parquet("history.parquet")
    known = table.filter(kind="metric", metric="copy_worst")["value"].to_list()
    assert [row[4] for row in by_polars] == sorted(known)


def test_the_query_of_series_is_grouped_by_link_class(history):
    found = duckdb.sql(blocks("sql")[1]).fetchall()
    assert {row[0] for row in found} == {"switch18"}
    table = pl.read_parquet("history.parquet").filter(kind="series", link_class="switch18")
    largest = table.filter(bytes=table.filter(experiment="E7")["bytes"].max(), role="single")
    for _, engine, operation, median, count in found:
        alike = largest.filter(engine=engine, operation=operation, unit="GB/s")
        assert (alike["value"].median(), alike.height) == (median, count)
