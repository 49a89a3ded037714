"""The queries of docs/result.md, as they stand there, on the table of a recorded session."""

import re
from pathlib import Path

import duckdb
import polars as pl
import pytest
from exported import run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "result.md").read_text()
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
    exec(next(one for one in blocks("python") if "history.parquet" in one), names)
    by_polars = names["worst"].rows()
    by_duckdb = duckdb.sql(blocks("sql")[0]).fetchall()
    assert by_polars == by_duckdb and by_polars
    table = pl.read_parquet("history.parquet")
    known = table.filter(kind="metric", metric="copy_worst")["value"].to_list()
    assert [row[4] for row in by_polars] == sorted(known)
